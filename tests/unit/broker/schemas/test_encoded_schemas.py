"""Encoded schemas of answers: the same as the generated class makes, in slices, and bounded."""

from __future__ import annotations

from typing import cast

from headgate.base.names import parse_topic
from headgate.broker.schemas.encoded_schemas import (
    KEPT_BYTES_MAX,
    PIECE_PROPERTIES,
    EncodedSchemas,
)
from headgate.metadata.catalog import Catalog
from headgate.metadata.rows import SchemaRow
from headgate.wire.messages import Schema

NAME = parse_topic("public/default/t")


class OwnNames:
    """The part of a catalog that encoding uses."""

    def own_name(self, name: object) -> str:
        return str(name)


def schemas() -> EncodedSchemas:
    return EncodedSchemas(cast(Catalog, OwnNames()))


def encode(made: EncodedSchemas, row: SchemaRow) -> tuple[bytes, list[int]]:
    """The encoded schema, and the units of each slice."""
    steps, units = made.encode(NAME, row), []
    while True:
        try:
            units.append(next(steps))
        except StopIteration as end:
            return end.value, units


def row_of(properties_count: int, *, version: int = 0, data: bytes = b"d") -> SchemaRow:
    properties = {f"k{number}": "é" * (number % 3) for number in range(properties_count)}
    return SchemaRow(type=2, data=data, properties=properties, version=version)


def test_it_is_the_message_in_slices() -> None:
    for count in (0, 1, PIECE_PROPERTIES, PIECE_PROPERTIES + 1, 20_000):
        row = row_of(count)
        encoded, units = encode(schemas(), row)
        whole = Schema(name="public/default/t", type=row.type, schema_data=row.data)
        for key, value in row.properties.items():
            whole.properties.add(key=key, value=value)
        assert Schema.FromString(encoded) == whole
        assert len(units) == -(-count // PIECE_PROPERTIES)
        assert max(units, default=0) <= 16


def test_a_version_is_encoded_once() -> None:
    made, row = schemas(), row_of(1_000)
    assert made.kept(NAME, row) is None
    encoded, _ = encode(made, row)
    assert made.kept(NAME, row) is encoded
    assert encode(made, row) == (encoded, [])  # another that waited for its turn
    assert made.kept(NAME, row_of(1_000)) is None  # the version was deleted and added again


def test_what_is_kept_is_bounded() -> None:
    made = schemas()
    rows = [row_of(0, version=version, data=bytes(100_000)) for version in range(60)]
    for row in rows:
        encode(made, row)
        assert made._kept_bytes == sum(len(kept) for _, kept in made._kept.values())
        assert made._kept_bytes <= KEPT_BYTES_MAX
        made.kept(NAME, rows[0])  # asked for all the time
    assert made.kept(NAME, rows[-1]) is not None
    assert made.kept(NAME, rows[0]) is not None  # it was asked for all the time
    assert made.kept(NAME, rows[1]) is None
    again = row_of(0, version=59)
    encode(made, again)
    assert made._kept_bytes == sum(len(kept) for _, kept in made._kept.values())
