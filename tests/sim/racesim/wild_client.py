"""A client that sends commands without waiting for the answers of earlier ones, with few ids that
it uses again and again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Final

from headgate.base.ack_words import words_of
from headgate.base.errors import HeadgateError
from headgate.base.positions import EARLIEST, LATEST, Position
from headgate.testing import SimClient
from headgate.wire import client as frames
from headgate.wire.batch import pack_batch
from headgate.wire.codes import (
    AckType,
    CommandType,
    InitialPosition,
    ProducerAccessMode,
    SchemaType,
    SubscriptionType,
)
from headgate.wire.entry import CHECKSUM_MARK, LENGTH, build_entry, crc32c
from headgate.wire.frame import FrameDecoder, encode_frame
from headgate.wire.ids import position_of
from headgate.wire.messages import BaseCommand, MessageMetadata, Schema

PRODUCER_IDS: Final = (1, 2, 3)
CONSUMER_IDS: Final = (1, 2, 3, 4)
KEPT_POSITIONS: Final = 200
SIZES: Final = (400,) * 30 + (60_000,)
"""Ends of the ranges from which lengths of messages are drawn."""
FOCUS_WEIGHT: Final = 60
TYPES: Final = (SubscriptionType.EXCLUSIVE, SubscriptionType.SHARED, SubscriptionType.FAILOVER)
STRING: Final = Schema(name="", type=SchemaType.STRING, schema_data=b"")


class WildClient(SimClient):
    """One connection; ``subjects`` are the topics and subscriptions that its commands name."""

    chance: random.Random
    topics: tuple[str, ...]
    subscriptions: tuple[str, ...]
    seen: Callable[[Position], None]
    any_position: Callable[[], Position]

    def begin(
        self,
        chance: random.Random,
        topics: tuple[str, ...],
        subscriptions: tuple[str, ...],
        seen: Callable[[Position], None],
        any_position: Callable[[], Position],
    ) -> None:
        """``seen`` gets each position that arrives, ``any_position`` gives one of them all."""
        self.chance, self.topics, self.subscriptions = chance, topics, subscriptions
        self.seen, self.any_position = seen, any_position
        self.received: list[Position] = []
        self.producing: dict[int, str] = {}
        """Names of its producers by their ids."""
        self.consuming: set[int] = set()
        """Ids of its consumers, but for those that were closed."""
        self.sequence_id = 0
        self.commands_count = 0
        self.open_requests: dict[int, str] = {}
        """Requests without an answer, by their ids, which the broker has to answer."""
        self._consumer_id, self._producer_id = CONSUMER_IDS[0], PRODUCER_IDS[0]
        self._acts = self._weighted()
        self._families: tuple[tuple[Callable[[], None], ...], ...] = (
            (self._subscribe, self._close_consumer, self._unsubscribe, self._seek, self._flow,
             self._ack, self._redeliver, self._last_message),
            (self._create_producer, self._close_producer, self._send),
        )  # fmt: skip
        """Acts about one id, each several times as likely as usual to meet another one."""

    # -- what arrives ------------------------------------------------------------------------

    def _receive(self, command: BaseCommand, body: bytes | None) -> None:
        kind = command.type
        if kind == CommandType.MESSAGE:
            position = position_of(command.message.message_id)
            self.received.append(position)
            del self.received[:-KEPT_POSITIONS]
            self.seen(position)
        elif kind == CommandType.SEND_RECEIPT:
            self.seen(position_of(command.send_receipt.message_id))
        elif kind == CommandType.CLOSE_PRODUCER:
            self.producing.pop(command.close_producer.producer_id, None)
        elif kind == CommandType.CLOSE_CONSUMER:
            self.consuming.discard(command.close_consumer.consumer_id)
        elif kind not in (
            CommandType.SEND_ERROR,
            CommandType.ACTIVE_CONSUMER_CHANGE,
            CommandType.REACHED_END_OF_TOPIC,
            CommandType.WATCH_TOPIC_UPDATE,
        ):
            super()._receive(command, body)

    # -- what it does ------------------------------------------------------------------------

    def act(self) -> None:
        """Send one command, or a few that belong together."""
        if not self.is_open or self.connected is None:
            return
        acts, weights = self._acts
        chance = self.chance
        if chance.random() < 0.75:
            self._do(chance.choices(acts, weights)[0])
        else:  # several at once, about the same ids
            for act in chance.choices(chance.choice(self._families), k=4):
                self._do(act)
        known = sorted(self.consuming) if chance.random() < 0.8 else ()
        self._consumer_id = chance.choice(known or CONSUMER_IDS)
        self._producer_id = chance.choice(PRODUCER_IDS)

    def _do(self, act: Callable[[], None]) -> None:
        self.commands_count += 1
        act()

    def focus(self, count: int) -> None:
        """Do ``count`` things much more often from now on, in the place of earlier ones."""
        acts, weights = self._weighted()
        for at in self.chance.sample(range(len(acts)), count):
            weights[at] += FOCUS_WEIGHT
        self._acts = acts, weights

    def _weighted(self) -> tuple[list[Callable[[], None]], list[int]]:
        found = (
            (self._create_producer, 6), (self._send, 24), (self._close_producer, 3),
            (self._subscribe, 12), (self._flow, 14), (self._ack, 14), (self._redeliver, 6),
            (self._seek, 5), (self._unsubscribe, 3), (self._close_consumer, 5),
            (self._last_message, 8), (self._consumer_stats, 2), (self._look_up, 3),
            (self._watch, 2), (self._schema, 2), (self._send_odd, 6),
        )  # fmt: skip
        return [act for act, _ in found], [weight for _, weight in found]

    def _ask(
        self,
        what: str,
        make: Callable[[int], bytes],
        *,
        is_answered: bool = True,
        then: Callable[[BaseCommand], None] = lambda _: None,
    ) -> None:
        """Send a request, do not wait, and call ``then`` with what it brings. ``is_answered``: the
        broker always answers it."""

        async def ask() -> None:
            number = self._next_id + 1
            if is_answered:
                self.open_requests[number] = what
            try:
                then(await self.request(make))
            except HeadgateError:
                return  # refused, or the connection has ended
            finally:
                self.open_requests.pop(number, None)

        self.loop.create_task(ask())

    def _create_producer(self) -> None:
        chance, producer_id = self.chance, self._producer_id
        topic, name = chance.choice(self.topics), chance.choice((None, None, "p0", "p1"))
        mode = chance.choices([*ProducerAccessMode], [12, 1, 1, 1][: len(ProducerAccessMode)])[0]

        def created(answer: BaseCommand) -> None:
            self.producing[producer_id] = answer.producer_success.producer_name

        # One that is closed, or waits for exclusive access, gets no answer.
        self._ask(
            "PRODUCER",
            lambda i: frames.producer(
                i, producer_id, topic, name=name, access_mode=mode, epoch=chance.randrange(3)
            ),
            is_answered=False,
            then=created,
        )

    def _send(self) -> None:
        if not self.producing:
            return
        producer_id = self.chance.choice(sorted(self.producing))
        for _ in range(self.chance.choice((1, 1, 4, 12))):
            self.sequence_id += 1
            metadata = MessageMetadata(
                producer_name=self.producing[producer_id],
                sequence_id=self.sequence_id,
                publish_time=self.wall_ms(),
            )
            size = self.chance.choice(SIZES)
            payload, count = b"x" * self.chance.randrange(size), None
            if self.chance.random() < 0.3:
                count = metadata.num_messages_in_batch = self.chance.randrange(1, 6)
                payload = pack_batch([b"y" * 20] * count)
            elif self.chance.random() < 0.15:
                metadata.deliver_at_time = metadata.publish_time + self.chance.randrange(3_000)
            elif self.chance.random() < 0.15:  # of few messages, some of which get no end
                metadata.uuid = f"chunked {self.chance.randrange(3)}"
                metadata.chunk_id, metadata.num_chunks_from_msg = self.chance.randrange(3), 3
                metadata.total_chunk_msg_size = 3 * len(payload)
            body = build_entry(metadata, payload)
            self.write(frames.send(producer_id, self.sequence_id, body, message_count=count))

    def _send_odd(self) -> None:
        """A message whose metadata has wrong bytes, under a checksum that is right."""
        if not self.producing:
            return
        chance = self.chance
        producer_id = chance.choice(sorted(self.producing))
        self.sequence_id += 1
        metadata = MessageMetadata(
            producer_name=self.producing[producer_id],
            sequence_id=self.sequence_id,
            publish_time=self.wall_ms(),
            deliver_at_time=chance.choice((1, 1 << 62)),
            uuid="u",
            chunk_id=chance.randrange(3),
            num_chunks_from_msg=2,
        )
        odd = bytearray(metadata.SerializeToString())
        for _ in range(chance.choice((1, 1, 3))):
            odd[chance.randrange(len(odd))] = chance.choice((0, 0x7F, 0x80, 0xFF))
        covered = LENGTH.pack(len(odd)) + odd + bytes((0xFF,)) * chance.randrange(20)
        body = CHECKSUM_MARK + LENGTH.pack(crc32c(covered)) + covered
        self.write(frames.send(producer_id, self.sequence_id, body))

    def _close_producer(self) -> None:
        producer_id = self._producer_id
        self.producing.pop(producer_id, None)
        self._ask("CLOSE_PRODUCER", lambda i: frames.close_producer(i, producer_id))

    def _subscribe(self) -> None:
        chance, consumer_id = self.chance, self._consumer_id
        topic, subscription = chance.choice(self.topics), chance.choice(self.subscriptions)
        is_durable = chance.random() < 0.7
        start = None if is_durable else chance.choice((EARLIEST, LATEST, self._position()))
        kind, initial = chance.choice(TYPES), chance.choice([*InitialPosition])
        if not is_durable and chance.random() < 0.7:
            subscription = f"reader-{subscription}"
        rollback_s = chance.choice((0, 0, 0, 1, 60))

        def make(request_id: int) -> bytes:
            frame = frames.subscribe(
                request_id, consumer_id, topic, subscription, kind=kind, initial_position=initial,
                durable=is_durable, start=start, properties={"a": "b"} if is_durable else None,
            )  # fmt: skip
            return with_rollback(frame, rollback_s) if rollback_s else frame

        self._ask(
            "SUBSCRIBE",
            make,
            is_answered=False,  # not one that is closed meanwhile
            then=lambda _: self.consuming.add(consumer_id),
        )
        if chance.random() < 0.8:
            self.write(frames.flow(consumer_id, chance.choice((1, 10, 1_000))))

    def _flow(self) -> None:
        self.write(frames.flow(self._consumer_id, self.chance.choice((1, 5, 20, 500))))

    def _position(self) -> Position:
        if self.received and self.chance.random() < 0.7:
            return self.chance.choice(self.received)
        return self.any_position()

    def _positions(self) -> list[Position]:
        return [self._position() for _ in range(self.chance.choice((1, 1, 3, 20)))]

    def _ack(self) -> None:
        chance, consumer_id = self.chance, self._consumer_id
        is_cumulative = chance.random() < 0.25
        positions = [self._position()] if is_cumulative else self._positions()
        kind = AckType.CUMULATIVE if is_cumulative else AckType.INDIVIDUAL
        words = words_of(chance.choice((1, 2, 6))) if chance.random() < 0.2 else ()
        if chance.random() < 0.5:
            self.write(frames.ack(consumer_id, positions, kind, ack_set=words))
            return
        self._ask(
            "ACK",
            lambda i: frames.ack(consumer_id, positions, kind, ack_set=words, request_id=i),
            is_answered=False,  # not one about a consumer that is not there
        )

    def _redeliver(self) -> None:
        positions = [] if self.chance.random() < 0.3 else self._positions()
        self.write(frames.redeliver(self._consumer_id, positions))

    def _seek(self) -> None:
        chance, consumer_id = self.chance, self._consumer_id
        if chance.random() < 0.3:
            when_ms = max(0, self.wall_ms() - chance.choice((0, 50, 2_000, 100_000)))
            self._ask("SEEK", lambda i: frames.seek(i, consumer_id, publish_time_ms=when_ms))
            return
        position = chance.choice((EARLIEST, LATEST, self._position(), self._position()))
        index = chance.choice((-1, -1, 0, 1))
        self._ask(
            "SEEK", lambda i: frames.seek(i, consumer_id, position=position, batch_index=index)
        )

    def _unsubscribe(self) -> None:
        consumer_id, force = self._consumer_id, self.chance.random() < 0.3
        self._ask("UNSUBSCRIBE", lambda i: frames.unsubscribe(i, consumer_id, force=force))

    def _close_consumer(self) -> None:
        consumer_id = self._consumer_id
        self.consuming.discard(consumer_id)
        self._ask("CLOSE_CONSUMER", lambda i: frames.close_consumer(i, consumer_id))

    def _last_message(self) -> None:
        consumer_id = self._consumer_id
        self._ask("GET_LAST_MESSAGE_ID", lambda i: frames.get_last_message_id(i, consumer_id))

    def _consumer_stats(self) -> None:
        consumer_id = self._consumer_id
        self._ask("CONSUMER_STATS", lambda i: frames.consumer_stats(i, consumer_id))

    def _look_up(self) -> None:
        topic = self.chance.choice(self.topics)
        if self.chance.random() < 0.5:
            self._ask("LOOKUP", lambda i: frames.lookup(i, topic))
        else:
            self._ask("PARTITIONED_METADATA", lambda i: frames.partitioned_metadata(i, topic))

    def _watch(self) -> None:
        if self.chance.random() < 0.6:
            self._ask(
                "WATCH_TOPIC_LIST",
                lambda i: frames.watch_topic_list(i, 1, "public/default", ".*s.*"),
                is_answered=False,  # not one that is closed meanwhile
            )
        else:
            self._ask("WATCH_TOPIC_LIST_CLOSE", lambda i: frames.watch_topic_list_close(i, 1))

    def _schema(self) -> None:
        topic = self.chance.choice(self.topics)
        if self.chance.random() < 0.5:
            self._ask("GET_SCHEMA", lambda i: frames.get_schema(i, topic))
        else:
            self._ask(
                "GET_OR_CREATE_SCHEMA", lambda i: frames.get_or_create_schema(i, topic, STRING)
            )


def with_rollback(subscribe: bytes, seconds: int) -> bytes:
    """The same SUBSCRIBE, to begin so many seconds ago."""
    decoder = FrameDecoder()
    decoder.feed(subscribe)
    found = decoder.next_frame()
    assert found is not None
    found[0].subscribe.start_message_rollback_duration_sec = seconds
    return encode_frame(found[0])


def leave(client: WildClient) -> asyncio.Task[None]:
    """End a connection in one of the ways in which clients do."""

    async def end() -> None:
        if client.chance.random() < 0.5:
            client.close()
        else:
            client.abort()
        await client.lost

    return client.loop.create_task(end())
