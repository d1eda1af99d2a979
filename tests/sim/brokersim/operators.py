"""An administrator who does anything at any time, and a saboteur of disks and networks."""

from __future__ import annotations

import asyncio
import errno
import random
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from headgate.base.errors import HeadgateError, StorageError
from headgate.base.names import parse_topic
from headgate.base.positions import EARLIEST, LATEST, Position
from headgate.base.units import MS_PER_S, NS_PER_S
from headgate.facade.admin_facade import AdminFacade
from headgate.facade.protocol import AtPosition, AtTime, OlderThan
from headgate.fs import Operation
from headgate.metadata.errors import RefusalError
from headgate.metadata.policies import DispatchRate, Retention
from headgate.observe.stats.fields import StatsOptions
from tests.sim.brokersim.model import START, Cursor, Presence, just_after
from tests.sim.brokersim.publishing import limit_some
from tests.sim.brokersim.quotas import set_some

if TYPE_CHECKING:
    from tests.sim.brokersim.story import Story

HOUR_S, DECADE_S = 3_600, 315_360_000
YEAR_2000_S, YEAR_2100_S = 946_684_800, 4_102_444_800

LIMIT_FLAGS = (
    "dispatchThrottlingRateRelativeToPublishRate",
    "dispatchThrottlingOnBatchMessageEnabled",
    "dispatchThrottlingOnNonBacklogConsumerEnabled",
)
LIMIT_SETTINGS = [
    (f"dispatchThrottlingRate{scope}In{unit}", amounts)
    for scope in ("", "PerTopic", "PerSubscription")
    for unit, amounts in (("Msg", (60, 100, 300)), ("Byte", (20_000, 60_000)))
]


