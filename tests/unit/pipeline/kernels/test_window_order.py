"""Where windows follow each other, minutes computed alone have the rows of their whole hour."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.pipeline.kernels.coverage_gaps import WINDOW_COLUMNS, coverage
from headgate.pipeline.kernels.intervals import SORT_COLUMNS, SUBJECT_COLUMNS, interval_table
from headgate.pipeline.kernels.window_order import is_steady
from headgate.pipeline.tables.bronze import BATCH_KIND
from headgate.pipeline.tables.columns import HOUR_NS, MINUTE_NS
from headgate.pipeline.tables.intervals import INTERVALS_LOOK_BACK_NS
from headgate.record.fields import Kind
from tests.unit.pipeline.kernels.test_coverage_gaps import HOUR, S, every, windows
from tests.unit.pipeline.play import SITUATIONS, T0, Broker, bronze

START = T0 // HOUR_NS


def steady(table: pa.Table, since_s: float, until_s: float) -> bool:
    start_ns = HOUR * HOUR_NS
    return is_steady(table, start_ns + int(since_s * S), start_ns + int(until_s * S))


def test_windows_without_a_loss_are_steady() -> None:
    table = windows(*every(600, 1_200))
    assert steady(table, 700, 1_300)
    assert steady(pa.concat_tables([table, table]), 700, 1_300), "each arrived twice"
    two = pa.concat_tables([table, windows(*every(600, 1_200), source="b2")])
    assert steady(two, 700, 1_300)
    assert steady(windows(*every(600, 710), *every(730, 1_200)), 700, 1_300), "one was lost"


@pytest.mark.parametrize(
    "ends",
    [
        every(900, 1_200),  # the source begins there
        [*every(600, 710), *every(850, 1_200)],  # two full windows are lost
        [*every(600, 710), *every(1_900, 2_000)],  # telemetry is missing before and after
    ],
)
def test_missing_windows_are_not_steady(ends: list[float]) -> None:
    assert not steady(windows(*ends), 700, 1_300)
    assert not steady(pa.concat_tables([windows(*every(600, 1_200), source="b2")] * 1
                                       + [windows(*ends)]), 700, 1_300)  # fmt: skip


def test_a_source_that_ended_before_does_not_matter() -> None:
    table = pa.concat_tables([windows(*every(600, 1_200)), windows(*every(0, 60), source="b2")])
    assert steady(table, 700, 1_300)


def test_a_restart_and_a_window_that_is_too_long_are_not_steady() -> None:
    table = windows(*every(600, 1_200))
    boots = ["boot-1"] * 30 + ["boot-2"] * (table.num_rows - 30)
    restarted = table.set_column(2, "boot_id", pa.array(boots))
    assert not steady(restarted, 700, 1_300)
    assert steady(restarted, 960, 1_300)
    assert not steady(windows(*range(600, 1_200, 90), window_s=90), 700, 1_300)
    assert not steady(windows(*every(600, 1_200), window_s=15), 700, 1_300), "they overlap"


def test_a_window_of_several_messages_is_one() -> None:
    table = windows(*every(600, 1_200))
    more = table.set_column(3, "seq", pc.add(pc.multiply(table["seq"], 2), 1))
    table = table.set_column(3, "seq", pc.multiply(table["seq"], 2))
    assert steady(pa.concat_tables([table, more]), 700, 1_300)


def played() -> list[bytes]:
    """Sixteen minutes of a broker. A topic is unloaded after four minutes and loaded after nine;
    another one is new after six."""
    first = Broker(SITUATIONS[:2])
    moved = Broker(SITUATIONS[2:3])
    messages = []
    for window in range(16 * 6):
        messages.append(first.window(10))
        if window < 4 * 6 or window > 9 * 6:
            messages.append(moved.window(10))
        if window == 9 * 6:
            moved = Broker(SITUATIONS[2:3], start_ns=first.now_ns, backlogs={("x", "y"): 1})
            moved.seq = first.seq
        if window == 6 * 6:
            new = Broker(SITUATIONS[3:4], start_ns=first.now_ns)
            new.seq = first.seq
        if window > 6 * 6:
            messages.append(new.window(10))
    return [m for part in messages for m in part]


ROWS = bronze(played())


def computed(rows: pa.Table, kind: Kind, minutes: Collection[int]) -> list[dict[str, Any]]:
    arrived = coverage(ROWS.filter(pc.equal(ROWS["kind"], BATCH_KIND)).select(WINDOW_COLUMNS),
                       [START])  # fmt: skip
    of_kind = rows.filter(pc.equal(rows["kind"], kind.value))
    ordered = of_kind.sort_by([(name, "ascending") for name in SORT_COLUMNS])
    found: list[dict[str, Any]] = interval_table(ordered, kind, [START], arrived).to_pylist()
    return [row for row in found if row["minute"].minute in minutes]


def input_of(since_ns: int, until_ns: int) -> pa.Table:
    """The rows that ``derived.intervals`` reads for some minutes."""
    ends = ROWS["window_end_ns"]
    near = ROWS.filter(pc.and_(pc.greater(ends, since_ns), pc.less_equal(ends, until_ns)))
    began = near.filter(pc.greater_equal(near["counting_since_ns"], since_ns))
    keys = {tuple(row.values()) for row in began.select(SUBJECT_COLUMNS).to_pylist()}
    also = [tuple(row.values()) in keys for row in ROWS.select(SUBJECT_COLUMNS).to_pylist()]
    return pa.concat_tables([near, ROWS.filter(pa.array(also))])


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 13), st.integers(0, 3), st.sampled_from(tuple(Kind)[:2]))
def test_minutes_alone_have_the_rows_of_their_hour(first: int, more: int, kind: Kind) -> None:
    minutes = range(first, first + more + 1)
    since_ns = T0 + first * MINUTE_NS - INTERVALS_LOOK_BACK_NS
    until_ns = T0 + minutes.stop * MINUTE_NS + INTERVALS_LOOK_BACK_NS
    told = ROWS.filter(pc.equal(ROWS["kind"], BATCH_KIND)).select(WINDOW_COLUMNS)
    assert first < 3 or is_steady(told, since_ns, until_ns)
    alone = computed(input_of(since_ns, until_ns), kind, minutes)
    assert alone == computed(ROWS, kind, minutes)
    assert alone
