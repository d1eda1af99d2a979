"""What a definition takes."""

from __future__ import annotations

from headgate.base.schema_types import SchemaType
from headgate.schema.definition import Definition


def test_the_size_counts_properties() -> None:
    assert Definition(SchemaType.AVRO, b"12345", {"ab": "c"}).size_bytes == 8
    assert Definition(SchemaType.STRING).size_bytes == 0
