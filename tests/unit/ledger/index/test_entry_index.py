"""The index of a topic's entries, before and after a part of it is left to the disk."""

from __future__ import annotations

import pytest

from headgate.ledger.index.block_cache import BlockMissingError
from headgate.ledger.index.index_block import BLOCK_ENTRIES
from headgate.ledger.index.topic_log import TopicLog
from tests.unit.ledger.index.test_sparse_index import Pair


def stored(entries: int = 300) -> Pair:
    """A topic with so many entries on the disk, and ten in memory."""
    pair = Pair(1 << 20)
    pair.both(lambda topic: topic.open_ledger(1, 0, 0))
    pair.append(entries, 50, 2, 1, ledger=False)
    pair.seal()
    pair.append(10, 50, 2, 1, ledger=False)
    return pair


def test_a_topic_in_memory_needs_no_block() -> None:
    topic = TopicLog(1)
    topic.open_run(1)
    topic.append(1, 10, 5, 0, 64)
    topic.end = 1
    assert (topic.memory_first, topic.stored) == (0, None)
    assert topic.is_indexed(0)
    assert topic.index_of((0, 5)) == []
    assert topic.indexed_stop(0, 1) == 1
    assert topic.missing_blocks(0, 1) == []
    assert topic.totals_near(1) == (topic.totals(1), True)


def test_blocks_are_needed_below_what_is_in_memory() -> None:
    topic = stored().spilled
    assert topic.memory_first == 300
    assert not topic.is_indexed(5)
    assert topic.is_indexed(300)
    assert topic.indexed_stop(300, 310) == 310
    assert topic.totals_near(5)[1] is False
    assert topic.totals_near(300)[1] is True
    assert topic.received_latest_ms(5) == topic.received_latest_ms(127)
    assert topic.received_latest_ms(300) == topic.received_ms(300)
    with pytest.raises(BlockMissingError) as missing:
        topic.index_of((5, 6, 299, 305, 10_000))
    assert [(key.first, key.stop) for key in missing.value.keys] == [(0, 128), (256, 300)]


def test_blocks_that_are_held_stay() -> None:
    pair = stored()
    topic, cache = pair.spilled, pair.cache
    assert topic.message_count(5) == pair.plain.message_count(5)
    held = topic.index_of((5,))
    assert [block.first for block in held] == [0]
    cache.clear()
    assert topic.is_indexed(5)
    assert topic.totals_near(6) == (pair.plain.totals(6), True)
    del held
    assert not topic.is_indexed(5)


def test_a_trim_within_a_block_keeps_the_totals_of_its_first_entry() -> None:
    pair = stored()
    pair.cache.started()
    pair.both(lambda topic: topic.trim(6))
    pair.cache.clear()
    topic = pair.spilled
    assert pair.cache.look_up(lambda: topic.totals(6)) == pair.plain.totals(6)
    assert pair.cache.look_up(lambda: topic.live_runs()) == pair.plain.live_runs()
    pair.check()


def test_the_blocks_have_the_size_that_the_module_says() -> None:
    assert BLOCK_ENTRIES == 128
