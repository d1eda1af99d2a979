"""Use of quotas by the kernel, minute by minute."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.units import GIB, KIB, MIB
from headgate.flow.quota.backlog_quota import QuotaPolicy
from headgate.pipeline.kernels.quota_usage import INPUT_COLUMNS, quota_usage_table
from headgate.pipeline.tables.arrow_types import table_arrow_schema
from headgate.pipeline.tables.columns import HOUR_NS
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.tables.quotas import QUOTA_USAGE
from headgate.record.fields import Kind
from tests.unit.pipeline.level_play import rows_of, table_of
from tests.unit.pipeline.play import T0, S, minutes
from tests.unit.pipeline.quota_play import NS, SOURCE, quota_play
from tests.unit.pipeline.quotas_by_row import quota_usage_by_row
from tests.unit.pipeline.random_rows import among, assert_same_rows, minutes_of_subjects

HOUR = T0 // HOUR_NS


def table(messages: list[bytes]) -> pa.Table:
    """The minutes of topics, as the kernel gets them."""
    rows = minutes(messages, Kind.TOPIC)
    return pa.Table.from_pylist(rows, schema=table_arrow_schema(INTERVALS)).select(INPUT_COLUMNS)


@pytest.fixture(scope="module")
def played() -> dict[tuple[str, int], dict[str, Any]]:
    """Rows of three minutes by topic's last name and number of the minute."""
    rows = quota_usage_table(table(quota_play(180)), {HOUR}).to_pylist()
    return {(row["topic"].removeprefix(NS), row["minute"].minute): row for row in rows}


Played = dict[tuple[str, int], dict[str, Any]]


def test_minutes_with_a_quota_have_a_row_and_no_others(played: Played) -> None:
    whole = [(name, minute) for name in ("held", "aged", "blocked", "both") for minute in range(3)]
    assert set(played) == {*whole, ("lifted", 0), ("lifted", 1)}
    for (_, minute), row in played.items():
        assert row["minute"] == datetime(2025, 11, 21, 10, minute, tzinfo=UTC)
        assert (row["date"].isoformat(), row["hour"]) == ("2025-11-21", 10)
        assert (row["cluster"], row["broker"], row["completeness"]) == ("demo", "b1:6650", 1.0)


def test_a_quota_that_fills_and_holds(played: Played) -> None:
    before, after = played["held", 0], played["held", 1]
    assert (before["size_limit_bytes"], before["size_use"]) == (60 * MIB, 1.0)
    assert (before["size_policy"], before["size_source"]) == ("producer_request_hold", SOURCE)
    assert (before["seconds_to_breach"], before["breach_quota"]) == (0.0, "size")
    assert (before["held_seconds"], after["held_seconds"]) == (0.0, 60.0)
    assert (before["parked_messages"], after["parked_messages"]) == (0, 5)
    assert after["parked_bytes"] == 5 * KIB
    assert (after["time_limit_ns"], after["time_use"], after["time_policy"]) == (None, None, None)
    assert after["sentence"] == (
        f"the topic is over its 60 MiB quota ({SOURCE}): producers are held; subscription billing"
        " holds the oldest message (2 min); sent messages were held for 60 s of this minute"
    )


def test_a_quota_that_is_approached() -> None:
    (row,) = [
        row
        for row in quota_usage_table(table(quota_play(50)), {HOUR}).to_pylist()
        if row["topic"] == f"{NS}held"
    ]
    assert row["size_use"] == pytest.approx(50 / 60)
    assert (row["seconds_to_breach"], row["breach_quota"]) == (10.0, "size")
    assert row["method"] == "broker"
    assert row["seconds_to_breach_broker"] == 10.0
    assert (row["seconds_to_breach_earliest"], row["seconds_to_breach_latest"]) == (None, None)
    assert row["sentence"] == (
        f"the topic is at 83 % of its 60 MiB quota ({SOURCE}), subscription billing holds the"
        " oldest message (50 s), at the present rate it breaks in 10 s, then: producers held"
    )


