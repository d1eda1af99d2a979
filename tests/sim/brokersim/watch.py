"""A world whose connections tell what the broker hands over, and what must hold at any instant."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from headgate.base.ack_words import WORD_BITS, acked_mask
from headgate.base.positions import Position
from headgate.broker.connection.client_connection import ClientConnection
from headgate.broker.connection.connection import Connection
from headgate.broker.connection.connection_host import CommandHandlers
from headgate.broker.connection.consumers import ConnectionConsumers
from headgate.broker.connection.producers import ConnectionProducers
from headgate.broker.server import command_handlers
from headgate.broker.service import Broker
from headgate.engine.consumer import Consumer
from headgate.engine.dispatch_shared import SharedDispatcher
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.flow.account.account import Cell
from headgate.flow.limits.rate_limit import Dimension, RateLimit
from headgate.testing import World
from headgate.wire.codes import AckType
from headgate.wire.ids import position_of
from headgate.wire.messages import BaseCommand
from tests.sim.brokersim.model import START, Cursor, Model, ViolationError, just_after
from tests.sim.brokersim.publishing import PublishWatch
from tests.sim.brokersim.quotas import QuotaWatch
from tests.sim.brokersim.stuck import wrong_if_stuck

Acknowledge = Callable[[ClientConnection, BaseCommand], int]


@dataclass(slots=True)
class Window:
    """What one limited subject was handed lately, with the limit in force each time."""

    handed: deque[tuple[int, tuple[int, int], RateLimit | None]] = field(default_factory=deque)

    def add(self, now_ns: int, amounts: tuple[int, int], limit: RateLimit | None) -> str:
        """Take note of a hand-over; say what is wrong with it, if anything is (law 1.1)."""
        self.handed.append((now_ns, amounts, limit))
        if limit is None:
            return ""
        since_ns = now_ns - limit.period_ns
        while self.handed[0][0] <= since_ns:
            self.handed.popleft()
        for dimension in Dimension:
            bounds = [
                None if one is None or one.period_ns != limit.period_ns else one.amount(dimension)
                for _, _, one in self.handed
            ]
            if None in bounds:
                continue
            total = sum(handed[dimension] for _, handed, _ in self.handed)
            bound = max(filter(None, bounds)) + max(h[dimension] for _, h, _ in self.handed)
            if total > bound:
                return f"{total} {dimension.name} in a period of limit and entry {bound}"
        return ""


class WatchedProducers(ConnectionProducers):
    """Reports receipts to the world they belong to."""

    world: WatchedWorld

    def send_receipt(
        self, producer_id: int, sequence_id: int, highest_sequence_id: int, position: Position
    ) -> None:
        entry = self.by_id.get(producer_id)
        if entry is not None:
            log = entry[1].log
            self.world.model.learn_ledger(position.ledger_id, log.number)
            ordinal = log.ordinal_at_or_after(*position)
            if not log.first <= ordinal < log.end or log.position(ordinal) != position:
                text = f"a receipt for {position} of {log.first} to {log.end}"
                self.world.loop.fail(ViolationError(f"{entry[1].name}: {text}"))
        super().send_receipt(producer_id, sequence_id, highest_sequence_id, position)


class WatchedConsumers(ConnectionConsumers):
    """Reports hand-overs to the world they belong to."""

    world: WatchedWorld

    def send_entry(
        self,
        consumer: Consumer,
        position: Position,
        partition: int,
        redelivery_count: int,
        body: bytes,
        left: tuple[int, ...],
    ) -> bool:
        self.world.handed_over(self.by_id[consumer.consumer_id][1], position, len(body), left)
        return super().send_entry(consumer, position, partition, redelivery_count, body, left)


class WatchedConnection(Connection):
    """A connection with watched ports."""

    def __init__(self, world: WatchedWorld, handlers: CommandHandlers) -> None:
        broker = world.broker
        super().__init__(broker, broker.connections, broker.engine, broker.settings, handlers)
        self.consumer_port = WatchedConsumers(self, self._frames, broker.client_memory)
        self.producer_port = WatchedProducers(
            self,
            self._frames,
            self.producer_port.delays,
            self.throttle,
            broker.engine,
            broker.settings,
            broker.publish_buffer,
        )
        self.consumer_port.world = self.producer_port.world = world


class WatchedWorld(World):
    """A world that checks what its broker hands over, as it does."""

    def __init__(self, model: Model, seed: int, **options: Any) -> None:
        super().__init__(seed, **options)
        self.model = model
        self._windows: dict[tuple[Any, ...], Window] = {}
        self.handed: dict[Subscription, tuple[int, int]] = {}
        """Messages and bytes handed over, by subscription, since the broker's start."""
        self.seen: Counter[str] = Counter()
        """What quotas and publish limits did, so that a story can tell whether they did any."""
        self._quotas: QuotaWatch
        self._publishing: PublishWatch

    def accept(self) -> Connection:
        handlers = command_handlers(self.broker)
        watched = replace(handlers, acknowledge=partial(self._acknowledge, handlers.acknowledge))
        return WatchedConnection(self, watched)

    def _acknowledge(
        self, carry_out: Acknowledge, connection: ClientConnection, command: BaseCommand
    ) -> int:
        """Note that an acknowledgement arrived: from a second later on no crash may lose it."""
        entry = connection.consumers.get(command.ack.consumer_id)
        work = carry_out(connection, command)
        if entry is not None and entry[1].is_durable:
            ids = command.ack.message_id
            positions = tuple(position_of(one) for one in ids if not any(one.ack_set))
            parts = tuple((position_of(one), _left(one.ack_set)) for one in ids if any(one.ack_set))
            before = START
            if command.ack.ack_type == AckType.CUMULATIVE:
                before = just_after(positions[0]) if positions else parts[0][0]
                positions = ()
            self.model.cursor(entry[1].topic.name.full, entry[1].name).arrived(
                positions, before, parts, self.clock.monotonic_ns()
            )
        return work

    def built(self, broker: Broker) -> None:
        self._quotas = QuotaWatch(self.model, broker, self.seen)
        self._publishing = PublishWatch(broker, self.seen)

    def crash(self) -> None:
        super().crash()
        self._windows.clear()
        self.handed.clear()

    async def stop(self) -> None:
        await super().stop()
        self._windows.clear()
        self.handed.clear()

    def handed_over(
        self, subscription: Subscription, position: Position, size: int, left: tuple[int, ...]
    ) -> None:
        """The broker hands an entry to a connection now, or what is ``left`` of it."""
        topic = subscription.topic
        self.model.learn_ledger(position.ledger_id, topic.log.number)
        count = topic.log.message_count(topic.log.ordinal_at_or_after(*position))
        acked = acked_mask(left, count) if left else 0
        messages = count - acked.bit_count()
        sent = self.handed.get(subscription, (0, 0))
        self.handed[subscription] = (sent[0] + messages, sent[1] + size)
        if subscription.is_durable:
            cursor = self.model.cursor(topic.name.full, subscription.name)
            if cursor.settled and cursor.must_be_acked(position):
                self.loop.fail(
                    ViolationError(f"{topic.name} {cursor.name}: {position} is acked, and sent")
                )
            if cursor.settled:
                wrong = self._wrong_part(cursor, position, count, acked)
                if wrong:
                    self.loop.fail(ViolationError(f"{topic.name} {cursor.name}: {wrong}"))
        amounts = (1 if self.broker.engine.throttle_counts_entries else messages, size)
        number = topic.log.number
        for key in (
            (),
            (number,),
            (number, subscription.name, subscription.cursor_id or subscription),
        ):
            window = self._windows.get(key)
            if window is None:
                window = self._windows[key] = Window()
            # Who is spared (caught up) is not charged: what it gets says nothing about the window.
            limit = None if subscription.gate.exempt else self._limit_of(key)
            wrong = window.add(self.clock.monotonic_ns(), amounts, limit)
            if wrong:
                self.loop.fail(ViolationError(f"{topic.name} {subscription.name} {key}: {wrong}"))

    def _wrong_part(self, cursor: Cursor, position: Position, count: int, acked: int) -> str:
        """What is wrong with the messages of a batch that are sent as acknowledged."""
        all_of_it = (1 << count) - 1
        if all_of_it & ~acked & ~cursor.must_left.get(position, -1):
            return f"messages of {position} are acked, and sent"
        if acked:
            self.seen["batches sent in part"] += 1
            entry = self.model.at.get(position)
            extra = acked & cursor.may_left.get(position, -1)
            is_known = entry is not None and not cursor.muddled
            if extra and is_known and not cursor.may_be_acked(entry):
                return f"messages of {position} are left out, and nobody acked them"
        return ""

    def limits_changed(self) -> None:
        """Limits may be others now: one that held between two hand-overs counts as well."""
        if not self.is_running:
            return
        for key, window in self._windows.items():
            window.handed.append((self.clock.monotonic_ns(), (0, 0), self._limit_of(key)))

    def _limit_of(self, key: tuple[Any, ...]) -> RateLimit | None:
        """The limit in force on the broker, on a topic's number, or a subscription of it."""
        in_force = self.broker.current_dispatch_limits
        if not key:
            return in_force.of_broker().limit
        topic = self.broker.engine.by_number.get(key[0])
        if topic is None:
            return None
        if len(key) == 1:
            return in_force.of_topic(topic).limit
        subscription = topic.subscriptions.get(key[1])
        return None if subscription is None else in_force.of_subscription(subscription).limit

    def check_facts(self) -> None:
        """What must hold between two turns of the loop, whatever happened.

        Its own look-ups read the index whatever the disk refuses the broker meanwhile.

        Raises:
            ViolationError: it does not.
        """
        plan, self.disk.plan = self.disk.plan, lambda _: None
        try:
            wrong = self._wrong()
        finally:
            self.disk.plan = plan
        if wrong:
            raise ViolationError("; ".join(wrong))

    def _wrong(self) -> list[str]:
        broker = self.broker
        wrong = [
            f"{topic.name} {s.name}: {text}"
            for topic in broker.engine.topics.values()
            for s in topic.subscriptions.values()
            for text in _wrong_in(s, broker, self.handed.get(s, (0, 0)))
        ]
        for topic in broker.engine.topics.values():
            if broker.engine.by_number.get(topic.log.number) is not topic:
                wrong.append(f"{topic.name}: not the topic of its number")
            unanswered = topic.log.staged_end - topic.publishing.visible
            if topic.publishing.pending_count != unanswered:
                wrong.append(
                    f"{topic.name}: {topic.publishing.pending_count} wait of {unanswered} entries"
                )
            if receipts_wait(topic) and not broker.logs.of(topic).committer._is_resolving:
                wrong.append(f"{topic.name}: receipts wait that nobody sends")
            if topic.publishing.staged_bytes != topic.log.bytes_before(topic.log.staged_end):
                wrong.append(
                    f"{topic.name}: {topic.publishing.staged_bytes} bytes were ever staged"
                )
        return wrong + self._quotas.check() + self._publishing.check()


