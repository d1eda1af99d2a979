"""Each kind of work of each lane fails once with an error that nobody expects, before it did
anything or when it is done, and so does what the loop does at its end.

Either the process ends, or the broker goes on: each request is answered, each message delivered,
each kind of work runs again, and health names the error until it is over. Nothing waits for ever.
"""

from __future__ import annotations

import asyncio
import inspect
import random
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import fields
from functools import cache, partial
from typing import Any, NamedTuple

import pytest

from headgate.app.backup.holding import FileHolding
from headgate.base.errors import HeadgateError, InvariantError
from headgate.base.names import NamespaceName, parse_topic
from headgate.base.positions import Position
from headgate.broker import lanes
from headgate.facade.admin_facade import AdminFacade
from headgate.ledger import LedgerSettings
from headgate.ledger.format.directory import write_file
from headgate.metadata.policies import Retention
from headgate.storage.lane_watch import WatchedLane
from headgate.telemetry.records.publisher import TelemetryPublisher
from headgate.testing import World
from headgate.testing.lanes import Done, SimLane, Work

DATA = "/broker"
LEDGER = LedgerSettings(
    segment_bytes=65_536,
    checkpoint_records=400,
    checkpoint_bytes=8 << 20,
    hole_bytes_min=8_192,
    removed_piece_bytes=16_384,
)
SETTINGS = {"retentionCheckIntervalInSeconds": "1", "brokerDeleteInactiveTopicsEnabled": "false"}
LANES = tuple(field.name for field in fields(lanes.Lanes))
WAYS = ("before the work", "after the work", "before its end", "after its end")
HUNG_S = 300
"""Virtual seconds after which a request counts as never answered."""
RETRY_S = 700
"""Longer than every pause after a failure."""
ROUNDS = 40


class Target(NamedTuple):
    """The piece of work that fails."""

    lane: str
    kind: str
    at: int
    """Which of this kind, from 1."""
    way: str


class UnexpectedError(Exception):
    """What no caller of the work expects."""


def kind_of(work: Any) -> str:
    """A name for the function that a lane runs."""
    while isinstance(work, partial):
        # The lane's watch stands around the work as well.
        is_timed = getattr(work.func, "__func__", None) is WatchedLane._timed
        work = work.args[0] if is_timed else work.func
    wrapped = inspect.getclosurevars(work).nonlocals.get("work")
    if wrapped is not None and callable(wrapped):
        return kind_of(wrapped)
    name: str = work.__qualname__
    return name.replace("<locals>.", "").replace(".<lambda>", "")


class Lanes:
    """Watches the lanes of a world, and lets one piece of work fail."""

    def __init__(self, world: World, target: Target | None) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.hit = False
        self._target = target
        for name, lane in zip(LANES, world.lanes, strict=True):
            lane.submit = partial(self._submit, name, lane, lane.submit)  # type: ignore[method-assign]

    def _submit(
        self, name: str, _: SimLane, submit: Callable[[Work, Done], None], work: Work, done: Done
    ) -> None:
        key = name, kind_of(work)
        self.counts[key] += 1
        if self.hit or self._target is None or (*key, self.counts[key]) != self._target[:3]:
            submit(work, done)
            return
        self.hit = True
        way = self._target[3]

        def failing_work() -> None:
            if way == "after the work":
                work()
            raise UnexpectedError(*key)

        def failing_end(inner: Done, result: Any, error: BaseException | None) -> None:
            if way == "after its end":
                inner(result, error)
            raise UnexpectedError(*key)

        if way in WAYS[:2]:
            submit(failing_work, done)
            return
        # The lane's watch stands around the callback: fail inside it, as a part of it would.
        assert isinstance(done, partial)
        submit(work, partial(done.func, partial(failing_end, done.args[0])))


