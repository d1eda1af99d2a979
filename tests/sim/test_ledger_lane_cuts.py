"""Power cuts between any two disk operations of a commit and of maintenance beside it.

The model and the work are those of the power cuts of one thread. Here batches are written by one
thread and maintenance jobs run on a second one, in steps of one disk operation, in an order that
the seed decides. ``./dev test simulation -- -k lane_cuts --simulation-seeds FIRST:COUNT`` plays
other seeds.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from functools import partial

import pytest

from headgate.fs import FaultyFs, MemFs, Operation
from headgate.ledger import Batch, Job
from headgate.testing.interleaved import Interleaving, StepLock, Work
from tests.seeds import play_seeds
from tests.sim.test_ledger_power_cuts import (
    Driver,
    Model,
    PowerCutError,
    crash_and_check,
)
from tests.unit.ledger.support import check_space

TURNS = 40
CUT_STEP = 7
"""Of each seed, every so many operations the power goes, beginning with another one by seed."""

Ended = Callable[[], None]


class LanesDriver(Driver):
    """Work on a log whose commits and maintenance run side by side."""

    def __init__(self, model: Model, seed: int, cut: int = 1 << 60) -> None:
        self.cut = cut
        self.operations_done = 0
        self.is_dead = False
        self.steps = Interleaving()
        super().__init__(FaultyFs(MemFs(), self.before_operation), model, seed)
        self.order = random.Random(f"{seed} of the order")
        self.stalled_turns = 0
        """For how many more turns the upkeep stands still where it is."""
        self.commits: deque[tuple[Callable[[], object], Ended]] = deque()
        """What was submitted to the commit lane; likewise to that of the upkeep."""
        self.upkeep: deque[tuple[Callable[[], object], Ended]] = deque()
        self.running: dict[str, tuple[Work, Ended]] = {}
        self.is_writing = False
        self.job_runs = False
        self.beside: set[str] = set()
        """Jobs that ran while a batch was written."""

    def before_operation(self, _: Operation) -> None:
        self.steps.stop_here()
        if self.is_dead or self.operations_done >= self.cut:
            self.is_dead = True
            raise PowerCutError
        self.operations_done += 1

    def open(self) -> None:
        super().open()
        writer = self.log._writer
        writer._make_lock = self.steps.lock()  # type: ignore[assignment]
        writer.flush_position._lock = self.steps.lock()  # type: ignore[assignment]

    @property
    def make_waits(self) -> int:
        lock = self.log._writer._make_lock
        assert isinstance(lock, StepLock)
        return lock.waits_count

    def end_turn(self) -> None:
        """Do some steps of the lanes and of the loop between them."""
        if self.stalled_turns:
            self.stalled_turns -= 1
        elif self.order.random() < 0.15:
            self.stalled_turns = self.order.randrange(2, 16)
        for _ in range(self.order.randrange(1, 16)):
            self.loop_turn()
            for name, lane in (("commit", self.commits), ("upkeep", self.upkeep)):
                if lane and name not in self.running:
                    work, ended = lane.popleft()
                    self.running[name] = self.steps.begin(work), ended
            names = sorted(self.running)
            if self.stalled_turns:
                names = [name for name in names if name == "commit"]
            if names:
                self.step(self.order.choice(names))
        check_space(self.log)

    def loop_turn(self) -> None:
        if not self.is_writing and (batch := self.log.seal_batch()) is not None:
            self.is_writing = True
            stored, ids = self.sealed(), frozenset(self.ids)
            complete = partial(self.complete, batch, stored, ids)
            self.commits.append((partial(self.log.write_batch, batch), complete))
        if not self.job_runs and self.log.maintenance_due():
            job = self.log.maintenance_step()
            if job is not None:
                self.job_runs = True
                lane = self.commits if job.is_exclusive else self.upkeep
                lane.append((job.run, partial(self.job_done, job)))

    def complete(self, batch: Batch, stored: Ended, ids: frozenset[str]) -> None:
        self.is_writing = False
        self.log.complete(batch)
        stored()
        self.confirmed = ids

    def job_done(self, job: Job) -> None:
        self.job_runs = False
        self.log.finish_job(job)
        if "commit" in self.running:
            self.beside.add(job.name)

    def step(self, name: str) -> None:
        work, ended = self.running[name]
        work.step()
        if not work.is_done:
            return
        del self.running[name]
        if work.error is not None:
            raise work.error
        ended()

    def end(self) -> None:
        """End the threads, as the power did."""
        self.is_dead = True
        works = [work for work, _ in self.running.values()]
        while left := [work for work in works if not work.is_done]:
            for work in left:  # in turns: one may wait for a lock that the other holds
                work.step()
        self.running.clear()


def run(driver: LanesDriver) -> None:
    """Work until done or until the power goes."""
    try:
        driver.open()
        driver.check()
        for at in range(TURNS):
            driver.turn(at)
    except PowerCutError:
        pass
    finally:
        driver.end()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Play the seeds asked for, or the usual ones."""
    play_seeds(metafunc, range(1, 4))


def test_every_kind_of_job_runs_beside_a_commit() -> None:
    beside, waits = set[str](), 0
    for seed in range(12):
        driver = LanesDriver(Model(), seed)
        run(driver)
        beside |= driver.beside
        waits += driver.make_waits
    assert {"prepare", "seal", "checkpoint", "delete"} <= beside
    assert waits  # both threads wanted to make the same segment


def test_power_cut_between_two_operations_of_the_lanes(seed: int) -> None:
    whole = LanesDriver(Model(), seed)
    run(whole)
    assert whole.operations_done > 20
    for cut in range(seed % CUT_STEP, whole.operations_done + 1, CUT_STEP):
        for rest in (None, cut):  # what was synced, or that and a random part of the rest
            driver = LanesDriver(Model(), seed, cut)
            run(driver)
            after = crash_and_check(driver, rest)
            for at in range(3):
                after.turn(at)
            crash_and_check(after, cut if rest is None else None)
