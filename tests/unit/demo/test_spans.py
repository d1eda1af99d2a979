"""Sums of looks over spans of time."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from headgate.demo.spans import SNAPSHOT_PERIOD_S, Span, closest, mean_over_time, spans


class _Snapshot(NamedTuple):
    at_s: float


def _snapshots(seconds: float) -> list[_Snapshot]:
    return [
        _Snapshot(1_000 + n * SNAPSHOT_PERIOD_S)
        for n in range(round(seconds / SNAPSHOT_PERIOD_S) + 1)
    ]


def test_spans_of_a_minute_take_five_seconds() -> None:
    found = spans(_snapshots(60), 60)
    assert [span for span, _ in found] == [(5 * n, 5 * n + 5) for n in range(12)]
    assert found[3][0].text == "15-20 s"
    for span, seen in found:
        assert (seen[0].at_s, seen[-1].at_s) == (1_000 + span.begin_s, 1_000 + span.end_s)


def test_a_span_is_complete_when_its_time_is_over() -> None:
    assert spans(_snapshots(0), 60) == []
    assert spans(_snapshots(4.5), 60) == []
    assert [span for span, _ in spans(_snapshots(5), 60)] == [Span(0, 5)]


def test_spans_take_a_second_or_more_except_the_last() -> None:
    assert [span.end_s for span, _ in spans(_snapshots(12), 12)] == list(range(1, 13))
    assert spans(_snapshots(100), 100)[-1][0] == Span(96, 100)


def test_missing_snapshots_give_no_span() -> None:
    """A machine that was busy with other things for longer than a span."""
    seen = [snapshot for snapshot in _snapshots(60) if not 1_011 < snapshot.at_s < 1_024]
    assert all(len(each) >= 2 for _, each in spans(seen, 60))


@pytest.mark.parametrize(("at_s", "number"), [(0, 0), (1_000.2, 0), (1_000.3, 1), (9_999, 2)])
def test_the_nearest_snapshot_is_found(at_s: float, number: int) -> None:
    assert closest(_snapshots(1), at_s) == number


def test_a_mean_over_time_weighs_by_time() -> None:
    assert mean_over_time([(0, 10), (1, 10), (4, 20)]) == pytest.approx((10 + 3 * 15) / 4)
