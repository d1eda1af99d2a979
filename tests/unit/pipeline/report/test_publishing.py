"""Held producers and limiters of a range."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headgate.base.units import NS_PER_S
from headgate.pipeline.report.grid import Grid
from headgate.pipeline.report.publishing import limiters, parked_topics
from headgate.pipeline.store.scan import TableScan
from headgate.pipeline.tables.columns import MINUTE_NS
from headgate.pipeline.time_span import Span
from tests.unit.pipeline.play import T0
from tests.unit.pipeline.report.folder import NS, held_row, limiter_row, write

SPAN = Span(T0, T0 + 3 * MINUTE_NS)
GRID = Grid(T0, MINUTE_NS, 3)


def test_topics_are_ordered_by_held_time(tmp_path: Path) -> None:
    write(
        tmp_path,
        "publish_attribution",
        [
            held_row(0, topic_rate=10),
            held_row(1, topic_rate=20, memory=5),
            held_row(0, NS + "worse", adaptive=50),
            held_row(0, NS + "free"),
            held_row(9, NS + "later", adaptive=60),
        ],
    )
    scan = TableScan(str(tmp_path), "publish_attribution")
    worse, held = parked_topics(scan, SPAN, GRID, 10)
    assert (worse.topic, held.topic) == (NS + "worse", NS + "held")
    assert held.seconds["topic_rate"] == 30
    assert held.seconds["memory"] == 5
    assert held.parked_s["topic_rate"].tolist() == [10, 20, 0]
    assert (held.sentence, held.sentence_ns) == ("Held in minute 1.", T0 + MINUTE_NS)
    assert (worse.held_share, held.held_share) == (50 / 180, 30 / 180)
    assert [t.topic for t in parked_topics(scan, SPAN, GRID, 1)] == [worse.topic]
    assert parked_topics(scan, Span(T0 - 2, T0 - 1), GRID, 1) == ()


def test_causes_at_the_same_time_are_not_added_up(tmp_path: Path) -> None:
    write(
        tmp_path,
        "publish_attribution",
        [
            held_row(0, topic_rate=30, memory=30),
            held_row(1, topic_rate=35),
            held_row(0, NS + "longer", adaptive=50),
            held_row(1, NS + "longer", adaptive=20),
        ],
    )
    found = parked_topics(TableScan(str(tmp_path), "publish_attribution"), SPAN, GRID, 2)
    assert [t.topic for t in found] == [NS + "longer", NS + "held"]
    assert [t.longest_s for t in found] == [70, 65]
    assert found[1].sentence == "Held in minute 1."


def test_limiters_are_ordered_by_waiting_time(tmp_path: Path) -> None:
    write(
        tmp_path,
        "throttle_timeline",
        [
            limiter_row(0),
            limiter_row(1, limit_per_s=200.0, sentence="Worst.", held=9_000),
            limiter_row(0, NS + "busy", waiting_ns=MINUTE_NS * 2, level="topic"),
            limiter_row(0, NS + "idle", waiting_ns=0, held=0),
        ],
    )
    busy, slow = limiters(TableScan(str(tmp_path), "throttle_timeline"), SPAN, GRID, 10)
    assert (busy.level, busy.subject) == ("topic", NS + "busy")
    assert (slow.held, slow.waiting_share, slow.sentence) == (12_600, 0.5, "Worst.")
    assert (busy.sentence_ns, slow.sentence_ns) == (T0, T0 + MINUTE_NS)
    np.testing.assert_equal(slow.limit_per_s, [100, 200, np.nan])
    np.testing.assert_equal(slow.offered_per_s, [160, 160, np.nan])
    np.testing.assert_equal(slow.granted_per_s, [100, 100, np.nan])


def test_without_held_amounts_the_minute_of_the_longest_wait_is_shown(tmp_path: Path) -> None:
    rows = [limiter_row(p, held=0, waiting_ns=NS_PER_S * (p == 2)) for p in range(3)]
    write(tmp_path, "throttle_timeline", rows)
    (found,) = limiters(TableScan(str(tmp_path), "throttle_timeline"), SPAN, GRID, 10)
    assert found.sentence_ns == T0 + 2 * MINUTE_NS


def test_with_lost_rows_amounts_refer_to_the_whole_minute(tmp_path: Path) -> None:
    """Counters go over lost rows, while what is covered leaves them out."""
    rows = [limiter_row(0, covered_ns=MINUTE_NS // 2), limiter_row(1, waiting_ns=MINUTE_NS * 3)]
    write(tmp_path, "throttle_timeline", rows)
    scan = TableScan(str(tmp_path), "throttle_timeline")
    (first,) = limiters(scan, Span(T0, T0 + MINUTE_NS), GRID, 10)
    assert first.waiting_share == 0.5
    np.testing.assert_equal(first.granted_per_s, [100, np.nan, np.nan])
    np.testing.assert_equal(first.offered_per_s, [160, np.nan, np.nan])
    (both,) = limiters(scan, SPAN, GRID, 10)
    assert both.waiting_share == 1.0


def test_during_downtime_shares_and_rates_refer_to_the_counted_time(tmp_path: Path) -> None:
    """Half a minute of the second one was counted by nobody."""
    half = MINUTE_NS // 2
    rows = [
        limiter_row(0, counted_ns=MINUTE_NS),
        limiter_row(1, counted_ns=half, offered=160 * 30, granted=100 * 30, waiting_ns=half),
    ]
    write(tmp_path, "throttle_timeline", rows)
    (found,) = limiters(TableScan(str(tmp_path), "throttle_timeline"), SPAN, GRID, 10)
    assert found.waiting_share == pytest.approx(60 / 90)
    np.testing.assert_equal(found.offered_per_s, [160, 160, np.nan])
    np.testing.assert_equal(found.granted_per_s, [100, 100, np.nan])


def test_subjects_have_the_span_of_their_own_accounts(tmp_path: Path) -> None:
    write(tmp_path, "throttle_timeline", [limiter_row(0, to_ns=T0 + 24 * NS_PER_S)])
    write(tmp_path, "publish_attribution", [held_row(1, topic_rate=10), held_row(0, memory=1)])
    (limiter,) = limiters(TableScan(str(tmp_path), "throttle_timeline"), SPAN, GRID, 10)
    assert limiter.span == Span(T0, T0 + 24 * NS_PER_S)
    (held,) = parked_topics(TableScan(str(tmp_path), "publish_attribution"), SPAN, GRID, 10)
    assert held.span == Span(T0, T0 + 2 * MINUTE_NS)
