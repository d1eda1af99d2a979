"""Durations of group commits: sums since the start for /metrics, the last seconds for explain."""

from __future__ import annotations

import logging
from collections import deque
from typing import Final

from headgate.base.texts import duration
from headgate.base.units import NS_PER_S
from headgate.engine.engine import Engine
from headgate.flow.sentences.disk import SLOW_COMMIT_S, CommitLatencyFacts, commit_latency_sentence
from headgate.storage.repeated_failures import QUIET_NS

logger = logging.getLogger("headgate.disk")

WINDOW_S: Final = 10
"""Length of the window that :meth:`CommitLatency.facts` covers."""


class CommitLatency:
    """Measures the commits of one log. There is one commit at a time."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.count = 0
        """Commits since the start, failed ones included."""
        self.sum_ns = 0
        """Duration of all commits together."""
        self._began_ns: int | None = None
        self._seconds: deque[list[int]] = deque()
        """For each second in which commits ended: the second, their number, their duration, the
        longest."""
        self._slow_since_ns: int | None = None
        """When the slow period began whose end the broker has not logged yet."""
        self._slow_ns = 0
        """When the disk was last slow."""

    def began(self) -> None:
        """A commit begins now."""
        self._began_ns = self._engine.now_ns

    def ended(self) -> int:
        """The commit ended; returns how long it took, in nanoseconds."""
        now_ns = self._engine.now_ns
        took_ns = 0 if self._began_ns is None else now_ns - self._began_ns
        self._began_ns = None
        self.count += 1
        self.sum_ns += took_ns
        second = now_ns // NS_PER_S
        if not self._seconds or self._seconds[-1][0] != second:
            self._seconds.append([second, 0, 0, 0])
            while self._seconds[0][0] <= second - WINDOW_S:
                self._seconds.popleft()
        last = self._seconds[-1]
        last[1] += 1
        last[2] += took_ns
        last[3] = max(last[3], took_ns)
        return took_ns

    def running_ns(self) -> int:
        """How long the commit in flight has taken so far; 0 without one."""
        return 0 if self._began_ns is None else self._engine.now_ns - self._began_ns

    def facts(self) -> CommitLatencyFacts:
        """The commits of the last :data:`WINDOW_S` seconds."""
        first = self._engine.now_ns // NS_PER_S - WINDOW_S
        recent = [second for second in self._seconds if second[0] > first]
        count = sum(second[1] for second in recent)
        return CommitLatencyFacts(
            commits=count,
            mean_s=sum(second[2] for second in recent) / count / NS_PER_S if count else 0.0,
            longest_s=max((second[3] for second in recent), default=0) / NS_PER_S,
            running_s=self.running_ns() / NS_PER_S,
            window_s=WINDOW_S,
        )

    def log_if_due(self) -> None:
        """Log when the disk becomes slow and when it is fast again. Call it about once a second."""
        now_ns, facts = self._engine.now_ns, self.facts()
        if facts.is_slow:
            self._slow_ns = now_ns
            if self._slow_since_ns is None:
                self._slow_since_ns = now_ns
                logger.warning("%s", commit_latency_sentence(facts))
        elif (
            self._slow_since_ns is not None and facts.commits and now_ns - self._slow_ns >= QUIET_NS
        ):
            since_s, self._slow_since_ns = (self._slow_ns - self._slow_since_ns) / NS_PER_S, None
            logger.warning(
                "the disk is fast enough again: a commit takes less than %g s; it was slow for %s",
                SLOW_COMMIT_S,
                duration(since_s),
            )
