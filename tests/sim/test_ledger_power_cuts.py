"""Power cuts at every boundary of a short run of the log, checked against a model.

The run is driven by a seed. At each write, sync, rename, creation and removal in turn the power
goes; the disk keeps what was synced, or that and a random part of the rest. The log is opened
again, compared with the model, used on, and cut once more.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from headgate.base.ack_set import AckSet
from headgate.base.partial_acks import PartialEntry
from headgate.base.positions import Position
from headgate.fs import FaultyFs, MemFs, Operation
from headgate.ledger import Batch, CommitLog, LedgerSettings, TopicLog
from headgate.ledger.format.records import (
    BATCH,
    BATCH_MAGIC,
    KIND_BATCH,
    SEGMENT_HEADER_BYTES,
    record,
    segment_name,
)
from tests.unit.ledger.support import check_space

DIRECTORY = "/data"
TOPICS = (3, 8)
LAG_MS_MAX = 2**32 - 1
START_WALL_MS = 2**33
ENTRIES_MAX = 500
"""More than a run stages in a topic, so that a state also shows acknowledgements beyond the end."""
SETTINGS = LedgerSettings(
    segment_bytes=4096,
    extent_bytes=1024,
    checkpoint_records=60,
    checkpoint_bytes=16384,
    ledger_entries_max=7,
    ledger_age_ms_min=0,
    slice_items=1,
)


class PowerCutError(Exception):
    """The simulated machine lost its power."""


@dataclass
class TopicModel:
    """What a topic must hold: bodies in order, of which the first ``durable`` are promised."""

    bodies: list[bytes] = field(default_factory=list)
    durable: int = 0
    positions: list[Position] = field(default_factory=list)
    times: list[tuple[int, int]] = field(default_factory=list)
    """Receive and publish time of each body."""
    used: set[Position] = field(default_factory=set)
    first: int = 0
    first_durable: int = 0

    def add(self, body: bytes, position: Position, wall_ms: int, publish_ms: int) -> None:
        """One more was staged, under these clocks of the broker and of its producer."""
        received_before, published_before = self.times[-1] if self.times else (0, 0)
        received_ms = max(received_before, wall_ms)
        said_ms = min(publish_ms or received_ms, received_ms)
        published_ms = max(published_before, said_ms, received_ms - LAG_MS_MAX)
        assert position not in self.used
        assert len(self.bodies) < ENTRIES_MAX
        self.used.add(position)
        self.bodies.append(body)
        self.positions.append(position)
        self.times.append((received_ms, published_ms))


@dataclass
class CursorModel:
    """All states a subscription was in, and from which on the log may show them."""

    ack_set: AckSet
    states: list[frozenset[object]]
    durable_from: int = 0
    marks: list[str] = field(default_factory=lambda: ["0"])
    """All values that its property had."""
    mark_durable_from: int = 0


@dataclass
class Model:
    """Everything that was asked of the log, and what was confirmed."""

    topics: dict[int, TopicModel] = field(
        default_factory=lambda: {number: TopicModel() for number in TOPICS}
    )
    cursors: dict[str, CursorModel] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    """Names whose deletion was asked for: they may be there or not."""
    gone_for_sure: set[str] = field(default_factory=set)


def acked_entries(ack_set: AckSet) -> frozenset[object]:
    """The acknowledged entries, and those of which some messages are."""
    acked = [ordinal for ordinal in range(ENTRIES_MAX) if ack_set.is_acked(ordinal)]
    return frozenset(acked) | set(ack_set.partial_entries())


def message_count(body: bytes) -> int:
    """How many messages an entry is staged with."""
    return 1 + len(body) % 3


class Driver:
    """Runs seeded work on a log and keeps the model in step."""

    def __init__(self, fs: FaultyFs, model: Model, seed: int) -> None:
        self.fs = fs
        self.model = model
        self.rng = random.Random(seed)
        self.chance = random.Random(f"{seed} of stamps and forgeries")
        self.ids: dict[str, int] = {}

    def open(self) -> None:
        self.log = CommitLog.open(
            self.fs,
            DIRECTORY,
            topic_numbers=TOPICS,
            entropy=self.chance.randbytes,
            settings=SETTINGS,
        )

    def topic(self, number: int) -> TopicLog:
        return self.log.topic(number)

    def turn(self, at: int) -> None:
        rng, model = self.rng, self.model
        for _ in range(rng.randrange(4)):
            number = rng.choice(TOPICS)
            body = b"%d-%d-%d-" % (number, at, rng.randrange(1000)) + b"b" * rng.randrange(300)
            body += self.forgery()
            log = self.topic(number)
            wall_ms = START_WALL_MS + at + rng.choice((0, 0, 9, -500))
            publish_ms = rng.choice((0, 1, wall_ms - rng.randrange(30), wall_ms + 7))
            count = message_count(body)
            ordinal = self.log.stage_entry(log, count, wall_ms, publish_ms, body)
            topic = model.topics[number]
            assert ordinal == len(topic.bodies)
            topic.add(body, log.position(ordinal), wall_ms, publish_ms)
        name = f"s{at % 5}"
        if at % 6 == 1 and name not in model.cursors and name not in model.gone:
            self.create(name)
        for name in model.cursors:
            self.work(name)
        if at % 7 == 6:
            self.trim()
        if at % 17 == 16 and model.cursors:
            self.delete(sorted(model.cursors)[0])
        self.end_turn()

    def end_turn(self) -> None:
        """Store what was staged, then do the maintenance."""
        batch = self.log.seal_batch()
        if batch is not None:
            self.settle(batch)
        self.log.run_maintenance()
        self.log.run_rewriting()
        check_space(self.log)
        self.confirmed = frozenset(self.ids)

    def forgery(self) -> bytes:
        """Nothing, or what should be taken for the log's own: a head that says that something
        before it was lost, or batches as they lie in the segment."""
        dice = self.chance.randrange(9)
        if dice == 0:
            segment = self.log.active_segment()
            fields = (BATCH_MAGIC, 1 << 40, (1 << 40) - 1, 1, 1, segment, 0, 1, 200)
            return record(KIND_BATCH, BATCH.pack(*fields), 1 << 40)
        if dice == 1:
            name = segment_name(self.log.active_segment())
            if name in self.fs.inner.list_directory(DIRECTORY):
                return self.fs.inner.open(f"{DIRECTORY}/{name}").read_at(SEGMENT_HEADER_BYTES, 300)
        return b""

    def create(self, name: str) -> None:
        ack_set = AckSet(self.topic(TOPICS[0]).end - 1)
        self.model.cursors[name] = CursorModel(ack_set, [frozenset(range(ack_set.mark_delete + 1))])
        self.ids[name] = self.log.create_cursor(
            TOPICS[0], name, ack_set, {"who": name, "mark": "0"}
        )

    def work(self, name: str) -> None:
        cursor = self.model.cursors[name]
        end = self.topic(TOPICS[0]).end
        if end == 0:
            return
        for _ in range(self.rng.randrange(3)):
            dice = self.rng.randrange(12)
            ordinal = self.rng.randrange(end)
            count = message_count(self.model.topics[TOPICS[0]].bodies[ordinal])
            if dice == 0:
                cursor.ack_set.reset(ordinal - 1)
            elif dice == 1:
                cursor.ack_set.ack_through(ordinal)
            elif dice < 8:
                cursor.ack_set.ack_messages(ordinal, 1 << dice % count, count)
            else:
                cursor.ack_set.ack(ordinal)
            cursor.states.append(acked_entries(cursor.ack_set))
        if self.chance.randrange(4) == 0:
            cursor.marks.append(str(len(cursor.states)) * self.chance.randrange(1, 20))
            properties = {"who": name, "mark": cursor.marks[-1]}
            self.log.set_properties(self.ids[name], properties)
        if self.rng.randrange(3):
            self.log.stage_acks(self.ids[name])

    def trim(self) -> None:
        for number in TOPICS:
            log = self.topic(number)
            first = self.rng.randrange((log.first + log.end) // 2, log.end + 1)
            self.log.stage_trim(log, first)
            topic = self.model.topics[number]
            topic.first = max(topic.first, first)

    def delete(self, name: str) -> None:
        self.log.delete_cursor(self.ids.pop(name))
        del self.model.cursors[name]
        self.model.gone.add(name)

    def settle(self, batch: Batch) -> None:
        stored = self.sealed()
        self.log.write_batch(batch)
        self.log.complete(batch)
        stored()

    def sealed(self) -> Callable[[], None]:
        """A batch was sealed: returns what to call once it is complete."""
        model = self.model
        staged = {
            name: len(cursor.states) - 1
            for name, cursor in model.cursors.items()
            if not cursor.ack_set.has_changes()
        }
        marked = {name: len(cursor.marks) - 1 for name, cursor in model.cursors.items()}
        firsts = {number: topic.first for number, topic in model.topics.items()}
        gone = set(model.gone)
        ends = {number: len(topic.bodies) for number, topic in model.topics.items()}

        def stored() -> None:
            for number, topic in model.topics.items():
                topic.durable = ends[number]
                topic.first_durable = firsts[number]
                assert self.topic(number).end == topic.durable
            for name, at in staged.items():
                if name in model.cursors:
                    model.cursors[name].durable_from = at
            for name, at in marked.items():
                if name in model.cursors:
                    model.cursors[name].mark_durable_from = at
            model.gone_for_sure |= gone

        return stored

    def check(self) -> None:
        """Compare a freshly opened log with the model, and make what it shows the truth."""
        check_space(self.log)
        model = self.model
        for number, topic in model.topics.items():
            log = self.topic(number)
            assert topic.durable <= log.end <= len(topic.bodies)
            assert topic.first_durable <= log.first <= max(topic.first, topic.first_durable)
            self.check_entries(log, topic)
            del topic.bodies[log.end :], topic.positions[log.end :], topic.times[log.end :]
            self.check_last_times(log, topic)
            topic.durable = log.end
            topic.first = topic.first_durable = log.first
        found = {c.name: c for c in self.log.cursors_of(TOPICS[0])}
        assert not self.log.cursors_of(TOPICS[1])
        assert not model.gone_for_sure & set(found)
        self.ids = {}
        for name, state in found.items():
            mark = state.properties["mark"]
            assert state.properties == {"who": name, "mark": mark}
            self.ids[name] = state.cursor_id
            cursor = model.cursors.get(name)
            if cursor is None:
                assert name in model.gone
                self.log.delete_cursor(self.ids.pop(name))
                continue
            shown = acked_entries(state.ack_set)
            assert shown in cursor.states[cursor.durable_from :]
            assert mark in cursor.marks[cursor.mark_durable_from :]
            model.cursors[name] = CursorModel(state.ack_set, [shown], marks=[mark])
        for name in set(model.cursors) - set(found):
            assert self.unconfirmed(name)
            del model.cursors[name]

    def unconfirmed(self, name: str) -> bool:
        return name not in self.confirmed

    confirmed: frozenset[str] = frozenset()

    @staticmethod
    def check_last_times(log: TopicLog, topic: TopicModel) -> None:
        """They hold for the next entry also when the last one is trimmed."""
        received_ms, published_ms = topic.times[-1] if topic.times else (0, 0)
        assert log.times_of_next(0, 1) == (received_ms, received_ms - published_ms)

    def check_entries(self, log: TopicLog, topic: TopicModel) -> None:
        at = log.first
        while at < log.end:
            for number, ordinal, body in self.log.read(self.log.locate(log, at, 99, 1 << 20)):
                assert (number, ordinal) == (log.number, at)
                assert body == topic.bodies[at]
                assert log.size_bytes(at) == len(body)
                assert log.message_count(at) == message_count(body)
                assert (log.received_ms(at), log.published_ms(at)) == topic.times[at]
                assert log.position(at) == topic.positions[at]
                assert log.ordinal_at_or_after(*topic.positions[at]) == at
                at += 1
        assert log.bytes_before(log.end) == sum(map(len, topic.bodies[: log.end]))


def cut_at(index: int) -> FaultyFs:
    """A disk on which the power goes at the operation with this number."""

    def plan(operation: Operation) -> None:
        if operation.index >= index:
            raise PowerCutError

    return FaultyFs(MemFs(), plan)


def run(driver: Driver, turns: int) -> None:
    """Work until done or until the power goes."""
    try:
        driver.open()
        driver.check()
        for at in range(turns):
            driver.turn(at)
    except PowerCutError:
        return


def crash_and_check(driver: Driver, seed: int | None) -> Driver:
    """Cut the power for good, open what is left, compare, and use it on."""
    assert isinstance(driver.fs.inner, MemFs)
    after = Driver(FaultyFs(driver.fs.inner.crash_clone(seed)), driver.model, (seed or 0) + 77)
    after.confirmed = driver.confirmed
    after.open()
    after.check()
    return after


def operations_of(seed: int, turns: int) -> int:
    fs = cut_at(1 << 60)
    run(Driver(fs, Model(), seed), turns)
    return fs.operations_count


TURNS = 30


def test_the_run_passes_every_kind_of_boundary() -> None:
    kinds: set[tuple[str, str]] = set()
    fs = FaultyFs(MemFs(), lambda o: kinds.add((o.kind, o.path.rpartition(".")[2])))
    driver = Driver(fs, Model(), 4)
    run(driver, TURNS)
    statistics = driver.log.statistics()
    for topic in driver.model.topics.values():
        received, published = zip(*topic.times, strict=True)
        assert len({*received}) < len(received)  # the wall clock stepped back
        assert len({r - p for r, p in topic.times}) > 3
        assert list(published) == sorted(published)
    shown = [states for cursor in driver.model.cursors.values() for states in cursor.states]
    assert sum(any(isinstance(one, PartialEntry) for one in state) for state in shown) > 10
    assert statistics.checkpoints
    assert statistics.segments_deleted
    assert statistics.segments_rewritten
    assert statistics.segments_sealed
    assert {
        ("create", "log"), ("allocate", "log"), ("write", "log"), ("sync", "log"),
        ("truncate", "log"), ("remove", "log"), ("write", "tmp"), ("sync", "tmp"),
        ("rename", "tmp"), ("rename", "old"), ("remove", "checkpoint"), ("sync_directory", "/data"),
    } <= kinds  # fmt: skip


@pytest.mark.parametrize("seed", [2, 4])
@pytest.mark.parametrize("policy", ["synced only", "random rest"])
def test_power_cut_at_every_boundary(seed: int, policy: str) -> None:
    total = operations_of(seed, TURNS)
    assert total > 90
    for index in range(total + 1):
        driver = Driver(cut_at(index), Model(), seed)
        run(driver, TURNS)
        after = crash_and_check(driver, None if policy == "synced only" else index)
        for at in range(3):
            after.turn(at)
        crash_and_check(after, index if policy == "synced only" else None)


def test_a_second_cut_during_recovery() -> None:
    total = operations_of(5, TURNS)
    for index in range(total // 2, total, 7):
        driver = Driver(cut_at(index), Model(), 5)
        run(driver, TURNS)
        assert isinstance(driver.fs.inner, MemFs)
        left = driver.fs.inner.crash_clone(index)
        probe = FaultyFs(left.crash_clone())
        CommitLog.open(probe, DIRECTORY, topic_numbers=TOPICS, entropy=bytes, settings=SETTINGS)
        for step in range(probe.operations_count):
            again = cut_at(step)
            again.inner = left.crash_clone()
            with pytest.raises(PowerCutError):
                CommitLog.open(
                    again, DIRECTORY, topic_numbers=TOPICS, entropy=bytes, settings=SETTINGS
                )
            assert isinstance(again.inner, MemFs)
            last = Driver(FaultyFs(again.inner.crash_clone(step)), _copy(driver), step)
            last.confirmed = driver.confirmed
            last.open()
            last.check()


def _copy(driver: Driver) -> Model:
    """The model, so that it can be checked against several outcomes."""
    copy = Model()
    for number, topic in driver.model.topics.items():
        copy.topics[number] = TopicModel(
            list(topic.bodies), topic.durable, list(topic.positions), list(topic.times),
            set(topic.used), topic.first, topic.first_durable,
        )  # fmt: skip
    for name, cursor in driver.model.cursors.items():
        copy.cursors[name] = CursorModel(
            cursor.ack_set, list(cursor.states), cursor.durable_from, list(cursor.marks),
            cursor.mark_durable_from,
        )  # fmt: skip
    copy.gone = set(driver.model.gone)
    copy.gone_for_sure = set(driver.model.gone_for_sure)
    return copy
