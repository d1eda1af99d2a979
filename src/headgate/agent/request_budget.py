"""How many requests a cluster gets from the agent: a law, with time as an argument.

At most 50 in any second, and four at once for one broker. Status 429 halves the rate, as slow
answers and those with status 503 do where they are a tenth of all of the last ten seconds, at most
once a second; ten seconds later the rate grows again by a tenth a second.
"""

from __future__ import annotations

import http.client
from collections import deque
from typing import Final

from headgate.base.errors import InputError
from headgate.base.sparse_counter import SparseCounter
from headgate.base.units import NS_PER_S

REQUESTS_PER_S_MAX: Final = 50
"""Requests to a whole cluster, in any second."""
AT_ONCE_MAX: Final = 4
"""Requests that one broker works on at the same time."""
SLOW_S: Final = 1.0
"""An answer that takes longer says that the broker has no time for the agent ..."""
SLOW_PART: Final = 10
"""... where one answer in so many does, or has status 503. Fewer are about what is asked for: a
client may have thousands of subscriptions on a topic, whose statistics take a broker seconds, or
take the memory that there is for answers about its tenant."""
ANSWERS_NS: Final = 10 * NS_PER_S
"""The time whose answers are compared."""
REST_NS: Final = 10 * NS_PER_S
"""How long the rate stays after it was halved."""

_PART: Final = 10
"""The rate grows by this part of itself at a time, at least by 1."""


class RequestBudget:
    """The requests that may go to one cluster."""

    def __init__(self, per_s: int = REQUESTS_PER_S_MAX, at_once: int = AT_ONCE_MAX) -> None:
        """``per_s`` is for the whole cluster, ``at_once`` for one broker.

        Raises:
            InputError: one of them is less than 1.
        """
        if per_s < 1 or at_once < 1:
            raise InputError(f"per_s is {per_s}, at_once {at_once}; 1 or more is allowed")
        self._per_s_max = self._per_s = per_s
        self._at_once_max = at_once
        self._sent: deque[int] = deque()
        self._running: SparseCounter[str] = SparseCounter()
        self._answers: deque[tuple[int, bool]] = deque()
        """When each of the last ones ended, and whether it was slow or had status 503."""
        self._slow = 0
        """Those of them that were, or had."""
        self._changed_ns: int | None = None
        self._rests = False
        self.halved = 0
        """How often the rate was halved."""

    @property
    def per_s(self) -> int:
        """The present rate."""
        return self._per_s

    @property
    def per_s_max(self) -> int:
        """The rate while the cluster answers quickly."""
        return self._per_s_max

    def take(self, broker: str, now_ns: int, count: int = 1) -> bool:
        """Whether ``count`` requests, one after the other, may go to ``broker`` from now on; then
        they count, and one runs until :meth:`note_end`.

        At a rate below ``count`` they may go after a second without any.
        """
        if self.wait_ns(now_ns) or self._running[broker] >= self._at_once_max:
            return False
        if self._sent and len(self._sent) + count > self._per_s:
            return False
        self._sent.extend([now_ns] * count)
        self._running[broker] += 1
        return True

    def wait_ns(self, now_ns: int) -> int:
        """How long the rate allows no further request; 0: it allows one now."""
        while self._sent and self._sent[0] <= now_ns - NS_PER_S:
            self._sent.popleft()
        over = len(self._sent) - self._per_s
        return 0 if over < 0 else self._sent[over] + NS_PER_S - now_ns

    def note_more(self, count: int, now_ns: int) -> None:
        """``count`` more requests went than were taken, because a broker sent one on."""
        self._sent.extend([now_ns] * count)

    def note_end(
        self, broker: str, now_ns: int, took_s: float, status: int | None, slow_s: float = SLOW_S
    ) -> None:
        """A request ended.

        Args:
            broker: as given to :meth:`take`.
            now_ns: monotonic.
            took_s: time until the whole answer was there.
            status: of HTTP; None without an answer.
            slow_s: a longer time counts as slow.
        """
        self._running[broker] -= 1
        is_slow = took_s > slow_s or status == http.client.SERVICE_UNAVAILABLE
        self._note_answer(now_ns, is_slow)
        changed_ns = self._changed_ns
        is_settled = changed_ns is None or now_ns - changed_ns >= NS_PER_S
        if not is_settled:
            return
        are_slow = is_slow and self._slow * SLOW_PART >= len(self._answers)
        if are_slow or status == http.client.TOO_MANY_REQUESTS:
            self._per_s = max(1, self._per_s // 2)
            self._changed_ns = now_ns
            self._rests = True
            self.halved += 1
            return
        if self._rests and changed_ns is not None and now_ns - changed_ns < REST_NS:
            return
        if status is not None and self._per_s < self._per_s_max:
            self._per_s = min(self._per_s_max, self._per_s + max(1, self._per_s // _PART))
            self._changed_ns = now_ns
            self._rests = False

    def _note_answer(self, now_ns: int, is_slow: bool) -> None:
        answers = self._answers
        answers.append((now_ns, is_slow))
        self._slow += is_slow
        while answers[0][0] <= now_ns - ANSWERS_NS:
            self._slow -= answers.popleft()[1]
