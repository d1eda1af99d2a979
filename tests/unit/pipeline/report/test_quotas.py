"""Quotas on the page, the soonest breaches first; evictions."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from headgate.base.units import NS_PER_S
from headgate.pipeline.report.grid import Grid
from headgate.pipeline.report.quotas import breach_time_ns, evictions, quota_topics
from headgate.pipeline.store.scan import TableScan
from headgate.pipeline.tables.columns import MINUTE_NS
from headgate.pipeline.time_span import Span
from tests.unit.pipeline.play import T0
from tests.unit.pipeline.report.folder import NS, eviction_row, quota_row, write

SPAN = Span(T0, T0 + 4 * MINUTE_NS)
GRID = Grid(T0, MINUTE_NS, 4)


def calm(place: int, topic: str, use: float) -> dict[str, object]:
    names = ("seconds_to_breach_earliest", "seconds_to_breach", "seconds_to_breach_latest")
    return quota_row(place, topic, **dict.fromkeys(names), breach_quota=None, size_use=use)


@pytest.fixture
def scan(tmp_path: Path) -> TableScan:
    rows = [quota_row(place) for place in range(4)]
    rows += [quota_row(p, NS + "sooner", seconds_to_breach=7.0) for p in (2, 3)]
    rows += [calm(p, NS + "full", 0.99) for p in range(4)]
    # Approached in the first minute only: that is over by the range's end.
    rows += [quota_row(0, NS + "calmed"), calm(3, NS + "calmed", 0.1)]
    write(tmp_path, "quota_usage", rows)
    return TableScan(str(tmp_path), "quota_usage")


def test_soonest_then_fullest(scan: TableScan) -> None:
    found = quota_topics(scan, SPAN, GRID, 3).topics
    assert [t.topic for t in found] == [NS + "sooner", NS + "filling", NS + "full"]
    assert [t.breach is None for t in found] == [False, False, True]
    assert len(quota_topics(scan, SPAN, GRID, 10).topics) == 4


def test_a_topic_has_its_use_over_time_and_breach(scan: TableScan) -> None:
    sooner, filling = quota_topics(scan, SPAN, GRID, 2).topics
    np.testing.assert_allclose(filling.size_use, [0, 0.1, 0.2, 0.3])
    np.testing.assert_equal(filling.time_use, [0, np.nan, np.nan, np.nan])
    assert filling.peak_use == pytest.approx(0.3)
    assert filling.policy == "producer_request_hold"
    breach = filling.breach
    assert breach is not None
    assert (breach.from_ns, breach.use) == (T0, pytest.approx(0.3))
    assert (breach.earliest_s, breach.likely_s, breach.latest_s) == (540, 600, 720)
    assert breach_time_ns(breach) == T0 + 600 * NS_PER_S
    assert (sooner.state, sooner.held_s, sooner.was_reached) == ("approached", 0, False)
    assert (sooner.sentence_ns, sooner.sentence) == (T0 + 3 * MINUTE_NS, "The size quota fills.")


def test_breaches_are_ordered_by_their_instants_reached_ones_first(tmp_path: Path) -> None:
    early, late = (datetime.fromtimestamp(T0 / NS_PER_S + s, UTC) for s in (0, 240))
    rows = [
        quota_row(3, NS + "later", forecast_at=late, seconds_to_breach=500.0),
        quota_row(3, NS + "sooner", forecast_at=early, seconds_to_breach=600.0),
        quota_row(3, NS + "anew", forecast_at=None, seconds_to_breach=300.0),
        quota_row(3, NS + "full", forecast_at=late, seconds_to_breach=0.0),
    ]
    write(tmp_path, "quota_usage", rows)
    found = quota_topics(TableScan(str(tmp_path), "quota_usage"), SPAN, GRID, 4).topics
    assert [t.topic.removeprefix(NS) for t in found] == ["full", "anew", "sooner", "later"]
    assert found[0].state == "reached"
    at_s = [(breach_time_ns(t.breach) - T0) / NS_PER_S for t in found if t.breach]
    assert at_s == [240, 540, 600, 740]


def test_a_quota_that_holds_is_reached_also_where_it_has_room_at_the_end(tmp_path: Path) -> None:
    """It lets producers go on a little below its limit, and holds them again."""
    no_acts = {"eviction_size_acts": 0, "eviction_size_messages": 0}
    rows = [quota_row(p, NS + "holds", held_seconds=45.0 * (p < 3), **no_acts) for p in range(4)]
    rows += [quota_row(p, NS + "evicts", seconds_to_breach=0.0, eviction_size_acts=1,
                       eviction_size_messages=500) for p in (2, 3)]  # fmt: skip
    rows += [quota_row(3, NS + "fills", seconds_to_breach=9.0)]
    write(tmp_path, "quota_usage", rows)
    found = quota_topics(TableScan(str(tmp_path), "quota_usage"), SPAN, GRID, 9)
    assert [t.topic.removeprefix(NS) for t in found.topics] == ["holds", "evicts", "fills"]
    assert [t.state for t in found.topics] == ["reached", "reached", "approached"]
    holds, evicts, _ = found.topics
    assert (holds.held_s, holds.held_share) == (135, 135 / 240)
    assert (evicts.reached_quota, evicts.evicted_messages) == ("size", 1_000)
    assert (found.reached, found.approached, found.were_reached) == (2, 1, 0)


def test_quotas_reached_earlier_are_separate(tmp_path: Path) -> None:
    rows = [quota_row(0, NS + "held", held_seconds=30.0), calm(24, NS + "held", 0.1)]
    rows += [quota_row(0, NS + "again", held_seconds=50.0), quota_row(24, NS + "again")]
    rows += [calm(24, NS + "fullest", 0.9)]
    write(tmp_path, "quota_usage", rows)
    span, grid = Span(T0, T0 + 25 * MINUTE_NS), Grid(T0, MINUTE_NS, 25)
    found = quota_topics(TableScan(str(tmp_path), "quota_usage"), span, grid, 9)
    states = {t.topic.removeprefix(NS): (t.state, t.was_reached) for t in found.topics}
    assert states == {
        "again": ("approached", True), "held": ("was reached", True), "fullest": ("", False),
    }  # fmt: skip
    assert list(states) == ["again", "held", "fullest"]
    assert (found.reached, found.approached, found.were_reached) == (0, 1, 2)


def test_approached_quotas_have_room_beside_reached_ones(tmp_path: Path) -> None:
    rows = [quota_row(3, f"{NS}full-{i}", seconds_to_breach=0.0) for i in range(9)]
    write(tmp_path, "quota_usage", [*rows, quota_row(3)])
    scan = TableScan(str(tmp_path), "quota_usage")
    states = [t.state for t in quota_topics(scan, SPAN, GRID, 4).topics]
    assert states == ["reached", "reached", "reached", "approached"]
    assert len(quota_topics(scan, SPAN, GRID, 4).topics) == 4


def test_seconds_count_from_the_end_of_the_telemetry(tmp_path: Path) -> None:
    """As those of the row's own sentence do; the last minute went on for 24 s."""
    end_ns = T0 + 3 * MINUTE_NS + 24 * NS_PER_S
    write(tmp_path, "quota_usage", [quota_row(3, to_ns=end_ns, seconds_to_breach=36.0)])
    (found,) = quota_topics(TableScan(str(tmp_path), "quota_usage"), SPAN, GRID, 9).topics
    assert found.breach is not None
    assert (found.breach.from_ns, found.until_ns) == (end_ns, end_ns)
    assert breach_time_ns(found.breach) == T0 + 4 * MINUTE_NS


