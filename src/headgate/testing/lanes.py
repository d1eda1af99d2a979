"""A lane of blocking work in virtual time: in order, one job at a time, as slow as a disk."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import Any

from headgate.base.units import NS_PER_MS, NS_PER_S, NS_PER_US
from headgate.storage.job_times import JobTimes
from headgate.testing.loop import SimLoop

Work = Callable[[], Any]
Done = Callable[[Any, BaseException | None], None]


class SimLane:
    """Stands for :class:`headgate.storage.lanes.ThreadLane`.

    A job's work happens at one instant inside its latency, its result reaches the loop at the end:
    a power cut may fall before, between and after the two. The next job begins when the last one's
    work is done, as on a thread that hands its results over.
    """

    def __init__(
        self,
        loop: SimLoop,
        rng: random.Random,
        *,
        latency_ns_min: int = 200 * NS_PER_US,
        latency_ns_max: int = 3 * NS_PER_MS,
    ) -> None:
        self._loop = loop
        self._rng = rng
        self.latency_ns_min = latency_ns_min
        self.latency_ns_max = latency_ns_max
        self._jobs: deque[tuple[Work, Done]] = deque()
        self._unreported: deque[tuple[Done, Any, BaseException | None]] = deque()
        self._times = JobTimes()
        self._busy = False
        self._frozen = False
        self._dead = False
        self._reported_ns = 0
        self._failures: list[BaseException] = []
        self.jobs_count = 0
        """Jobs that ran or failed."""

    @property
    def is_idle(self) -> bool:
        """Whether no job is queued or running."""
        return not self._busy and not self._jobs

    def submit(self, work: Work, done: Done) -> None:
        """Queue a job. A lane that was killed drops it."""
        if not self._dead:
            self._jobs.append((work, done))
            self._begin()

    def pause(self, seconds: float) -> bool:
        """Time passes between jobs only."""
        del seconds
        return False

    def rest(self, seconds: float) -> None:
        """A job takes no time."""

    def at_once(self, count_max: int) -> int:
        return self._times.at_once(count_max)

    def close(self) -> None:
        """Carry out the queued jobs at once.

        Results of earlier jobs are reported first, as a thread does that ends.
        """
        while self._unreported:
            self._report()
        while self._jobs:
            work, done = self._jobs.popleft()
            self._unreported.append((done, *self._carry_out(work)))
            self._report()

    def abandon(self) -> None:
        """Leave the queued jobs to run."""

    def freeze(self) -> None:
        """Start no job until :meth:`thaw`, as a disk that hangs."""
        self._frozen = True

    def thaw(self) -> None:
        """Start jobs again after :meth:`freeze`."""
        self._frozen = False
        self._begin()

    def fail_next(self, error: BaseException, count: int = 1) -> None:
        """Fail the next ``count`` jobs with ``error`` and do not run them."""
        self._failures += [error] * count

    def kill(self) -> None:
        """Cut the power: no job runs and no result is reported any more."""
        self._dead = True
        self._jobs.clear()
        self._unreported.clear()

    def pending_work(self) -> list[Work]:
        """The jobs that were submitted and have not run, oldest first."""
        return [work for work, _ in self._jobs]

    def _begin(self) -> None:
        if self._busy or self._frozen or self._dead or not self._jobs:
            return
        self._busy = True
        latency_ns = self._rng.randint(self.latency_ns_min, self.latency_ns_max)
        before_ns = self._rng.randint(0, latency_ns)
        self._times.took(latency_ns)
        self._loop.call_later(before_ns / NS_PER_S, self._work, latency_ns - before_ns)

    def _work(self, after_ns: int) -> None:
        self._busy = False
        if self._dead or not self._jobs:
            return
        work, done = self._jobs.popleft()
        result, error = self._carry_out(work)
        # Results are reported in the order of the jobs, whatever their latencies.
        now_ns = self._loop.clock.monotonic_ns()
        self._reported_ns = max(self._reported_ns + 1, now_ns + after_ns)
        self._unreported.append((done, result, error))
        self._loop.call_at(self._reported_ns / NS_PER_S, self._report)
        self._begin()

    def _carry_out(self, work: Work) -> tuple[Any, BaseException | None]:
        self.jobs_count += 1
        if self._failures:
            return None, self._failures.pop(0)
        try:
            return work(), None
        except Exception as caught:  # handed to the loop, which decides, as a thread's is
            return None, caught

    def _report(self) -> None:
        if self._unreported and not self._dead:
            done, result, error = self._unreported.popleft()
            done(result, error)