class Administrator:
    """Creates, deletes, unloads, moves and limits things at random."""

    def __init__(self, story: Story, rng: random.Random) -> None:
        self._story = story
        self._rng = rng
        self._work: list[tuple[int, Callable[[], Awaitable[None]]]] = [
            (4, self._delete_topic),
            (6, self._unload),
            (6, self._create_subscription),
            (4, self._delete_subscription),
            (8, self._widen),
            (4, self._truncate),
            (6, self._reset),
            (30, self._limit),
            (20, self._quota),
            (15, self._limit_publishing),
            (5, self._retain),
            (12, self._look),
        ]

    async def run(self) -> None:
        """Go on until cancelled."""
        weights = [weight for weight, _ in self._work]
        while True:
            await asyncio.sleep(self._rng.uniform(0.0, 0.5) ** 2)
            if self._story.calm or not self._story.world.is_running:
                continue
            work = self._rng.choices(self._work, weights)[0][1]
            try:
                await work()
            except HeadgateError as error:
                self._story.note(f"admin: {work.__name__}: {error}")

    def _facade(self) -> AdminFacade:
        return AdminFacade(self._story.world.broker, self._story.world.observer)

    def _cursor(self) -> Cursor:
        return self._rng.choice(list(self._story.model.cursors.values()))

    def _position(self, topic: str) -> Position:
        found = self._story.world.broker.engine.topics.get(topic)
        known = self._story.model.of_number.get(found.log.number, []) if found else []
        return self._rng.choice(known) if known else START

    async def _delete_topic(self) -> None:
        story, facade = self._story, self._facade()
        name = self._rng.choice(story.topics)
        force = self._rng.random() < 0.7
        number = -1

        async def work() -> None:
            nonlocal number
            row = facade.catalog.topic(name)
            if row is not None:
                number = row.number
                story.model.doomed.add(number)
            await facade.delete_topic(parse_topic(name), force=force)

        story.note(f"admin: delete {name}")
        cursors = story.model.cursors_of(name)
        for cursor in cursors:
            story.holders.forget(cursor)
        with story.model.moving(cursors) as move:
            try:
                await story.world.ask(work())
            except RefusalError as error:
                if error.status == 412:
                    move.nothing()
                raise
            story.model.dead.add(number)
            story.model.topic_gone(name, cursors)
            move.decide()

    async def _unload(self) -> None:
        story = self._story
        name = self._rng.choice(story.topics)
        if name not in story.world.broker.engine.topics:
            return
        story.note(f"admin: unload {name}")
        for cursor in story.model.cursors_of(name):
            story.holders.forget(cursor)
        await story.world.ask(self._facade().unload_topic(parse_topic(name)))
        for cursor in story.model.cursors_of(name):
            story.holders.forget(cursor)

    async def _create_subscription(self) -> None:
        story, cursor = self._story, self._cursor()
        place = self._rng.choice((EARLIEST, LATEST, self._position(cursor.topic)))
        story.note(f"admin: create {cursor.topic} {cursor.name} at {place}")
        with story.model.moving([cursor]) as move:
            absent = cursor.presence is Presence.ABSENT
            try:
                await story.world.ask(
                    self._facade().create_subscription(
                        parse_topic(cursor.topic), cursor.name, AtPosition(place), {}
                    )
                )
            except RefusalError as error:
                if error.status == 409 or (error.status == 404 and absent):
                    move.nothing()
                raise
            first = story.model.first_of(cursor.topic)
            if place == LATEST:
                cursor.place(START, first, story.model.last_uid)
            else:
                cursor.place(max(place, START), first)
            move.decide()

    async def _delete_subscription(self) -> None:
        story, cursor = self._story, self._cursor()
        story.note(f"admin: delete {cursor.topic} {cursor.name}")
        force = self._rng.random() < 0.5
        with story.model.moving([cursor]) as move:
            try:
                await story.world.ask(
                    self._facade().delete_subscription(
                        parse_topic(cursor.topic), cursor.name, force=force
                    )
                )
            except RefusalError as error:
                if error.status == 412:
                    move.nothing()
                raise
            cursor.forget()
            move.decide()

    async def _widen(self) -> None:
        """Skip, clear or expire: what was unacknowledged may be given up."""
        story, cursor, rng = self._story, self._cursor(), self._rng
        facade, topic = self._facade(), parse_topic(cursor.topic)
        kind = rng.choice(("skip", "clear", "expire to", "expire"))
        position = self._position(cursor.topic)
        story.note(f"admin: {kind} {cursor.topic} {cursor.name}")
        with story.model.moving([cursor]) as move:
            known = cursor.presence
            try:
                if kind == "skip":
                    await story.world.ask(
                        facade.skip_messages(topic, cursor.name, rng.randint(1, 50))
                    )
                elif kind == "clear":
                    await story.world.ask(facade.clear_backlog(topic, cursor.name))
                elif kind == "expire":
                    what = OlderThan(rng.randint(0, 3))
                    await story.world.ask(facade.expire_messages(topic, cursor.name, what))
                else:
                    at = AtPosition(position)
                    await story.world.ask(facade.expire_messages(topic, cursor.name, at))
            except RefusalError as error:
                if error.status == 404 and known is Presence.ABSENT:
                    move.nothing()
                raise
            move.nothing()
            if kind == "expire to":
                cursor.may_before = max(cursor.may_before, just_after(position))
            else:
                cursor.may_uid = story.model.last_uid

    async def _truncate(self) -> None:
        """All that a topic holds is given up, whatever retention says."""
        story, facade = self._story, self._facade()
        name = self._rng.choice(story.topics)
        story.note(f"admin: truncate {name}")
        cursors = story.model.cursors_of(name)
        with story.model.moving(cursors) as move:
            await story.world.ask(facade.messages.truncate(parse_topic(name)))
            move.nothing()
            for cursor in cursors:
                cursor.may_uid = story.model.last_uid

    async def _reset(self) -> None:
        story, cursor, rng = self._story, self._cursor(), self._rng
        position = self._position(cursor.topic)
        to: AtPosition | AtTime = rng.choice((AtPosition(position), AtPosition(EARLIEST)))
        if rng.random() < 0.3:
            to = AtTime(story.world.wall_ms() - rng.randint(-1, 5) * MS_PER_S)
        story.note(f"admin: reset {cursor.topic} {cursor.name} to {to}")
        story.holders.forget(cursor)
        with story.model.moving([cursor]) as move:
            known = cursor.presence
            try:
                await story.world.ask(
                    self._facade().reset_cursor(parse_topic(cursor.topic), cursor.name, to)
                )
            except RefusalError as error:
                if error.status == 404 and known is Presence.ABSENT:
                    move.nothing()
                raise
            if isinstance(to, AtPosition):
                cursor.place(max(to.position, START), story.model.first_of(cursor.topic))
                move.decide()

    async def _limit(self) -> None:
        story, rng, facade = self._story, self._rng, self._facade()
        topic = parse_topic(rng.choice(story.topics)).base
        rate: DispatchRate | None = None
        if rng.random() < 0.1:
            rate = DispatchRate(unlimited=True)
        elif rng.random() < 0.7:
            rate = DispatchRate(
                rng.choice((-1, 50, 100, 100, 300)),
                rng.choice((-1, -1, 20_000, 60_000)),
                relative_to_publish_rate=rng.random() < 0.3,
                rate_period_in_second=rng.choice((1, 1, 1, 2)),
            )
        kind = rng.randrange(7)
        story.note(f"admin: limit of kind {kind} {topic}: {rate}")
        catalog = facade.catalog

        async def work() -> None:
            if kind == 0:
                name, amounts = rng.choice(LIMIT_SETTINGS)
                text = None if rate is None else str(rng.choice(amounts))
                change = catalog.plan_setting(name, text)
            elif kind == 1:
                change = catalog.plan_namespace_policies(topic.namespace, dispatch_rate=rate)
            elif kind == 2:
                change = catalog.plan_namespace_policies(
                    topic.namespace, subscription_dispatch_rate=rate
                )
            elif kind == 3:
                change = catalog.plan_topic_policies(topic, dispatch_rate=rate)
            elif kind == 4:
                change = catalog.plan_topic_policies(topic, subscription_dispatch_rate=rate)
            elif kind == 5:
                flag = rng.choice(LIMIT_FLAGS)
                change = catalog.plan_setting(flag, rng.choice(("true", "false")))
            else:
                change = catalog.plan_subscription_rate(topic, self._cursor().name, rate)
            await facade.commit(change)

        await story.world.ask(work())
        story.world.limits_changed()

    async def _quota(self) -> None:
        if self._story.has_quotas:
            await set_some(self._story, self._rng)

    async def _limit_publishing(self) -> None:
        if self._story.has_publish_limits:
            await limit_some(self._story, self._rng)

    async def _retain(self) -> None:
        story, facade = self._story, self._facade()
        topic = parse_topic(self._rng.choice(story.topics)).base
        retention = self._rng.choice((None, Retention(-1, -1), Retention(0, 0), Retention(1, 1)))

        async def work() -> None:
            await facade.commit(facade.catalog.plan_topic_policies(topic, retention=retention))

        await story.world.ask(work())

    async def _look(self) -> None:
        """Nothing that only looks may fail."""
        story, facade, rng = self._story, self._facade(), self._rng
        topic = parse_topic(rng.choice(story.topics))
        kind = rng.randrange(7)

        async def work() -> None:
            if kind == 0:
                await facade.topic_stats(topic, StatsOptions(precise_backlog=True))
            elif kind == 1:
                await facade.internal_stats(topic, metadata=True)
            elif kind == 2:
                await facade.explain_top(5)
            elif kind == 3:
                await facade.explain_topic(topic, per_partition=True)
            elif kind == 4:
                await facade.last_message(topic)
            elif kind == 5:
                await facade.check_health()
            else:
                await facade.message_at(topic, story.world.wall_ms() - rng.randint(0, 9) * 1000)

        await story.world.ask(work())


