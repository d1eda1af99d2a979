"""What one ACK names, applied to a subscription of an engine on fakes."""

from __future__ import annotations

import pytest

from headgate.base.ack_set import BLOCK_MEMORY_BYTES, BLOCK_ORDINALS
from headgate.base.ack_words import WORD_BITS, words_of
from headgate.base.work_units import ACK_MESSAGES_PER_UNIT, ACKED_PER_UNIT, TURN_UNITS
from headgate.broker.commands.acked_ids import (
    REFUSED_UNITS,
    Cold,
    Through,
    ack_entries,
    ack_found,
    ack_whole,
    entries_looked_up,
    find_last,
    slices,
    through_units,
)
from headgate.engine.block_budget import BlockBudget
from headgate.engine.consumer import Consumer
from headgate.engine.partial_budget import PARTS_BATCH_MAX
from headgate.engine.subscription import Subscription
from headgate.engine.types import SubscriptionType
from headgate.policy.settings import Settings
from headgate.wire.messages import CommandAck, MessageIdData
from tests.unit.engine.harness import Rig

ON, OFF = Settings(), Settings(acknowledgmentAtBatchIndexLevelEnabled=False)


def scene(kind: SubscriptionType = SubscriptionType.SHARED) -> tuple[Rig, Subscription, Consumer]:
    """Ten batches of four messages, with a consumer."""
    rig = Rig()
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, kind, permits=1_000)
    rig.publish(10, messages=4)
    return rig, subscription, consumer


def named(ordinal: int, left: int = 0) -> MessageIdData:
    return MessageIdData(ledgerId=7, entryId=ordinal, ack_set=words_of(left))


def through(ordinal: int, left: int = 0) -> CommandAck:
    return CommandAck(message_id=[named(ordinal, left)])


def test_entries_and_messages_of_entries_in_one_command() -> None:
    _, subscription, consumer = scene()
    cold: list[Cold] = []
    problems: list[str] = []
    ids = [named(0), named(1, 0b0110), named(2, 1 << 70), named(99, 1), named(3, 0b1111)]
    ids.append(named(4, 1 << 80))  # only the first problem takes memory
    assert ack_entries(consumer, subscription, ids, cold, problems, ON) == (len(ids), len(ids))
    assert (subscription.done_entries, subscription.done_messages, cold) == (1, 6, [])
    assert len(problems) == 1
    assert problems[0].startswith("7:2 was not acknowledged: an acknowledgement leaves message 70")


def test_without_the_setting_an_entry_with_messages_left_stays_as_it_is() -> None:
    _, subscription, consumer = scene()
    ids = [named(0), named(1, 0b0110), MessageIdData(ledgerId=7, entryId=2, ack_set=[0, 0])]
    ack_entries(consumer, subscription, ids, [], [], OFF)
    assert (subscription.done_entries, subscription.done_messages) == (2, 8)


def test_parts_of_large_batches_count_as_more_work() -> None:
    rig, subscription, consumer = scene()
    rig.publish(2, messages=3 * ACK_MESSAGES_PER_UNIT)
    rig.publish(1, messages=PARTS_BATCH_MAX + 1)
    problems: list[str] = []
    assert ack_entries(consumer, subscription, [named(10, 1)], [], problems, ON) == (1 + 3, 1)
    assert problems == []
    ack_entries(consumer, subscription, [named(12, 1)], [], problems, ON)
    assert "those of up to 65,536 are acknowledged in part" in problems[0]
    ack_entries(consumer, subscription, [named(12)], [], problems, ON)
    assert subscription.acks.is_acked(12)


