"""The text of KeyValue definitions in the admin API."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest

from headgate.base.schema_types import SchemaType
from headgate.schema import key_value
from headgate.schema.definition import Definition
from headgate.schema.errors import InvalidSchemaError
from headgate.schema.key_value import (
    TEXT_CHARACTERS_MAX,
    key_value_as_text,
    key_value_from_text,
    split_key_value,
)

TYPES = {"key.schema.type": "STRING", "value.schema.type": "AVRO"}


def test_text_and_bytes() -> None:
    text = '{"key":"","value":{"type":"long"}}'
    pair = Definition(SchemaType.KEY_VALUE, key_value_from_text(text), TYPES)
    assert pair.data == b'\0\0\0\0\0\0\0\x0f{"type":"long"}'
    assert key_value_as_text(pair) == text
    key, value = split_key_value(pair)
    assert (key.type, key.data) == (SchemaType.STRING, b"")
    assert (value.type, value.data) == (SchemaType.AVRO, b'{"type":"long"}')
    plain = Definition(SchemaType.KEY_VALUE, key_value_from_text('{"key":"","value":""}'))
    assert [part.type for part in split_key_value(plain)] == [SchemaType.NONE] * 2
    assert json.loads(key_value_as_text(plain)) == {"key": "", "value": ""}
    absent = Definition(SchemaType.KEY_VALUE, b"\xff\xff\xff\xff" + pair.data[4:], TYPES)
    assert split_key_value(absent)[0].data == b""


@pytest.mark.parametrize("text", ["", "[]", "7", '{"key":""}'])
def test_text_that_is_none(text: str) -> None:
    with pytest.raises(InvalidSchemaError):
        key_value_from_text(text)


def test_a_text_that_is_too_long_for_any_definition_is_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = '{"key":"","value":[' + " " * (TEXT_CHARACTERS_MAX - 21) + "]}"
    assert len(text) == TEXT_CHARACTERS_MAX
    assert key_value_from_text(text) == bytes(4) + b"\0\0\0\2[]"
    monkeypatch.setattr(key_value, "_json", None)
    with pytest.raises(InvalidSchemaError, match=f"{TEXT_CHARACTERS_MAX} are allowed"):
        key_value_from_text(text + " ")


def test_parts_that_nest_deep_are_written_or_refused() -> None:
    for depth in range(900, 1_010):  # somewhere there the decoder and the encoder give up
        with suppress(InvalidSchemaError):
            key_value_from_text('{"key":' + "[" * depth + "]" * depth + ',"value":1}')


@pytest.mark.parametrize("data", [b"", b"\0\0\0\1x\0\0", bytes(9), b"\x7f" * 8])
def test_bytes_that_are_none(data: bytes) -> None:
    with pytest.raises(InvalidSchemaError):
        split_key_value(Definition(SchemaType.KEY_VALUE, data))


def test_an_unknown_type() -> None:
    bad = Definition(SchemaType.KEY_VALUE, bytes(8), {"key.schema.type": "NONSENSE"})
    with pytest.raises(InvalidSchemaError, match="NONSENSE"):
        split_key_value(bad)
