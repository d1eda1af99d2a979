"""Blocks in memory: bounded, the least recently used go first, damaged ones are rebuilt."""

from __future__ import annotations

from array import array

import pytest

from headgate.base.errors import CorruptionError, StorageError
from headgate.ledger.index.block_cache import (
    Block,
    BlockCache,
    BlockKey,
    BlockMissingError,
    BlockPart,
    FetchedBlock,
    NoFiles,
)
from headgate.ledger.index.columns import Columns, TopicTotals
from headgate.ledger.index.index_block import BLOCK_ENTRIES, block_bytes, encode_block
from headgate.ledger.index.stored_run import file_id

COUNT = 10
FILE = file_id(5, 0)


def columns_of(first: int, count: int = COUNT) -> Columns:
    more = range(first, first + count + 1)
    return Columns(
        array("I", range(64, 64 + count)),
        array("q", more),
        array("I", bytes(4 * (count + 1))),
        array("q", more),
        array("q", (100 * each for each in more)),
    )


def key_of(first: int, count: int = COUNT) -> BlockKey:
    stop = first + count
    before, after = (TopicTotals(at, 100 * at, at, 0) for at in (first, stop))
    size = block_bytes(BLOCK_ENTRIES)
    return BlockKey(7, first, stop, FILE, first * 1_000, size, range(64, 64), before, after)


class Files:
    """Blocks of entries by their place; ``error`` stops every read."""

    def __init__(self) -> None:
        self.error: StorageError | None = None
        self.damaged: set[int] = set()

    def read(self, file: int, offset: int, size: int) -> bytes:
        assert file == FILE
        if self.error is not None:
            raise self.error
        if offset < 1_000:
            return b""
        first = offset // 1_000
        data = bytearray(encode_block(7, first, columns_of(first), 0, COUNT))
        if offset in self.damaged:
            data[50] ^= 1
        return bytes(data[:size])


class Owner:
    """Keeps what was rebuilt, if it still has the block."""

    def __init__(self, *, has: bool = True) -> None:
        self.has = has
        self.pinned: list[BlockKey] = []

    def pin(self, key: BlockKey, block: Block) -> bool:
        if self.has:
            self.pinned.append(key)
        return self.has


def block_size() -> int:
    return Block(0, columns_of(0)).size_bytes


def test_the_least_recently_used_go_first() -> None:
    cache = BlockCache(Files(), 3 * block_size())
    for first in (10, 20, 30):
        cache.put(key_of(first), Block(first, columns_of(first)))
    assert cache.get(FILE, 10_000) is not None
    cache.put(key_of(40), Block(40, columns_of(40)))
    assert [cache.has(FILE, place) for place in (10_000, 20_000, 30_000)] == [True, False, True]
    assert cache.size_bytes == 3 * block_size()
    assert cache.hits == 1
    cache.clear()
    assert cache.size_bytes == 0


def test_a_block_that_somebody_holds_stays_in_memory() -> None:
    cache = BlockCache(Files(), block_size())
    held = Block(10, columns_of(10))
    cache.put(key_of(10), held)
    cache.put(key_of(20), Block(20, columns_of(20)))
    assert cache.get(FILE, 10_000) is held
    del held
    assert not cache.has(FILE, 10_000)


def test_a_block_that_is_put_again_counts_once() -> None:
    cache = BlockCache(Files(), 10 * block_size())
    for _ in range(2):
        cache.put(key_of(10), Block(10, columns_of(10)))
    assert cache.size_bytes == block_size()
    assert cache.blocks_max >= 1


def test_a_look_up_may_not_read() -> None:
    cache, owner = BlockCache(Files(), 10_000), Owner()
    with pytest.raises(BlockMissingError) as missing, cache.without_reading():
        cache.load(key_of(10))
    assert missing.value.keys == [key_of(10)]
    with pytest.raises(BlockMissingError):
        cache.look_up(lambda: cache.load(key_of(10)))
    found = cache.load(key_of(10))
    cache.keep(found, owner)
    assert cache.look_up(lambda: cache.get(FILE, 10_000)) is found.block
    assert (cache.misses, cache.read_at_once) == (1, 1)


def test_totals_are_remembered_from_the_start_on_and_bounded() -> None:
    cache = BlockCache(Files(), 8 * 400 * 3)
    totals = TopicTotals(1, 2, 3, 4)
    cache.remember_totals(7, 1, totals)
    assert cache.known_totals(7, 1) is None  # recovery may still change it
    cache.started()
    for ordinal in range(4):
        cache.remember_totals(7, ordinal, totals)
    assert [cache.known_totals(7, ordinal) is not None for ordinal in range(4)] == [False] + 3 * [
        True
    ]
    assert cache.size_bytes == 3 * 400


def test_damaged_blocks_are_rebuilt_and_kept_by_their_topic() -> None:
    files = Files()
    files.damaged.add(10_000)
    cache, owner = BlockCache(files, 10_000), Owner()
    (sound, damaged) = cache.fetch([key_of(20), key_of(10)])
    assert (sound.error, sound.block is not None) == (None, True)
    assert isinstance(damaged.error, CorruptionError)
    assert not damaged.is_whole  # there are no records to rebuild it from
    cache.keep(damaged, Owner(has=False))
    cache.keep(damaged, None)
    assert (cache.lost, cache.rebuilt) == (0, 0)
    cache.keep(damaged, owner)
    assert owner.pinned == [key_of(10)]
    assert (cache.lost, cache.rebuilt) == (1, 0)
    assert not cache.has(FILE, 10_000)
    assert damaged.block is not None
    assert damaged.block.columns.sizes[-1] == key_of(10).after.size_bytes


def test_a_disk_that_does_not_answer_is_no_damage() -> None:
    files = Files()
    files.error = StorageError("input/output error", retryable=True)
    cache, owner = BlockCache(files, 10_000), Owner()
    (failed,) = cache.fetch([key_of(10)])
    assert failed == FetchedBlock(key_of(10), None, files.error)
    cache.keep(failed, owner)
    assert (owner.pinned, cache.lost) == ([], 0)
    files.error = None
    (found,) = cache.fetch([key_of(10)])
    assert found.block is not None


def test_a_part_is_resolved_with_the_totals_of_its_topic() -> None:
    cache = BlockCache(Files(), 10_000)
    key = key_of(10)._replace(before=TopicTotals(1_010, 5_000, 10, 0))
    part = cache.resolve(BlockPart(key, 12, 15))
    assert list(part.messages) == [1_012, 1_013, 1_014, 1_015]
    assert list(part.sizes) == [5_200, 5_300, 5_400, 5_500]
    assert cache.resolve(part) is part


def test_a_state_without_files_has_no_blocks() -> None:
    with pytest.raises(StorageError):
        NoFiles().read(FILE, 0, 9)
