"""The messages and bytes that dispatch limits delayed, in PIP-406's first form (rule 2.2).

Refusals and releases are frequent, so counting first checks whether anything that matters has
changed since the last time.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from headgate.flow.limits.budget import Budget
from headgate.flow.limits.rate_limit import Dimension
from headgate.flow.limits.throttled_events import ThrottledAmounts

if TYPE_CHECKING:
    from headgate.engine.dispatcher import Dispatcher

NOTHING = ((0, 0), (0, 0), (0, 0))
NOTHING_SEEN = (-1, -1)


class ThrottledDispatch:
    """The delayed amounts of one subscription. They start at 0 when its topic is loaded."""

    __slots__ = ("_amounts", "_refusing", "_seen")

    def __init__(self) -> None:
        self._amounts: ThrottledAmounts | None = None
        self._refusing: tuple[Budget, ...] = ()
        self._seen = NOTHING_SEEN

    @property
    def counts(self) -> tuple[tuple[int, ...], ...]:
        """Messages and bytes by level, then dimension; exact after :meth:`count_delayed`."""
        if self._amounts is None:
            return NOTHING
        return tuple(tuple(level) for level in self._amounts.counts)

    def count_delayed(self, dispatcher: Dispatcher) -> None:
        """Count what the budgets that refuse the subscription delay now."""
        refusing = dispatcher.subscription.gate.refusing()
        if refusing != self._refusing:
            self._refusing = refusing
            self._seen = NOTHING_SEEN
        permits = dispatcher.permits()
        # Sending takes from the permits what it adds to what was sent.
        subscription = dispatcher.subscription
        seen = subscription.topic.log.end, subscription.messages_sent + permits
        if seen != self._seen:
            self._seen = seen
            self._count(dispatcher, permits)

    def forget(self) -> None:
        """Messages are redelivered, or the cursor moved: forget what was counted last."""
        self._seen = NOTHING_SEEN

    def _count(self, dispatcher: Dispatcher, permits: int) -> None:
        if self._amounts is None:
            self._amounts = ThrottledAmounts()
        subscription = dispatcher.subscription
        waiting = dispatcher.waiting()
        sent = subscription.messages_sent, subscription.bytes_sent
        for budget in self._refusing:
            dimension = budget.dimension
            allowed = permits
            if dimension == Dimension.BYTES:
                allowed = _bytes_of_first(dispatcher, permits, *waiting)
            self._amounts.count(
                budget.level,
                dimension,
                sent=sent[dimension],
                allowed=allowed,
                waiting=waiting[dimension],
            )


def _bytes_of_first(dispatcher: Dispatcher, permits: int, messages: int, size_bytes: int) -> int:
    """Bytes of the first ``permits`` of the ``messages`` that wait, which have ``size_bytes``."""
    if permits >= messages:
        return size_bytes
    if permits <= 0:
        return 0
    log = dispatcher.subscription.topic.log
    first = max(dispatcher.read_ordinal, log.first)
    last = min(first + permits, log.end)
    if first < log.memory_first and log.indexed_stop(first, last) < last:
        return size_bytes * permits // messages  # an estimate, until these entries are read
    before = log.messages_before(first)
    new = log.messages_before(log.end) - before
    given_back = max(0, messages - new)
    if permits <= given_back:
        return size_bytes * permits // messages
    wanted = permits - given_back
    # Each entry has a message, so the search ends at ``last``.
    stop = bisect_left(range(first, last), before + wanted, key=log.messages_before)
    unsent_bytes = log.bytes_before(log.end) - log.bytes_before(first + stop)
    return max(0, size_bytes - unsent_bytes)