def test_eviction_acts_are_counted_by_minute(played: Played) -> None:
    rows = [played["aged", minute] for minute in range(3)]
    assert [row["eviction_time_acts"] for row in rows] == [6, 15, 15]
    assert [row["eviction_time_messages"] for row in rows] == [600, 1_500, 1_500]
    assert [row["eviction_time_bytes"] for row in rows] == [600 * KIB, 1_500 * KIB, 1_500 * KIB]
    assert {(row["topic"], row["partition"]) for row in rows} == {(f"{NS}aged", 2)}
    assert [row["time_use"] for row in rows] == [0.9, 0.9, 0.9]
    assert rows[0]["oldest_age_max_ns"] == 38 * S
    assert rows[2]["sentence"] == (
        f"the topic reached its 40 s time quota ({SOURCE}) in this minute and is at 90 % of it:"
        " subscription audit loses its oldest messages; subscription audit holds the oldest message"
        " (36 s); evictions took 1,500 messages (1.5 MiB) in this minute"
    )
    assert (rows[2]["seconds_to_breach"], rows[2]["breach_quota"]) == (0.0, "time")


def test_a_limit_of_zero_is_full_without_division_by_zero(played: Played) -> None:
    row = played["blocked", 2]
    assert (row["size_limit_bytes"], row["size_use"], row["seconds_to_breach"]) == (0, None, 0.0)
    assert row["sentence"] == (
        "the topic is over its 0 B quota (topic policy): producers are refused with an error"
    )


def test_of_two_quotas_the_sentence_names_the_approached_one(played: Played) -> None:
    row = played["both", 1]
    assert (row["size_use"], row["time_use"]) == (0.5, 120 / 3_600)
    assert (row["seconds_to_breach"], row["breach_quota"]) == (3_480.0, "time")
    assert (row["size_limit_bytes"], row["time_limit_ns"]) == (GIB, 3_600 * S)
    assert row["sentence"].startswith(f"the topic is at 3 % of its 1 h time quota ({SOURCE}), ")


def test_a_removed_quota_still_shows_its_acts(played: Played) -> None:
    before, after = played["lifted", 0], played["lifted", 1]
    assert (before["size_use"], before["seconds_to_breach"], before["method"]) == (
        0.5,
        None,
        "none",
    )
    assert before["breach_quota"] is None
    assert before["sentence"] == f"the topic is at 50 % of its 10 MiB quota ({SOURCE})"
    assert (after["size_limit_bytes"], after["size_use"], after["held_seconds"]) == (None, None, 3)
    assert after["sentence"] == (
        "no backlog quota is in force at the end of this minute;"
        " sent messages were held for 3 s of this minute"
    )


def test_only_wanted_hours_have_rows() -> None:
    both = table(quota_play(200, start_ns=T0 + 3_500 * S))
    counts = {hour: quota_usage_table(both, {hour}).num_rows for hour in (HOUR, HOUR + 1)}
    assert min(counts.values()) > 0
    assert quota_usage_table(both, set(counts)).num_rows == sum(counts.values())
    nothing = quota_usage_table(both, {HOUR + 2})
    assert (nothing.num_rows, nothing.schema) == (0, table_arrow_schema(QUOTA_USAGE))


def test_an_exceeded_quota_is_named_before_a_fuller_one() -> None:
    minute = _minute(
        quota_size_limit_bytes=0,
        quota_size_policy="producer_exception",
        backlog_bytes=0,
        quota_time_limit_ns=10 * S,
        quota_time_policy="producer_request_hold",
        oldest_age_ns=9 * S,
        quota_time_breach_ns=S,
    )
    row = usage(minute)
    assert row["sentence"].startswith("the topic is over its 0 B quota")
    assert (row["breach_quota"], row["seconds_to_breach"]) == ("size", 0.0)
    assert row["seconds_to_breach_broker"] == 1.0
    assert (row["size_use"], row["time_use"]) == (None, 0.9)


