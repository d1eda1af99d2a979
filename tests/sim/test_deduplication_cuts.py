"""Power cuts under a log with deduplication: it knows the ids of the entries it has, and no others.

A seed drives a short run of the log. At each operation on the disk in turn the power goes. The log
is opened again: what it knows of producers must be exactly what the records up to one point say,
and that point must fit the entries that are there. Then the run goes on, and is cut once more.
"""

from __future__ import annotations

import errno
import random
from dataclasses import dataclass, field

import pytest

from headgate.base.errors import StorageError
from headgate.fs import FaultyFs, MemFs, Operation
from headgate.ledger import CommitLog, LedgerSettings

DIRECTORY = "/data"
TOPICS = (3, 8)
SETTINGS = LedgerSettings(
    segment_bytes=4096,
    extent_bytes=1024,
    checkpoint_records=40,
    checkpoint_bytes=8192,
    ledger_entries_max=7,
    ledger_age_ms_min=0,
    slice_items=1,
)
NAMES = ("a", "producer-b", "c")
Known = dict[str, int]


class PowerCutError(Exception):
    """The simulated machine lost its power."""


def sequence_of(body: bytes) -> tuple[str, int, int] | None:
    """``name first last ...``."""
    name, first, last = body.decode().split()[:3]
    return name, int(first), int(last)


@dataclass
class Stage:
    """One step that changes what a log knows."""

    topic: int
    entry: tuple[str, int] | None = None
    """A producer's name and highest id; None if deduplication begins or ends."""
    is_on: bool = False


@dataclass
class TopicState:
    """What a topic holds and knows at one point."""

    end: int = 0
    known: Known | None = None


@dataclass
class Model:
    """The state that is durable for certain, and the steps behind it, in the order of the log."""

    states: dict[int, TopicState] = field(
        default_factory=lambda: {number: TopicState() for number in TOPICS}
    )
    steps: list[Stage] = field(default_factory=list)

    def apply(self, step: Stage) -> None:
        state = self.states[step.topic]
        if step.entry is None:
            state.known = {} if step.is_on else None
            return
        state.end += 1
        if state.known is not None:
            name, last = step.entry
            state.known[name] = max(last, state.known.get(name, last))

    def all_durable(self) -> None:
        for step in self.steps:
            self.apply(step)
        self.steps.clear()

    def settle(self, log: CommitLog) -> None:
        """Find the point up to which the log recovered, and continue there."""
        found = {n: (log.topic(n).end, known_of(log, n)) for n in TOPICS}
        while {n: (s.end, s.known) for n, s in self.states.items()} != found:
            assert self.steps, f"no point of the run fits {found}: {self.states}"
            self.apply(self.steps.pop(0))
        self.steps.clear()


def known_of(log: CommitLog, number: int) -> Known | None:
    topic = log.topic(number)
    if topic.sequences is None:
        return None
    return {row.name: row.last_id for row in topic.sequences.rows(topic.staged_end)}


