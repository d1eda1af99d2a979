"""The bounded memory of entries."""

from __future__ import annotations

from headgate.engine.cache import ENTRY_OVERHEAD_BYTES, EntryCache, TopicCache


def test_first_in_leaves_first_over_all_topics() -> None:
    one: TopicCache = {}
    two: TopicCache = {}
    cache = EntryCache(3 * (10 + ENTRY_OVERHEAD_BYTES))
    cache.put(one, 0, b"x" * 10)
    cache.put(two, 0, b"y" * 10)
    cache.put(one, 1, b"x" * 10)
    cache.put(two, 1, b"y" * 10)
    assert sorted(one) == [1]
    assert sorted(two) == [0, 1]
    assert cache.size_bytes <= cache.size_bytes_max


def test_putting_again_changes_nothing() -> None:
    entries: TopicCache = {}
    cache = EntryCache(1_000)
    cache.put(entries, 0, b"first")
    size = cache.size_bytes
    cache.put(entries, 0, b"again")
    assert entries[0] == b"first"
    assert cache.size_bytes == size


def test_entries_that_were_taken_out_meanwhile_are_no_trouble() -> None:
    entries: TopicCache = {}
    cache = EntryCache(2 * (1 + ENTRY_OVERHEAD_BYTES))
    cache.put(entries, 0, b"a")
    entries.clear()
    cache.put(entries, 1, b"b")
    cache.put(entries, 2, b"c")
    assert sorted(entries) == [1, 2]


def test_an_entry_larger_than_the_cache_stays_until_the_next() -> None:
    entries: TopicCache = {}
    cache = EntryCache(1_000)
    cache.put(entries, 0, b"small")
    cache.put(entries, 1, b"x" * 5_000)
    assert sorted(entries) == [1]
    cache.put(entries, 2, b"small")
    assert sorted(entries) == [2]
    assert cache.size_bytes <= cache.size_bytes_max