def test_an_unknown_backlog_has_no_use_and_no_sentence() -> None:
    row = usage(_minute(quota_size_limit_bytes=10))
    assert (row["size_use"], row["sentence"], row["held_seconds"]) == (None, None, None)


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        (0, "evictions took 0 messages (2 B) in this minute"),
        (1, "evictions took 1 message (3 B) in this minute"),
        (2_000, "evictions took 2,000 messages (2 KiB) in this minute"),
    ],
)
def test_evictions_of_both_quotas_are_summed(lost: int, said: str) -> None:
    row = usage(
        _minute(
            eviction_size_acts=1,
            eviction_size_bytes=2,
            eviction_time_acts=1,
            eviction_time_messages=lost,
            eviction_time_bytes=lost,
        )
    )
    assert row["sentence"].endswith(f"; {said}")


@pytest.mark.parametrize(("held_ns", "said"), [(49_000_000, ""), (S // 20, " 0.1 s"), (S, " 1 s")])
def test_a_hold_is_named_if_it_is_long_enough(held_ns: int, said: str) -> None:
    row = usage(_minute(parked_backlog_quota_ns=held_ns))
    told = f"; sent messages were held for{said} of this minute" if said else ""
    assert row["sentence"] == f"no backlog quota is in force at the end of this minute{told}"
    assert row["held_seconds"] == held_ns / S


def _minute(**values: Any) -> dict[str, Any]:
    return {**dict.fromkeys(INPUT_COLUMNS), "from_ns": T0, "to_ns": T0 + 60 * S, **values}


def usage(minute: dict[str, Any]) -> dict[str, Any]:
    """The row of a minute that has none before it."""
    schema = table_arrow_schema(INTERVALS)
    columns = pa.schema([schema.field(name) for name in INPUT_COLUMNS])
    (row,) = quota_usage_table(pa.Table.from_pylist([minute], schema=columns), {HOUR}).to_pylist()
    return dict(row)


_AMOUNTS = st.none() | st.integers(0, 1 << 62)
_TEXTS = st.none() | st.text(max_size=5)


@given(
    st.fixed_dictionaries(
        {
            "backlog_bytes": _AMOUNTS,
            "oldest_age_ns": _AMOUNTS,
            "oldest_subscription": _TEXTS,
            "quota_size_limit_bytes": _AMOUNTS | st.just(0),
            "quota_size_policy": _TEXTS,
            "quota_size_source": _TEXTS,
            "quota_size_breach_ns": _AMOUNTS,
            "quota_time_limit_ns": _AMOUNTS | st.just(0),
            "quota_time_policy": _TEXTS,
            "quota_time_source": _TEXTS,
            "quota_time_breach_ns": _AMOUNTS,
            # A minute in which nothing happened and no quota was in force has no row.
            "parked_backlog_quota_ns": st.integers(1, 1 << 62),
            "eviction_size_acts": _AMOUNTS,
            "eviction_size_bytes": _AMOUNTS,
            "eviction_time_messages": _AMOUNTS,
        }
    )
)
def test_any_row_is_consistent(values: dict[str, Any]) -> None:
    row = usage(_minute(**values))
    for kind, unit, taken in (("size", "bytes", "backlog_bytes"), ("time", "ns", "oldest_age_ns")):
        limit, use = values[f"quota_{kind}_limit_{unit}"], row.get(f"{kind}_use")
        known = values[taken] is not None or kind == "time"
        assert (use is not None) == (bool(limit) and known)
        if use is not None:
            assert use == (values[taken] or 0) / limit
    in_force = [
        values[f"quota_{kind}_breach_ns"]
        for kind, unit in (("size", "bytes"), ("time", "ns"))
        if values[f"quota_{kind}_limit_{unit}"] is not None
    ]
    least = min((figure for figure in in_force if figure is not None), default=None)
    assert row["seconds_to_breach_broker"] == (None if least is None else least / S)
    if row["seconds_to_breach"] != 0:
        # One minute is too little for a forecast.
        assert row["seconds_to_breach"] == row["seconds_to_breach_broker"]
        assert row["method"] == ("broker" if least is not None else "none" if in_force else None)
    assert (row["breach_quota"] is None) == (row["method"] in (None, "none"))
    assert (row["forecast_at"] is None) == (row["method"] is None)
    written = pa.Table.from_pylist([row], schema=table_arrow_schema(QUOTA_USAGE))
    assert written.num_rows == 1


def test_a_forecast_has_its_band_as_of_the_minute_s_end() -> None:
    rows = rows_of(
        [100 * MIB * (i + 1) for i in range(40)],
        quota_size_limit_bytes=10_000 * MIB,
        quota_size_policy="producer_request_hold",
        quota_size_source=SOURCE,
        quota_size_breach_ns=7 * S,
    )
    found = quota_usage_table(table_of(rows), {HOUR}).to_pylist()
    made, carried = found[35], found[38]
    for row, left_min in ((made, 64), (carried, 61)):
        assert row["seconds_to_breach"] == pytest.approx(left_min * 60)
        assert row["seconds_to_breach_earliest"] < row["seconds_to_breach"]
        assert row["seconds_to_breach_latest"] > row["seconds_to_breach"]
        assert (row["method"], row["breach_quota"]) == ("theil_sen", "size")
        assert row["forecast_at"] == datetime(2025, 11, 21, 10, 36, tzinfo=UTC)
        assert row["seconds_to_breach_broker"] == 7.0
    assert made["sentence"] == (
        f"the topic is at 36 % of its 9.8 GiB quota ({SOURCE}), it reaches 9.8 GiB in about 64 min"
        " (52 min to 1.8 h), then: producers held"
    )
    assert carried["sentence"] == (
        f"the topic is at 39 % of its 9.8 GiB quota ({SOURCE}), it reaches 9.8 GiB in about 61 min"
        " (49 min to 1.7 h), then: producers held"
    )


def test_an_overdue_breach_is_not_reported_as_reached() -> None:
    """Forecast in minute 30 for a minute and a half later, it then grows more slowly."""
    rows = rows_of(
        [*(100 * (i + 1) for i in range(31)), 3_110, 3_120, 3_130],
        quota_size_limit_bytes=3_250,
        quota_size_policy="producer_request_hold",
        quota_size_breach_ns=7 * S,
    )
    found = quota_usage_table(table_of(rows), {HOUR}).to_pylist()
    left_s = [row["seconds_to_breach"] for row in found[30:]]
    assert left_s == pytest.approx([90, 30, 0.5, 0.5])
    assert found[33]["sentence"] == (
        "the topic is at 96 % of its 3.2 KiB quota, it reaches 3.2 KiB any moment, then: producers"
        " held"
    )


def test_the_maximum_of_a_minute_stands_beside_its_last_value(played: Played) -> None:
    aged, held = played["aged", 1], played["held", 1]
    assert (aged["time_use"], aged["time_use_max"]) == (0.9, 0.95)
    assert (aged["size_use_max"], held["size_use_max"]) == (None, 1.0)
    assert held["backlog_bytes_max"] == 60 * MIB
    blocked = played["blocked", 1]
    assert (blocked["size_use_max"], blocked["backlog_bytes_max"]) == (None, 0)


def test_seconds_count_from_the_end_of_the_telemetry() -> None:
    """The last minute is not over: what its sentence says is what its columns say."""
    rows = quota_usage_table(table(quota_play(50)), {HOUR}).to_pylist()
    (row,) = (row for row in rows if row["topic"] == f"{NS}both")
    assert row["to_ns"] == T0 + 50 * S
    assert row["seconds_to_breach"] == 3_550.0
    assert "at the present rate it breaks in 59 min" in row["sentence"]


def test_the_first_likely_breach_is_named() -> None:
    rows = rows_of(
        [100 * (i + 1) for i in range(30)],
        quota_size_limit_bytes=100_000,
        quota_time_limit_ns=3_600 * S,
        quota_time_policy="consumer_backlog_eviction",
        oldest_age_ns={i: (i + 1) * 60 * S for i in range(30)},
        oldest_subscription="audit",
    )
    row = quota_usage_table(table_of(rows), {HOUR}).to_pylist()[25]
    assert (row["breach_quota"], row["method"]) == ("time", "theil_sen")
    assert row["seconds_to_breach"] == pytest.approx(3_600 - 26 * 60)
    assert row["sentence"] == (
        "the topic is at 43 % of its 1 h time quota, subscription audit holds the oldest message"
        " (26 min), its oldest message is 1 h old in about 34 min (34 min to 42 min), then:"
        " subscription audit loses its oldest messages"
    )


_LEVEL = among(None, 0, 900, 1_000, 5_000, 9_500, 10_000, (1 << 60) + 1)
_DRAWS = {
    **{name: among(None, 0) for name in INPUT_COLUMNS if name.endswith(("_messages", "_bytes"))},
    "broker": among("one", None),
    "completeness": among(0.5, 1.0),
    "backlog_bytes": _LEVEL,
    "backlog_bytes_max": _LEVEL,
    "oldest_age_ns": among(None, 0, 5 * S, 60 * S, 599 * S, 600 * S),
    "oldest_age_max_ns": among(None, 5 * S, 600 * S),
    "oldest_subscription": among(None, "audit", "billing"),
    "restarts": among(*[0] * 20, 1),
    **{
        f"eviction_{quota}_{amount}": among(*[None, 0] * 10, 1, 1_200)
        for quota in ("size", "time")
        for amount in ("acts", "messages", "bytes")
    },
    "quota_size_limit_bytes": among(None, 0, 10_000, 10_000, 20_000),
    "quota_size_policy": among(None, *QuotaPolicy, "unknown"),
    "quota_size_source": among(None, SOURCE),
    "quota_size_breach_ns": among(None, 0, 40 * S, (1 << 62) + 1),
    "quota_time_limit_ns": among(None, 0, 600 * S, 600 * S),
    "quota_time_policy": among(None, *QuotaPolicy),
    "quota_time_source": among(None, SOURCE),
    "quota_time_breach_ns": among(None, 0, 40 * S),
    "parked_backlog_quota_ns": among(*[None, 0] * 5, S // 100, 3 * S),
    "parked_backlog_quota_messages": among(None, 7),
    "parked_backlog_quota_bytes": among(None, 700),
}


@pytest.mark.parametrize("kept", [0.0, 0.9, 0.98])
@pytest.mark.parametrize("seed", range(4))
def test_random_minutes_have_the_rows_of_the_row_by_row_form(seed: int, kept: float) -> None:
    rows = minutes_of_subjects(
        seed,
        10,
        70,
        lambda topic: {"cluster": "demo", "topic": f"t{topic}", "incarnation": 1},
        _DRAWS,
        kept=kept,
    )
    random = Random(seed)
    made = table_of([{**row, **_rising(row, random)} for row in rows])
    for hours in ({HOUR, HOUR + 1}, {HOUR + 1}):
        assert_same_rows(quota_usage_table(made, hours), quota_usage_by_row(made, hours))


def _rising(row: dict[str, Any], random: Random) -> dict[str, Any]:
    """Levels that approach the limits, for every other topic: forecasts predict a breach."""
    if int(row["topic"][1:]) % 2:
        return {}
    minute = (row["from_ns"] - T0) // (60 * S)
    level = 60 * minute + random.randrange(100)
    return {"backlog_bytes": level, "oldest_age_ns": 4 * level * S // 100}
