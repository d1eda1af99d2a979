"""What the agent knows of a cluster as a whole: whether it answers, and what it gets to see.

Laws with time as an argument: the thread that looks at the cluster notes, and takes a
:class:`Standing` that other threads may read.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from headgate.base.units import NS_PER_MINUTE, NS_PER_S

QUIET_NS: Final = 15 * NS_PER_S
"""The cluster is away if its URL fails and no broker has answered for so long. Brokers that the
agent knows may answer while the URL of a balancer does not."""
RATE_NS: Final = NS_PER_MINUTE
RATE_STEP_NS: Final = 5 * NS_PER_S
"""The rate of requests is the mean over the last minute, in steps of five seconds."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A cluster at one instant. Instants are monotonic."""

    is_reachable: bool | None = None
    """None before the first answer or failure."""
    since_ns: int | None = None
    """Since when that is so."""
    reason: str = ""
    """Why it is not reachable, in one sentence."""
    brokers: int | None = None
    """Brokers that the cluster lists; None if it does not tell."""
    survey_ns: int | None = None
    """The last answer about all topics of a broker, or of a topic of the named namespaces."""
    topics_left_out: int = 0
    """Topics and partitions beyond the bounds, at which nothing looks."""


class Contact:
    """Whether a cluster answers, and since when. Calls come in order of time."""

    def __init__(self) -> None:
        self.is_reachable: bool | None = None
        self.since_ns: int | None = None
        self.reason = ""
        self._answered_ns: int | None = None

    def note_answer(self, now_ns: int) -> None:
        """A broker answered, be it with a refusal."""
        self._answered_ns = now_ns
        self._turn(is_reachable=True, now_ns=now_ns)
        self.reason = ""

    def note_failure(self, now_ns: int, reason: str) -> None:
        """The URL of the cluster did not answer, or what answers is no broker."""
        answered_ns = self._answered_ns
        if answered_ns is not None and now_ns - answered_ns < QUIET_NS:
            return
        self._turn(is_reachable=False, now_ns=now_ns)
        self.reason = reason

    def _turn(self, *, is_reachable: bool, now_ns: int) -> None:
        if self.is_reachable is not is_reachable:
            self.is_reachable, self.since_ns = is_reachable, now_ns


class RequestRate:
    """Requests a second over the last minute."""

    def __init__(self) -> None:
        self._counts: deque[tuple[int, int]] = deque()
        self.per_s: float | None = None
        """None before two steps. Other threads may read it."""

    def note(self, now_ns: int, total: int) -> None:
        """``total`` requests went since the start."""
        if self._counts and now_ns - self._counts[-1][0] < RATE_STEP_NS:
            return
        self._counts.append((now_ns, total))
        while self._counts[0][0] < now_ns - RATE_NS:
            self._counts.popleft()
        first_ns, first = self._counts[0]
        if first_ns < now_ns:
            self.per_s = (total - first) * NS_PER_S / (now_ns - first_ns)
