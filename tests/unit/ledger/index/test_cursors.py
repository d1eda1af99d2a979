"""The stored form of a cursor."""

from __future__ import annotations

import pytest

from headgate.base.ack_set import AckSet
from headgate.base.errors import CorruptionError, InputError
from headgate.ledger.index.cursors import (
    CursorState,
    decode_change_of_properties,
    decode_cursor,
    encode_change_of_properties,
    encode_cursor,
)


def made() -> CursorState:
    acks = AckSet(5)
    acks.ack(9)
    acks.ack_messages(11, 0b101, 9)
    return CursorState(1 << 40, 77, "sub-ü", acks, {"key": "välue", "": ""})


def test_there_and_back() -> None:
    back = decode_cursor(encode_cursor(made()))
    assert (back.cursor_id, back.topic_number, back.name) == (1 << 40, 77, "sub-ü")
    assert back.properties == {"key": "välue", "": ""}
    assert list(back.ack_set.acked_ranges()) == [(9, 9)]
    assert list(back.ack_set.partial_entries()) == [(11, 0b101, 9)]


def test_anything_cut_off_or_added_is_damage() -> None:
    data = encode_cursor(made())
    for cut in range(len(data)):
        with pytest.raises(CorruptionError):
            decode_cursor(data[:cut])
    with pytest.raises(CorruptionError, match="ends at byte"):
        decode_cursor(data + b"x")


@pytest.mark.parametrize(
    ("name", "properties", "text"),
    [
        ("n" * 65536, {}, "subscription name has 65536 bytes"),
        ("n", {"k" * 65536: ""}, "property key has 65536 bytes"),
        ("n", {str(at): "" for at in range(65536)}, "65536 properties"),
    ],
)
def test_what_does_not_fit_is_refused(name: str, properties: dict[str, str], text: str) -> None:
    with pytest.raises(InputError, match=text):
        encode_cursor(CursorState(1, 1, name, AckSet(), properties))


def test_a_change_of_properties_is_stored_alone() -> None:
    properties = {"key": "v\u00e4lue", "": ""}
    data = encode_change_of_properties(1 << 40, properties)
    assert decode_change_of_properties(data) == (1 << 40, properties)
    for cut in range(len(data)):
        with pytest.raises(CorruptionError):
            decode_change_of_properties(data[:cut])
    with pytest.raises(CorruptionError, match="end at byte"):
        decode_change_of_properties(data + b"x")
    with pytest.raises(InputError, match="property key has 65536 bytes"):
        encode_change_of_properties(1, {"k" * 65536: ""})
