from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_pulsar.errors import OffsetError
from pyspark_pulsar.offsets import (
    Position,
    earliest,
    offset_from_json,
    offset_to_json,
    parse_position,
    partition_index,
    varint,
)

PLAIN = "persistent://public/default/t"
SECOND = "persistent://public/default/p-partition-1"

positions = st.builds(
    Position,
    st.integers(-1, 1 << 62),
    st.integers(-1, 1 << 62),
    st.just(-1),
    st.integers(-1, 1 << 20),
)


def test_a_position_is_written_and_parsed() -> None:
    assert str(parse_position("8:3:-1:4", PLAIN)) == "8:3:-1:4"
    assert parse_position("8:3", PLAIN) == Position(8, 3, -1, -1)
    assert parse_position("8:3", SECOND) == Position(8, 3, 1, -1)
    assert parse_position(" 8:3:1 ", SECOND) == Position(8, 3, 1, -1)


@given(positions)
def test_every_position_is_parsed_from_its_text(position: Position) -> None:
    assert parse_position(str(position), PLAIN) == position


@pytest.mark.parametrize(
    "text", ["", "8", "8:", "a:b", "8:3:-1:-2", "-2:0", "8:3:-1:0:0", "9223372036854775808:0"]
)
def test_other_texts_are_refused_by_name(text: str) -> None:
    with pytest.raises(OffsetError, match="of persistent://public/default/t"):
        parse_position(text, PLAIN)


def test_the_partition_must_belong_to_the_topic() -> None:
    with pytest.raises(OffsetError, match=r"names partition 0, but .* is partition 1"):
        parse_position("8:3:0:-1", SECOND)


def test_the_position_of_an_entry_is_after_its_messages() -> None:
    in_order = [
        earliest(PLAIN),
        Position(8, -1),
        Position(8, 0, -1, 0),
        Position(8, 0, -1, 999_999),
        Position(8, 0),
        Position(8, 1, -1, 0),
        Position(9, -1),
    ]
    assert sorted(in_order, key=lambda each: each.order_key) == in_order


@given(positions.filter(lambda each: each.entry_id >= 0))
def test_before_is_the_directly_preceding_position(position: Position) -> None:
    before = position.before()
    assert before.order_key < position.order_key
    first_of_entry = position._replace(batch_index=max(position.batch_index, 0))
    assert before.order_key < first_of_entry.order_key
    if position.batch_index > 0:
        assert before == position._replace(batch_index=position.batch_index - 1)


def test_before_the_first_entry_stays_in_its_ledger() -> None:
    assert Position(8, 0).before() == Position(8, -1)
    assert Position(8, -1).before() == Position(8, -1)


def test_partition_index_comes_from_the_name() -> None:
    assert partition_index(SECOND) == 1
    assert partition_index(PLAIN) == -1
    assert earliest(SECOND) == Position(-1, -1, 1, -1)


def test_equal_offsets_have_equal_texts() -> None:
    one = {SECOND: Position(1, 2, 1), PLAIN: Position(3, 4)}
    other = {PLAIN: Position(3, 4), SECOND: Position(1, 2, 1)}
    text = json.dumps(offset_to_json(one))
    assert text == json.dumps(offset_to_json(other))
    assert text == f'{{"v": 1, "t": {{"{SECOND}": "1:2:1:-1", "{PLAIN}": "3:4:-1:-1"}}}}'
    assert offset_from_json(json.loads(text)) == one


@pytest.mark.parametrize(
    ("offset", "complaint"),
    [
        ({"v": 2, "t": {}}, "version 2"),
        ({}, "version None"),
        ({"v": 1}, "no topics"),
        ({"v": 1, "t": {PLAIN: 5}}, "not a text"),
        ({"v": 1, "t": {PLAIN: "x"}}, "L:E:P:B"),
    ],
)
def test_foreign_offsets_are_refused(offset: dict[str, object], complaint: str) -> None:
    with pytest.raises(OffsetError, match=complaint):
        offset_from_json(offset)


def test_a_number_has_ten_bytes_at_most() -> None:
    assert varint(b"\xff" * 9 + b"\x01", 0) == ((1 << 64) - 1, 10)
    with pytest.raises(ValueError, match="more than ten bytes"):
        varint(b"\xff" * 11, 0)