class Driver:
    """Runs seeded work on a log and keeps the model in step."""

    def __init__(self, fs: FaultyFs, model: Model, seed: int) -> None:
        self.fs = fs
        self.model = model
        self.rng = random.Random(seed)
        self.chance = random.Random(f"{seed} of stamps")
        self.fails_at = -1
        """Which write finds no room."""

    def open(self) -> None:
        self.log = CommitLog.open(
            self.fs, DIRECTORY, topic_numbers=TOPICS, entropy=self.chance.randbytes,
            settings=SETTINGS, sequence_of=sequence_of,
        )  # fmt: skip

    def turn(self) -> None:
        for _ in range(self.rng.randrange(5)):
            self.step(self.rng.choice(TOPICS))
        if self.rng.random() < 0.2:
            self.trim(self.rng.choice(TOPICS))
        batch = self.log.seal_batch()
        if batch is not None:
            try:
                self.log.write_batch(batch)
            except StorageError as error:
                self.failed(batch, error)
            else:
                self.log.complete(batch)
                if self.rng.random() < 0.7:  # else the receipts come after the maintenance
                    self.tell_durable()
                self.model.all_durable()
        while self.log.maintenance_due():
            job = self.log.maintenance_step()
            if job is not None:
                try:
                    job.run()
                except StorageError as error:
                    self.log.finish_job(job, error)
                    break
                self.log.finish_job(job)
        self.tell_durable()

    def step(self, number: int) -> None:
        log, topic = self.log, self.log.topic(number)
        if self.rng.random() < 0.12:
            is_on = topic.sequences is None
            log.track_sequences(topic, is_on=is_on)
            self.model.steps.append(Stage(number, is_on=is_on))
            return
        if log.full:
            return
        name = self.rng.choice(NAMES)
        first = self.rng.randrange(1000)
        last = first + self.rng.randrange(3)
        body = f"{name} {first} {last} {'x' * self.rng.randrange(300)}".encode()
        ordinal = log.stage_entry(topic, 1, 1_000, 0, body)
        if topic.sequences is not None:
            # The engine stages new ids only, but the table itself must not depend on that.
            top = max(last, topic.sequences.staged.get(name, last))
            topic.sequences.entry_staged(ordinal, name, max(top, last))
        self.model.steps.append(Stage(number, (name, last)))

    def trim(self, number: int) -> None:
        topic = self.log.topic(number)
        if topic.end > topic.first:
            self.log.stage_trim(topic, self.rng.randint(topic.first, topic.end))

    def tell_durable(self) -> None:
        for number in TOPICS:
            topic = self.log.topic(number)
            if topic.sequences is not None:
                topic.sequences.entries_durable(topic.end)

    def failed(self, batch: object, error: StorageError) -> None:
        """The entries are given up; that deduplication began or ended is staged again."""
        lost = {step.topic for step in self.model.steps if step.entry is None}
        self.log.fail(batch, error)  # type: ignore[arg-type]
        self.model.steps.clear()
        for number in TOPICS:
            table = self.log.topic(number).sequences
            if table is not None:
                table.entries_lost()
            if number in lost:
                self.model.steps.append(Stage(number, is_on=table is not None))


def run(fs: MemFs, model: Model, seed: int, *, cut: int, fail: int = -1, turns: int = 25) -> bool:
    """Run until the power goes; False if the run ended before."""
    faulty = FaultyFs(fs)
    driver = Driver(faulty, model, seed)
    driver.open()
    model.settle(driver.log)
    begun = faulty.operations_count

    def plan(operation: Operation) -> int | None:
        if operation.index - begun == cut:
            raise PowerCutError
        if operation.index - begun == fail and operation.kind == "write":
            return operation.size // 2
        if operation.index - begun == fail and operation.kind == "allocate":
            raise OSError(errno.ENOSPC, "no room, as planned")
        return None

    faulty.plan = plan
    try:
        for _ in range(turns):
            driver.turn()
    except PowerCutError:
        return True
    return False


@pytest.mark.parametrize("seed", range(6))
def test_after_a_power_cut_the_log_knows_the_ids_of_its_entries(seed: int) -> None:
    cut = 0
    while True:
        model, fs = Model(), MemFs()
        if not run(fs, model, seed, cut=cut, fail=seed * 7 + cut // 2 if seed % 2 else -1):
            break
        for again in range(2):
            fs = fs.crash_clone(None if (cut + again) % 3 == 0 else cut + again)
            run(fs, model, seed + 100 + again, cut=9 + cut % 17)
        fs = fs.crash_clone(cut)
        run(fs, model, seed, cut=-1, turns=1)
        cut += 1 + seed % 3
    assert cut > 40


def test_a_clean_end_keeps_everything_in_the_checkpoint() -> None:
    model, fs = Model(), MemFs()
    driver = Driver(FaultyFs(fs), model, 5)
    driver.open()
    for _ in range(40):
        driver.turn()
    driver.log.close()
    model.all_durable()
    driver = Driver(FaultyFs(fs.crash_clone()), model, 6)
    driver.open()
    assert driver.log.statistics().replayed_records == 0
    model.settle(driver.log)
    assert any(state.known for state in model.states.values())


def test_a_dropped_topic_takes_its_producers_with_it() -> None:
    model, fs = Model(), MemFs()
    driver = Driver(FaultyFs(fs), model, 5)
    driver.open()
    log = driver.log
    log.track_sequences(log.topic(3), is_on=True)
    log.drop_topic(3)
    log.checkpoint()
    log.close()
    again = CommitLog.open(
        fs.crash_clone(), DIRECTORY, topic_numbers=(3, 8), entropy=lambda size: b"\x11" * size,
        settings=SETTINGS, sequence_of=sequence_of,
    )  # fmt: skip
    assert again.topic(8).sequences is None
