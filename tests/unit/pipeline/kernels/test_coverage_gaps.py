"""Coverage gaps across the edge of an hour, and the hours that depend on them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.pipeline.kernels.coverage_gaps import (
    WINDOW_COLUMNS,
    CoverageGap,
    all_anchored,
    coverage,
    coverage_gaps,
    hours_across,
)
from headgate.pipeline.tables.arrow_types import table_arrow_schema
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES
from headgate.pipeline.tables.columns import DAY_HOURS, HOUR_NS
from headgate.pipeline.tables.intervals import GAP_NS_MAX
from headgate.record.fields import FULL_PERIOD_NS

S = 1_000_000_000
SCHEMA = pa.schema([table_arrow_schema(BRONZE_SAMPLES).field(name) for name in WINDOW_COLUMNS])
HOUR = 489_922


def windows(
    *ends_s: float, source: str = "b1", cluster: str = "c", window_s: float = 10
) -> pa.Table:
    """Windows of one boot, by their ends in seconds since :data:`HOUR`; none is its first."""
    ends = [int(HOUR * HOUR_NS + end * S) for end in ends_s]
    count = len(ends)
    columns = {
        "cluster": [cluster] * count,
        "source": [source] * count,
        "boot_id": ["boot-1"] * count,
        "seq": list(range(1, count + 1)),
        "window_start_ns": [int(end - window_s * S) for end in ends],
        "window_end_ns": ends,
    }
    return pa.table(columns, SCHEMA)


def every(first_s: int, last_s: int) -> list[float]:
    """Ends of windows of ten seconds, without a loss."""
    return [float(end) for end in range(first_s, last_s + 1, 10)]


def spans(found: list[CoverageGap]) -> list[tuple[float, float]]:
    return [((s.from_ns / S) - HOUR * 3_600, (s.until_ns / S) - HOUR * 3_600) for s in found]


def test_a_source_that_arrives_each_minute_has_no_gap() -> None:
    assert coverage_gaps(windows(*every(3_000, 7_300))) == []
    # A full window that is lost alone has another within two minutes.
    assert coverage_gaps(windows(*every(3_000, 3_530), *every(3_550, 7_300))) == []


def test_a_gap_lies_between_full_windows() -> None:
    lost = windows(*every(3_000, 3_310), *every(3_910, 7_200))
    # 54:20 to 65:00 is lost, and what follows is no full window.
    assert spans(coverage_gaps(lost)) == [(3_300, 3_960)]
    assert [list(s.hours) for s in coverage_gaps(lost)] == [[HOUR, HOUR + 1]]
    # Within an hour nothing depends on it.
    assert coverage_gaps(windows(*every(3_000, 3_010), *every(3_400, 3_600))) == []
    (over_midday,) = coverage_gaps(windows(3_540, 4 * 3_600 + 60))
    assert list(over_midday.hours) == [HOUR + ahead for ahead in range(5)]


def test_the_first_window_of_a_boot_is_full() -> None:
    first = windows(3_310)
    first = first.set_column(3, "seq", pa.array([0]))
    told = pa.concat_tables([first, windows(3_320, 3_910, *every(3_920, 7_200))])
    assert spans(coverage_gaps(told)) == [(3_310, 3_960)]


def test_without_full_windows_the_first_and_last_windows_bound_the_gap() -> None:
    assert spans(coverage_gaps(windows(3_540, 3_550, 3_720 + 10))) == [(3_540, 3_730)]
    assert spans(coverage_gaps(windows(3_410, 3_720))) == [(3_410, 3_720)]
    assert coverage_gaps(windows(3_410, 3_730)) == []


def test_a_day_is_bridged_and_no_more() -> None:
    day_s = GAP_NS_MAX // S
    assert spans(coverage_gaps(windows(3_540, 3_540 + day_s))) == [(3_540, 3_540 + day_s)]
    assert coverage_gaps(windows(3_540, 3_600 + day_s)) == []
    # Windows that are not full are looked for a day around those that are.
    told = windows(3_540, 3_710, 3_600 + 2 * day_s)
    assert spans(coverage_gaps(told)) == [(3_540, 3_710)]


def test_scrapes_and_other_clusters_do_not_count() -> None:
    assert coverage_gaps(windows(*range(3_000, 9_000, 300), window_s=0)) == []
    own = windows(3_540, 3_960)
    other = windows(*every(3_540, 3_960), cluster="d")
    found = coverage_gaps(pa.concat_tables([own, other]))
    assert [(s.cluster, s.source) for s in found] == [("c", "b1")]


@pytest.mark.parametrize(
    ("new_s", "hours"), [(3_540, {0, 1}), (3_700, {0, 1}), (3_960, {0, 1}), (3_970, set())]
)
def test_hours_follow_from_both_ends_of_a_gap_and_windows_between(
    new_s: int, hours: set[int]
) -> None:
    found = coverage_gaps(windows(3_540, 3_700, 3_960))
    assert hours_across(found, windows(new_s)) == {HOUR + ahead for ahead in hours}
    assert hours_across(found, windows(new_s, source="b2")) == set()
    assert hours_across(found, windows(new_s, cluster="d")) == set()


def test_look_back_ends_at_a_full_window_of_every_source() -> None:
    edge_ns, since_ns = (HOUR + 1) * HOUR_NS, (HOUR + 1) * HOUR_NS - 120 * S
    assert all_anchored(windows(*every(3_500, 3_700)), since_ns, edge_ns)
    assert all_anchored(windows(3_000), since_ns, edge_ns)
    assert not all_anchored(windows(3_480, 3_550, 3_610), since_ns, edge_ns)
    both = pa.concat_tables([windows(*every(3_500, 3_700)), windows(3_700, source="b2")])
    assert not all_anchored(both, since_ns, edge_ns)
    assert all_anchored(windows(3_700, window_s=0), since_ns, edge_ns)


def test_the_last_window_of_a_boot_is_that_of_the_hour_s_input() -> None:
    told = windows(*every(3_000, 3_310), *every(3_910, 7_800))
    found = coverage(told, {HOUR, HOUR + 1, HOUR + 2})

    def last_s(hour: int, boot: str = "boot-1") -> float:
        return found.last_window(hour, "b1", boot) / S - HOUR * 3_600

    assert (last_s(HOUR), last_s(HOUR + 1), last_s(HOUR + 2)) == (3_960, 7_320, 7_800)
    assert found.last_window(HOUR, "b1", "another") == 0
    assert coverage(told, {HOUR + 2}).gaps == ()


@settings(max_examples=200)
@given(st.sets(st.integers(0, 60 * 60), min_size=1, max_size=40), st.integers(-2, 62))
def test_gaps_of_an_hour_are_independent_of_windows_beyond_a_day(
    minutes: set[int], hour: int
) -> None:
    ends_s = sorted(minute * 60.0 - 30 * (minute % 2) for minute in minutes)
    near = [e for e in ends_s if abs(e // 3_600 - hour) <= DAY_HOURS]
    of_all, of_near = (
        {s for s in coverage_gaps(windows(*some)) if HOUR + hour in s.hours}
        for some in (ends_s, near)
    )
    assert of_near == of_all
    for gap in of_all:
        assert 2 * FULL_PERIOD_NS < gap.until_ns - gap.from_ns <= GAP_NS_MAX
