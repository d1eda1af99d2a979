"""Power cuts between the log and the metadata: a whole broker's short life, cut at every boundary.

The story makes and deletes everything that lies in both stores. It is played once for each commit
of the metadata (which is then there or lost as a whole) and each operation on the log's disk; and
again with a write or a sync, or a commit of the metadata, that failed before the cut. After each
the broker has to start, and what it then shows has to be what it had promised.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import itertools
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pytest

from headgate.base.errors import HeadgateError, StorageError
from headgate.base.names import NamespaceName, parse_topic
from headgate.base.positions import EARLIEST, Position
from headgate.engine.topic import Topic
from headgate.facade.admin_facade import AdminFacade
from headgate.facade.protocol import AtPosition
from headgate.fs import FaultyFs, Operation
from headgate.ledger import LedgerSettings
from headgate.metadata.memory_store import MemoryStore
from headgate.metadata.policies import Retention
from headgate.metadata.rows import TenantRow
from headgate.metadata.store import Write
from headgate.storage.store_binding import BindingError
from headgate.testing import SimProducer, World
from headgate.testing.world import DIRECTORY

NAME = "persistent://public/default/orders"
TOPIC = parse_topic(NAME)
PARTED = parse_topic("persistent://public/default/parted")
NAMESPACE = NamespaceName("acme", "shop")
LEDGER = LedgerSettings(
    segment_bytes=4096, extent_bytes=1024, checkpoint_records=30, checkpoint_bytes=4096
)
KEPT = Retention(retention_time_in_minutes=7, retention_size_in_mb=7)
STEP_SECONDS_MAX = 30.0
NEW = -1
"""The number of a topic whose making was not answered."""
NEVER = 1 << 60
SENT_TAG = re.compile(rb"#(\d+)-(\d+)#")

FAILING = {
    "create": errno.ENOSPC,
    "allocate": errno.ENOSPC,
    "write": errno.ENOSPC,
    "sync": errno.EIO,
    "rename": errno.EIO,
}
"""Operations that fail, and how."""

Tag = tuple[int, int]
"""A message: its topic's number, and its own."""


class Machine:
    """A world whose power goes at a chosen boundary, and that may fail once before."""

    def __init__(self, world: World, *, cut_operation: int = NEVER) -> None:
        self.world = world
        self.off = world.loop.create_future()
        self.cut_operation = cut_operation
        self.fail_operation: tuple[int, int] | None = None
        """Which operation of the disk fails, and with which error."""
        self.survives_store = False
        """A failed store is no power cut."""
        self.operations: list[str] = []
        """The kinds of all that was done to the disk."""
        self.commits_count = 0
        self.refuse_commit = NEVER
        """Which commit of the metadata is refused, and not stored."""
        self._commit = world.store.commit
        world.store.commit = self.commit  # type: ignore[method-assign]
        self._first_operation = world.disk.operations_count
        world.disk.plan = self.plan

    def plan(self, operation: Operation) -> int | None:
        index = operation.index - self._first_operation
        self.operations.append(operation.kind)
        if index >= self.cut_operation:
            self.cut()
        if self.off.done():
            raise OSError(errno.EIO, "the power is off")
        if self.fail_operation is not None and index == self.fail_operation[0]:
            if operation.kind == "write":
                return operation.size // 2  # the disk is full
            raise OSError(self.fail_operation[1], "as planned")
        return None

    def commit(self, writes: list[Write]) -> None:
        if self.off.done():
            raise StorageError("the power is off", retryable=False)
        self.commits_count += 1
        if self.commits_count == self.refuse_commit + 1:
            raise StorageError("the disk is full", retryable=True)
        try:
            self._commit(writes)
        except StorageError as error:
            if not (error.retryable or self.survives_store):
                self.cut()
            raise

    def cut(self) -> None:
        if not self.off.done():
            self.off.set_result(None)

    def crash(self, coin: int) -> None:
        """Nothing goes on; what was not synced is there or not as ``coin`` has it."""
        for lane in self.world.lanes:
            lane.kill()
        self.world.seed = coin
        self.world.crash()


class PowerIsOffError(Exception):
    """Ends the story."""


