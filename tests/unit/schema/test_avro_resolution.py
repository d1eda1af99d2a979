"""Which data a reader's Avro schema reads, by the rules of Avro's Java library."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.schema.avro import parse_avro
from headgate.schema.avro_resolution import COST_MAX, misfit
from headgate.schema.errors import InvalidSchemaError
from tests.unit.schema.running import counted, outcome
from tests.unit.schema.test_avro import record


def why(reader: Any, writer: Any) -> str:
    parsed = [outcome(parse_avro(json.dumps(each).encode())) for each in (reader, writer)]
    return outcome(misfit(parsed[0], parsed[1]))


def field(name: str, type_: Any = "int", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, **more}


A, B = field("a"), field("b")
RED = {"type": "enum", "name": "Color", "symbols": ["RED"]}
FOUR = {"type": "fixed", "name": "Key", "size": 4}
LIST = record(field("next", ["null", "Node"], default=None), A, name="Node")
CASES = [
    # reader, writer, whether it reads
    (record(A), record(A, B), True),
    (record(A, B), record(A), False),
    (record(A, field("b", default=0)), record(A), True),
    (record(A, field("b", ["null", "int"], default=None)), record(A), True),
    (record(A, field("b", ["null", "int"])), record(A), False),
    (record(A, name="Other"), record(A), True),
    (record(field("z", aliases=["a"])), record(A), True),
    (record(field("z", aliases=["a"]), name="N"), record(A, name="M"), False),
    (record(field("z", aliases=["a"]), name="N", aliases=["M"]), record(A, name="M"), True),
    ("long", "int", True),
    ("int", "long", False),
    ("double", "float", True),
    ("float", "double", False),
    ("string", "bytes", True),
    ("bytes", "string", True),
    ("string", "int", False),
    ("null", "int", False),
    ({"type": "array", "items": "long"}, {"type": "array", "items": "int"}, True),
    ({"type": "array", "items": "int"}, {"type": "array", "items": "long"}, False),
    ({"type": "map", "values": "string"}, {"type": "map", "values": "int"}, False),
    ({"type": "map", "values": "int"}, {"type": "array", "items": "int"}, False),
    (RED, RED | {"symbols": ["RED", "BLUE"]}, True),
    (RED, RED | {"name": "Colour"}, False),
    (RED | {"aliases": ["Colour"]}, RED | {"name": "Colour"}, True),
    (FOUR, FOUR, True),
    (FOUR, FOUR | {"size": 5}, False),
    (FOUR, FOUR | {"name": "Clef"}, False),
    (["null", "int"], "int", True),
    (["null", "int"], ["int"], True),
    (["null", "long"], ["null", "int"], True),
    ("int", ["null", "int"], False),
    ("int", ["int"], True),
    (["null", "string"], "int", False),
    (["null", RED], RED, True),
    (["null", RED], RED | {"name": "Colour"}, False),
    (["null", record(A)], record(A, B), True),
    (["null", record(A, B)], record(A), False),
    (["null", record(A, name="x.R")], record(A, name="R"), True),
    (["null", record(B, name="R"), record(A, name="S")], record(A, name="T"), True),
    (["null", record(field("a", "string"), name="S")], record(A, name="T"), False),
    (["null", record(B, name="R"), record(A, name="S")], record(A, name="R"), False),
    (RED | {"namespace": "x"}, RED | {"namespace": "y"}, True),
    (["null", RED | {"namespace": "x"}], RED | {"namespace": "y"}, False),
    (["null", RED | {"namespace": "x"}], ["null", RED | {"namespace": "y"}], True),
    (["null", RED | {"namespace": "x"}], [RED | {"namespace": "y"}, "null"], False),
    (record(A, field("b", aliases=["a"])), record(A, B), True),
    (LIST, LIST, True),
    (LIST, record(field("next", ["null", "Node"], default=None), B, name="Node"), False),
    (record(field("r", record(A, name="I"))), record(field("r", record(B, name="I"))), False),
]


@pytest.mark.parametrize(("reader", "writer", "reads"), CASES, ids=str)
def test_what_a_reader_reads(reader: Any, writer: Any, reads: bool) -> None:
    found = why(reader, writer)
    assert (not found) == reads, found


def test_the_reason_says_where() -> None:
    inner = record(A, name="I")
    reader = record(field("r", {"type": "array", "items": record(A, B, name="I")}))
    writer = record(field("r", {"type": "array", "items": inner}))
    assert why(reader, writer) == (
        "r: field 'b' of the reader has no default, and the writer lacks it"
    )
    assert why("int", "string") == "string cannot be read as int"
    assert why(["null", "int"], "string") == "no branch of the reader's union takes string"


def test_recursion_without_end_in_a_union() -> None:
    """Each record contains a union with the other, so each choice of a branch asks for the next."""
    chain = [
        record(
            field("next", ["null", f"R{n + 1}"] if n < 299 else ["null", "int"], default=None),
            name=f"R{n}",
        )
        for n in range(299, -1, -1)
    ]
    reader = record(*(field(f"f{i}", each, default=None) for i, each in enumerate(chain)))
    text = json.dumps(reader)
    writer = json.loads(text.replace('"R', '"S'))
    assert why(reader, writer) == ""


def test_a_comparison_has_an_end() -> None:
    """Unions of thousands of records, each of which is compared with each."""

    def union(prefix: str) -> bytes:
        branches = [record(A, B, field("c", default=1), name=f"{prefix}{n}") for n in range(500)]
        branches += [record(field(f"x{n}"), name=f"{prefix}x{n}") for n in range(100)]
        return json.dumps(["null", *branches]).encode()

    reader, writer = (outcome(parse_avro(union(prefix))) for prefix in ("a", "b"))
    with pytest.raises(InvalidSchemaError, match="too complex"):
        counted(misfit(reader, writer))
    assert COST_MAX < 1_000_000


def test_the_largest_definitions_of_people_are_compared() -> None:
    fields = [field(f"some_column_{n}", ["null", "string"], default=None) for n in range(1_500)]
    value = record(*fields)
    parsed = outcome(parse_avro(json.dumps(value).encode()))
    why_not, units = counted(misfit(parsed, parsed))
    assert why_not == ""
    assert units < 20_000
