"""One seeded story: everything happens to one broker, and the model watches."""

from __future__ import annotations

import asyncio
import random
import zlib
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from headgate.base.names import parse_topic
from headgate.base.positions import Position
from headgate.base.units import KIB, NS_PER_MS
from headgate.engine.subscription import Subscription
from headgate.facade.admin_facade import AdminFacade
from headgate.fs import FaultyFs, Operation
from headgate.ledger import LedgerSettings
from headgate.testing import NetworkProfile, SimClient
from headgate.wire.codes import SubscriptionType
from tests.sim.brokersim import adaptive
from tests.sim.brokersim.actors import ConsumerActor, Holders, ProducerActor
from tests.sim.brokersim.adaptive import TidalMemory
from tests.sim.brokersim.audit import Audit, left_over, not_given_back
from tests.sim.brokersim.model import END, START, Cursor, Model, Presence, ViolationError
from tests.sim.brokersim.operators import Administrator, Saboteur
from tests.sim.brokersim.quotas import random_settings
from tests.sim.brokersim.watch import WatchedWorld

TRACE_LINES = 60
NO_PROGRESS_S = 30.0
"""Longest that a backlog with a consumer may stand still when nothing disturbs."""
RETAIN_ROUNDS = 14
"""Within so many sweeps of a broker at rest what nobody has a claim to is given back. They take
42 s: a checkpoint that frees little waits 20 s."""
KINDS = (SubscriptionType.EXCLUSIVE, SubscriptionType.SHARED, SubscriptionType.FAILOVER)


class Actor(Protocol):
    """Somebody who does things until cancelled."""

    async def run(self) -> None:
        """Do them."""


class PowerCutError(Exception):
    """Ends a recovery whose machine loses its power."""