def receipts_wait(topic: Topic) -> bool:
    """Whether a topic has durable entries without a receipt, behind which it is looked at again."""
    return topic.publishing.visible < topic.log.end


def _left(words: Sequence[int]) -> int:
    """The mask of what the words leave of a batch of any size."""
    size = len(words) * WORD_BITS
    return ((1 << size) - 1) ^ acked_mask(words, size)


def _wrong_in(s: Subscription, broker: Broker, handed: tuple[int, int]) -> list[str]:
    wrong = []
    log, now_ns, account = s.topic.log, broker.clock.monotonic_ns(), s.account
    if sum(account.peek(now_ns)) != now_ns - account.opened_ns:
        wrong.append("the account's time is not the time that passed")
    if handed != (s.messages_sent, s.bytes_sent):
        wrong.append(f"counted {s.messages_sent}, {s.bytes_sent} of {handed} handed over")
    done = (s.done_entries, s.done_messages, s.done_bytes)
    s.count_done()
    if done != (s.done_entries, s.done_messages, s.done_bytes):
        wrong.append(f"done {done}, by its acks {(s.done_entries, s.done_messages)}")
    unacked = [o for o in range(log.first, log.end) if not s.acks.is_acked(o)]
    if s.done_entries != log.end - len(unacked):
        wrong.append(f"{len(unacked)} are unacked, its backlog says {s.backlog_entries}")
    if isinstance(s.dispatcher, SharedDispatcher):
        wrong += _wrong_in_shared(s, s.dispatcher)
    if not s.dirty and broker._flush_scheduled_ns is None and not receipts_wait(s.topic):
        wrong += _wrong_state(s) + wrong_if_stuck(s, broker, unacked)
    return wrong