def test_the_peak_use_may_lie_within_a_minute(tmp_path: Path) -> None:
    rows = [
        quota_row(p, size_use_max=use, time_use_max=None) for p, use in enumerate((0.2, 0.95, None))
    ]
    rows += [calm(p, NS + "evicted", 0.1) | {"time_use_max": 0.9} for p in range(3)]
    write(tmp_path, "quota_usage", rows)
    filling, evicted = quota_topics(TableScan(str(tmp_path), "quota_usage"), SPAN, GRID, 9).topics
    assert (filling.peak_use, evicted.peak_use) == (0.95, 0.9)
    np.testing.assert_allclose(filling.size_use, [0.2, 0.95, 0.2, np.nan])
    assert filling.breach is not None
    assert filling.breach.use == 0.2


def test_the_last_step_of_a_long_range_goes_beyond_its_rows(tmp_path: Path) -> None:
    write(tmp_path, "quota_usage", [quota_row(3), calm(3, NS + "full", 0.99)])
    coarse = Grid(T0, 30 * MINUTE_NS, 1)
    (found,) = quota_topics(TableScan(str(tmp_path), "quota_usage"), SPAN, coarse, 1).topics
    assert found.topic == NS + "filling"


@pytest.mark.parametrize("place", [-3, 25])
def test_a_topic_outside_of_the_range_is_not_shown(tmp_path: Path, place: int) -> None:
    write(tmp_path, "quota_usage", [quota_row(place, NS + "beyond"), quota_row(3)])
    coarse = Grid(T0, 30 * MINUTE_NS, 1)
    (found,) = quota_topics(TableScan(str(tmp_path), "quota_usage"), SPAN, coarse, 9).topics
    assert found.topic == NS + "filling"


