"""The field tables keep their promises, and the committed .proto says the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headgate.record.fields import (
    CELL_NAMES,
    FIELDS,
    STATE_CELLS,
    STATE_FIELD_NAMES,
    STATE_NAMES,
    FieldType,
    Kind,
    Nature,
    cell_name,
    field_names,
)

PROTO = Path(__file__).parents[3] / "proto" / "headgate_record.proto"


@pytest.mark.parametrize("kind", list(Kind))
def test_numbers_and_names_are_unique_and_explained(kind: Kind) -> None:
    fields = FIELDS[kind]
    assert len({f.number for f in fields}) == len(fields)
    assert len({f.name for f in fields}) == len(fields)
    for field in fields:
        assert field.meaning.endswith(".")
        if field.nature is Nature.CUMULATIVE:
            assert field.type is FieldType.INT64, field.name


def test_a_name_has_one_type_in_every_kind() -> None:
    types: dict[str, FieldType] = {}
    for fields in FIELDS.values():
        for field in fields:
            assert types.setdefault(field.name, field.type) is field.type


def test_cells_split_only_throttled_states() -> None:
    assert len(STATE_CELLS) == len(set(CELL_NAMES)) == 12 + 3 * 2 * 2
    assert {state for state, _, _ in STATE_CELLS} == set(STATE_NAMES)
    for state, dimension, consumer in STATE_CELLS:
        assert bool(dimension) == bool(consumer) == state.startswith("throttled_")
    assert cell_name("throttled_topic", "bytes", "busy") in CELL_NAMES
    assert "state_caught_up_ns" in STATE_FIELD_NAMES


def test_field_names_by_nature() -> None:
    assert field_names(Kind.SUBSCRIPTION, Nature.IDENTITY) == (
        "topic",
        "partition",
        "incarnation",
        "subscription",
    )
    assert set(field_names(Kind.EVENT)) >= {"time_ns", "event", "inputs", "outcome"}


def test_committed_proto_has_every_field() -> None:
    text = PROTO.read_text()
    for kind, fields in FIELDS.items():
        (body,) = re.findall(rf"message {kind.value.capitalize()}Rows \{{(.*?)\n\}}", text, re.S)
        lines = dict(re.findall(r"\w+Column (\w+) = (\d+);", body))
        assert lines == {f.name: str(f.number) for f in fields}