class Story:
    """What is asked of the broker, and what may be found because of it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.refused: list[str] = []
        self.stopped = False
        self.allowed: dict[str, set[Any]] = defaultdict(lambda: {None})
        """By fact: every value that a restart may show; one, once it was answered."""
        self.numbers: set[int] = set()
        """Of all topics of that name that were ever seen."""
        self.tags = itertools.count()
        self.sent: dict[int, list[Tag]] = defaultdict(list)
        self.receipts: dict[Tag, Position] = {}
        self.ack_asked: dict[tuple[int, int], set[Tag]] = defaultdict(set)
        """By the topic's number and the subscription's mark."""
        self.ack_answered: dict[tuple[int, int], set[Tag]] = defaultdict(set)

    @property
    def facade(self) -> AdminFacade:
        return AdminFacade(self.world.broker, self.world.observer)

    async def step(self, fact: str, value: Any, work: Callable[[], Awaitable[Any]]) -> Any:
        """Have a fact changed; returns what the work did, None when it was refused."""
        if self.stopped:
            raise PowerIsOffError
        self.allowed[fact] = self.allowed[fact] | {value}
        try:
            done = await asyncio.wait_for(work(), STEP_SECONDS_MAX)
        except (HeadgateError, TimeoutError) as error:
            self.refused.append(f"{fact}: {error!r}")
            return None
        self.allowed[fact] = {value}
        if self.stopped:
            raise PowerIsOffError
        return done if done is not None else True

    async def change(self, fact: str, value: Any, plan: Callable[[Any], Any]) -> None:
        """Have the metadata changed."""

        async def work() -> None:
            await self.world.ask(self.facade.commit(plan(self.facade.catalog)))

        await self.step(fact, value, work)

    async def admin(self, fact: str, value: Any, ask: Callable[[AdminFacade], Any]) -> bool:
        """Have the broker asked by its admin API; whether it did that."""
        return bool(await self.step(fact, value, lambda: self.world.ask(ask(self.facade))))

    async def whole(self) -> None:
        """Everything once, some of it twice; or until the power is off."""
        with contextlib.suppress(PowerIsOffError):
            await self.beginning()
            await asyncio.sleep(2)
            await self.ending()
            await asyncio.sleep(1.5)

    async def beginning(self) -> None:
        tenant = TenantRow(allowed_clusters=("standalone",))
        await self.change("tenant", True, lambda c: c.plan_create_tenant("acme", tenant))
        await self.change("namespace", True, lambda c: c.plan_create_namespace(NAMESPACE))
        await self.life_of_the_topic()
        await self.partitions(3)
        await self.change(
            "policy", KEPT, lambda c: c.plan_namespace_policies(NAMESPACE, retention=KEPT)
        )
        await self.admin("unloaded", None, lambda f: f.unload_topic(TOPIC))
        await self.publish(4)
        await self.acknowledge(3)
        await self.end_subscription()
        await self.subscription(1)
        await self.acknowledge(1)

    async def ending(self) -> None:
        await self.admin("partitions", None, lambda f: f.delete_topic(PARTED, force=True))
        await self.admin("topic", None, lambda f: f.delete_topic(TOPIC, force=True))
        await self.partitions(2)
        await self.life_of_the_topic()
        await self.change("namespace", None, lambda c: c.plan_delete_namespace(NAMESPACE))
        await self.change("tenant", None, lambda c: c.plan_delete_tenant("acme"))

    async def life_of_the_topic(self) -> None:
        await self.publish(9)
        await self.subscription(0)
        await self.acknowledge(4)

    async def partitions(self, count: int) -> None:
        now_ms = self.world.wall_ms()
        await self.change(
            "partitions", count, lambda c: c.plan_create_partitioned(PARTED, count, now_ms=now_ms)
        )

    def number(self) -> int:
        """The topic's, as the running broker has it; 0 when there is none."""
        row = self.world.broker.catalog.topic(NAME) if self.world.is_running else None
        return 0 if row is None else row.number

    async def subscription(self, mark: int) -> None:
        number = self.number()
        is_made = await self.admin(
            f"s of {number}",
            mark,
            lambda f: f.create_subscription(TOPIC, "s", AtPosition(EARLIEST), {"mark": str(mark)}),
        )
        if is_made:  # anew, if there was one with this mark before: it begins at the beginning
            self.ack_answered[number, mark] = set()

    async def end_subscription(self) -> None:
        await self.admin(
            f"s of {self.number()}", None, lambda f: f.delete_subscription(TOPIC, "s", force=True)
        )

    async def publish(self, count: int) -> None:
        """Publish to the topic, which is made when it is not there."""

        async def produce() -> Any:
            return await (await self.world.connect()).producer(NAME)

        producer = await self.step("topic", self.number() or NEW, produce)
        if producer is None:
            return
        number = self.number()
        self.numbers.add(number)
        self.allowed["topic"] = {number}
        await self.send(producer, number, 1)
        await self.send(producer, number, count - 1)

    async def send(self, producer: SimProducer, number: int, count: int) -> None:
        """Send several messages at once."""
        tags = [(number, next(self.tags)) for _ in range(count)]
        self.sent[number] += tags

        async def send() -> Any:
            bodies = [b"#%d-%d#" % tag + b"x" * 800 for tag in tags]
            receipts = [producer.send_nowait(body) for body in bodies]
            return await asyncio.gather(*receipts, return_exceptions=True)

        for tag, receipt in zip(tags, await self.step("sent", None, send) or (), strict=False):
            if isinstance(receipt, Position):
                self.receipts[tag] = receipt
            elif not isinstance(receipt, HeadgateError):
                raise receipt

    async def acknowledge(self, count: int) -> None:
        """Acknowledge one by one what a consumer gets, if the subscription is there."""

        async def consume() -> Any:
            if "s" not in self.facade.subscriptions(TOPIC):
                raise StorageError("it was not made", retryable=False)
            return await (await self.world.connect()).subscribe(NAME, "s")

        consumer = await self.step("consumed", None, consume)
        if consumer is None:
            return
        loaded = self.world.broker.engine.topics[NAME].subscriptions["s"]
        key = (self.number(), int(loaded.properties["mark"]))
        for _ in range(count):
            message = await self.step("received", None, consumer.receive)
            if message is None:
                return
            tag = tag_of(message.payload)
            self.ack_asked[key].add(tag)
            if await self.step("acked", None, partial(consumer.ack, message.position)):
                self.ack_answered[key].add(tag)
        await self.step("left", None, consumer.close)

    # -- what a restart shows --------------------------------------------------------------

    def check(self) -> None:
        """Compare what a broker that just started shows; from then on that is promised."""
        broker = self.world.broker
        catalog = broker.catalog
        numbers = set(catalog.topic_numbers())
        assert {cursor.topic_number for cursor in broker.log.cursors()} <= numbers
        assert catalog.in_flight_count == 0
        self.found("tenant", True if "acme" in catalog.tenants() else None)
        has_namespace = str(NAMESPACE) in catalog.namespaces("acme")
        self.found("namespace", True if has_namespace else None)
        if has_namespace:
            self.found("policy", catalog.namespace_policies(NAMESPACE).retention)
        count = broker.registry.partitions(PARTED)
        self.found("partitions", count or None)
        parts = [catalog.topic(PARTED.partition_name(i).full) is not None for i in range(3)]
        assert parts == [i < count for i in range(3)]
        number = self.number() or None
        if number is not None and number not in self.numbers and NEW in self.allowed["topic"]:
            self.allowed["topic"].add(number)
        self.found("topic", number)
        topic = broker.registry.get(TOPIC)
        if topic is not None:
            self.check_topic(topic, topic.log.number)

    def found(self, fact: str, value: Any) -> None:
        assert value in self.allowed[fact], (fact, value, self.allowed[fact])
        self.allowed[fact] = {value}

    def check_topic(self, topic: Topic, number: int) -> None:
        held = [*self.read(topic)]
        assert [tag for tag in self.sent[number] if tag in held] == held  # in order, once
        assert {tag for tag in self.sent[number] if tag in self.receipts} <= set(held)
        for ordinal, tag in enumerate(held):
            position = topic.log.position(ordinal)
            assert self.receipts.setdefault(tag, position) == position
        self.sent[number] = held
        subscription = topic.subscriptions.get("s")
        mark = None if subscription is None else int(subscription.properties["mark"])
        self.found(f"s of {number}", mark)
        if subscription is None or mark is None:
            return
        acked = {tag for at, tag in enumerate(held) if subscription.acks.is_acked(at)}
        assert self.ack_answered[number, mark] <= acked <= self.ack_asked[number, mark]
        self.ack_answered[number, mark] = acked

    def read(self, topic: Topic) -> Iterator[Tag]:
        log = self.world.broker.log.topic(topic.log.number)
        at = log.first
        assert at == 0
        while at < log.end:
            for _, _, body in self.world.broker.log.read(
                self.world.broker.log.locate(log, at, 99, 1 << 20)
            ):
                yield tag_of(body)
                at += 1


