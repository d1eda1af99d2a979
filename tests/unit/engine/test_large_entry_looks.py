"""A large entry is read once, however often and by however many subscriptions it is looked at."""

from __future__ import annotations

from headgate.base.chunk import Chunk
from headgate.engine.chunk_holders import ASIDE_MAX
from headgate.engine.large_entry_looks import LOOKS_MAX, SMALL_BYTES, LargeEntryLooks
from headgate.engine.types import SubscriptionType
from tests.unit.engine.harness import START_MS, Rig

SHARED = SubscriptionType.SHARED
LARGE = bytes(SMALL_BYTES + 1)


def test_each_look_is_remembered_for_its_entry() -> None:
    looks = LargeEntryLooks()
    assert (looks.of(len, 0, LARGE), looks.of(bool, 0, LARGE)) == (len(LARGE), True)
    assert (looks.of(len, 0, b""), looks.of(len, 1, b"")) == (len(LARGE), 0)


def test_the_oldest_is_forgotten() -> None:
    looks = LargeEntryLooks()
    for ordinal in range(LOOKS_MAX + 1):
        looks.of(len, ordinal, LARGE)
    assert looks.of(len, 1, b"") == len(LARGE)
    assert looks.of(len, 0, b"") == 0


def test_a_delayed_entry_is_read_once_for_all_subscriptions() -> None:
    rig = Rig()
    read: list[int] = []

    def due_time_of(body: bytes) -> int:
        read.append(len(body))
        return START_MS + 1_000

    rig.engine.due_time_of = due_time_of
    rig.topic.may_be_delayed()
    ports = []
    for number in range(20):
        subscription = rig.subscribe(f"s{number}")
        ports.append(rig.consumer(subscription, SHARED, permits=10)[1])
    rig.publish(body=LARGE)
    rig.publish(body=LARGE[1:])
    assert read.count(len(LARGE)) == 1
    assert read.count(len(LARGE) - 1) == 20  # the small one
    rig.advance(1_000)
    assert [port.ordinals for port in ports] == [[0, 1]] * 20


def test_chunks_that_wait_for_their_consumer_are_read_once() -> None:
    """A FLOW of 12 bytes had 250 chunks with 250 KiB of metadata parsed: 70 ms of the loop."""
    rig = Rig()
    read: list[int] = []

    def chunk_of(body: bytes) -> Chunk:
        read.append(len(body))
        return Chunk(7, is_first=len(read) == 1)

    rig.effects.chunk_of = chunk_of  # type: ignore[method-assign]
    rig.topic.may_have_chunks()
    subscription = rig.subscribe()
    consumer, port = rig.consumer(subscription, SHARED, permits=1)
    rig.publish(ASIDE_MAX // 2, body=LARGE)
    for _ in range(10):
        subscription.flow(consumer, 1)
        rig.flush()
    assert port.ordinals == list(range(11))
    assert len(read) == ASIDE_MAX // 2