class Story:
    """What clients and operators do with a broker, and what came of it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.hung: list[str] = []
        self.refused: list[str] = []
        self.receipts: list[Position] = []
        self.facade = AdminFacade(world.broker, world.observer)
        world.fs.make_directory(DATA)
        TelemetryPublisher(world.broker, entropy=random.Random(2).randbytes).start()

    async def play(self, number: int) -> None:
        """Publish, release, delete, change policies, read a backlog and hold a backup."""
        slow, fast = (f"persistent://public/default/{name}-{number}" for name in ("slow", "fast"))
        self.world.broker.engine.cache.size_bytes_max = 4_096
        if not await self._try("topics", self._made(slow, fast)):
            await self._try("topics, asked for again", self._made(slow, fast))
        await self._try("messages", self._published(slow, fast))
        await self._try("policy", self._policy(number))
        await self._try("deletion", self.facade.delete_topic(parse_topic(fast), force=True))
        await self._try("health", self.facade.check_health())
        await asyncio.sleep(20)
        await self._try("backlog", self._read(slow))
        await self._try("backup", self._backup())
        await self._try("last message", self._last(slow))
        await asyncio.sleep(30)

    async def _try(self, what: str, work: Coroutine[Any, Any, Any]) -> bool:
        try:
            await asyncio.wait_for(work, HUNG_S)
            return True
        except TimeoutError:
            self.hung.append(what)
        except (HeadgateError, UnexpectedError) as error:
            if isinstance(error, InvariantError):
                raise
            self.refused.append(f"{what}: {error!r}")
        return False

    async def _made(self, slow: str, fast: str) -> None:
        client = await self.world.connect()
        await client.subscribe(slow, "s")
        await client.producer(fast)
        client.close()

    async def _published(self, slow: str, fast: str) -> None:
        client = await self.world.connect()
        slow_producer, fast_producer = await client.producer(slow), await client.producer(fast)
        for at in range(ROUNDS):
            for _ in range(4):
                await fast_producer.send(bytes(2_000))
            self.receipts.append(await slow_producer.send(b"%06d" % at * 100))
        client.close()

    async def _policy(self, number: int) -> None:
        plan = self.world.broker.catalog.plan_namespace_policies(
            NamespaceName("public", "default"), retention=Retention(number, -1)
        )
        await self.world.broker.writer.commit(plan)

    async def _read(self, topic: str) -> None:
        consumer = await (await self.world.connect()).subscribe(topic, "s")
        for at in range(ROUNDS):
            message = await consumer.receive()
            assert message.payload == b"%06d" % at * 100
            if at < ROUNDS // 2:
                await consumer.ack(message.position)
        await consumer.close()

    async def _last(self, topic: str) -> None:
        consumer = await (await self.world.connect()).subscribe(topic, "s")
        await consumer.last_message_id()
        await consumer.close()

    async def _backup(self) -> None:
        world, broker = self.world, self.world.broker

        def copy_metadata(target: str) -> None:
            write_file(world.disk, *target.rsplit("/", 1), [b"metadata"])

        holding = FileHolding(
            world.disk,
            DATA,
            broker.logs.by_name(),
            copy_metadata,
            broker.identity_writer.identities,
            upkeep=broker.lanes.upkeep,
            metadata=broker.lanes.metadata,
            entropy=random.Random(1).randbytes,
        )
        hold = await holding.begin()
        await holding.end(hold.id)


async def why_unhealthy(story: Story) -> str:
    """What the health check says; empty if all is well."""
    try:
        await asyncio.wait_for(story.facade.check_health(), HUNG_S)
    except HeadgateError as error:
        return str(error)
    return ""


async def check_restarted(world: World, receipts: list[Position]) -> None:
    """The next start has each message with a receipt."""
    await world.start()
    if receipts:
        client = await world.connect()
        reader = await client.reader("persistent://public/default/slow-1", Position(-1, -1))
        for position in receipts:
            while (await reader.receive()).position != position:
                pass


def play(target: Target | None) -> tuple[str, Counter[tuple[str, str]], bool]:
    """How a story ended in which one piece of work failed, what ran in a second one, and whether
    that piece came."""

    async def whole() -> Counter[tuple[str, str]]:
        await world.start()
        world._watch.close()
        watched.append(Lanes(world, target))
        story = Story(world)
        stories.append(story)
        await story.play(1)
        if target is None:
            first.update(watched[0].counts)
        assert story.hung == []
        await asyncio.sleep(RETRY_S)
        assert await why_unhealthy(story) == ""
        story.refused = []
        watched[0].counts.clear()
        await story.play(2)
        assert (story.hung, story.refused) == ([], [])
        assert await why_unhealthy(story) == ""
        return watched[0].counts

    watched: list[Lanes] = []
    stories: list[Story] = []
    first: Counter[tuple[str, str]] = Counter()
    with World(7, ledger=LEDGER, settings=SETTINGS, telemetry_log=True) as world:
        try:
            counts = world.run(whole())
        except InvariantError as error:
            world.crash()
            world.run(check_restarted(world, stories[0].receipts))
            return f"ended: {error}", Counter(), watched[0].hit
        return "went on", first or counts, watched[0].hit


@cache
def targets() -> list[Target]:
    """Each kind of work in each way, each way at another time."""
    _, counts, _ = play(None)
    return [
        Target(*key, at, way)
        for key, count in sorted(counts.items())
        for at, way in zip((1, min(2, count), (count + 1) // 2, 1), WAYS, strict=True)
    ]


EXPECTED_KINDS = {
    "LogWriter.write_batch",
    "LogReader.fetch",
    "DiskMonitor._ask",
    "IdentityWriter.write_if_changed",
    "MetadataWriter._begin.work",
    "FileHolding._copy_checkpoints",
    "FileHolding._write",
    "FileHolding.clear",
    "LogWriter.prepare",
    "LogWriter.store_checkpoint",
    "Maintenance._start_delete.run",
    "Maintenance._step_seal.run",
    "Maintenance._start_punch.run",
    "Rewriting._copied",
    "Rewriting._copied.advance",
    "PacedRemoval._free_pieces",
}


def test_the_story_has_all_kinds_of_work() -> None:
    kinds = {kind for _, kind, _, _ in targets()}
    assert kinds >= EXPECTED_KINDS, kinds


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("lane", LANES)
def test_an_error_that_nobody_expects_ends_the_process_or_is_repaired(lane: str, way: str) -> None:
    chosen = [target for target in targets() if (target.lane, target.way) == (lane, way)]
    assert chosen
    for target in chosen:
        outcome, ran, was_hit = play(target)
        assert was_hit, target
        if way in WAYS[2:]:
            assert outcome.startswith("ended"), (target, outcome)
        if outcome == "went on":
            assert ran[target.lane, target.kind] > 0, f"{target} never ran again"