def tag_of(body: bytes) -> Tag:
    found = SENT_TAG.search(body)
    assert found is not None
    return int(found[1]), int(found[2])


def play(coin: int, prepare: Callable[[Machine], None]) -> tuple[Machine, Story]:
    """Play with a cut, start again, look, use the broker, cut and look once more."""
    with World(3, ledger=LEDGER) as world:
        world.run(world.start())
        machine, story = Machine(world), Story(world)
        prepare(machine)
        playing = world.loop.create_task(story.whole())
        world.run(first_of(playing, machine.off))
        story.stopped = True
        refused = [*story.refused]
        machine.crash(coin)
        world.run(playing)
        world.run(world.start())
        story.check()
        story.stopped, story.refused = False, []
        after = Machine(world)
        world.run(story.publish(2))
        assert story.refused == []
        after.crash(coin + 1)
        world.run(world.start())
        story.check()
        story.refused = refused
        return machine, story


async def first_of(*futures: asyncio.Future[Any]) -> None:
    await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)


@functools.cache
def boundaries() -> tuple[list[str], int]:
    """The disk's operations in the story, and how many commits the metadata has."""
    machine, story = play(0, lambda _: None)
    assert story.refused == []
    return machine.operations, machine.commits_count


def test_the_story_passes_every_kind_of_boundary() -> None:
    operations, commits_count = boundaries()
    assert {
        "create", "allocate", "write", "sync", "sync_directory", "truncate", "rename", "remove",
    } <= set(operations)  # fmt: skip
    assert commits_count == 12