def test_a_move_over_very_many_runs_counts_as_more_work() -> None:
    """Hundreds of cumulative acknowledgements, 30 bytes each, looked for 2,000 runs each in one
    turn, and waited for the index of one of them."""
    rig, subscription, consumer = scene(SubscriptionType.EXCLUSIVE)
    rig.publish(3 * BLOCK_ORDINALS)
    rig.log.memory_first = 3 * BLOCK_ORDINALS
    far = Through(BLOCK_ORDINALS + 5)
    assert through_units(subscription, far) == 0
    for block in (0, 2):
        for ordinal in range(1, BLOCK_ORDINALS, 2):
            subscription.ack_entry(consumer, block * BLOCK_ORDINALS + ordinal)
    looked_up = entries_looked_up(subscription, far)
    assert len(looked_up) > BLOCK_ORDINALS - 10
    assert through_units(subscription, far) * 2 * ACKED_PER_UNIT >= len(looked_up) - 20
    subscription.ack_entry(consumer, 0)
    assert through_units(subscription, Through(1)) == 0


def test_very_large_batches_leave_the_rest_of_the_ids_to_later_turns() -> None:
    """Short sets of such batches were taken for the work of few messages, in one turn."""
    rig, subscription, consumer = scene()
    rig.publish(60, messages=PARTS_BATCH_MAX)
    ids = [named(ordinal, 1) for ordinal in range(10, 70)]
    units, done = ack_entries(consumer, subscription, ids, [], [], ON)
    of_each = PARTS_BATCH_MAX // ACK_MESSAGES_PER_UNIT
    assert done == TURN_UNITS // of_each
    assert units == done * (1 + of_each)
    assert subscription.acks.partly_acked(9 + done)
    assert not subscription.acks.partly_acked(10 + done)


def test_what_begins_a_block_without_room_is_refused_and_counts_as_work() -> None:
    """One message in 4,096 takes 600 bytes, which stay when the client has left."""
    rig, subscription, consumer = scene()
    others = [rig.subscribe("one"), rig.subscribe("two")]
    rig.engine.ack_blocks = BlockBudget(BLOCK_MEMORY_BYTES)
    for other in others:
        left, _ = rig.consumer(other, permits=1_000)
        assert ack_entries(left, other, [named(5)], [], [], ON) == (1, 1)
        other.remove_consumer(left)
    cold: list[Cold] = []
    problems: list[str] = []
    ids = [named(0), *[named(5)] * 10]
    in_a_turn = TURN_UNITS // REFUSED_UNITS
    found = ack_entries(consumer, subscription, ids, cold, problems, ON)
    assert found == (1 + in_a_turn + TURN_UNITS, 1 + in_a_turn)
    assert problems[0].startswith("7:5 was not acknowledged: what all subscriptions acknowledged")
    assert (len(problems), subscription.done_entries) == (1, 1)
    assert ack_whole(consumer, subscription, 5, []) == REFUSED_UNITS
    ack_entries(consumer, subscription, [named(1), named(2)], cold, [], ON)  # in order
    for other in others:
        other.skip_to(10)
    ack_entries(consumer, subscription, [named(5), named(7), named(9, 1)], cold, [], ON)
    assert subscription.done_entries == 5


def test_messages_that_end_a_batch_begin_no_block_without_room() -> None:
    rig, subscription, consumer = scene()
    rig.engine.ack_blocks = BlockBudget(0)
    problems: list[str] = []
    ack_entries(consumer, subscription, [named(5, 0b0001)], [], problems, ON)
    assert not subscription.acks.partly_acked(5)
    assert "7:5 was not acknowledged" in problems[0]


def test_a_reader_has_no_part_in_what_stays() -> None:
    rig = Rig()
    subscription = rig.subscribe(durable=False)
    consumer, _ = rig.consumer(subscription, permits=1_000)
    rig.publish(10)
    rig.engine.ack_blocks = BlockBudget(0)
    ack_entries(consumer, subscription, [named(5)], [], [], ON)
    assert subscription.acks.is_acked(5)
    assert rig.engine.ack_blocks.held_bytes == 0


def test_entries_whose_index_is_on_the_disk_wait() -> None:
    rig, subscription, consumer = scene()
    rig.log.memory_first = 5
    rig.log.is_indexed = lambda ordinal: ordinal >= 5  # type: ignore[method-assign]
    cold: list[Cold] = []
    ids = [named(1), named(2, 0b1000), named(6, 0b1000)]
    ack_entries(consumer, subscription, ids, cold, [], ON)
    assert cold == [Cold(1, ()), Cold(2, (0b1000,))]
    assert subscription.done_messages == 3


