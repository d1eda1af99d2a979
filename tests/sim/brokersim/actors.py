"""Producers and consumers that do what clients do, in any order, and tell the model."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from headgate.base.errors import HeadgateError
from headgate.base.positions import Position
from headgate.base.units import NS_PER_S
from headgate.testing import ReceivedMessage, RefusedError, SimClient, SimConsumer, SimProducer
from headgate.wire.codes import AckType, SubscriptionType
from tests.sim.brokersim.model import (
    START,
    Acknowledgement,
    Cursor,
    Entry,
    Presence,
    ViolationError,
    just_after,
)

if TYPE_CHECKING:
    from tests.sim.brokersim.story import Story

BATCH_SHARE = 0.3
UNSURE_NS = 2 * NS_PER_S
"""How long entries that are under way may still arrive."""


class ProducerActor:
    """Publishes to one topic over one producer after the other."""

    def __init__(self, story: Story, topic: str, rng: random.Random) -> None:
        self._story = story
        self._topic = topic
        self._rng = rng

    async def run(self) -> None:
        """Go on until cancelled."""
        while True:
            try:
                if not self._story.calm:
                    await self._produce(await self._story.client(self._rng))
            except HeadgateError as error:
                self._story.note(f"producer of {self._topic}: {error}")
            await asyncio.sleep(self._rng.uniform(0.01, 0.4))

    async def _produce(self, client: SimClient) -> None:
        rng, story = self._rng, self._story
        name = f"p{rng.randrange(3)}" if rng.random() < 0.2 else None
        producer = await client.producer(self._topic, name=name)
        session = story.new_session()
        for _ in range(rng.randint(1, 8)):
            if story.calm:
                break
            receipts = [self._send(producer, session) for _ in range(rng.choice((1, 1, 3, 10, 40)))]
            if rng.random() < 0.7:
                await asyncio.wait(receipts)
            await asyncio.sleep(rng.uniform(0.0, 0.3))
            if not producer.is_open:
                return
        dice = rng.random()
        if dice < 0.6:
            await producer.close()
        elif dice < 0.8:
            client.abort()

    def _send(self, producer: SimProducer, session: int) -> asyncio.Future[Position]:
        rng = self._rng
        count = rng.randint(1, 12) if rng.random() < BATCH_SHARE else 0
        largest = rng.choice((40, 200, 200, 1500))
        sizes = [rng.randint(10, largest) for _ in range(max(count, 1))]
        entry = self._story.model.send(self._topic, session, sizes)
        receipt = producer.send_nowait(entry.payloads[0], batch=entry.payloads if count else ())
        receipt.add_done_callback(lambda done: self._answered(entry, done))
        return receipt

    def _answered(self, entry: Entry, done: asyncio.Future[Position]) -> None:
        if done.cancelled():
            return
        error = done.exception()
        model = self._story.model
        if isinstance(error, RefusedError):
            entry.refused = True
        elif error is None:
            model.receipt(entry, done.result())


class ConsumerActor:
    """Consumes one subscription over one consumer after the other."""

    def __init__(self, story: Story, cursor: Cursor, rng: random.Random) -> None:
        self._story = story
        self._cursor = cursor
        self._rng = rng
        self._held: dict[Position, int] = {}
        """What it got and did not acknowledge, with the mask of the messages that are left."""
        self._waiting: set[asyncio.Task[None]] = set()
        self._consumer: SimConsumer | None = None
        self._kind = SubscriptionType.EXCLUSIVE
        self._last = START
        self._generation = -1
        self._rewinds = 0
        self._active_seen = 0
        self._leaving = False
        self._unsure_until_ns = 0
        """Until then, what arrives may have been taken back while it was under way."""

    @property
    def is_connected(self) -> bool:
        """Whether it has a consumer and means to keep it."""
        return self._consumer is not None and self._consumer.is_open and not self._leaving

    async def run(self) -> None:
        """Go on until cancelled."""
        while True:
            try:
                await self._consume(await self._story.client(self._rng))
            except HeadgateError as error:
                self._story.note(f"consumer of {self._cursor.topic} {self._cursor.name}: {error}")
            await self._ended()
            await asyncio.sleep(self._rng.uniform(0.1, 1.4) ** 2)

    async def _ended(self) -> None:
        if self._consumer is not None and self._consumer.is_open:
            self._let_go()
            with contextlib.suppress(HeadgateError):
                await self._consumer.close()
        self._held.clear()
        if self._consumer is not None:
            self._story.holders.release(self._cursor, self)
        self._consumer = None

    async def _consume(self, client: SimClient) -> None:
        rng, story, cursor = self._rng, self._story, self._cursor
        self._kind = story.kind_of(cursor)
        latest = rng.random() < 0.2
        queue_size = rng.choice((1, 2, 10, 50, 1000))
        with story.model.touching(cursor, latest=latest):
            try:
                consumer = await client.subscribe(
                    cursor.topic,
                    cursor.name,
                    kind=self._kind,
                    earliest=not latest,
                    queue_size=queue_size,
                    priority_level=rng.choice((None, 0, 1)),
                )
            except RefusedError:
                if cursor.presence is Presence.PRESENT and rng.random() < 0.1:
                    story.change_kind(cursor)
                raise
        self._consumer, self._last, self._generation = consumer, START, cursor.generation
        self._rewinds = self._active_seen = self._unsure_until_ns = 0
        self._leaving = False
        story.note(f"{cursor.topic} {cursor.name}: {self._kind.name} consumer of {queue_size}")
        consumer.on_arrival = self._arrived
        steps = rng.randint(5, 120)
        while consumer.is_open or consumer.queue:
            if steps <= 0 and not story.calm:
                break
            steps -= 1
            await self._step(client, consumer)

    async def _step(self, client: SimClient, consumer: SimConsumer) -> None:
        rng, story = self._rng, self._story
        try:
            message = await asyncio.wait_for(consumer.receive(), rng.uniform(0.01, 0.3))
        except TimeoutError:
            pass
        else:
            self._held[message.position] = message.left_mask
        if not consumer.is_open:
            return
        if story.calm or (self._held and rng.random() < 0.5):
            self._acknowledge(client, consumer)
        dice = rng.random()
        if story.calm:
            return
        if dice < 0.03:
            await asyncio.sleep(rng.uniform(0.0, 0.7))
        elif dice < 0.05:
            self._give_back(consumer)
        elif dice < 0.055:
            self._let_go()
            await consumer.close()
        elif dice < 0.06:
            self._let_go()
            client.abort()
        elif dice < 0.064:
            await self._seek(consumer)
        elif dice < 0.066:
            await self._unsubscribe(consumer)

    # -- what arrives ----------------------------------------------------------------------

    def _arrived(self, message: ReceivedMessage) -> None:
        story, consumer, cursor = self._story, self._consumer, self._cursor
        if consumer is None:
            return
        story.model.deliveries += 1
        entry = story.model.identify(cursor.topic, message.position, message.payloads)
        entry.promised = True
        if consumer.permits + message.left_count <= 0:
            raise ViolationError(f"{cursor.topic} {cursor.name}: {message.position} unasked for")
        if self._kind is SubscriptionType.SHARED:
            if not self._leaving and story.world.clock.monotonic_ns() >= self._unsure_until_ns:
                story.holders.take(cursor, self, message.position)
            return
        if self._last != START:
            self._rewinds += consumer.active_changes[self._active_seen :].count(True)
        self._active_seen = len(consumer.active_changes)
        if message.position <= self._last:
            if not self._rewinds:
                raise ViolationError(
                    f"{cursor.topic} {cursor.name}: {message.position} after {self._last}"
                )
            self._rewinds -= 1
        elif self._last != START and not self._rewinds:
            self._check_gap(entry)
        self._last = message.position

    def _check_gap(self, entry: Entry) -> None:
        """Nothing was left out since the last delivery but what somebody acknowledged."""
        cursor, position = self._cursor, entry.position or START
        if not cursor.settled or cursor.muddled or cursor.generation != self._generation:
            return
        world = self._story.world
        topic = world.broker.engine.topics.get(cursor.topic) if world.is_running else None
        if topic is not None and topic.quota is not None and topic.quota._evicting is not None:
            return  # what an eviction took is known when all of it is over
        for other in self._story.model.between(entry.number, self._last, position):
            if not cursor.may_be_acked(other):
                raise ViolationError(
                    f"{cursor.topic} {cursor.name}: {other.position} was left out "
                    f"between {self._last} and {position}"
                )

    # -- what it does ------------------------------------------------------------------------

    def _acknowledge(self, client: SimClient, consumer: SimConsumer) -> None:
        if not self._held:
            return
        rng, cursor = self._rng, self._cursor
        positions: tuple[Position, ...] = tuple(self._held)
        if not self._story.calm:
            positions = tuple(p for p in positions if rng.random() < 0.8)
            batches = [p for p in positions if self._held[p].bit_count() > 1]
            if batches and rng.random() < 0.5:
                self._acknowledge_part(consumer, rng.choice(batches))
                return
        before = START
        if not positions:
            return
        if self._kind is not SubscriptionType.SHARED and rng.random() < 0.3:
            before, positions = just_after(rng.choice(positions)), ()
        ack = Acknowledgement(cursor.generation, positions, before)
        cursor.sent(ack)
        taken: dict[Position, int] = {}
        for position in [p for p in self._held if p in positions or p < before]:
            taken[position] = self._held.pop(position)
            self._story.holders.let_go(cursor, self, position)
        last = Position(before.ledger_id, before.entry_id - 1)
        if rng.random() < 0.5:
            if before != START:
                consumer.ack_through_nowait(last)
            else:
                consumer.ack_nowait(*positions)
            return
        answer = consumer.ack_through(last) if before != START else consumer.ack(*positions)
        task = self._story.world.loop.create_task(self._await_ack(ack, answer, consumer, taken))
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    def _acknowledge_part(self, consumer: SimConsumer, position: Position) -> None:
        """Acknowledge some messages of a batch, and perhaps all before them; the last message of an
        entry is left for later."""
        rng, cursor = self._rng, self._cursor
        kind, count = AckType.INDIVIDUAL, self._held[position].bit_length()
        if self._kind is not SubscriptionType.SHARED and rng.random() < 0.5:
            kind = AckType.CUMULATIVE
            asked = -1 << rng.randint(1, max(count - 1, 1))
        else:
            asked = rng.getrandbits(count)
        left = self._held[position] & asked
        if not left:
            return
        before = position if kind is AckType.CUMULATIVE else START
        # The mask may name what is acknowledged already: that stays so.
        named = left | rng.getrandbits(count) if rng.random() < 0.1 else left
        ack = Acknowledgement(cursor.generation, (), before, ((position, named),))
        cursor.sent(ack)
        for passed in [p for p in self._held if p < before]:
            del self._held[passed]
            self._story.holders.let_go(cursor, self, passed)
        self._held[position] &= named
        if rng.random() < 0.5:
            consumer.ack_part_nowait(position, named, kind)
            return
        answer = consumer.ack_part(position, named, kind)
        task = self._story.world.loop.create_task(self._await_ack(ack, answer, consumer, {}))
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    async def _await_ack(
        self,
        ack: Acknowledgement,
        answer: object,
        consumer: SimConsumer,
        taken: dict[Position, int],
    ) -> None:
        try:
            await answer  # type: ignore[misc]
        except HeadgateError:
            if self._consumer is consumer and consumer.is_open:
                self._held = taken | self._held  # it has them still, and tries again
            return
        self._cursor.confirm(ack)

    def _give_back(self, consumer: SimConsumer) -> None:
        self._rewinds += 1
        self._story.note(f"{self._cursor.topic} {self._cursor.name}: redeliver")
        positions = [p for p in self._held if self._rng.random() < 0.5]
        if self._kind is not SubscriptionType.SHARED or self._rng.random() < 0.3:
            positions = list(self._held)
            self._story.holders.release(self._cursor, self)
            self._unsure_until_ns = self._story.world.clock.monotonic_ns() + UNSURE_NS
            consumer.redeliver()
        elif positions:  # none would mean all
            others = self._story.holders.held_by_others(self._cursor, self)
            consumer.redeliver(positions + others[:3])  # giving back others' changes nothing
        for position in positions:
            del self._held[position]
            self._story.holders.let_go(self._cursor, self, position)

    def _let_go(self) -> None:
        self._leaving = True
        self._story.holders.release(self._cursor, self)

    async def _seek(self, consumer: SimConsumer) -> None:
        story, cursor = self._story, self._cursor
        topic = story.world.is_running and story.world.broker.engine.topics.get(cursor.topic)
        known = story.model.of_number.get(topic.log.number, []) if topic else []
        if not known:
            return
        target = self._rng.choice(known)
        count = len(story.model.at[target].payloads)
        index = self._rng.randrange(count) if self._rng.random() < 0.5 else 0
        left = ((1 << count) - 1) & (-1 << index) if index else -1
        story.note(f"{cursor.topic} {cursor.name}: seek {target}, message {index}")
        story.holders.forget(cursor)
        with story.model.moving([cursor]) as move:
            if index and self._rng.random() < 0.5:
                await consumer.seek(position=target, left_mask=left)
            else:
                await consumer.seek(position=target, batch_index=index)
            cursor.place(target, story.model.first_of(cursor.topic), left=left)
            move.decide()

    async def _unsubscribe(self, consumer: SimConsumer) -> None:
        story, cursor = self._story, self._cursor
        story.note(f"{cursor.topic} {cursor.name}: unsubscribe")
        self._let_go()
        with story.model.moving([cursor]) as move:
            try:
                await consumer.unsubscribe()
            except RefusedError as error:
                if "attempting to unsubscribe" in error.message:
                    move.nothing()
                raise
            cursor.forget()
            move.decide()


class Holders:
    """Which consumer holds which entry of shared subscriptions, as the consumers see it."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._by_cursor: dict[Cursor, dict[Position, ConsumerActor]] = {}
        self._unsure_until_ns: dict[Cursor, int] = {}

    def take(self, cursor: Cursor, actor: ConsumerActor, position: Position) -> None:
        """An entry arrived at a consumer: nobody else may hold it."""
        if self._now_ns() < self._unsure_until_ns.get(cursor, 0):
            return
        held = self._by_cursor.setdefault(cursor, {})
        other = held.get(position)
        if other is not None and other is not actor and other.is_connected and cursor.settled:
            raise ViolationError(f"{cursor.topic} {cursor.name}: {position} is with two consumers")
        held[position] = actor

    def let_go(self, cursor: Cursor, actor: ConsumerActor, position: Position) -> None:
        """A consumer acknowledged an entry or gave it back."""
        held = self._by_cursor.get(cursor, {})
        if held.get(position) is actor:
            del held[position]

    def held_by_others(self, cursor: Cursor, actor: ConsumerActor) -> list[Position]:
        """What other consumers hold."""
        held = self._by_cursor.get(cursor, {})
        return [position for position, holder in held.items() if holder is not actor]

    def release(self, cursor: Cursor, actor: ConsumerActor) -> None:
        """A consumer ends."""
        held = self._by_cursor.get(cursor, {})
        for position in [p for p, holder in held.items() if holder is actor]:
            del held[position]

    def forget(self, cursor: Cursor) -> None:
        """Entries are taken back while others are under way: nobody knows for a moment."""
        self._by_cursor.pop(cursor, None)
        self._unsure_until_ns[cursor] = self._now_ns() + UNSURE_NS

    def clear(self) -> None:
        """The broker stopped."""
        self._by_cursor.clear()