class Story:
    """Plays one seed. ``episodes`` end with a power cut, a stop or a moment of calm each."""

    def __init__(self, seed: int, *, episodes: int = 4) -> None:
        self.seed = seed
        self._episodes = episodes
        self._rng = rng = random.Random(f"story {seed}")
        self.model = Model(self._first_of)
        self.world = WatchedWorld(
            self.model,
            seed,
            settings=_settings(rng),
            ledger=_ledger_settings(rng),
            network=_network(rng),
        )
        self.world.memory = TidalMemory(self.world.clock, seed)
        self._cache_bytes = rng.choice((3_000, 30_000, 1_000_000))
        self.topics = [f"persistent://public/default/t{i}" for i in range(rng.randint(1, 3))]
        if rng.random() < 0.3:
            self.topics += [f"persistent://public/default/p-partition-{i}" for i in range(2)]
        self.has_quotas = rng.random() < 0.6
        """Whether backlog quotas are set: they keep much of what is sent from being stored."""
        self.has_publish_limits = rng.random() < 0.6
        self._parked_bytes = rng.choice((4_000, 1_000_000))
        """What all connections together may park."""
        self.holders = Holders(self.world.clock.monotonic_ns)
        self.calm = False
        """True: nobody publishes or disturbs; consumers take and acknowledge all they get."""
        self.disk_failed = False
        self.silenced: list[SimClient] = []
        self.trace: deque[str] = deque(maxlen=TRACE_LINES)
        self.fingerprint = 0
        """Of the whole trace: the same for the same seed."""
        self._kinds: dict[Cursor, SubscriptionType] = {}
        self._sessions = 0
        self._troubles = [0, 0]
        """Of storing, and of reads."""
        self._calm_since_ns = 0
        self._actors: list[asyncio.Task[None]] = []

    def play(self) -> None:
        """Play it.

        Raises:
            ViolationError: a promise was broken; the text has the seed and the last events.
        """
        try:
            with self.world:
                self.world.run(self._play())
        except BaseException as error:
            lines = "\n".join(self.trace)
            raise ViolationError(f"seed {self.seed}: {error!r}\n{lines}") from error

    # -- what actors ask ---------------------------------------------------------------------

    def note(self, text: str) -> None:
        """Add a line to the trace."""
        line = f"{self.world.now_s:.6f} {text}"
        self.trace.append(line)
        self.fingerprint = zlib.crc32(line.encode(), self.fingerprint)

    async def client(self, rng: random.Random) -> SimClient:
        """A welcomed connection: a new one, or one that others use too."""
        while not self.world.is_running:
            await asyncio.sleep(0.05)
        clients = self.open_clients()
        if clients and rng.random() < 0.5:
            return rng.choice(clients)
        return await self.world.connect()

    def open_clients(self) -> list[SimClient]:
        """Connections that are in use and not silenced."""
        self.world.clients = [c for c in self.world.clients if c.is_open]
        return [c for c in self.world.clients if c.connected is not None and c not in self.silenced]

    def silence(self, client: SimClient) -> None:
        """Make a connection half open: nothing arrives any more, and neither side sees its end."""
        client.transport.silence()  # type: ignore[attr-defined]
        self.silenced.append(client)

    def new_session(self) -> int:
        """A number for a new producer."""
        self._sessions += 1
        return self._sessions

    def kind_of(self, cursor: Cursor) -> SubscriptionType:
        """The type that all its consumers ask for now."""
        if cursor not in self._kinds:
            self._kinds[cursor] = self._rng.choice(KINDS)
        return self._kinds[cursor]

    def _first_of(self, topic: str) -> Position:
        if not self.world.is_running:
            # The answer came just before the machine stopped: nobody can tell any more.
            return END
        found = self.world.broker.engine.topics.get(topic)
        if found is None:
            return START
        # What a staged trim removes may still come, or not.
        return found.log.position(max(found.log.first, found.log.trim_end))

    def change_kind(self, cursor: Cursor) -> None:
        """Those who come from now on ask for another type."""
        self._kinds[cursor] = self._rng.choice(KINDS)

    @contextmanager
    def trouble(self, *, of_reads: bool = False) -> Iterator[None]:
        """Storing takes unusually long, or fails, meanwhile. Or reads fail: an acknowledgement may
        wait for one."""
        self._troubles[of_reads] += 1
        try:
            yield
        finally:
            self._troubles[of_reads] -= 1
            self._calm_since_ns = self.world.clock.monotonic_ns()

    # -- the story -----------------------------------------------------------------------------

    async def _play(self) -> None:
        await self._start()
        if any(parse_topic(name).partition >= 0 for name in self.topics):
            facade = AdminFacade(self.world.broker, self.world.observer)
            change = facade.catalog.plan_create_partitioned(
                parse_topic("persistent://public/default/p"), 2, now_ms=self.world.wall_ms()
            )
            await self.world.ask(facade.commit(change))
        self._cast()
        longest_s = self._rng.choice((0.3, 2.0, 5.0))
        for _ in range(self._episodes):
            await asyncio.sleep(self._rng.uniform(0.01, longest_s))
            await self._end_episode(self._rng.choice(("crash", "crash", "crash", "stop", "calm")))
        await self._rest()
        await self._end_episode("crash")
        await self._rest()
        await self._close_down()

    def _cast(self) -> None:
        rng = self._rng
        actors: list[Actor] = [Administrator(self, self._source("admin"))]
        for topic in self.topics:
            for index in range(rng.randint(1, 2)):
                source = self._source(f"producer {topic} {index}")
                actors.append(ProducerActor(self, topic, source))
            for name in ("a", "b", "c")[: rng.randint(1, 3)]:
                cursor = self.model.cursor(topic, name)
                for index in range(rng.randint(0, 3)):
                    source = self._source(f"consumer {topic} {name} {index}")
                    actors.append(ConsumerActor(self, cursor, source))
        if rng.random() < 0.8:
            actors.append(Saboteur(self, self._source("saboteur")))
        loop = self.world.loop
        self._actors = [loop.create_task(actor.run()) for actor in actors]
        for task in [*self._actors, loop.create_task(self._check())]:
            task.add_done_callback(self._actor_done)

    def _actor_done(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.world.loop.fail(error)

    def _source(self, name: str) -> random.Random:
        return random.Random(f"{self.seed} {name}")

    async def _check(self) -> None:
        """Look at the broker's figures now and then; give up silenced connections in time."""
        while True:
            await asyncio.sleep(0.23)
            if self.world.is_running:
                self.world.check_facts()
            self.note(f"{self.model.receipts} receipts, {self.model.deliveries} deliveries")
            for client in [c for c in self.silenced if self._rng.random() < 0.05]:
                self._give_up(client)

    def _give_up(self, client: SimClient) -> None:
        self.silenced.remove(client)
        if client.is_open:
            client.abort()

    async def _end_episode(self, how: str) -> None:
        self.note(f"----- {how}")
        now_ns = self.world.clock.monotonic_ns()
        is_troubled = any(self._troubles) or self.disk_failed
        calm_since_ns = now_ns if is_troubled else self._calm_since_ns
        if how == "calm" and not self.disk_failed:
            await self._rest()
            return
        if how == "stop" and not self.disk_failed and not self._troubles[False]:
            for client in list(self.silenced):
                self._give_up(client)
            self.model.power_cut(self.world.clock.monotonic_ns(), calm_since_ns, safe_ns=0)
            await self.world.stop()
        else:
            self.model.power_cut(now_ns, calm_since_ns)
            self.world.crash()
        self.holders.clear()
        for client in list(self.silenced):
            self._give_up(client)
        await asyncio.sleep(0.1)
        await self._start()

    async def _start(self) -> None:
        """Start the broker, perhaps cutting the power in the middle, and compare it."""
        world, rng = self.world, self._rng
        self.disk_failed = False
        world.fs.capacity_bytes = None
        world.disk.plan = _nothing
        while rng.random() < 0.2:
            self._cut_off_after(rng.randrange(25))
            try:
                await world.start()
            except PowerCutError:
                self.note("the power was cut in recovery")
            world.crash()
        world.disk = FaultyFs(world.fs)
        broker = await world.start()
        broker.engine.cache.size_bytes_max = self._cache_bytes
        broker.engine.limits.parked_bytes_max = self._parked_bytes
        self.note("started")
        audit = Audit(self.model, broker, self.topics)
        audit.check()
        world.seen["parts of batches after a start"] += audit.parts_count

    def _cut_off_after(self, count: int) -> None:
        left = count

        def plan(_: Operation) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise PowerCutError

        self.world.disk.plan = plan

    # -- calm ----------------------------------------------------------------------------------

    async def _rest(self) -> None:
        """Nothing disturbs any more: every subscription with a consumer is drained."""
        self.calm = True
        await asyncio.sleep(5.0)  # what the saboteur holds is let go by then
        if self.disk_failed:
            await self._end_episode("crash")
        for client in list(self.silenced):
            self._give_up(client)
        still_s, before = 0.0, None
        while backlogs := self._backlogs():
            now = {s.name: (s.topic.name, s.backlog_entries, s.entries_sent) for s in backlogs}
            still_s = still_s + 0.5 if now == before else 0.0
            before = now
            if still_s > NO_PROGRESS_S:
                raise ViolationError("; ".join(map(_describe, backlogs)))
            await asyncio.sleep(0.5)
        await self.world.ask(self.world.broker.when_durable())
        self.world.check_facts()
        self._look_at_unknown()
        Audit(self.model, self.world.broker, self.topics).check()
        # What a slowed producer still had waiting may come, and go, meanwhile.
        for _ in range(RETAIN_ROUNDS):
            await self.world.ask(self.world.broker.trimming.trim())
            await asyncio.sleep(3.0)
            kept = not_given_back(self.world.broker)
            if not kept:
                break
        else:
            raise ViolationError(f"not given back: {kept}")
        if found_count := self.world.broker.trimming.found_by_walk:
            raise ViolationError(f"{found_count} trims that no event announced")
        self.note("calm")
        self.calm = False

    def _backlogs(self) -> list[Subscription]:
        return [
            s
            for topic in self.world.broker.engine.topics.values()
            for s in topic.subscriptions.values()
            if s.backlog_entries and s.consumers
        ]

    def _look_at_unknown(self) -> None:
        """Everything is durable: what memory says is so."""
        for cursor in self.model.cursors.values():
            if cursor.presence is not Presence.UNKNOWN or not cursor.settled:
                continue
            topic = self.world.broker.engine.topics.get(cursor.topic)
            if topic is None:
                self.model.topic_gone(cursor.topic, [cursor])
            elif cursor.name not in topic.subscriptions:
                cursor.forget()
            else:
                cursor.presence = Presence.PRESENT

    async def _close_down(self) -> None:
        """Delete everything: nothing is left of it anywhere."""
        self.calm = True
        for task in self._actors:
            task.cancel()
        await asyncio.sleep(0)
        for client in self.world.clients:
            client.abort()
        await asyncio.sleep(0.1)
        facade = AdminFacade(self.world.broker, self.world.observer)
        for name in self.topics:
            if facade.catalog.topic(name) is not None:
                await self.world.ask(facade.delete_topic(parse_topic(name), force=True))
        base = parse_topic("persistent://public/default/p")
        if facade.catalog.partitioned(base.full) is not None:
            await self.world.ask(facade.delete_topic(base, force=True))
        await asyncio.sleep(30.0)  # the least that dies waits 20 s for a checkpoint
        await self.world.ask(self.world.broker.when_durable())
        if wrong := left_over(self.world.broker):
            raise ViolationError(f"left over: {wrong}")


def _nothing(_: Operation) -> None:
    return None


def _describe(s: Subscription) -> str:
    consumers = [
        (c.name, c.permits, c.unacked_messages, c.port.writable, c.in_ready) for c in s.consumers
    ]
    return (
        f"{s.topic.name} {s.name} ({s.type.name}) stands still: backlog {s.backlog_entries}, state "
        f"{s.account.cell.name}, read failed {s.read_failed!r}, reading {s.dispatcher.reading}, "
        f"consumers {consumers}"
    )


def _settings(rng: random.Random) -> dict[str, str]:
    return {
        "keepAliveIntervalSeconds": "5",
        "brokerDeleteInactiveTopicsEnabled": "false",
        "retentionCheckIntervalInSeconds": rng.choice(("1", "3")),
        "activeConsumerFailoverDelayTimeMillis": rng.choice(("0", "100", "1000")),
        "maxUnackedMessagesPerConsumer": rng.choice(("0", "5", "100")),
        "maxUnackedMessagesPerSubscription": rng.choice(("0", "20", "100")),
        "maxPendingPublishRequestsPerConnection": rng.choice(("2", "20", "1000")),
        "dispatchThrottlingOnBatchMessageEnabled": rng.choice(("true", "false", "false")),
        "allowAutoTopicCreation": "true",
        **random_settings(rng),
        **adaptive.random_settings(rng),
    }


def _ledger_settings(rng: random.Random) -> LedgerSettings:
    segment_bytes = rng.choice((4, 16, 64)) * KIB
    return LedgerSettings(
        segment_bytes=segment_bytes,
        extent_bytes=rng.choice((1, 8, 64)) * KIB,
        checkpoint_records=rng.choice((20, 200, 5000)),
        checkpoint_bytes=segment_bytes * rng.choice((1, 4, 50)),
        ledger_entries_max=rng.choice((3, 20, 1000)),
        ledger_age_ms_min=0,
        hole_bytes_min=rng.choice((1, 4 * KIB)),
        removed_piece_bytes=segment_bytes // 4,
        slice_items=rng.choice((1, 4, 256)),
    )


def _network(rng: random.Random) -> NetworkProfile:
    return NetworkProfile(
        delay_ns_max=rng.choice((1, 1, 20)) * NS_PER_MS,
        piece_bytes_max=rng.choice((1 * KIB, 64 * KIB, 64 * KIB)),
        window_bytes=rng.choice((1, 64, 64)) * KIB,
        write_high_bytes=rng.choice((1, 64)) * KIB,
    )
