"""One limiter in the telemetry: the track of one budget in force."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

from headgate.engine.producer import Producer
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.flow.limits.budget import Budget
from headgate.flow.limits.gate import BrokerGate, TopicGate
from headgate.flow.limits.rate_limit import Dimension, Level
from headgate.flow.limits.waiter_gate import WaiterGate
from headgate.policy.current_limits import PUBLISH_BROKER
from headgate.record.fields import WAITERS_LARGEST, told_count
from headgate.telemetry.records.names import PLAIN, Names
from headgate.telemetry.records.subjects import SPAN_COLUMNS, Instant, Row

Gate = BrokerGate | TopicGate | WaiterGate

Waiter = Subscription | Producer
"""A waiter at a dispatch limit, or at a publish limit."""

_BROAD: Final = (Level.BROKER.name.lower(), PUBLISH_BROKER)
"""Levels whose limits the waiters of many topics share."""

LIMITER_COLUMNS: Final = (
    "level", "subject", "incarnation", "dimension", *SPAN_COLUMNS, "limit", "limit_period_ns",
    "limit_source", "offered", "granted", "waiting_ns", "waiters_max",
    *(f"waiter_{i + 1}" for i in range(WAITERS_LARGEST)),
    *(f"waiter_{i + 1}_amount" for i in range(WAITERS_LARGEST)),
)  # fmt: skip


class LimiterTrack:
    """One budget of one gate, from the setting of its limit to its removal.

    The sampler sets ``waiting`` to the messages or bytes that wait at the limiter now. The offered
    amount is what was granted and what waits, each message counted once.
    """

    __slots__ = (
        "_budget",
        "_granted_before",
        "_names",
        "_node",
        "_offered",
        "_peak",
        "_sent",
        "_waiting_ns_before",
        "chunk",
        "covered_ns",
        "dimension",
        "incarnation",
        "level",
        "since_ns",
        "source",
        "subject",
        "waiting",
        "window",
    )

    def __init__(
        self,
        node: Gate,
        budget: Budget,
        level: str,
        subject: str,
        *,
        incarnation: int,
        since_ns: int,
        now_ns: int,
        names: Names = PLAIN,
    ) -> None:
        figures = budget.statistics(now_ns)
        self._node = node
        self._names = names
        self._budget = budget
        self.level = level
        self.subject = subject
        self.incarnation = incarnation
        self.dimension = figures.dimension
        self.since_ns = self.covered_ns = since_ns
        self.source: str | None = None
        """Where the limit is set; the sampler looks it up."""
        self.chunk = 0
        """Its place in the order of all tracks."""
        self.waiting = self.window = 0
        """What waits, and the number of the window in which that was counted."""
        # A budget is kept when its limit is removed and when its topic is unloaded.
        self._granted_before = figures.granted
        self._waiting_ns_before = figures.waiting_ns
        self._offered = 0
        self._peak = node.waiters_max
        self._sent: Row = ()

    def row(
        self,
        at: Instant,
        now_ns: int,
        sent_since: Callable[[Waiter, Dimension], int],
    ) -> Row | None:
        """The row of the window; None if nothing changed.

        ``sent_since`` gives what a waiter was granted in this window.
        """
        if at.window_end_ns <= self.covered_ns:
            return None
        gate = self._node.statistics(now_ns)
        figures = self._budget.statistics(now_ns)
        granted = figures.granted - self._granted_before
        self._offered = max(self._offered, granted + self.waiting)
        # The gate remembers its peak since it was made: a new peak was reached just now.
        waiters_max = gate.waiters_max if gate.waiters_max > self._peak else gate.waiters
        self._peak = gate.waiters_max
        names, amounts = self._waiters(gate.largest_waiters, sent_since)
        values: Row = (
            figures.limit,
            figures.period_ns,
            self.source,
            told_count(self._offered),
            told_count(granted),
            figures.waiting_ns - self._waiting_ns_before,
            waiters_max,
            *names,
        )
        if values == self._sent and not (at.full or at.gone):
            return None
        self._sent = values
        covered_from_ns, self.covered_ns = self.covered_ns, at.window_end_ns
        return (
            self.level,
            self.subject,
            self.incarnation,
            self.dimension.name.lower(),
            covered_from_ns,
            at.window_end_ns,
            self.since_ns,
            at.gone,
            *values,
            *amounts,
        )

    def _waiters(
        self,
        largest: tuple[tuple[object, int], ...],
        sent_since: Callable[[Waiter, Dimension], int],
    ) -> tuple[list[str | None], list[int | None]]:
        names: list[str | None] = [None] * WAITERS_LARGEST
        amounts: list[int | None] = [None] * WAITERS_LARGEST
        for place, (owner, _) in enumerate(largest[:WAITERS_LARGEST]):
            if isinstance(owner, Waiter):
                broad, known_as = self.level in _BROAD, self._names
                names[place] = subject_of(owner, known_as) if broad else known_as.part(owner.name)
                amounts[place] = sent_since(owner, self.dimension)
        return names, amounts


def topic_of(waiter: Waiter) -> Topic | None:
    """The topic of a subscription, or of a producer that is still connected."""
    if isinstance(waiter, Producer):
        return None if waiter.publishing is None else cast(Topic, waiter.publishing.topic)
    return waiter.topic


def subject_of(waiter: Waiter, names: Names = PLAIN) -> str:
    """How a record names a subscription or a connected producer of a topic."""
    topic = topic_of(waiter)
    name = "" if topic is None else names.topic(topic.name)
    return f"{name}|{names.part(waiter.name)}"
