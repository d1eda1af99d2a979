"""Telemetry rows of topics, as the backtest reads them from bronze."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from headgate.base.units import NS_PER_S
from headgate.pipeline.backtest.series import INPUT_COLUMNS, SORT_COLUMNS, SUMS
from headgate.pipeline.tables.arrow_types import arrow_schema
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES
from headgate.pipeline.tables.columns import LONG, TableColumn

S: Final = NS_PER_S
T0: Final = 1_763_719_200 * S
"""A full hour."""

_TYPES: Final = {column.name: column for column in BRONZE_SAMPLES.columns}
_SCHEMA: Final = arrow_schema(
    tuple(_TYPES.get(name, TableColumn(name, LONG)) for name in INPUT_COLUMNS)
)


def sample(second: float, **values: Any) -> dict[str, Any]:
    """A row that covers the ten seconds up to then, counting from :data:`T0`."""
    to_ns = T0 + round(second * S)
    return {
        "cluster": "c",
        "topic": "persistent://public/default/t",
        "incarnation": 1,
        "source": "s",
        "boot_id": "b",
        "counting_since_ns": T0,
        "seq": round(second),
        "row": 0,
        "window_start_ns": to_ns - 10 * S,
        "window_end_ns": to_ns,
        "clock_step": False,
        "covered_from_ns": to_ns - 10 * S,
        "covered_to_ns": to_ns,
        "msgs_in": 0,
        "bytes_in": 0,
        "backlog_bytes": 0,
        **dict.fromkeys(SUMS, 0),
    } | values


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    """Rows in the order in which a job hands them over."""
    table = pa.Table.from_pylist(rows, schema=_SCHEMA)
    return table.sort_by([(name, "ascending") for name in SORT_COLUMNS])
