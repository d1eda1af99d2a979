"""Chunks of one message go to one consumer of a Shared subscription."""

from __future__ import annotations

import random
import weakref

import pytest

from headgate.engine.chunk_holders import ASIDE_MAX, MESSAGES_MAX, ChunkHolders
from headgate.engine.consumer import Consumer
from headgate.engine.subscription import Subscription
from headgate.engine.types import SubscriptionType
from headgate.flow.account.account import LABELS, Cell
from tests.unit.engine.harness import FakePort, Rig

SHARED = SubscriptionType.SHARED


class Story:
    """A Shared subscription whose topic has chunks."""

    def __init__(self, consumers: int = 2, permits: int = 100) -> None:
        self.rig = Rig()
        self.rig.topic.may_have_chunks()
        self.subscription: Subscription = self.rig.subscribe()
        self.consumers: list[Consumer] = []
        self.ports: list[FakePort] = []
        for number in range(consumers):
            self.join(number, permits)

    def join(self, number: int, permits: int) -> None:
        consumer, port = self.rig.consumer(
            self.subscription, SHARED, consumer_id=number, name=f"c{number}", permits=permits
        )
        self.consumers.append(consumer)
        self.ports.append(port)

    def send(self, *bodies: str) -> None:
        for body in bodies:
            self.rig.send(body=body.encode())
        self.rig.commit()

    def got(self) -> list[list[str]]:
        return [[body.decode() for _, _, body in port.entries] for port in self.ports]

    @property
    def cell(self) -> Cell:
        return self.subscription.account.cell


def test_interleaved_messages_stay_with_their_consumers() -> None:
    story = Story()
    story.send("c1:0", "c2:0", "x", "c1:1", "y", "c2:1", "c1:2", "c2:2", "z")
    messages = [{body[:2] for body in bodies if body.startswith("c")} for bodies in story.got()]
    assert sorted(map(len, messages)) in ([0, 2], [1, 1])
    assert not messages[0] & messages[1]
    for bodies in story.got():
        for message in ("c1", "c2"):
            own = [body for body in bodies if body.startswith(message)]
            assert own == sorted(own)
    assert sum(map(len, story.got())) == 9


def test_others_go_on_while_a_consumer_is_not_ready() -> None:
    story = Story(permits=1)
    story.send("c1:0")
    holder = 0 if story.got()[0] else 1
    other = 1 - holder
    story.send("c1:1", "a", "c1:2")
    assert story.got()[other] == ["a"]
    assert story.subscription.dispatcher.to_redeliver().entries == 2
    assert LABELS[story.cell].state.value == "no_permits"
    assert story.subscription.dispatcher.waiting()[0] == 2
    story.rig.topic.engine.log_ms += 1
    story.subscription.flow(story.consumers[other], 5)
    story.rig.flush()
    assert story.got()[other] == ["a"]
    story.subscription.flow(story.consumers[holder], 5)
    story.rig.flush()
    assert story.got()[holder] == ["c1:0", "c1:1", "c1:2"]
    assert story.cell is Cell.AWAITING_ACK
    for consumer, port in zip(story.consumers, story.ports, strict=True):
        for ordinal, _, _ in port.entries:
            story.subscription.ack_entry(consumer, ordinal)
    story.rig.flush()
    assert story.cell is Cell.CAUGHT_UP


def test_a_message_moves_as_a_whole_when_its_consumer_leaves() -> None:
    story = Story(permits=1)
    story.send("c1:0")
    holder = 0 if story.got()[0] else 1
    other = 1 - holder
    story.send("c1:1", "c1:2")
    story.subscription.flow(story.consumers[other], 10)
    story.subscription.remove_consumer(story.consumers[holder])
    story.rig.flush()
    assert story.got()[other] == ["c1:0", "c1:1", "c1:2"]


def test_a_message_that_is_given_back_may_go_to_another() -> None:
    story = Story(permits=3)
    story.send("c1:0", "c1:1", "c1:2")
    holder = 0 if story.got()[0] else 1
    other = 1 - holder
    story.subscription.redeliver(story.consumers[holder], [0, 1, 2], -1)
    story.rig.flush()
    assert story.got()[other] == ["c1:0", "c1:1", "c1:2"]


def test_what_is_acknowledged_while_it_is_aside_waits_no_longer() -> None:
    story = Story(permits=1)
    story.send("c1:0")
    story.send("c1:1", "c1:2")
    for ordinal in range(3):
        story.subscription.ack_entry(story.consumers[0], ordinal)
    story.rig.flush()
    assert story.cell is Cell.CAUGHT_UP
    assert story.subscription.dispatcher.to_redeliver().entries == 0