def test_a_topic_that_vanished_earlier_has_no_forecast(tmp_path: Path) -> None:
    write(tmp_path, "quota_usage", [quota_row(5, NS + "gone"), calm(19, NS + "calm", 0.1)])
    scan = TableScan(str(tmp_path), "quota_usage")
    for minutes, breaks in ((15, True), (16, False), (20, False)):
        span = Span(T0, T0 + minutes * MINUTE_NS)
        gone = quota_topics(scan, span, Grid(T0, MINUTE_NS, minutes), 9).topics[0]
        assert (gone.topic, gone.breach is not None) == (NS + "gone", breaks)


def test_evictions_by_topic_and_quota(tmp_path: Path) -> None:
    other = '[{"subscription":"b","messages":10,"bytes":1},{"subscription":"a","messages":10}]'
    rows = [eviction_row(0), eviction_row(2), eviction_row(9)]
    rows += [eviction_row(1, quota="time", messages=20, subscriptions=other)]
    write(tmp_path, "evictions", rows)
    size, time = evictions(TableScan(str(tmp_path), "evictions"), SPAN, GRID, 10).worst
    assert (size.quota, size.messages, size.bytes, size.acts) == ("size", 200, 2_000, 2)
    assert (size.first_ns, size.last_ns) == (T0, T0 + 2 * MINUTE_NS)
    assert size.messages_lost.tolist() == [100, 0, 100, 0]
    assert size.affected == (("audit", 200),)
    assert time.affected == (("a", 10), ("b", 10))


def test_losses_without_names_and_numbers_end_no_report(tmp_path: Path) -> None:
    """As telemetry of others than brokers may have them."""
    lost = '[{"subscription":null,"messages":null,"bytes":null},{"subscription":"a","messages":3}]'
    write(tmp_path, "evictions", [eviction_row(1, quota=None, subscriptions=lost)])
    (found,) = evictions(TableScan(str(tmp_path), "evictions"), SPAN, GRID, 10).worst
    assert found.affected == (("a", 3), ("", 0))


def test_no_rows_give_an_empty_result(scan: TableScan) -> None:
    assert quota_topics(scan, Span(T0 - 9, T0 - 8), GRID, 3).topics == ()
    assert quota_topics(scan, Span(T0 - 9, T0 - 8), GRID, 3).approached == 0


def test_totals_include_topics_that_are_not_shown(scan: TableScan, tmp_path: Path) -> None:
    found = quota_topics(scan, SPAN, GRID, 1)
    assert (len(found.topics), found.approached) == (1, 2)
    write(tmp_path, "evictions", [eviction_row(0), eviction_row(1, NS + "less", messages=20)])
    lost = evictions(TableScan(str(tmp_path), "evictions"), SPAN, GRID, 1)
    assert ([e.messages for e in lost.worst], lost.messages) == ([100], 120)
