"""Producers that send again after every crash, against a broker with deduplication.

Each producer numbers its messages and sends every one again until it has a receipt, as clients do:
after lost connections, power cuts, unloads, a disk without room and closed producers. It also sends
stored messages again at random. In the end the topic must hold each message exactly once, in order.
Receipts must come in the order of SENDs.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter, deque
from collections.abc import Coroutine
from contextlib import nullcontext
from typing import Any

import pytest

from headgate.base.errors import HeadgateError
from headgate.base.names import parse_topic
from headgate.engine.deduplication import NO_MESSAGE
from headgate.facade.admin_facade import AdminFacade
from headgate.fs import Operation
from headgate.ledger import LedgerSettings
from headgate.testing import ConnectionLostError, RefusedError, SimProducer, World
from tests.sim.late_receipts import late_receipts

TOPIC = "persistent://public/default/orders"
LEDGER = LedgerSettings(
    segment_bytes=8192, extent_bytes=1024, checkpoint_records=60, checkpoint_bytes=16384
)
SETTINGS = {"brokerDeduplicationEnabled": "true", "maxPendingPublishRequestsPerConnection": "12"}
MESSAGES = 150
PENDING_MAX = 20


class Sender:
    """One application with a producer name of its own."""

    def __init__(self, world: World, name: str, seed: int) -> None:
        self.world = world
        self.name = name
        self.rng = random.Random(f"{seed} {name}")
        self.next_id = 0
        self.pending: deque[tuple[int, tuple[bytes, ...]]] = deque()
        """What has no receipt: the first id, and the payloads; more than one are a batch."""
        self.stored: list[tuple[int, tuple[bytes, ...]]] = []
        self.answers: deque[asyncio.Future[Any]] = deque()
        """SENDs with receipts, in the order of these."""
        self.counts: Counter[str] = Counter()
        self.is_done = False

    async def run(self) -> None:
        """Send everything, whatever happens."""
        while not self.is_done:
            try:
                await self._session()
            except (HeadgateError, ConnectionError, RuntimeError, TimeoutError) as error:
                self.counts[type(error).__name__] += 1
            await asyncio.sleep(self.rng.random() * 0.2)

    async def _session(self) -> None:
        if not self.world.is_running:
            return
        client = await asyncio.wait_for(self.world.connect(), 10)
        try:
            producer = await asyncio.wait_for(client.producer(TOPIC, name=self.name), 10)
            self._check_last_id(producer)
            self.answers.clear()
            waiting: deque[tuple[asyncio.Future[Any], bool]] = deque()
            for message in self.pending:
                waiting.append((self._send(producer, message), False))
            while self.next_id < MESSAGES or waiting:
                if self.next_id < MESSAGES and len(waiting) < PENDING_MAX:
                    waiting.append(self._send_some(producer))
                if self.rng.random() < 0.3 or self.next_id >= MESSAGES:
                    await self._take_receipt(waiting)
                if self.rng.random() < 0.1:
                    await asyncio.sleep(self.rng.random() * 0.3)
                if self.rng.random() < 0.02:
                    client.transport.abort()
                    self.counts["aborted"] += 1
            self.is_done = True
        finally:
            client.transport.abort()

    def _check_last_id(self, producer: SimProducer) -> None:
        """The broker knows at least what has a receipt, and no more than was sent."""
        known = producer.last_sequence_id
        assert known >= (self.stored[-1][0] if self.stored else -1)
        assert known <= max([one[0] for one in (*self.stored[-1:], *self.pending)], default=-1)

    def _send_some(self, producer: SimProducer) -> tuple[asyncio.Future[Any], bool]:
        if self.stored and self.rng.random() < 0.2:
            self.counts["again"] += 1
            return self._send(producer, self.rng.choice(self.stored)), True
        size = self.rng.choice((1, 1, 1, 3))
        ids = range(self.next_id, self.next_id + size)
        message = ids[0], tuple(b"%s %d" % (self.name.encode(), one) for one in ids)
        self.next_id += size
        self.pending.append(message)
        return self._send(producer, message), False

    def _send(
        self, producer: SimProducer, message: tuple[int, tuple[bytes, ...]]
    ) -> asyncio.Future[Any]:
        first, payloads = message
        producer.sequence_id = first - 1
        padding = b" " + b"x" * self.rng.randrange(200)
        padded = tuple(payload + padding for payload in payloads)
        future = producer.send_nowait(padded[0], batch=padded if len(padded) > 1 else ())
        future.add_done_callback(self._answered)
        return future

    def _answered(self, future: asyncio.Future[Any]) -> None:
        if future.exception() is None:
            self.answers.append(future)

    async def _take_receipt(self, waiting: deque[tuple[asyncio.Future[Any], bool]]) -> None:
        if not waiting:
            await asyncio.sleep(0.01)
            return
        future, is_again = waiting.popleft()
        position = await asyncio.wait_for(future, 30)
        assert self.answers.popleft() is future
        if is_again:
            assert position == NO_MESSAGE
            return
        if position == NO_MESSAGE:
            self.counts["found stored"] += 1
        self.stored.append(self.pending.popleft())


class Trouble:
    """What happens to the broker meanwhile."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.rng = random.Random(f"{seed} of trouble")
        self.counts: Counter[str] = Counter()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self.rng.random())
            what = self.rng.choice((self.cut, self.cut, self.unload, self.fill_disk, self.restart))
            self.counts[what.__name__] += 1
            await what()

    async def cut(self) -> None:
        self.world.crash()
        await asyncio.sleep(self.rng.random() * 0.1)
        await self.world.start()

    async def restart(self) -> None:
        await self.world.stop()
        await self.world.start()

    async def unload(self) -> None:
        facade = AdminFacade(self.world.broker, self.world.observer)
        try:
            await self.world.ask(facade.unload_topic(parse_topic(TOPIC)))
        except HeadgateError:
            self.counts["not unloaded"] += 1

    async def fill_disk(self) -> None:
        """Writes find no room for a while."""
        left = self.rng.randrange(1, 4)

        def plan(operation: Operation) -> int | None:
            nonlocal left
            if operation.kind == "write" and left > 0:
                left -= 1
                return self.rng.randrange(operation.size + 1)
            return None

        self.world.disk.plan = plan
        await asyncio.sleep(0.5)


