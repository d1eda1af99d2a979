"""Replays every topic of an Arrow table under every point of a grid."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from headgate.pipeline.backtest.grid import Grid
from headgate.pipeline.backtest.kernel import replay_points
from headgate.pipeline.backtest.kernel_points import point_rows
from headgate.pipeline.backtest.load import OUTCOME_COLUMNS
from headgate.pipeline.backtest.series import topic_loads
from headgate.pipeline.kernels.array_types import Doubles
from headgate.pipeline.tables.arrow_types import arrow_schema, conform
from headgate.pipeline.tables.intervals import TOPIC_KEY
from headgate.pipeline.tables.policy_backtest import REPLAY_COLUMNS

_LOAD_COLUMNS: Final = {
    "from_ns": "from_ns",
    "to_ns": "to_ns",
    "step_ns": "step_ns",
    "censored_share": "censored_share",
    "drain_known_share": "drain_known_share",
    "backlog_bytes_start": "backlog_bytes",
}
"""Columns that are the same under every point, with the field of the load."""


def replay_table(table: pa.Table, grid: Grid, since_ns: int, until_ns: int) -> pa.Table:
    """The outcome of every topic under every point, by topic and point.

    ``table`` is the input of :func:`headgate.pipeline.backtest.series.topic_loads`. Returns
    columns :data:`headgate.pipeline.tables.policy_backtest.REPLAY_COLUMNS`.

    Raises:
        InputError: the interval of a point is too short for a replay.
    """
    schema = arrow_schema(REPLAY_COLUMNS)
    found = list(topic_loads(table, since_ns, until_ns, grid.step_ns))
    if not found:
        return schema.empty_table()
    policies = [point.policy for point in grid.points]
    points: dict[int, Doubles] = {}
    outcomes = []
    for topic in found:
        step_ns = topic.load.step_ns
        if step_ns not in points:
            points[step_ns] = point_rows(policies, step_ns, grid.resolution)
        outcomes.append(replay_points(topic.load, points[step_ns]))
    count = len(grid.points)
    keys = table.select(TOPIC_KEY).take(pa.array([topic.first_row for topic in found]))
    place = pa.array(np.repeat(np.arange(len(found)), count))
    values = np.concatenate(outcomes)
    columns: dict[str, Any] = {
        name: keys.column(name).take(place).combine_chunks() for name in TOPIC_KEY
    }
    for name, field in _LOAD_COLUMNS.items():
        columns[name] = pa.array(np.repeat([getattr(topic.load, field) for topic in found], count))
    columns["samples"] = pa.array(np.repeat([len(topic.load.steps) for topic in found], count))
    columns["grid_point"] = pa.array(
        np.tile([point.number for point in grid.points], len(found)).astype(np.int32)
    )
    columns |= {name: pa.array(values[:, i]) for i, name in enumerate(OUTCOME_COLUMNS)}
    return conform(columns, schema, len(found) * count)