@pytest.mark.parametrize("keep", [True, False])
def test_a_cut_in_each_commit_of_the_metadata(keep: bool) -> None:
    for index in range(boundaries()[1]):

        def prepare(machine: Machine, index: int = index) -> None:
            machine.world.store.crash_at(machine.world.store.commits + index, keep=keep)

        play(index, prepare)


@pytest.mark.parametrize("keep", [True, False])
def test_a_commit_of_the_metadata_that_failed_while_the_broker_went_on(keep: bool) -> None:
    for index in range(boundaries()[1]):

        def prepare(machine: Machine, index: int = index) -> None:
            machine.survives_store = True
            machine.world.store.crash_at(machine.world.store.commits + index, keep=keep)

        play(index, prepare)


def test_a_cut_after_a_commit_that_the_metadata_refused() -> None:
    for index in range(boundaries()[1]):

        def prepare(machine: Machine, index: int = index) -> None:
            machine.refuse_commit = index
            machine.world.store.crash_at(machine.world.store.commits + index, keep=index % 2 == 0)

        play(index, prepare)


@pytest.mark.parametrize("coin", range(3))
def test_a_cut_at_each_operation_of_the_log(coin: int) -> None:
    for index in range(len(boundaries()[0])):

        def prepare(machine: Machine, index: int = index) -> None:
            machine.cut_operation = index

        play(coin * 1_000 + index, prepare)


@pytest.mark.parametrize("later", [1, 3, 6, 10, 20])
def test_a_cut_after_an_operation_of_the_log_that_failed(later: int) -> None:
    for index, kind in enumerate(boundaries()[0]):
        if kind not in FAILING:
            continue

        def prepare(machine: Machine, index: int = index, kind: str = kind) -> None:
            machine.fail_operation = index, FAILING[kind]
            machine.cut_operation = index + later

        play(index, prepare)


@pytest.mark.parametrize("end", ["cleanly", "power cut"])
def test_metadata_of_any_earlier_moment_are_refused_and_the_log_stays(end: str) -> None:
    with World(3, ledger=LEDGER) as world:
        world.run(world.start())
        machine, story = Machine(world), Story(world)
        moments = [world.store.load()]
        commit = world.store.commit

        def remember(writes: Sequence[Write]) -> None:
            commit(writes)
            moments.append(world.store.load())

        world.store.commit = remember  # type: ignore[method-assign]
        world.run(story.whole())
        assert story.refused == []
        if end == "cleanly":
            world.run(world.stop())
        else:
            machine.crash(1)
        newest, disk = moments.pop(), world.fs
        assert len(moments) > 10
        for rows in [{}, *moments]:
            world.fs = disk.crash_clone(None)
            world.disk, world.store = FaultyFs(world.fs), MemoryStore(rows)
            before = files(world)
            with pytest.raises(BindingError):
                world.run(world.start())
            world.crash()
            assert files(world) == before
        world.fs = disk.crash_clone(None)
        world.disk, world.store = FaultyFs(world.fs), MemoryStore(newest)
        world.run(world.start())
        story.check()


def files(world: World) -> dict[str, bytes]:
    """Everything in the log's directory."""
    found: dict[str, bytes] = {}
    for name in world.fs.list_directory(DIRECTORY):
        file = world.fs.open(f"{DIRECTORY}/{name}")
        found[name] = file.read_at(0, file.size())
    return found