@pytest.mark.parametrize(
    ("ack", "found", "found_off"),
    [
        (through(4), Through(4), Through(4)),
        (through(4, 0b1100), Through(3, 4, (0b1100,)), Through(3)),
        (CommandAck(message_id=[MessageIdData(ledgerId=6, entryId=9)]), Through(-1), Through(-1)),
    ],
)
def test_what_a_cumulative_one_covers(ack: CommandAck, found: Through, found_off: Through) -> None:
    _, subscription, _ = scene(SubscriptionType.EXCLUSIVE)
    assert find_last(subscription, ack, ON) == ("", found)
    assert find_last(subscription, ack, OFF) == ("", found_off)


def test_a_cumulative_one_that_is_refused() -> None:
    _, subscription, _ = scene(SubscriptionType.EXCLUSIVE)
    for ack in (CommandAck(), CommandAck(message_id=[named(0), named(1)])):
        assert "names one message" in find_last(subscription, ack, ON)[0]
    assert "not stored yet" in find_last(subscription, through(10), ON)[0]
    _, shared, _ = scene()
    assert "unshared" in find_last(shared, through(1), ON)[0]


def test_a_cumulative_one_acknowledges_all_before_and_a_part() -> None:
    _, subscription, consumer = scene(SubscriptionType.EXCLUSIVE)
    assert ack_found(consumer, subscription, Through(3, 4, (0b1100,))) == ""
    assert (subscription.done_entries, subscription.done_messages) == (4, 18)
    problem = ack_found(consumer, subscription, Through(4, 5, (1 << 4,)))
    assert problem.startswith("7:5 was not acknowledged")
    assert (subscription.done_entries, subscription.done_messages) == (5, 20)


def test_a_cumulative_one_looks_up_its_part_and_what_follows() -> None:
    rig, subscription, _ = scene(SubscriptionType.EXCLUSIVE)
    assert entries_looked_up(subscription, Through(3, 4, (1,))) == []
    rig.log.memory_first = 5
    assert set(entries_looked_up(subscription, Through(2, 3, (1,)))) == {0, 2, 3, 4}
    assert set(entries_looked_up(subscription, Through(-1, 0, (1,)))) == {0, 1}
    assert entries_looked_up(subscription, Through(-1)) == []


def test_an_ack_is_cut_by_its_work() -> None:
    """Sets of large batches make shorter parts; a single id is never cut."""
    plain = MessageIdData(ledgerId=1, entryId=1)
    large = MessageIdData(ledgerId=1, entryId=2, ack_set=[-1] * 938)
    assert [len(part) for part in slices([plain] * 600, 256)] == [256, 256, 88]
    lengths = [len(part) for part in slices([large] * 20, 256)]
    assert sum(lengths) == 20
    assert max(lengths) == 256 // (938 * 64 // ACK_MESSAGES_PER_UNIT) == 8
    huge = MessageIdData(ledgerId=1, entryId=3, ack_set=[-1] * 100_000)
    assert [len(part) for part in slices([plain, huge, huge, plain], 256)] == [1, 1, 1, 1]


@pytest.mark.parametrize("words", [(1, *[0] * 9_998, 1), (0,) * 10_000])
def test_very_long_sets_of_small_batches_leave_the_rest_to_later_turns(
    words: tuple[int, ...],
) -> None:
    """Each of these words has one byte. They counted as their batch of 4 messages: 300 connections
    with an ACK of 255 KB each held the loop for 1.2 s."""
    _, subscription, consumer = scene()
    ids = [named(ordinal) for ordinal in range(10)]
    for each in ids:
        each.ack_set.extend(words)
    units, done = ack_entries(consumer, subscription, ids, [], [], ON)
    of_each = 10_000 * WORD_BITS // ACK_MESSAGES_PER_UNIT
    assert of_each > TURN_UNITS
    assert (units, done) == (1 + of_each, 1)
    assert subscription.acks.is_acked(0) is not any(words)
    units, _ = ack_entries(consumer, subscription, ids[:1], [], [], OFF)
    assert units == 1 + of_each