async def story(world: World, seed: int) -> Counter[str]:
    await world.start()
    consumer = await (await world.connect()).subscribe(TOPIC, "all")
    await consumer.close()
    senders = [Sender(world, name, seed) for name in ("a", "producer b")]
    trouble = Trouble(world, seed)
    task = asyncio.get_running_loop().create_task(trouble.run())
    await asyncio.wait_for(asyncio.gather(*(sender.run() for sender in senders)), 900)
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()
    if world.is_running:
        world.crash()
    await world.start()
    found = await everything(world, sum(sender.next_id for sender in senders))
    for sender in senders:
        name = sender.name.encode()
        mine = [text for text in found if text.startswith(name)]
        assert mine == [b"%s %d" % (name, at) for at in range(sender.next_id)]
    return sum((sender.counts for sender in senders), trouble.counts)


async def everything(world: World, count: int) -> list[bytes]:
    consumer = await (await world.connect()).subscribe(TOPIC, "all")
    found: list[bytes] = []
    while len(found) < count:
        message = await asyncio.wait_for(consumer.receive(), 30)
        found += [payload.rstrip(b"x").rstrip() for payload in message.payloads]
    await asyncio.sleep(1)
    assert not consumer.queue, "a message is stored twice"
    return found


def played(seed: int) -> Counter[str]:
    late = late_receipts(random.Random(f"late {seed}")) if seed % 2 else nullcontext()
    with late, World(seed, settings=SETTINGS, ledger=LEDGER) as world:
        whole: Coroutine[Any, Any, Counter[str]] = story(world, seed)
        return world.run(whole)


@pytest.mark.parametrize("seed", range(8))
def test_each_message_is_stored_exactly_once(seed: int) -> None:
    counts = played(seed)
    assert counts["again"] > 5


def test_the_story_meets_everything() -> None:
    """Else the test above shows less than it says."""
    counts = sum((played(seed) for seed in range(8, 12)), Counter())
    for what in ("found stored", "aborted", "unload", "fill_disk", "restart", "cut"):
        assert counts[what] > 0, (what, counts)


def test_without_deduplication_the_story_stores_messages_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(SETTINGS, "brokerDeduplicationEnabled", "false")
    with pytest.raises((AssertionError, ConnectionLostError, RefusedError)):
        played(0)
