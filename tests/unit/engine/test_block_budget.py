"""What subscriptions acknowledge out of order has one bound, whoever leaves."""

from __future__ import annotations

import pytest

from headgate.base.ack_set import BLOCK_MEMORY_BYTES, AckSet
from headgate.engine.ack_budget import NoAckRoomError
from headgate.engine.block_budget import BlockBudget
from tests.unit.engine.harness import Rig


def rig_with(blocks_max: int) -> Rig:
    """A topic with messages, and room for so many blocks."""
    rig = Rig()
    rig.engine.ack_blocks = BlockBudget(blocks_max * BLOCK_MEMORY_BYTES)
    rig.publish(10)
    return rig


def filled(rig: Rig, name: str) -> bool:
    """A subscription acknowledges one message out of order, and its client leaves; whether there
    was room."""
    subscription = rig.topic.subscriptions.get(name) or rig.subscribe(name)
    consumer, _ = rig.consumer(subscription, permits=1_000)
    try:
        rig.engine.ack_blocks.check_room(subscription)
    except NoAckRoomError:
        return False
    finally:
        subscription.remove_consumer(consumer)
    subscription.ack_entry(consumer, 5)
    rig.engine.ack_blocks.measure(subscription)
    return True


def test_what_clients_left_behind_counts() -> None:
    rig = rig_with(20)
    # Those that have none yet may take half as much again.
    assert sum(filled(rig, f"s{number}") for number in range(50)) == 30
    assert rig.engine.ack_blocks.held_bytes == 30 * BLOCK_MEMORY_BYTES


def test_what_a_cursor_passes_and_what_is_removed_makes_room() -> None:
    rig = rig_with(2)
    assert [filled(rig, name) for name in "abcd"] == [True, True, True, False]
    rig.topic.subscriptions["a"].skip_to(10)
    assert filled(rig, "d")
    assert not filled(rig, "e")
    rig.topic.remove_subscription("b")
    assert rig.engine.ack_blocks.held_bytes == 2 * BLOCK_MEMORY_BYTES
    assert filled(rig, "e")


def test_those_of_a_topic_that_is_unloaded_count_until_it_is_loaded_or_deleted() -> None:
    rig = rig_with(2)
    assert filled(rig, "a")
    budget, topic = rig.engine.ack_blocks, rig.topic
    topic.fence()
    rig.engine.unload_topic(topic)
    assert budget.held_bytes == BLOCK_MEMORY_BYTES  # the log has them
    again = rig.engine.load_topic(topic.name, topic.log)
    assert budget.held_bytes == 0
    acks = AckSet()
    acks.ack(5)
    again.add_subscription("a", acks, cursor_id=1)
    assert budget.held_bytes == BLOCK_MEMORY_BYTES
    again.fence()
    rig.engine.unload_topic(again, deleted=True)
    assert budget.held_bytes == 0


def test_what_a_cursor_passed_before_its_topic_was_unloaded_does_not_count() -> None:
    """It counted as long as the topic was not loaded: nobody measures what is unloaded."""
    rig = rig_with(2)
    assert filled(rig, "a")
    rig.topic.subscriptions["a"].skip_to(10)
    rig.topic.fence()
    rig.engine.unload_topic(rig.topic)
    assert rig.engine.ack_blocks.held_bytes == 0


@pytest.mark.parametrize(
    ("ordinal", "begins"), [(1, False), (2, True), (4_095, True), (4_096, False)]
)
def test_a_block_begins_out_of_order_where_none_is(ordinal: int, begins: bool) -> None:
    acks = AckSet(0)
    acks.ack(5_000)
    assert acks.begins_block(ordinal) is begins
