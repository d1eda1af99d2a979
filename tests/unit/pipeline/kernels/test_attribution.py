"""Judgements of many subscriptions from sorted minutes."""

from __future__ import annotations

import pyarrow as pa

from headgate.pipeline.kernels.attribution import (
    INPUT_COLUMNS,
    attribution_table,
    range_table,
)
from headgate.pipeline.tables.arrow_types import table_arrow_schema
from headgate.pipeline.tables.attribution import ATTRIBUTION
from headgate.pipeline.tables.columns import HOUR_NS
from headgate.pipeline.tables.intervals import INTERVALS
from tests.unit.pipeline.play import SITUATIONS, T0, Broker, S, minutes, play

HOUR = T0 // HOUR_NS


def table(messages: list[bytes]) -> pa.Table:
    rows = minutes(messages)
    rows.sort(key=lambda r: (r["topic"], r["subscription"], r["minute"]))
    return pa.Table.from_pylist(rows, schema=table_arrow_schema(INTERVALS)).select(INPUT_COLUMNS)


def test_one_row_for_each_minute_of_the_wanted_hours() -> None:
    player = Broker(start_ns=T0 + 3_500 * S)
    both = table([m for _ in range(200) for m in player.window()])
    for hours, count in (({HOUR}, 2), ({HOUR + 1}, 2), ({HOUR, HOUR + 1}, 4), (set(), 0)):
        found = attribution_table(both, hours)
        assert found.schema == table_arrow_schema(ATTRIBUTION)
        assert found.num_rows == count * len(SITUATIONS)
    wanted = {(s.topic, s.subscription): s.verdict for s in SITUATIONS}
    for row in attribution_table(both, {HOUR, HOUR + 1}).to_pylist():
        assert row["verdict"] == wanted[row["topic"], row["subscription"]]
        assert row["minute"].hour == row["hour"]


def test_a_range_is_judged_from_its_own_minutes() -> None:
    found = range_table(table(play(300)), T0 + 60 * S, T0 + 180 * S).to_pylist()
    assert len(found) == len(SITUATIONS)
    slow = next(row for row in found if row["topic"].endswith("/slow"))
    assert slow["growth_messages"] == 400 * 120
    assert (slow["from_ns"], slow["to_ns"]) == (T0 + 60 * S, T0 + 180 * S)


def test_a_range_without_telemetry_is_empty() -> None:
    assert range_table(table(play(60)), T0 + 600 * S, T0 + 900 * S).num_rows == 0
