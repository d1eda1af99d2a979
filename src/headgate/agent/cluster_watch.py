"""Watches one cluster: looks at it all the time, and writes what was inferred each minute.

One thread runs it. A failure of one look, window or sink is counted and logged once; the watch goes
on with the next.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from headgate.agent.cluster_states import Requests
from headgate.agent.metrics import ClusterCounts, SinkCounts
from headgate.agent.record_files import RecordFiles
from headgate.agent.records import Instants, Record, RecordWindows
from headgate.agent.shared_history import SharedHistory
from headgate.agent.standing import RequestRate, Standing
from headgate.base.clock import Clock
from headgate.base.errors import HeadgateError, InvariantError, invariant
from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.record.fields import FULL_PERIOD_NS

logger = logging.getLogger("headgate.agent")

PAUSE_S: Final = 5.0
"""Rest after an error of the agent itself."""
STEP_S_MAX: Final = 1.0
"""Longest time between two steps, so that a stop does not wait long."""
BLIND_S: Final = 120
"""Without a look at a topic for so long the log says why: surveys are made once a minute."""
REASONS_MAX: Final = 3
STALLED_NS: Final = 120 * NS_PER_S
"""A watch without a step for so long hangs."""


class ScoutFigures(Protocol):
    """What a scout did since it began."""

    requests: int

    @property
    def errors(self) -> Mapping[Any, int]:
        """Looks that failed, by kind."""
        ...


class ClusterScout(Protocol):
    """Looks at a cluster, as :class:`headgate.agent.scout.Scout`."""

    @property
    def figures(self) -> ScoutFigures:
        """What it did so far."""
        ...

    def step(self) -> float:
        """Do what is due; the seconds until more is."""
        ...

    def not_seen(self) -> list[str]:
        """What could not be looked at, in sentences."""
        ...

    def standing(self) -> Standing:
        """What is known of the cluster as a whole."""
        ...

    def close(self) -> None:
        """Wait for requests that run."""
        ...


class RecordSink(Protocol):
    """A place for telemetry beside files, such as a topic."""

    name: str
    counts: SinkCounts

    def write(self, records: Sequence[Record]) -> None:
        """Take the messages of a window; it does not wait."""
        ...

    def close(self) -> None:
        """Store what it took, for a few seconds at most."""
        ...


class Budget(Protocol):
    """The requests that a cluster gets, as in ``request_budget``."""

    halved: int

    @property
    def per_s(self) -> int:
        """The present rate."""
        ...

    @property
    def per_s_max(self) -> int:
        """The rate while the cluster answers quickly."""
        ...


class ClusterWatch:
    """One cluster, from the first look to the stop."""

    def __init__(
        self,
        name: str,
        scout: ClusterScout,
        history: SharedHistory,
        windows: RecordWindows,
        clock: Clock,
        *,
        budget: Budget,
        files: RecordFiles | None = None,
        sinks: Sequence[RecordSink] = (),
        file_windows: RecordWindows | None = None,
    ) -> None:
        """``name`` tells the cluster from others everywhere. With files and sinks each has windows
        of its own, ``file_windows`` and ``windows``: a disk that fails changes nothing for a
        topic."""
        self.name = name
        self.history = history
        self._scout = scout
        self._windows = windows
        self._file_windows = file_windows or windows
        invariant(
            files is None or not sinks or file_windows is not None,
            "files and sinks need windows of their own",
        )
        self._clock = clock
        self._budget = budget
        self._files = files
        self._file_counts = SinkCounts()
        self._sinks = tuple(sinks)
        self._failures = 0
        self._failing: set[str] = set()
        self._started_ns = self._stepped_ns = clock.monotonic_ns()
        self._minute = clock.wall_ns() // FULL_PERIOD_NS
        self._not_seen: list[str] = []
        self._is_blind = False
        self._rate = RequestRate()
        self.standing = Standing()
        """What is known of the cluster as a whole, since the last step."""

    def run(self, stop: threading.Event) -> None:
        """Look until ``stop`` is set, then write the last window. Only broken invariants end it."""
        while not stop.is_set():
            stop.wait(min(self.step(), STEP_S_MAX))
        self.close()

    def step(self) -> float:
        """Look at what is due, and write a window if a minute has ended; the seconds to rest."""
        rest_s = self._guarded("looking", self._scout_step, PAUSE_S)
        self._stepped_ns = self._clock.monotonic_ns()
        minute = self._clock.wall_ns() // FULL_PERIOD_NS
        if minute != self._minute:
            self._minute = minute
            self._write_window(minute * FULL_PERIOD_NS)
        return rest_s

    def close(self) -> None:
        """Write the last window, and let go of what is open."""
        # Before the requests that run are waited for: a broker may hold one for a minute.
        self._write_window(self._clock.wall_ns())
        self._guarded("ending", self._end_looks, 0.0)
        for sink in self._sinks:
            sink.close()
        if self._files is not None:
            self._files.close()

    def not_seen(self) -> list[str]:
        """What could not be looked at, in sentences."""
        return self._not_seen

    @property
    def is_stalled(self) -> bool:
        """Whether the watch hangs: its thread has made no step for two minutes."""
        return self._clock.monotonic_ns() - self._stepped_ns > STALLED_NS

    def last_look_age_s(self) -> float:
        """Seconds since the last look at a topic; since the start before the first."""
        last_ns = self.history.last_look_ns
        since_ns = self._started_ns if last_ns is None else last_ns
        return max(0, self._clock.monotonic_ns() - since_ns) / NS_PER_S

    def requests(self) -> Requests:
        """What the cluster is asked."""
        budget = self._budget
        return Requests(self._rate.per_s, budget.per_s, budget.per_s_max, budget.halved)

    def counts(self) -> ClusterCounts:
        """The agent's own figures about this cluster."""
        figures, files = self._scout.figures, self._files
        sinks = {sink.name: sink.counts for sink in self._sinks}
        if files is not None:
            sinks["files"] = self._file_counts
        return ClusterCounts(
            name=self.name,
            last_look_age_s=self.last_look_age_s(),
            looks=self.history.looks,
            errors={_kind_name(kind): count for kind, count in dict(figures.errors).items()},
            requests=figures.requests,
            budget_per_s=self._budget.per_s,
            topics=len(self.history.topics()),
            failures=self._failures,
            sinks=sinks,
            files=None if files is None else files.counts.files,
            files_removed=0 if files is None else files.counts.removed,
            folder_bytes=0 if files is None else files.held_bytes,
        )

    # -- parts of a step ---------------------------------------------------------------------

    def _scout_step(self) -> float:
        rest_s = self._scout.step()
        self._not_seen = self._scout.not_seen()
        self.standing = self._scout.standing()
        self._rate.note(self._clock.monotonic_ns(), self._scout.figures.requests)
        self._tell_blindness()
        return rest_s

    def _tell_blindness(self) -> None:
        """Log once why nothing of the cluster is seen, such as credentials that lapsed."""
        reasons = [self.standing.reason] if self.standing.reason else self._not_seen[:REASONS_MAX]
        is_blind = self.last_look_age_s() > BLIND_S
        if is_blind and reasons and not self._is_blind:
            why = "; ".join(reasons)
            logger.warning("%s: nothing was seen for %d s: %s", self.name, BLIND_S, why)
            self._is_blind = True
        elif self._is_blind and not is_blind:
            logger.info("%s: it is seen again", self.name)
            self._is_blind = False

    def _end_looks(self) -> float:
        self._scout.close()
        return 0.0

    def _write_window(self, end_wall_ns: int) -> None:
        if self._files is not None or self._sinks:
            self._guarded("telemetry", lambda: self._store(end_wall_ns), 0.0)

    def _store(self, end_wall_ns: int) -> float:
        now = Instants(self._clock.wall_ns(), self._clock.monotonic_ns())
        # The window ends at a full minute, which has just passed.
        end = Instants(end_wall_ns, now.monotonic_ns - max(0, now.wall_ns - end_wall_ns))
        if self._sinks:
            records = list(self._windows.window(self.history.figures(), end))
            for sink in self._sinks:
                sink.write(records)
            self._windows.commit()
        if self._files is not None:
            self._write_file(self._files, end)
        return 0.0

    def _write_file(self, files: RecordFiles, end: Instants) -> None:
        counts = self._file_counts
        records = list(self._file_windows.window(self.history.figures(), end))
        try:
            files.write(records, end.wall_ns // NS_PER_MS)
        except HeadgateError:
            # The next window covers the time of this one.
            counts.failures += 1
            counts.dropped += len(records)
            raise
        self._file_windows.commit()
        counts.records += len(records)
        counts.bytes += sum(len(record.data) for record in records)

    def _guarded(self, what: str, work: Work, after_failure: float) -> float:
        """The result of ``work``; ``after_failure`` if it failed, which is counted."""
        try:
            result = work()
        except InvariantError:
            raise
        except HeadgateError as error:
            self._failed(what, str(error), is_bug=False)
            return after_failure
        except Exception as error:
            self._failed(what, repr(error), is_bug=True)
            return after_failure
        if what in self._failing:
            self._failing.remove(what)
            logger.info("%s: %s works again", self.name, what)
        return result

    def _failed(self, what: str, reason: str, *, is_bug: bool) -> None:
        self._failures += 1
        if what in self._failing:
            return
        self._failing.add(what)
        if is_bug:
            logger.exception("%s: %s failed with an internal error", self.name, what)
        else:
            logger.warning("%s: %s failed: %s", self.name, what, reason)


class Work(Protocol):
    """A part of a step."""

    def __call__(self) -> float:
        """Seconds to rest."""
        ...


def _kind_name(kind: object) -> str:
    return str(getattr(kind, "name", kind)).lower()