def _wrong_in_shared(s: Subscription, shared: SharedDispatcher) -> list[str]:
    wrong = []
    held: dict[Consumer, int] = dict.fromkeys(s.consumers, 0)
    given: set[int] = set()
    for consumer, ordinals in shared.delivered():
        if ordinals is consumer.held and consumer not in held:
            wrong.append(f"{len(ordinals)} are with a consumer that is gone")
        if given & set(ordinals):
            wrong.append("entries are with two consumers")
        given |= set(ordinals)
        messages = sum(
            s.topic.log.message_count(ordinal) - acked for ordinal, acked in ordinals.items()
        )
        held[consumer] = held.get(consumer, 0) + messages
        partly = {ordinal: acked for ordinal, acked in ordinals.items() if acked}
        if any(
            s.acks.partly_acked(ordinal) != acked
            for ordinal, acked in ordinals.items()
            if not s.acks.is_acked(ordinal)
        ):
            wrong.append(f"{consumer.name} holds {partly}, which its acks do not say")
    if sum(held.values()) != shared.unacked_messages:
        wrong.append(f"{sum(held.values())} are held, {shared.unacked_messages} counted")
    for consumer, messages in held.items():
        if consumer.unacked_messages != messages:
            wrong.append(f"{consumer.name} holds {messages}, {consumer.unacked_messages} counted")
    if given & set(shared.replaying):
        wrong.append("entries are held and to be delivered again")
    return wrong


def _wrong_state(s: Subscription) -> list[str]:
    """States that contradict plain facts."""
    cell = s.account.cell
    done = s.done_entries >= s.topic.log.end
    facts = {
        Cell.CAUGHT_UP: done,
        Cell.NO_CONSUMER: not s.consumers and not done,
        Cell.TRANSITION: s.fenced or s.dispatcher.paused_until_ns > 0,
        Cell.STORAGE: bool(s.consumers) and not done,
    }
    if facts.get(cell, bool(s.consumers) and not done):
        return []
    return [f"state {cell.name} with {len(s.consumers)} consumers, {s.backlog_entries} backlog"]