class Saboteur:
    """Cuts connections, hangs disks, fills them, makes them fail."""

    def __init__(self, story: Story, rng: random.Random) -> None:
        self._story = story
        self._rng = rng

    async def run(self) -> None:
        """Go on until cancelled."""
        work: list[Callable[[], Awaitable[None]]] = [
            self._abort, self._abort, self._silence, self._hang, self._fill,
            self._fail_metadata, self._step_wall_clock, self._fail_sync, self._fail_reads,
        ]  # fmt: skip
        while True:
            await asyncio.sleep(self._rng.uniform(0.1, 2.0))
            if not self._story.calm and self._story.world.is_running:
                chosen = self._rng.choice(work)
                self._story.note(f"sabotage: {chosen.__name__}")
                await chosen()

    async def _abort(self) -> None:
        if clients := self._story.open_clients():
            self._rng.choice(clients).abort()

    async def _silence(self) -> None:
        if clients := self._story.open_clients():
            client = self._rng.choice(clients)
            self._story.silence(client)

    async def _hang(self) -> None:
        world = self._story.world
        lane = self._rng.choice(world.lanes)
        with self._story.trouble():
            lane.freeze()
            await asyncio.sleep(self._rng.uniform(0.01, 1.5))
            lane.thaw()

    async def _fill(self) -> None:
        fs = self._story.world.fs
        with self._story.trouble():
            fs.capacity_bytes = fs.used_bytes() + self._rng.choice((0, 100, 10_000, 100_000))
            await asyncio.sleep(self._rng.uniform(0.1, 3.0))
            fs.capacity_bytes = None
            self._story.world.fs.capacity_bytes = None
            await asyncio.sleep(1.5)

    async def _fail_metadata(self) -> None:
        error = StorageError("the metadata's disk hiccups", retryable=True)
        self._story.world.store.fail_next(error)

    async def _step_wall_clock(self) -> None:
        """By anything from a slip to a battery that is empty, between the years 2000 and 2100."""
        clock, reach_s = self._story.world.clock, self._rng.choice((2, 2, HOUR_S, DECADE_S))
        step_ns = round(self._rng.uniform(-reach_s, reach_s) * NS_PER_S)
        if not YEAR_2000_S * NS_PER_S < clock.wall_ns() + step_ns < YEAR_2100_S * NS_PER_S:
            step_ns = -step_ns
        clock.step_wall(step_ns)

    async def _fail_reads(self) -> None:
        """Backlog cannot be read for a while; nothing else is touched."""
        disk, share = self._story.world.disk, self._rng.choice((0.3, 1.0))

        def plan(operation: Operation) -> None:
            if operation.kind in ("read", "open") and self._rng.random() < share:
                raise OSError(errno.EIO, "this part of the disk is not readable")

        if not self._story.disk_failed:
            before, disk.plan = disk.plan, plan
            with self._story.trouble(of_reads=True):
                await asyncio.sleep(self._rng.uniform(0.1, 3.0))
            if disk.plan is plan:
                disk.plan = before

    async def _fail_sync(self) -> None:
        """A disk that fails: nothing is stored until a restart, which comes soon."""
        if self._rng.random() < 0.7:
            return
        story = self._story

        def plan(operation: Operation) -> None:
            if operation.kind in ("sync", "write", "sync_directory"):
                raise OSError(errno.EIO, "the disk is broken")

        story.disk_failed = True
        story.world.disk.plan = plan
