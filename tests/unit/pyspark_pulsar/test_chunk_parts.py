from __future__ import annotations

import pytest

from pyspark_pulsar import chunk_parts
from pyspark_pulsar.chunk_parts import ChunkParts, Headless, Joined
from pyspark_pulsar.entries import ChunkPart, Kind, parse_entry
from tests.unit.pyspark_pulsar.fakes import body, chunk

PARTS = [b"a", b"bb", b"c"]


def part(index: int, uuid: str = "u", parts: list[bytes] = PARTS) -> ChunkPart:
    found = parse_entry(chunk(uuid, index, parts), 1 << 20).chunk
    assert found is not None
    return found


def value(joined: object) -> list[bytes | None]:
    assert isinstance(joined, Joined)
    (messages,) = joined.entry.portions(10)
    return messages.values


def test_chunks_are_joined_whatever_lies_between() -> None:
    parts = ChunkParts(1_000)
    assert parts.add((3, 0), part(0)) is None
    assert parts.add((3, 1), part(0, "v")) is None
    assert parts.add((3, 2), part(1)) is None
    found = parts.add((3, 5), part(2))
    assert value(found) == [b"abbc"]
    assert isinstance(found, Joined)
    assert found.first == (3, 0)
    assert parts.add((3, 6), part(0)) is None, "nothing is left of it"


def test_what_is_sent_twice_counts_once() -> None:
    parts = ChunkParts(1_000)
    for at, index in enumerate([0, 1, 0, 1, 1]):
        assert parts.add((3, at), part(index)) is None
    found = parts.add((3, 9), part(2))
    assert value(found) == [b"abbc"]
    assert isinstance(found, Joined)
    assert found.first == (3, 2), "the producer began again"


@pytest.mark.parametrize(("given", "missing"), [([2], 2), ([1, 2], 1), ([0, 2], 2)])
def test_missing_chunks_are_asked_for(given: list[int], missing: int) -> None:
    parts = ChunkParts(1_000)
    found = [parts.add((3, index), part(index)) for index in given][-1]
    assert found == Headless("u", (3, 3 - 1 - (2 - missing)), missing)
    head = [part(index) for index in range(missing)]
    whole = parts.complete("u", head, (2, 7))
    assert value(whole) == [b"abbc"]
    assert whole.first == (2, 7)


def test_the_oldest_makes_room_and_is_asked_for_again() -> None:
    """Each first chunk that a producer sends may be of a message that never ends."""
    parts = ChunkParts(1_000)
    large = [b"x" * 600, b"y"]
    assert parts.add((3, 0), part(0, "old", large)) is None
    assert parts.add((3, 1), part(0, "new", large)) is None
    assert value(parts.add((3, 2), part(1, "new", large))) == [b"x" * 600 + b"y"]
    assert parts.add((3, 3), part(1, "old", large)) == Headless("old", (3, 3), 1)


def test_very_many_first_chunks_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk_parts, "OPEN_MESSAGES_MAX", 2)
    parts = ChunkParts(1_000)
    for index, uuid in enumerate("abc"):
        parts.add((3, index), part(0, uuid))
    assert parts.add((3, 3), part(1, "a", [b"a", b"b"])) == Headless("a", (3, 3), 1)


def test_very_many_chunks_of_a_byte_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes ten times its bytes of memory."""
    monkeypatch.setattr(chunk_parts, "CHUNKS_MAX", 4)
    parts = ChunkParts(1_000)
    many = [b"x"] * 6
    for index in range(3):
        assert parts.add((3, index), part(index, "old", many)) is None
    for index in range(2):
        assert parts.add((4, index), part(index, "new", many)) is None
    assert parts.add((5, 0), part(5, "old", many)) == Headless("old", (5, 0), 5)


def test_ids_of_messages_take_room() -> None:
    """An id may be as long as the metadata."""
    parts = ChunkParts(1_000)
    old, new = "o" * 200, "n" * 200
    assert parts.add((3, 0), part(0, old)) is None
    assert parts.add((3, 1), part(0, new)) is None
    assert parts.add((3, 2), part(1, new)) is None
    assert parts.add((3, 3), part(1, old)) is None
    assert parts.add((3, 4), part(2, old)) == Headless(old, (3, 3), 1)


@pytest.mark.parametrize("sizes", [(800, 800), (1, 2_000), (2_000, 1)])
def test_one_that_is_too_large_is_malformed_without_a_search(sizes: tuple[int, int]) -> None:
    parts = ChunkParts(1_000)
    chunks = [b"x" * size for size in sizes]
    assert parts.add((3, 0), part(0, "u", chunks)) is None
    found = parts.add((3, 1), part(1, "u", chunks))
    assert isinstance(found, Joined)
    assert found.entry.kind is Kind.MALFORMED
    assert found.entry.why == "it has more than 1,000 bytes (maxMessageBytes)"


def test_a_size_that_is_a_lie_is_malformed() -> None:
    parts = ChunkParts(1_000)
    for index in range(2):
        made = body(b"x", uuid="u", chunk_id=index, num_chunks_from_msg=2, total_chunk_msg_size=3)
        found = parse_entry(made, 1_000).chunk
        assert found is not None
        joined = parts.add((3, index), found)
    assert isinstance(joined, Joined)
    assert joined.entry.kind is Kind.MALFORMED
