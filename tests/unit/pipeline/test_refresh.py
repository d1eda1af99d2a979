"""Which hours of a derived table follow from which files of its source.

The tables themselves are played in tests/spark.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headgate.pipeline import refresh as refreshing
from headgate.pipeline.refresh import _DERIVATIONS, DERIVED, PASS_HOURS, recompute, refresh
from headgate.pipeline.store.delta_log import TableFile, commit_append, ensure_table, table_files
from headgate.pipeline.store.parquet_files import write_tables
from headgate.pipeline.tables.attribution import ATTRIBUTION
from headgate.pipeline.tables.bronze import BRONZE_EVENTS, BRONZE_SAMPLES
from headgate.pipeline.tables.catalogue import TABLES
from headgate.pipeline.tables.columns import HOUR_NS
from headgate.pipeline.tables.episodes import EPISODES
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.tables.policy_backtest import POLICY_BACKTEST
from headgate.pipeline.tables.publishing import PUBLISH_ATTRIBUTION, THROTTLE_TIMELINE
from headgate.pipeline.tables.quotas import EVICTIONS, QUOTA_USAGE
from tests.unit.pipeline.play import SITUATIONS, T0, Broker, bronze

HOUR = 489_922
BY_TABLE = {derivation.table.name: derivation for derivation in _DERIVATIONS}


def file(hour: int, kind: str | None = "subscription") -> TableFile:
    """A file of one hour, counted since the epoch."""
    start = datetime.fromtimestamp(hour * 3_600, UTC)
    partition = {"date": start.date().isoformat(), "hour": str(start.hour)}
    if kind is not None:
        partition["kind"] = kind
    return TableFile(f"{hour}-{kind}", 1, partition, 1, None)


def test_every_table_but_bronze_is_derived_after_its_source() -> None:
    bronze = [table for table in TABLES.values() if table.name.startswith("bronze_")]
    assert len(bronze) == 3
    # A backtest depends on a grid file, too: it is run, not derived.
    others = {table.name for table in (*bronze, POLICY_BACKTEST)}
    assert {table.name for table in DERIVED} == set(TABLES) - others
    known = [*bronze]
    for derivation in _DERIVATIONS:
        assert derivation.source in known
        known.append(derivation.table)


def test_intervals_near_an_hour_s_edge_follow_from_both_sides(tmp_path: Path) -> None:
    touched = BY_TABLE[INTERVALS.name].touched(str(tmp_path), [file(HOUR)], [])
    assert touched == {HOUR - 1, HOUR, HOUR + 1}


def appended(root: Path, *messages: bytes) -> list[TableFile]:
    """Files of some telemetry that was appended to bronze."""
    before = {found.path for found in table_files(ensure_table(str(root), BRONZE_SAMPLES))}
    written = write_tables(str(root), "0", [(BRONZE_SAMPLES.name, bronze(list(messages)))])
    commit_append(str(root), BRONZE_SAMPLES, written, None)
    after = table_files(ensure_table(str(root), BRONZE_SAMPLES))
    return [found for found in after if found.path not in before]


def test_all_hours_of_a_silence_follow_from_what_arrives_at_its_ends(tmp_path: Path) -> None:
    player = Broker(SITUATIONS[:1])
    root, intervals = str(tmp_path), BY_TABLE[INTERVALS.name]
    start = T0 // HOUR_NS
    minutes_ = [m for _ in range(5 * 60) for m in player.window(60)]

    def touched(*minutes: int) -> set[int]:
        new = appended(tmp_path, *(minutes_[at] for at in minutes))
        live = table_files(ensure_table(root, BRONZE_SAMPLES))
        return {hour - start for hour in intervals.touched(root, new, live)}

    assert touched(10) == {0}
    assert touched(280) == {0, 1, 2, 3, 4}
    assert touched(281, 282) == {4}
    # Late: each of both parts of the silence is another one now.
    assert touched(130) == {0, 1, 2, 3, 4}
    assert touched(11) == {0, 1, 2}
    assert touched(9) == {0}
    inputs = table_files(ensure_table(root, BRONZE_SAMPLES))
    assert all(intervals.is_input(found, {start + 2}) for found in inputs)
    assert not any(intervals.is_input(found, {start + 29}) for found in inputs)


def test_verdicts_follow_from_the_day_before() -> None:
    derivation = BY_TABLE[ATTRIBUTION.name]
    live = [file(HOUR + ahead) for ahead in (-1, 0, 1, 24, 25)]
    assert derivation.touched("", [file(HOUR)], live) == {HOUR, HOUR + 1, HOUR + 24}
    needed = [
        f.hour for f in map(file, range(HOUR - 30, HOUR + 3)) if derivation.is_input(f, {HOUR})
    ]
    assert needed == list(range(HOUR - 24, HOUR + 1))
    assert not derivation.is_input(file(HOUR, "topic"), {HOUR})


def test_forecasts_follow_from_the_hour_before() -> None:
    usage = BY_TABLE[QUOTA_USAGE.name]
    live = [file(HOUR + ahead, "topic") for ahead in (-2, -1, 0, 1, 2)]
    assert usage.touched("", live[2:3], live) == {HOUR, HOUR + 1}
    assert usage.touched("", live[2:3], live[:3]) == {HOUR}
    assert [usage.is_input(f, {HOUR}) for f in live] == [False, True, True, False, False]
    assert not usage.is_input(file(HOUR), {HOUR})


def test_evictions_follow_from_the_same_hour_alone() -> None:
    evictions = BY_TABLE[EVICTIONS.name]
    assert evictions.source is BRONZE_EVENTS
    assert evictions.touched("", [file(HOUR, None)], [file(HOUR + 1, None)]) == {HOUR}
    assert evictions.is_input(file(HOUR, None), {HOUR, HOUR + 5})


@given(st.sets(st.integers(0, 120)), st.sets(st.integers(0, 120)), st.integers(0, 120))
def test_what_a_new_hour_may_change_is_recomputed_from_all_it_needs(
    new: set[int], old: set[int], hour: int
) -> None:
    derivation = BY_TABLE[ATTRIBUTION.name]
    live = [file(h) for h in new | old]
    touched = derivation.touched("", [file(h) for h in new], live)
    changes = any(derivation.is_input(file(h), {hour}) for h in new)
    assert (hour in touched) == (changes and hour in new | old)


def test_publishing_follows_from_its_hour_and_the_minute_before() -> None:
    publishing = BY_TABLE[PUBLISH_ATTRIBUTION.name]
    live = [file(HOUR + ahead, "topic") for ahead in (-1, 0, 1)]
    assert publishing.touched("", live[1:2], live) == {HOUR, HOUR + 1}
    assert [publishing.is_input(f, {HOUR}) for f in live] == [True, True, False]
    assert publishing.is_input(file(HOUR, "limiter"), {HOUR})
    assert not publishing.is_input(file(HOUR), {HOUR})
    timeline = BY_TABLE[THROTTLE_TIMELINE.name]
    assert timeline.touched("", live[1:2], live) == {HOUR}
    assert timeline.is_input(file(HOUR, "limiter"), {HOUR})
    assert not timeline.is_input(file(HOUR, "topic"), {HOUR})
    assert not timeline.is_input(file(HOUR - 1, "limiter"), {HOUR})


@given(st.sets(st.integers(0, 12), min_size=1), st.sets(st.integers(0, 12)), st.integers(0, 12))
@example({9}, {4, 5}, 4)
@example({9}, {4, 5}, 5)
def test_episodes_are_recomputed_where_neighbours_changed_or_telemetry_went_on(
    new: set[int], old: set[int], hour: int
) -> None:
    derivation = BY_TABLE[EPISODES.name]
    there = new | old
    touched = derivation.touched("", [file(h, None) for h in new], [file(h, None) for h in there])
    assert touched <= there
    is_beside = any(abs(hour - h) <= 1 for h in new)
    # Whether anything newer than the next hour is there decides of what was open.
    went_on = max(there) > hour + 1 and max(old - new, default=-1) <= hour + 1
    if hour in there and (is_beside or went_on):
        assert hour in touched
    inputs = {h for h in there if derivation.is_input(file(h, None), {hour})}
    assert inputs == there & {hour - 1, hour, hour + 1}


def test_passes_move_a_bar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By hours: those of a long first read one pass after the other, of a recomputed day table by
    table; where one pass does all there is nothing to tell."""
    told: list[tuple[int, int]] = []
    done: list[int] = []

    def at(hours: int, total: int) -> None:
        told.append((hours, total))

    def compute(*words: Any) -> None:
        done.append(len(words[4]))

    monkeypatch.setattr(refreshing, "_compute_pass", compute)
    session = cast(Any, None)
    days = date(2025, 11, 21), date(2025, 11, 24)
    recompute(session, str(tmp_path), *days, at)
    total = 96 * len(DERIVED)
    assert told == [(96 * i + more, total) for i in range(len(DERIVED)) for more in (0, 0, 72)]
    assert sum(done) == total
    told.clear()
    for hours, passes in ((PASS_HOURS, []), (150, [(0, 150), (72, 150), (144, 150)])):
        (tmp_path / str(hours)).mkdir()
        live = [file(HOUR + hour, None) for hour in range(hours)]
        monkeypatch.setattr(refreshing, "files_added", lambda *_, live=live: live)
        monkeypatch.setattr(refreshing, "table_files", lambda _, live=live: live)
        refresh(session, str(tmp_path / str(hours)), EVICTIONS, at)
        assert told == passes
