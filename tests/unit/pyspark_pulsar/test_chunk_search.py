from __future__ import annotations

from collections.abc import Mapping

import pytest

from pyspark_pulsar import chunk_search
from pyspark_pulsar.chunk_parts import ChunkParts, Headless, Joined
from pyspark_pulsar.chunk_search import ChunkSearch, position_before
from pyspark_pulsar.entries import EntryId, parse_entry
from pyspark_pulsar.errors import ReadTimeoutError
from pyspark_pulsar.offsets import Position
from pyspark_pulsar.ranges import LedgerSpan
from tests.unit.pyspark_pulsar.fakes import FakeStream, body, chunk, entries

LEDGERS = (LedgerSpan(3, 4, 4), LedgerSpan(5, 0, 0), LedgerSpan(6, 10, 10))
PARTS = [b"a", b"b", b"c"]


@pytest.mark.parametrize(
    ("entry", "count", "begin", "held"),
    [
        ((6, 5), 3, (6, 1), 3),
        ((6, 5), 5, (6, -1), 5),
        ((6, 5), 6, (3, 2), 6),
        ((6, 5), 99, (3, -1), 9),
        ((6, 0), 1, (3, 2), 1),
        ((3, 0), 7, (3, -1), 0),
        ((9, 4), 2, (6, 7), 2),
    ],
)
def test_positions_count_over_ledgers(
    entry: EntryId, count: int, begin: EntryId, held: int
) -> None:
    assert position_before(LEDGERS, entry, count) == (begin, held)


def search(
    stored: Mapping[EntryId, bytes], ledgers: tuple[LedgerSpan, ...], streams: list[FakeStream]
) -> ChunkSearch:
    def open_stream(begin: Position) -> FakeStream:
        streams.append(FakeStream(stored, begin))
        return streams[-1]

    return ChunkSearch(open_stream, lambda: ledgers, -1, 1_000, 5.0)


def last_chunk(place: EntryId) -> tuple[ChunkParts, Headless]:
    parts = ChunkParts(1_000)
    part = parse_entry(chunk("u", 2, PARTS), 1_000).chunk
    assert part is not None
    found = parts.add(place, part)
    assert isinstance(found, Headless)
    return parts, found


def joined(found: Joined | Headless | None) -> tuple[EntryId, list[bytes | None]]:
    assert isinstance(found, Joined)
    (messages,) = found.entry.portions(10)
    return found.first, messages.values


def test_the_first_chunks_are_read_from_before() -> None:
    stored = entries(3, *[0] * 8) | {
        (3, 1): chunk("u", 0, PARTS),
        (3, 2): chunk("other", 0, PARTS),
        (3, 4): chunk("u", 1, PARTS),
    }
    streams: list[FakeStream] = []
    found = search(stored, (LedgerSpan(3, 9, 9),), streams)(*last_chunk((3, 8)))
    assert joined(found) == ((3, 1), [b"abc"])
    assert [each.is_closed for each in streams] == [True]


def test_a_second_look_goes_further_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk_search, "ENTRIES_BEFORE_FIRST", 1)
    monkeypatch.setattr(chunk_search, "ENTRIES_BEFORE_MAX", 6)
    stored = entries(3, *[0] * 20) | {
        (3, 14): chunk("u", 0, PARTS),
        (3, 18): chunk("u", 1, PARTS),
    }
    streams: list[FakeStream] = []
    found = search(stored, (LedgerSpan(3, 21, 9),), streams)(*last_chunk((3, 20)))
    assert joined(found) == ((3, 14), [b"abc"])
    assert [each.begin.entry_id for each in streams] == [16, 13]
    # One entry further is too far.
    del stored[3, 14]
    stored[3, 13] = chunk("u", 0, PARTS)
    assert search(stored, (LedgerSpan(3, 21, 9),), [])(*last_chunk((3, 20))) is None


def test_a_short_topic_is_searched_once() -> None:
    streams: list[FakeStream] = []
    found = search(entries(3, *[0] * 8), (LedgerSpan(3, 9, 9),), streams)(*last_chunk((3, 8)))
    assert found is None
    assert len(streams) == 1


