"""Minutes of topics with given levels, as input of the quota kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from headgate.pipeline.kernels.quota_usage import INPUT_COLUMNS
from headgate.pipeline.tables.arrow_types import table_arrow_schema
from headgate.pipeline.tables.intervals import INTERVALS, TOPIC_ORDER
from tests.unit.pipeline.play import T0, S

MINUTE = 60 * S
TOPIC = "persistent://acme/ns/t"

Row = dict[str, Any]


def rows_of(levels: Sequence[int | None], *, first: int = 0, **facts: Any) -> list[Row]:
    """A row for each minute from the ``first`` after :data:`T0` on, with that backlog in bytes.

    Other columns are given by name: a value for all, or a mapping from a minute's place to one.
    """
    found: list[Row] = []
    for place, level in enumerate(levels):
        from_ns = T0 + (first + place) * MINUTE
        row: Row = {
            **dict.fromkeys(INPUT_COLUMNS),
            "cluster": "demo",
            "topic": TOPIC,
            "incarnation": 1,
            "from_ns": from_ns,
            "to_ns": from_ns + MINUTE,
            "minute": datetime.fromtimestamp(from_ns // S, UTC),
            "backlog_bytes": level,
        }
        for name, value in facts.items():
            row[name] = value.get(place) if isinstance(value, Mapping) else value
        found.append(row)
    return found


def table_of(rows: Sequence[Row]) -> pa.Table:
    """Rows as the kernels get them."""
    schema = table_arrow_schema(INTERVALS)
    columns = pa.schema([schema.field(name) for name in INPUT_COLUMNS])
    table = pa.Table.from_pylist(list(rows), schema=columns)
    return table.sort_by([(name, "ascending") for name in TOPIC_ORDER])
