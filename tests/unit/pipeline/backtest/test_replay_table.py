"""One row for each topic and point."""

from __future__ import annotations

import pytest

from headgate.pipeline.backtest.grid import parse_grid
from headgate.pipeline.backtest.load import outcome_row
from headgate.pipeline.backtest.replay import replay
from headgate.pipeline.backtest.replay_table import replay_table
from headgate.pipeline.backtest.series import topic_loads
from headgate.pipeline.tables.policy_backtest import REPLAY_COLUMNS
from tests.unit.pipeline.backtest.rows import T0, S, sample, table_of

FOREVER = 1 << 62
GRID = parse_grid(
    "[[points]]\n[[points]]\npublish = { bytes_per_s = [400, 600] }\n"
    "[[points]]\nadaptive = { law = 'drain' }\n"
)
TABLE = table_of(
    [
        sample(10 * n, topic=topic, msgs_in=size * n, bytes_in=100 * size * n)
        for topic, size in (("a", 50), ("b", 100))
        for n in range(1, 7)
    ]
)


def test_every_topic_has_a_row_for_every_point() -> None:
    rows = replay_table(TABLE, GRID, 0, FOREVER).to_pylist()
    assert [(row["topic"], row["grid_point"]) for row in rows] == [
        (topic, point) for topic in ("a", "b") for point in range(4)
    ]
    assert {(row["from_ns"], row["to_ns"], row["samples"]) for row in rows} == {
        (T0, T0 + 60 * S, 6)
    }
    assert [row["published_bytes"] for row in rows] == [
        30_000, 24_000, 30_000, 30_000, 60_000, 24_000, 36_000, 60_000,
    ]  # fmt: skip


def test_rows_have_the_start_and_the_step_of_the_replay() -> None:
    known = [1, 2, 3, 200, 201]
    table = table_of([sample(10 * n, bytes_in=1_000 * n, backlog_bytes=700 * n) for n in known])
    rows = replay_table(table, GRID, T0 + 10 * S, FOREVER).to_pylist()
    # Between the third row and the fourth is a hole.
    assert {(row["samples"], row["step_ns"], row["to_ns"] - row["from_ns"]) for row in rows} == {
        (3, 10 * S, 2_000 * S)
    }
    assert {row["backlog_bytes_start"] for row in rows} == {700}


def test_rows_equal_the_outcomes_of_the_laws() -> None:
    loads = [topic.load for topic in topic_loads(TABLE, 0, FOREVER)]
    wanted = [outcome_row(replay(load, point.policy)) for load in loads for point in GRID.points]
    names = [column.name for column in REPLAY_COLUMNS]
    table = replay_table(TABLE, GRID, 0, FOREVER)
    assert table.column_names == names
    first, last = names.index("seconds_over_quota"), names.index("evicted_bytes")
    rows = zip(*(table[name].to_pylist() for name in names[first : last + 1]), strict=True)
    assert [list(row) for row in rows] == [pytest.approx(row) for row in wanted]


def test_no_rows_lie_outside_of_the_range() -> None:
    assert replay_table(TABLE, GRID, T0 + 100 * S, FOREVER).num_rows == 0
    assert replay_table(table_of([]), GRID, 0, FOREVER).num_rows == 0