def test_very_many_messages_that_never_began_have_a_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chunk_search, "ENTRIES_BEFORE_FIRST", 2)
    monkeypatch.setattr(chunk_search, "ENTRIES_BEFORE_MAX", 50)
    monkeypatch.setattr(chunk_search, "SEARCHED_MAX", 100)
    streams: list[FakeStream] = []
    find = search(entries(3, *[0] * 99), (LedgerSpan(3, 100, 9),), streams)
    for _ in range(20):
        assert find(*last_chunk((3, 99))) is None
    assert sum(len(each.given) for each in streams) < 100 + 50 + 20 * 6


def test_a_search_over_very_many_entries_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A last chunk of a byte may have any index."""
    monkeypatch.setattr(chunk_search, "ENTRIES_BEFORE_FIRST", 2)
    monkeypatch.setattr(chunk_search, "ENTRIES_BEFORE_MAX", 50)
    monkeypatch.setattr(chunk_search, "SEARCHED_MAX", 100)
    streams: list[FakeStream] = []
    find = search(entries(3, *[0] * 999), (LedgerSpan(3, 1_000, 9),), streams)
    for indexes in (98, 98, 998, 20, 20, 3):
        assert find(ChunkParts(1_000), Headless("u", (3, 999), indexes)) is None
    assert sum(len(each.given) for each in streams) < 100 + 50


def test_a_task_searches_a_number_of_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk_search, "SEARCHES_MAX", 3)
    streams: list[FakeStream] = []
    find = search(entries(3, *[0] * 9), (LedgerSpan(3, 10, 9),), streams)
    for _ in range(20):
        assert find(*last_chunk((3, 9))) is None
    assert len(streams) == 3


def test_the_last_of_two_messages_with_an_id_is_found() -> None:
    """A producer that begins again with its name may use the ids of its messages again."""
    old = [b"A", b"A", b"A"]
    stored = {(3, at): chunk("u", at, old) for at in range(3)}
    stored |= {(3, 3 + at): chunk("u", at, PARTS) for at in range(2)}
    found = search(stored, (LedgerSpan(3, 6, 9),), [])(*last_chunk((3, 5)))
    assert joined(found) == ((3, 3), [b"abc"])
    del stored[3, 4]
    assert search(stored, (LedgerSpan(3, 6, 9),), [])(*last_chunk((3, 5))) is None


@pytest.mark.parametrize("order", [[0, 1, 2], [0, 1, 0, 1, 2, 1]])
def test_chunks_that_are_sent_again_behind_a_message_are_no_message(order: list[int]) -> None:
    stored = {(3, at): chunk("u", index, PARTS) for at, index in enumerate(order)}
    parts, asked = last_chunk((3, 8))
    assert search(stored, (LedgerSpan(3, 9, 9),), [])(parts, asked) is asked
    stored[3, 7] = chunk("u", 0, PARTS)  # another message
    assert search(stored, (LedgerSpan(3, 9, 9),), [])(parts, asked) is None


def test_entries_that_do_not_arrive_are_no_lost_chunks() -> None:
    stored = entries(3, *[0] * 8) | {(3, 1): chunk("u", 0, PARTS), (3, 4): chunk("u", 1, PARTS)}
    find = ChunkSearch(
        lambda begin: FakeStream(stored, begin, silent=1),
        lambda: (LedgerSpan(3, 9, 9),),
        -1,
        1_000,
        5.0,
    )
    with pytest.raises(ReadTimeoutError, match=r"before 3:8 did not arrive within 5 s"):
        find(*last_chunk((3, 8)))


def test_chunks_that_are_too_large_together_are_not_kept() -> None:
    large = [b"x" * 600, b"x" * 600, b"c"]
    stored = {(3, n): chunk("u", n, large) for n in range(2)}
    assert search(stored, (LedgerSpan(3, 3, 9),), [])(*last_chunk((3, 2))) is None


def test_chunks_sent_twice_or_out_of_order_are_passed_over() -> None:
    order = [1, 0, 0, 1, 1]
    stored = {(3, at): chunk("u", index, PARTS) for at, index in enumerate(order)}
    found = search(stored, (LedgerSpan(3, 9, 9),), [])(*last_chunk((3, 8)))
    assert joined(found) == ((3, 2), [b"abc"])
    assert search({(3, 0): body(b"")}, (LedgerSpan(3, 9, 9),), [])(*last_chunk((3, 8))) is None
