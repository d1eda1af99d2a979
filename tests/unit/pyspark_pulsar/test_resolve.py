from __future__ import annotations

import pytest

from pyspark_pulsar.errors import OffsetError, TopicNotFoundError
from pyspark_pulsar.offsets import Position, earliest
from pyspark_pulsar.ranges import LedgerSpan, TopicSnapshot
from pyspark_pulsar.resolve import require_snapshots, require_topics, resolve_end, resolve_start

T = "persistent://public/default/t"
P = "persistent://public/default/p"
P0 = f"{P}-partition-0"
HELD = {
    T: TopicSnapshot((LedgerSpan(3, 10, 1_000),), (3, 9)),
    P0: TopicSnapshot((LedgerSpan(4, 5, 500),), (4, 4)),
}


def test_earliest_and_latest_apply_to_every_partition() -> None:
    assert resolve_start("earliest", HELD) == {T: earliest(T), P0: earliest(P0)}
    assert resolve_start("latest", HELD) == {T: Position(3, 9), P0: Position(4, 4, 0)}
    assert resolve_end("latest", HELD) == {T: Position(3, 9), P0: Position(4, 4, 0)}


def test_an_id_is_the_first_or_the_last_message_read() -> None:
    places = {T: "3:4", P: "earliest"}
    assert resolve_start(places, HELD) == {T: Position(3, 3), P0: earliest(P0)}
    assert resolve_end(places, HELD) == {T: Position(3, 4), P0: earliest(P0)}
    inside = {T: "3:4:-1:2", P0: "4:0:0:0"}
    assert resolve_start(inside, HELD) == {T: Position(3, 4, -1, 1), P0: Position(4, -1, 0)}


def test_a_position_after_the_end_becomes_the_end() -> None:
    assert resolve_end({T: "3:900", P: "latest"}, HELD)[T] == Position(3, 9)
    assert resolve_start({T: "8:0", P: "latest"}, HELD)[T] == Position(3, 9)


def test_a_start_behind_an_open_transaction_is_kept() -> None:
    """Else a stream would give messages before its start when the transaction has ended."""
    ledgers = (LedgerSpan(3, 10, 1_000), LedgerSpan(4, 5, 500))
    held = {T: TopicSnapshot(ledgers, (3, 4), last_stored=(4, 2))}
    for place, start in (("3:2", (3, 1)), ("3:9", (3, 8)), ("4:1", (4, 0)), ("4:4", (4, 2))):
        assert resolve_start({T: place}, held) == {T: Position(*start)}
    assert resolve_start({T: Position(3, 8)}, held) == {T: Position(3, 8)}
    assert resolve_start("latest", held) == {T: Position(3, 4)}
    assert resolve_end({T: "3:9"}, held) == {T: Position(3, 4)}


def test_positions_found_by_time_are_kept() -> None:
    found = {T: Position(3, 2), P0: Position(9, 9, 0)}
    assert resolve_start(found, HELD) == {T: Position(3, 2), P0: Position(4, 4, 0)}


@pytest.mark.parametrize(
    ("places", "complaint"),
    [
        ({T: "3:4"}, f"startingOffsets has no position for {P0}"),
        ({T: "3:4", P: "earliest", "x": "latest"}, "names x, which this query does not read"),
        ({T: "3:4:7", P: "earliest"}, "startingOffsets: .* names partition 7"),
    ],
)
def test_offset_maps_must_match_the_topics(places: dict[str, str], complaint: str) -> None:
    with pytest.raises(OffsetError, match=complaint):
        resolve_start(places, HELD)


def test_a_missing_topic_is_an_error_and_an_unused_partition_is_empty() -> None:
    with pytest.raises(TopicNotFoundError, match=f"{T} does not exist"):
        require_snapshots([T], {T: None})
    assert require_snapshots([P], {P0: None}) == {P0: TopicSnapshot((), None)}


def test_topics_without_partitions_are_named_unless_they_existed() -> None:
    found = {T: (), f"{T}x": (), f"{T}y": (f"{T}y",), "u": ()}
    with pytest.raises(TopicNotFoundError, match=f"^{T} does not exist; {T}x does not exist$"):
        require_topics(found, ["u-partition-3"])
    require_topics(found, [T, f"{T}x", "u"])
    require_topics({f"{T}-partition-0": ()}, [f"{T}-partition-0"])
