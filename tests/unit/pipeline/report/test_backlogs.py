"""The worst backlogs: selection, order and verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headgate.pipeline.report.backlogs import Backlogs, backlogs
from headgate.pipeline.report.grid import Grid
from headgate.pipeline.store.scan import TableScan
from headgate.pipeline.tables.columns import MINUTE_NS
from headgate.pipeline.time_span import Span
from tests.unit.pipeline.play import SITUATIONS, T0, minutes, play
from tests.unit.pipeline.report.folder import NS, judged, played, write

SPAN = Span(T0, T0 + 3 * MINUTE_NS)
GRID = Grid(T0, MINUTE_NS, 3)


def asked(root: Path, top: int = 10, span: Span = SPAN) -> Backlogs:
    attribution, intervals = (TableScan(str(root), n) for n in ("attribution", "intervals"))
    return backlogs(attribution, intervals, span, GRID, top)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    played(folder)
    return folder


def test_every_growing_backlog_gets_its_expected_verdict(root: Path) -> None:
    found = asked(root)
    growing = [s for s in SITUATIONS if s.published > s.acked]
    assert (found.subscriptions, found.growing) == (len(SITUATIONS), len(growing))
    assert found.growth_messages == sum((s.published - s.acked) * 180 for s in growing)
    wanted = {(s.topic, s.subscription): s.verdict for s in growing}
    assert {(o.topic, o.subscription): o.verdict for o in found.worst} == wanted
    growths = [backlog.growth_messages for backlog in found.worst]
    assert growths == sorted(growths, reverse=True)
    assert all(o.sentence.startswith(o.verdict) for o in found.worst)


def test_a_worst_backlog_has_its_levels_over_time(root: Path) -> None:
    (slow,) = [o for o in asked(root).worst if o.topic == NS + "slow"]
    assert slow.levels.tolist() == [24_000, 48_000, 72_000]
    assert slow.shares["CONSUMER"].tolist() == [1, 1, 1]
    assert slow.shares["BROKER"].tolist() == [0, 0, 0]
    assert (slow.peak_messages, slow.seconds, slow.growth_per_s) == (72_000, 180, 400)


def test_the_list_is_bounded_and_half_of_it_is_by_growth(root: Path) -> None:
    worst = asked(root, 3).worst
    assert len(worst) == 3
    assert {o.topic for o in worst} <= {NS + "slow", NS + "topic-limit"}


def test_blamed_seconds_are_of_the_growing_ones(root: Path) -> None:
    found = asked(root)
    assert found.blame_seconds["CONSUMER"] == pytest.approx(180 * found.growing)
    assert found.blame_seconds["NONE"] == 0


def test_minutes_without_a_backlog_have_no_cause(root: Path) -> None:
    """Their shares are of messages in flight, and would only colour a healthy subscription."""
    rows = TableScan(str(root), "attribution").rows(("from_ns", "to_ns", "verdict", "topic"))
    assert "NONE" in rows["verdict"].to_pylist()
    other = root / "in flight"
    other.mkdir()
    quiet = {"verdict": "NONE", "share_consumer": 1.0, "share_none": 0.0}
    messages = minutes(play(180, 10))
    loud = [judged(row) for row in messages]
    write(other, "attribution", [r | quiet if r["minute"].minute == 1 else r for r in loud])
    scans = TableScan(str(other), "attribution"), TableScan(str(root), "intervals")
    found = backlogs(*scans, SPAN, GRID, 10)
    (slow,) = [o for o in found.worst if o.topic == NS + "slow"]
    assert slow.shares["CONSUMER"].tolist() == [1, 0, 1]
    assert found.blame_seconds["NONE"] == pytest.approx(60 * found.growing)
    assert found.blame_seconds["CONSUMER"] == pytest.approx(120 * found.growing)


def test_the_time_of_a_bystander_limiter_counts_for_the_consumer(
    root: Path, tmp_path: Path
) -> None:
    rows = [judged(row) for row in minutes(play(180, 10))]
    aside = {"second": "THROTTLED_TOPIC", "bystander": True}
    aside |= {"share_consumer": 0.25, "share_throttled_topic": 0.75}
    write(tmp_path, "attribution", [r | aside if r["verdict"] == "CONSUMER" else r for r in rows])
    scans = TableScan(str(tmp_path), "attribution"), TableScan(str(root), "intervals")
    found = backlogs(*scans, SPAN, GRID, 10)
    (slow,) = [o for o in found.worst if o.topic == NS + "slow"]
    assert slow.shares["CONSUMER"].tolist() == [1, 1, 1]
    assert found.blame_seconds["THROTTLED_TOPIC"] == 0
    assert found.blame_seconds["CONSUMER"] == pytest.approx(180 * found.growing)


def unused_rows(row: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """The minute of as many subscriptions that nobody reads, all growing fast."""
    shares = {"verdict": "NO_CONSUMER", "share_no_consumer": 1.0, "share_consumer": 0.0}
    shares |= {"share_none": 0.0, "acked": 0, "proven_rate_per_s": None, "growth_messages": 10**6}
    return [row | shares | {"subscription": f"old-{i}"} for i in range(count)]


def test_unused_subscriptions_do_not_displace_others(root: Path, tmp_path: Path) -> None:
    played_rows = minutes(play(180, 10))
    alone = [row for row in played_rows if row["topic"] == NS + "alone"]
    unread = [row | {"subscription": f"old-{i}"} for row in alone for i in range(20)]
    write(tmp_path, "intervals", [*played_rows, *unread])
    known = [judged(row) for row in played_rows]
    known += [row for minute in alone for row in unused_rows(judged(minute), 20)]
    write(tmp_path, "attribution", known)
    before, found = asked(root), asked(tmp_path)
    assert (found.subscriptions, found.growing) == (before.subscriptions + 20, before.growing)
    assert found.growth_messages == before.growth_messages
    assert found.blame_seconds["NO_CONSUMER"] == 0
    told = found.unused
    assert (told.subscriptions, told.growth_messages) == (20, 3 * 20 * 10**6)
    assert (told.name[0], told.backlog_messages) == (NS + "alone", 36_000)
    assert [o.is_unused for o in found.worst] == [False] * 7 + [True] * 3
    assert [o.is_unused for o in asked(tmp_path, 4).worst] == [False] * 3 + [True]
    assert [o.is_unused for o in asked(tmp_path, 1).worst] == [False]
    assert before.unused.subscriptions == 0


def test_a_consumer_that_has_left_is_not_unused(root: Path, tmp_path: Path) -> None:
    """It acknowledged within the range, or shortly before it."""
    alone = [judged(row) for row in minutes(play(180, 10)) if row["topic"] == NS + "alone"]
    rows = [row for minute in alone for row in unused_rows(minute, 1)]
    acked = [row | {"acked": 5 * (i == 0)} for i, row in enumerate(rows)]
    demonstrated = [row | {"proven_rate_per_s": 40.0, "subscription": "b"} for row in rows]
    write(tmp_path, "attribution", [*acked, *demonstrated])
    scans = TableScan(str(tmp_path), "attribution"), TableScan(str(root), "intervals")
    found = backlogs(*scans, SPAN, GRID, 10)
    assert (found.growing, found.unused.subscriptions) == (2, 0)
    assert found.blame_seconds["NO_CONSUMER"] == pytest.approx(360)


def test_a_range_without_rows_has_no_backlogs(root: Path) -> None:
    found = asked(root, span=Span(T0 - 9 * MINUTE_NS, T0 - 8 * MINUTE_NS))
    assert (found.subscriptions, found.worst) == (0, ())


def test_steps_without_an_account_are_unknown(root: Path) -> None:
    wide = Grid(T0 - 2 * MINUTE_NS, MINUTE_NS, 6)
    scans = [TableScan(str(root), n) for n in ("attribution", "intervals")]
    slow = backlogs(scans[0], scans[1], SPAN, wide, 1).worst[0]
    assert np.isnan(slow.levels[[0, 1, 5]]).all()
    assert not np.isnan(slow.levels[2:5]).any()


def test_a_shrinking_backlog_was_largest_at_the_start(tmp_path: Path) -> None:
    rows = minutes(play(180, 10))
    for row in rows:
        if row["topic"] == NS + "slow" and row["minute"].minute == 0:
            row["backlog_messages_start"] = 100_000
    write(tmp_path, "intervals", rows)
    write(tmp_path, "attribution", [judged(row) for row in rows])
    (slow,) = [o for o in asked(tmp_path).worst if o.topic == NS + "slow"]
    assert (slow.peak_messages, slow.growth_messages) == (100_000, -28_000)
