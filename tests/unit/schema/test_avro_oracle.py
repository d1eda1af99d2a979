"""What the law lets a reader read, an independent library of Avro does read."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
from fastavro.utils import generate_many
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.schema.avro import parse_avro
from headgate.schema.avro_resolution import misfit
from tests.unit.schema.running import outcome

PRIMITIVES = st.sampled_from(["null", "boolean", "int", "long", "float", "double", "bytes"])
DEFAULTS: dict[str, Any] = {
    "null": None, "boolean": True, "int": 1, "long": 1, "float": 1.5, "double": 1.5, "bytes": "x",
}  # fmt: skip
TYPES = st.recursive(
    PRIMITIVES,
    lambda inner: (
        inner.map(lambda t: {"type": "array", "items": t})
        | inner.map(lambda t: {"type": "map", "values": t})
        | st.lists(PRIMITIVES, min_size=1, max_size=3, unique=True)
    ),
    max_leaves=3,
)


@st.composite
def records(draw: st.DrawFn) -> dict[str, Any]:
    """A record of up to four fields, some of which have a default."""
    fields = []
    for name in draw(st.lists(st.sampled_from("abcd"), max_size=4, unique=True)):
        type_ = draw(TYPES)
        field = {"name": name, "type": type_}
        if isinstance(type_, str) and draw(st.booleans()):
            field["default"] = DEFAULTS[type_]
        fields.append(field)
    return {"type": "record", "name": "R", "fields": fields}


@settings(deadline=None)
@given(records(), records())
def test_what_fits_is_read(reader: dict[str, Any], writer: dict[str, Any]) -> None:
    ours, theirs = (outcome(parse_avro(json.dumps(each).encode())) for each in (reader, writer))
    if outcome(misfit(ours, theirs)):
        return
    for datum in generate_many(fastavro.parse_schema(writer), 5):
        written = io.BytesIO()
        fastavro.schemaless_writer(written, fastavro.parse_schema(writer), datum)
        written.seek(0)
        found = fastavro.schemaless_reader(
            written, fastavro.parse_schema(writer), fastavro.parse_schema(reader)
        )
        assert isinstance(found, dict)
        assert set(found) == {field["name"] for field in reader["fields"]}