def test_very_many_chunks_hold_the_subscription() -> None:
    story = Story(permits=1)
    story.send("c1:0")
    holder = 0 if story.got()[0] else 1
    story.send(*(f"c1:{number}" for number in range(1, ASIDE_MAX + 10)), "behind")
    assert story.got()[1 - holder] == []
    assert story.subscription.dispatcher.to_redeliver().entries == ASIDE_MAX
    story.subscription.flow(story.consumers[holder], 1_000)
    story.rig.flush()
    sent = [body for bodies in story.got() for body in bodies]
    assert len(sent) == ASIDE_MAX + 11
    assert len(set(sent)) == len(sent)


def test_a_consumer_that_left_is_kept_no_longer() -> None:
    """Nobody is charged with its properties, of 64 KiB perhaps, and a thousand of a subscription
    stayed for as long as it had another consumer."""
    story = Story(consumers=1, permits=0)
    ports: list[weakref.ref[FakePort]] = []
    for number in range(3):
        story.join(1 + number, permits=2)
        story.send(f"c{number}:0", f"d{number}:0")
        consumer, port = story.consumers.pop(), story.ports.pop()
        for ordinal in port.ordinals:
            story.subscription.ack_entry(consumer, ordinal)
        assert len(port.ordinals) == 2
        story.subscription.remove_consumer(consumer)
        ports.append(weakref.ref(port))
        del consumer, port
        story.rig.flush()
    assert [port() for port in ports] == [None] * 3


def test_messages_go_on_to_the_consumer_that_got_them_last() -> None:
    first, second = (Consumer(number, "c", FakePort()) for number in range(2))
    consumers = {first: None, second: None}
    holders = ChunkHolders()
    holders.assign(1, first)
    holders.assign(2, first)
    holders.assign(2, second)
    holders.left(first)
    assert [holders.holder_of(message, consumers) for message in (1, 2)] == [None, second]
    holders.left(second)
    holders.left(second)
    assert holders.holder_of(2, consumers) is None


def test_bounds() -> None:
    holders = ChunkHolders()
    consumer = Consumer(1, "c", FakePort())
    for message in range(MESSAGES_MAX + 5):
        holders.assign(message, consumer)
    assert holders.holder_of(4, {consumer: None}) is None
    assert holders.holder_of(5, {consumer: None}) is consumer
    assert holders.holder_of(5, {}) is None
    holders.put_aside(8, consumer)
    holders.put_aside(9, consumer)
    assert holders.first_aside({9}) == (9, consumer)
    assert holders.aside_count == 1
    assert list(holders.take(consumer)) == [9]
    assert holders.first_aside({9}) is None
    holders.clear()
    assert holders.holder_of(5, {consumer: None}) is None


@pytest.mark.parametrize("seed", range(30))
def test_every_message_ends_whole_at_one_consumer(seed: int) -> None:
    """Consumers grant permits, give back, acknowledge and leave by chance; producers die in the
    middle of messages. In the end each whole message is with one consumer, in order."""
    rng = random.Random(seed)
    story = Story(consumers=3, permits=2)
    left: list[tuple[int, int, int]] = []
    messages = 0
    for _ in range(120):
        move = rng.randrange(7)
        if move <= 1:
            messages += 1
            left.append((messages, 0, rng.randint(2, 5)))
        if left and move <= 3:
            at = rng.randrange(len(left))
            message, index, count = left[at]
            story.send(f"c{message}:{index}", *(["x"] * rng.randrange(2)))
            if index + 1 == count or rng.random() < 0.1:
                del left[at]  # whole, or its producer died
            else:
                left[at] = message, index + 1, count
        elif move == 4:
            consumer = rng.choice(story.consumers)
            if consumer in story.subscription.consumers:
                story.subscription.flow(consumer, rng.randint(1, 3))
        elif move == 5:
            consumer = rng.choice(story.consumers)
            if consumer in story.subscription.consumers and consumer.held:
                story.subscription.redeliver(consumer, list(consumer.held), -1)
        elif rng.random() < 0.2 and len(story.subscription.consumers) > 1:
            story.subscription.remove_consumer(rng.choice(list(story.subscription.consumers)))
            story.join(len(story.consumers), 1)
        story.rig.flush()
    for consumer in list(story.subscription.consumers):
        story.subscription.flow(consumer, 10_000)
        story.rig.flush()
    held = {
        consumer: [story.rig.log.bodies[ordinal].decode() for ordinal in sorted(consumer.held)]
        for consumer in story.subscription.consumers
    }
    everything = sorted(body for bodies in held.values() for body in bodies)
    assert everything == sorted(body.decode() for body in story.rig.log.bodies)
    for message in range(1, messages + 1):
        holders = [
            c for c, bodies in held.items() if any(b.startswith(f"c{message}:") for b in bodies)
        ]
        assert len(holders) <= 1, f"message {message} is with {len(holders)} consumers"
