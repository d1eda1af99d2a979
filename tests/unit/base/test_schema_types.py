"""Names and groups of schema types."""

from __future__ import annotations

from headgate.base.schema_types import (
    IN_AVRO,
    NAMES,
    PRIMITIVES,
    TYPES,
    AutoUpdateStrategy,
    SchemaType,
    type_name,
)


def test_every_type_has_a_name_and_one_group_at_most() -> None:
    assert set(TYPES.values()) == set(SchemaType)
    assert NAMES[SchemaType.BOOL] == "BOOLEAN"
    assert not IN_AVRO & PRIMITIVES
    others = set(SchemaType) - IN_AVRO - PRIMITIVES
    assert {each.name for each in others} == {
        "NONE", "STRING", "KEY_VALUE", "PROTOBUF_NATIVE", "AUTO_CONSUME", "EXTERNAL",
    }  # fmt: skip
    assert TYPES["BYTES"] is SchemaType.NONE
    assert type_name(SchemaType.AVRO) == "AVRO"
    assert type_name(99) == "99"


def test_older_names_have_newer_ones() -> None:
    assert all(each.strategy for each in AutoUpdateStrategy)
