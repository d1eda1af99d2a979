"""No iteration of the loop has more than a fixed number of work units, whatever clients send.

Seeded hostile clients against a whole broker in virtual time. What the broker does is counted where
it does it, not where it says that it does: by the calls that do the work of each step, with the
units of the table.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from headgate.base import work_units
from headgate.base.ack_set import AckSet
from headgate.base.errors import HeadgateError
from headgate.base.names import parse_topic
from headgate.base.positions import Position
from headgate.base.units import MIB
from headgate.base.work_units import TURN_UNITS_MAX
from headgate.broker.connection.connection import Connection
from headgate.broker.connection.consumers import ConnectionConsumers
from headgate.broker.connection.producers import ConnectionProducers
from headgate.engine.dispatch_shared import SharedDispatcher
from headgate.engine.dispatcher import Dispatcher
from headgate.engine.engine import Engine
from headgate.engine.publishing import TopicPublishing
from headgate.engine.subscription import Subscription
from headgate.flow.limits.waiter_gate import WaiterGate
from headgate.metadata.policies import DispatchRate
from headgate.observe.history.tracks import Track
from headgate.testing import NetworkProfile, SimClient, World
from headgate.testing.consumer import SimConsumer
from headgate.wire import client as frames
from headgate.wire.codes import SubscriptionType

NETWORK = NetworkProfile(0, 0, piece_bytes_max=MIB, window_bytes=16 * MIB)
"""A network that hands over as much as the receiver takes, as a loopback socket does."""

TOPICS = 150
WIDE_SUBSCRIPTIONS = 5_000
CONNECTIONS = 12
IDS = 8_000
"""Of one ACK or REDELIVER."""
COMMANDS = 1_500
ACTS = 45
WIDE = "persistent://public/default/wide"
CAUGHT_UP = "persistent://public/default/caught-up"
"""A topic with as many subscriptions, which have acknowledged all its entries."""

WORK: list[tuple[type, str, float]] = [
    (Subscription, "ack_entry", work_units.ACK_ID),
    (Subscription, "flow", work_units.FLOW),
    (Subscription, "trimmed", 1),
    (Subscription, "remove_consumer", work_units.CLIENT_CLOSED),
    (SharedDispatcher, "_give_back", work_units.QUEUED_AGAIN),
    (Dispatcher, "pump", work_units.PUMPED),
    (ConnectionConsumers, "send_entry", work_units.DISPATCHED),
    (ConnectionProducers, "send_receipt", 1 / work_units.RECEIPTS_PER_UNIT),
    (TopicPublishing, "publish", work_units.SEND),
    (TopicPublishing, "entries_durable", work_units.TOPIC_DURABLE),
    (Engine, "quotas_in_steps", work_units.TOPIC_RESOLVED),
    (Engine, "_put_in_force", work_units.SUBSCRIPTION_RESOLVED // 2),
    (WaiterGate, "refresh_path", 1),
    (Connection, "_carry_out_other", work_units.COLD),
    (Track, "add", work_units.SUBSCRIPTION_RECORDED),
]
"""What does the work of a step, and its units."""


class UnitCounter:
    """The units of each iteration of the loop."""

    def __init__(self) -> None:
        self.now: Counter[str] = Counter()
        self.largest: Counter[str] = Counter()
        """What the iteration with the most units did."""

    def iteration_ended(self) -> None:
        if self.now.total() > self.largest.total():
            self.largest = self.now
        self.now = Counter()


@contextmanager
def counted(world: World, patch: pytest.MonkeyPatch) -> Iterator[UnitCounter]:
    """Count the units of each iteration while the block runs."""
    counter = UnitCounter()

    def counting(name: str, units: float, inner: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **named: Any) -> Any:
            counter.now[name] += units
            return inner(*arguments, **named)

        return called

    for owner, name, units in WORK:
        patch.setattr(owner, name, counting(name, units, getattr(owner, name)))
    log = world.broker.log
    stage = counting("stage_acks", work_units.ACKS_STAGED, log.stage_acks)
    patch.setattr(log, "stage_acks", stage)
    run_once = world.loop._run_once  # type: ignore[attr-defined]

    def once() -> None:
        run_once()
        counter.iteration_ended()

    patch.setattr(world.loop, "_run_once", once)
    yield counter


class Hostile:
    """Clients of one seed that send what costs most."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.chance = random.Random(seed)
        self.clients: list[SimClient] = []
        self.consumers: list[SimConsumer] = []

    async def prepare(self) -> None:
        """Topics, one of them with very many subscriptions, and consumers that hold entries."""
        broker = self.world.broker
        for number in range(TOPICS):
            topic = await broker.registry.create(
                parse_topic(f"persistent://public/default/t{number}")
            )
            topic.add_subscription("s", AckSet(-1), cursor_id=None)
        wide = await broker.registry.create(parse_topic(WIDE))
        for number in range(WIDE_SUBSCRIPTIONS):
            wide.add_subscription(f"w{number}", AckSet(-1), cursor_id=None)
        for _ in range(CONNECTIONS):
            self.clients.append(await self.world.connect())
        producer = await self.clients[0].producer(CAUGHT_UP)
        await asyncio.gather(*[producer.send_nowait(b"x") for _ in range(ACTS)])
        caught_up = broker.engine.topics[CAUGHT_UP]
        for number in range(WIDE_SUBSCRIPTIONS):
            caught_up.add_subscription(f"c{number}", AckSet(ACTS - 1), cursor_id=None)
        for client in self.clients[: CONNECTIONS // 2]:
            self.consumers.append(
                await client.subscribe(
                    "persistent://public/default/t0",
                    "shared",
                    kind=SubscriptionType.SHARED,
                    queue_size=100_000,
                )
            )
        producer = await self.clients[0].producer("persistent://public/default/t0")
        for _ in range(4_000):
            producer.send_nowait(b"x")
        await asyncio.sleep(1)

    async def act(self) -> None:
        """One thing that a hostile client or an administrator does."""
        acts: list[Callable[[], Any]] = [
            self._long_ack,
            self._long_redeliver,
            self._redeliver_all,
            self._subscribe_and_close,
            self._seek,
            self._cold,
            self._flow,
            self._send,
            self._leave,
            self._trim,
            self._broker_limit,
            self._namespace_limit,
        ]
        with contextlib.suppress(HeadgateError):  # a refusal is an answer, too
            await self.chance.choice(acts)()
        await asyncio.sleep(self.chance.choice((0, 0, 0.001, 0.05)))

    def _positions(self) -> list[Position]:
        log = self.world.broker.engine.topics["persistent://public/default/t0"].log
        return [log.position(self.chance.randrange(log.first, log.end)) for _ in range(IDS)]

    def _consumer(self) -> tuple[SimClient, SimConsumer]:
        number = self.chance.randrange(len(self.consumers))
        return self.clients[number], self.consumers[number]

    async def _long_ack(self) -> None:
        client, consumer = self._consumer()
        client.write(frames.ack(consumer.consumer_id, self._positions()))

    async def _long_redeliver(self) -> None:
        client, consumer = self._consumer()
        client.write(frames.redeliver(consumer.consumer_id, self._positions()))

    async def _redeliver_all(self) -> None:
        for client, consumer in zip(self.clients, self.consumers, strict=False):
            client.write(frames.redeliver(consumer.consumer_id, []) * COMMANDS)

    async def _subscribe_and_close(self) -> None:
        client = self.chance.choice(self.clients)
        for number in range(300):
            topic = f"persistent://public/default/t{self.chance.randrange(TOPICS)}"
            consumer_id = 10_000 + number
            kind = SubscriptionType.SHARED
            client.write(frames.subscribe(90_000 + number, consumer_id, topic, "storm", kind=kind))
            client.write(frames.close_consumer(95_000 + number, consumer_id))

    async def _seek(self) -> None:
        topic = self.world.broker.engine.topics["persistent://public/default/t0"]
        subscription = topic.subscriptions["shared"]
        ordinal = self.chance.randrange(topic.log.first, topic.log.end)
        await asyncio.gather(
            *[self.world.broker.subscriptions.seek(subscription, ordinal) for _ in range(20)]
        )
        await self._again()

    async def _again(self) -> None:
        for place, client in enumerate(self.clients[: len(self.consumers)]):
            self.consumers[place] = await client.subscribe(
                "persistent://public/default/t0",
                "shared",
                kind=SubscriptionType.SHARED,
                queue_size=100_000,
            )

    async def _cold(self) -> None:
        for client in self.clients:
            client.write(frames.ping() * COMMANDS)

    async def _flow(self) -> None:
        for client, consumer in zip(self.clients, self.consumers, strict=False):
            client.write(frames.flow(consumer.consumer_id, 1) * COMMANDS)

    async def _send(self) -> None:
        for client in self.clients[:4]:
            producer = await client.producer(self.chance.choice((WIDE, f"{WIDE}2")))
            for _ in range(500):
                producer.send_nowait(b"x")

    async def _leave(self) -> None:
        number = self.chance.randrange(len(self.consumers), CONNECTIONS)
        for place in range(200):
            topic = f"persistent://public/default/t{place % TOPICS}"
            await self.clients[number].subscribe(topic, "l", kind=SubscriptionType.SHARED)
        self.clients[number].abort()
        self.clients[number] = await self.world.connect()

    async def _trim(self) -> None:
        broker = self.world.broker
        entries = broker.engine.topics[CAUGHT_UP].log
        broker.log.stage_trim(entries, min(entries.first + 1, entries.end))
        broker.committer.commit_if_idle()

    async def _broker_limit(self) -> None:
        catalog, broker = self.world.broker.catalog, self.world.broker
        for name in ("dispatchThrottlingRateInMsg", "dispatchThrottlingRateInByte"):
            value = self.chance.choice(("0", "100000", "10000000"))
            await broker.commit(catalog.plan_setting(name, value))

    async def _namespace_limit(self) -> None:
        broker = self.world.broker
        namespace = parse_topic(WIDE).namespace
        rate = DispatchRate(self.chance.choice((-1, 50, 100_000)))
        await broker.commit(broker.catalog.plan_namespace_policies(namespace, dispatch_rate=rate))


@pytest.mark.parametrize("seed", [1, 2])
def test_no_iteration_exceeds_the_units_of_the_table(seed: int) -> None:
    settings = {"maxPendingPublishRequestsPerConnection": "100000"}
    with World(seed, network=NETWORK, settings=settings) as world:

        async def story(patch: pytest.MonkeyPatch) -> UnitCounter:
            await world.start()
            hostile = Hostile(world, seed)
            await hostile.prepare()
            with counted(world, patch) as counter:
                for _ in range(ACTS):
                    await hostile.act()
                await asyncio.sleep(5)
            return counter

        with pytest.MonkeyPatch.context() as patch:
            counter = world.run(story(patch))
    assert 0 < counter.largest.total() <= TURN_UNITS_MAX, dict(counter.largest)
