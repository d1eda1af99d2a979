"""Differences by minute neither lose nor duplicate an amount, whatever happens to batches."""

from __future__ import annotations

from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headgate.pipeline.tables.columns import HOUR_NS, MINUTE_NS
from headgate.record.codec import BatchHeader, encode_window
from headgate.record.fields import STATE_FIELD_NAMES, Kind
from tests.unit.pipeline.play import (
    SITUATIONS,
    T0,
    Broker,
    S,
    Situation,
    bronze,
    columns_of,
    minutes,
    minutes_of,
    play,
)
from tests.unit.pipeline.quota_play import quota_play

SLOW = SITUATIONS[0]


def of(rows: list[dict[str, Any]], situation: Situation = SLOW) -> list[dict[str, Any]]:
    return [
        r
        for r in rows
        if (r["topic"], r["subscription"]) == (situation.topic, situation.subscription)
    ]


def total(rows: list[dict[str, Any]], name: str) -> int:
    return sum(row[name] for row in rows)


def test_every_minute_has_its_amounts_levels_and_states() -> None:
    rows = of(minutes(play(150)))
    assert [row["appended"] for row in rows] == [30_000, 30_000, 15_000]
    assert [row["acked"] for row in rows] == [6_000, 6_000, 3_000]
    assert [row["backlog_messages_start"] for row in rows] == [0, 24_000, 48_000]
    assert [row["backlog_messages"] for row in rows] == [24_000, 48_000, 60_000]
    assert [row["oldest_age_max_ns"] for row in rows] == [60 * S, 120 * S, 150 * S]
    assert [row["completeness"] for row in rows] == [1.0, 1.0, 1.0]
    assert [row["samples"] for row in rows] == [60, 60, 30]
    assert rows[0]["type"] == "Shared"
    assert rows[0]["limit_topic_messages"] is None
    for row in rows:
        assert sum(row[name] for name in STATE_FIELD_NAMES) == row["to_ns"] - row["from_ns"]


@pytest.mark.parametrize("kind", [Kind.TOPIC, Kind.LIMITER])
def test_topics_and_limiters_have_intervals(kind: Kind) -> None:
    rows = minutes(play(120), kind)
    if kind is Kind.TOPIC:
        assert total([r for r in rows if r["topic"] == SLOW.topic], "msgs_in") == 60_000
        assert rows[0]["parked_memory_ns"] is None
    else:
        assert [row["granted"] for row in rows] == [12_000, 12_000]
        assert [row["waiter_1"] for row in rows] == ["one", "one"]


def test_duplicates_and_order_do_not_matter() -> None:
    messages = play(130)
    assert minutes([*messages[70:], *messages[:90], *messages[20:40]]) == minutes(messages)


def test_lost_batches_cost_resolution_and_never_amounts() -> None:
    messages = play(180)
    whole, holed = minutes(messages), minutes(messages[:50] + messages[80:])
    for situation in SITUATIONS:
        if situation.published:
            before, after = of(whole, situation), of(holed, situation)
            for name in ("appended", "acked", *STATE_FIELD_NAMES):
                assert total(before, name) == total(after, name)
            assert [row["gaps"] for row in after] == [1, 1, 0]
            # Rows 50 to 79 are gone; the row after them covers its own second.
            assert [round(row["completeness"], 3) for row in after] == [0.833, 0.667, 1.0]


def test_a_subject_without_rows_keeps_its_state() -> None:
    quiet = Situation(
        "persistent://a/b/quiet", "s", "NO_CONSUMER", 0, 0, 0, {"no_consumer": 1.0}, consumers=0
    )
    messages = play(150, situations=(quiet,), backlogs={(quiet.topic, "s"): 7})
    rows = minutes(messages)
    # Its first second, and once a minute.
    assert sum(kind == "subscription" for kind in bronze(messages)["kind"].to_pylist()) == 3
    assert [row["state_no_consumer_ns"] for row in rows] == [60 * S, 60 * S, 30 * S]
    assert [row["completeness"] for row in rows] == [1.0, 1.0, 1.0]
    assert [row["backlog_messages"] for row in rows] == [7, 7, 7]
    assert [row["samples"] for row in rows] == [2, 1, 0]


def test_a_restart_resets_counters_and_keeps_the_backlog() -> None:
    first = Broker()
    messages = [m for _ in range(90) for m in first.window()]
    second = Broker(start_ns=T0 + 100 * S, boot="boot-2", backlogs=first.backlogs())
    messages += [m for _ in range(50) for m in second.window()]
    rows = of(minutes(messages))
    assert total(rows, "appended") == 500 * 140
    assert [row["restarts"] for row in rows] == [0, 1, 0]
    assert [row["backlog_messages"] for row in rows] == [24_000, 44_000, 56_000]
    # Ten seconds of the second minute belong to no boot.
    assert [round(row["completeness"], 3) for row in rows] == [1.0, 0.833, 1.0]


def row_of(end_s: int, **values: Any) -> dict[str, Any]:
    zeros = dict.fromkeys(("appended", "rewound", "acked", "skipped", "expired", "evicted"), 0)
    return {
        **zeros,
        "topic": "t",
        "subscription": "s",
        "incarnation": 1,
        "gone": False,
        "state": "no_consumer",
        "backlog_messages": 0,
        "counting_since_ns": T0,
        "covered_to_ns": T0 + end_s * S,
        **values,
    }


def one(seq: int, row: dict[str, Any], *, window_s: int = 10, step: bool = False) -> bytes:
    end = row["covered_to_ns"]
    header = BatchHeader("b1", "c", "b", "boot-1", end - window_s * S, end, step)
    columns = columns_of(Kind.SUBSCRIPTION, [row])
    return encode_window(header, seq, {Kind.SUBSCRIPTION: columns})[0]


def test_a_value_that_falls_counts_from_zero_and_is_marked() -> None:
    messages = [
        one(0, row_of(10, covered_from_ns=T0, appended=100)),
        one(1, row_of(20, covered_from_ns=T0 + 10 * S, appended=30)),
        one(2, row_of(30, covered_from_ns=T0 + 20 * S, appended=50)),
    ]
    (row,) = minutes(messages)
    assert row["appended"] == 150
    assert row["resets"] == 1


@pytest.mark.parametrize("step_s", [-300, 300])
def test_a_clock_step_is_marked_and_loses_nothing(step_s: int) -> None:
    t = T0 + 600 * S
    since = {"counting_since_ns": t}
    messages = [
        one(0, row_of(610, covered_from_ns=t, appended=100, **since)),
        one(1, row_of(620 + step_s, covered_from_ns=t + 10 * S, appended=200, **since), step=True),
        one(2, row_of(630 + step_s, covered_from_ns=t + (20 + step_s) * S, appended=300, **since)),
    ]
    rows = minutes(messages)
    assert total(rows, "appended") == 300
    assert total(rows, "clock_steps") == 1
    if step_s > 0:
        assert min(row["completeness"] for row in rows) < 0.1


def test_after_a_clock_step_back_each_hour_counts_its_own_rows() -> None:
    """Counting began later than all that follows: that is no reason to count from zero again."""
    since, back = {"counting_since_ns": T0 + 600 * S}, T0 - 36_000 * S
    messages = [one(0, row_of(610, covered_from_ns=T0 + 600 * S, appended=100, **since))]
    for number in range(1, 1_201):
        begins, ends = back + (number - 1) * 10 * S, back - T0 + number * 10 * S
        row = row_of(ends // S, covered_from_ns=begins, appended=100 + number, **since)
        messages.append(one(number, row, step=number == 1))
    rows = minutes(messages)
    assert 1_290 <= total(rows, "appended") <= 1_300


def test_a_deleted_subject_has_no_virtual_rows() -> None:
    messages = [
        one(0, row_of(10, covered_from_ns=T0, gone=True)),
        *(
            encode_window(
                BatchHeader("b1", "c", "b", "boot-1", T0 + i * 10 * S, T0 + (i + 1) * 10 * S), i, {}
            )[0]
            for i in range(1, 6)
        ),
    ]
    (row,) = minutes(messages)
    assert row["to_ns"] == T0 + 10 * S


def test_virtual_rows_reach_at_most_a_minute() -> None:
    beats = [
        encode_window(
            BatchHeader("b1", "c", "b", "boot-1", T0 + i * 10 * S, T0 + (i + 1) * 10 * S), i, {}
        )[0]
        for i in range(1, 20)
    ]
    rows = minutes([one(0, row_of(10, covered_from_ns=T0)), *beats])
    assert rows[-1]["to_ns"] == T0 + 70 * S


def test_two_brokers_in_one_minute_are_summed() -> None:
    first, second = Broker(), Broker(start_ns=T0 + 30 * S, source="b2", boot="boot-9")
    messages = [m for _ in range(30) for m in first.window()]
    messages += [m for _ in range(30) for m in second.window()]
    (row,) = of(minutes(messages))
    assert row["appended"] == 30_000
    assert row["completeness"] == 1.0
    assert row["broker"] == "b2:6650"


def test_hours_share_amounts_across_their_edge() -> None:
    start = T0 + 3_540 * S
    messages = [m for b in [Broker(start_ns=start)] for _ in range(9) for m in b.window(10)]
    rows = of(minutes([m for i, m in enumerate(messages) if i not in (5, 6)]))
    assert [row["hour"] for row in rows] == [10, 11]
    assert total(rows, "appended") == 500 * 90
    assert rows[1]["from_ns"] == start + MINUTE_NS


def test_the_largest_backlog_of_a_minute_may_be_within_it() -> None:
    """It is evicted down to nothing every 25 s."""

    def sawtooth(seconds: int) -> dict[str, Any]:
        return {"backlog_bytes": 1_000 * (seconds % 25)}

    rows = minutes(quota_play(120, window_s=5, topics={"t": sawtooth}), Kind.TOPIC)
    assert [row["backlog_bytes"] for row in rows] == [10_000, 20_000]
    assert [row["backlog_bytes_max"] for row in rows] == [20_000, 20_000]
    (row,) = minutes(quota_play(20, topics={"t": lambda s: {"backlog_bytes": 30 - s}}), Kind.TOPIC)
    assert (row["backlog_bytes"], row["backlog_bytes_max"]) == (10, 20)


@pytest.mark.parametrize("name", ["topic", "subscription"])
def test_a_row_that_names_no_subject_has_no_minute(name: str) -> None:
    assert minutes([one(0, row_of(10, covered_from_ns=T0) | {name: None})]) == []


def test_a_value_that_is_missing_stays_missing() -> None:
    (row,) = minutes([one(0, row_of(10, covered_from_ns=T0))])
    assert row["redelivered"] is None
    assert row["oldest_age_max_ns"] is None
    assert row["consumers"] is None


@cache
def sixty_windows(step: int) -> pa.Table:
    """Bronze rows of two subscriptions over sixty windows of ``step`` seconds."""
    player = Broker((SLOW, SITUATIONS[5]))
    return bronze([m for _ in range(60) for m in player.window(step)])


def without(rows: pa.Table, lost: set[int]) -> pa.Table:
    """Bronze rows of one boot after the loss of some of its batches."""
    kept = pc.invert(pc.is_in(rows["seq"], pa.array(sorted(lost), pa.int64())))
    return rows.filter(kept)


@settings(max_examples=40)
@given(st.sets(st.integers(1, 58), max_size=40), st.sampled_from([1, 7, 10]))
def test_any_loss_between_first_and_last_keeps_all_amounts(lost: set[int], step: int) -> None:
    rows = minutes_of(without(sixty_windows(step), lost))
    for situation, acked in ((SLOW, 100), (SITUATIONS[5], 400)):
        mine = of(rows, situation)
        assert total(mine, "acked") == acked * 60 * step
        assert sum(total(mine, name) for name in STATE_FIELD_NAMES) == pytest.approx(
            60 * step * S, abs=10
        )
        assert all(0 <= row["completeness"] <= 1 for row in mine)


QUIET = Situation(
    "persistent://a/b/quiet", "s", "NO_CONSUMER", 0, 0, 0, {"no_consumer": 1.0}, consumers=0
)
EDGES = {"an hour's edge": T0 + 3_600 * S, "midnight": T0 + 14 * 3_600 * S}
BEFORE, WINDOWS = 60, 120
"""Windows of ten seconds that are played around an edge: so many before it, so many in all."""


@cache
def windows_around(edge_ns: int) -> pa.Table:
    """Bronze rows of the windows around an edge."""
    player = Broker((SLOW, QUIET), start_ns=edge_ns - 10 * BEFORE * S)
    return bronze([m for _ in range(WINDOWS) for m in player.window(10)])


@settings(max_examples=30)
@given(
    st.sampled_from(sorted(EDGES)),
    st.integers(1, WINDOWS - 2),
    st.integers(0, WINDOWS),
    st.sets(st.integers(1, WINDOWS - 2), max_size=30),
)
@example("an hour's edge", BEFORE - 30, 60, set())
@example("midnight", BEFORE - 20, 13, {BEFORE - 21, BEFORE - 26})
def test_any_loss_over_an_hour_s_edge_keeps_all_amounts(
    edge: str, first: int, count: int, more: set[int]
) -> None:
    """Of who changed all the time and of who stood still, and marks what is less sure."""
    lost = {i for i in range(first, first + count) if i < WINDOWS - 1} | more
    rows = minutes_of(without(windows_around(EDGES[edge]), lost))
    mine, still = of(rows), of(rows, QUIET)
    assert total(mine, "appended") == 500 * 10 * WINDOWS
    for found in (mine, still):
        assert total(found, "state_no_consumer_ns") + total(found, "state_no_permits_ns") + total(
            found, "state_dispatching_ns"
        ) == pytest.approx(10 * WINDOWS * S, abs=100)
        assert [row["from_ns"] for row in found[1:]] == [row["to_ns"] for row in found[:-1]]
    uncovered_ns = sum(row["to_ns"] - row["from_ns"] - row["covered_ns"] for row in mine)
    assert uncovered_ns == 10 * len(lost) * S
    assert (total(mine, "gaps") > 0) == (lost != set())
    assert all((row["gaps"] > 0) == (row["completeness"] < 1.0) for row in mine)
    assert total(mine, "restarts") == 0


@pytest.mark.parametrize("edge", EDGES)
def test_a_broker_that_is_down_over_an_hour_s_edge_has_restarted(edge: str) -> None:
    start_ns = EDGES[edge] - 300 * S
    first = Broker((SLOW,), start_ns=start_ns)
    messages = [m for _ in range(10) for m in first.window(10)]
    second = Broker((SLOW,), start_ns=start_ns + 600 * S, boot="boot-2", backlogs=first.backlogs())
    messages += [m for _ in range(3) for m in second.window(10)]
    rows = of(minutes(messages))
    assert [row["restarts"] for row in rows] == [0, 0, 1]
    assert total(rows, "appended") == 500 * 130
    # What the boot before left is what the next one begins with.
    assert rows[-1]["backlog_messages_start"] == rows[-2]["backlog_messages"] == 400 * 100


@pytest.mark.parametrize(("hours", "is_bridged"), [(23, True), (25, False)])
def test_gaps_are_bridged_up_to_a_day_and_marked_beyond(hours: int, is_bridged: bool) -> None:
    player = Broker((SLOW,), start_ns=T0)
    messages = player.window(60)
    player.window(hours * 3_600)
    # Not at a full minute, where every row would be sent at once.
    messages += [m for _ in range(9) for m in player.window(10)]
    rows = of(minutes(messages))
    assert total(rows, "appended") == 500 * ((hours * 3_600 if is_bridged else -10) + 60 + 90)
    assert len(rows) == (60 * hours if is_bridged else 0) + 3
    first = rows[-2]
    assert first["restarts"] == 0
    assert (first["gaps"], first["completeness"]) == ((0, 1.0) if is_bridged else (1, 50 / 60))
    assert first["from_ns"] == T0 + (hours * 3_600 + 60) * S


def test_an_hour_gives_the_same_rows_alone_and_with_others() -> None:
    kept = without(windows_around(EDGES["midnight"]), set(range(31, 80)))
    rows = minutes_of(kept)
    for hour in {row["from_ns"] // HOUR_NS for row in rows}:
        assert minutes_of(kept, hours={hour}) == [
            r for r in rows if r["from_ns"] // HOUR_NS == hour
        ]


def test_delayed_messages_are_known_at_both_ends_where_the_broker_knows_them() -> None:
    """A subscription without delays has null, whoever shares its batch."""
    first = row_of(70, covered_from_ns=T0 + 10 * S, backlog_messages=65, delayed=60)
    then = row_of(120, covered_from_ns=T0 + 70 * S, backlog_messages=65, delayed=10)
    rows = minutes(
        [
            one(0, row_of(10, covered_from_ns=T0, backlog_messages=5)),
            one(1, first, window_s=60),
            one(2, then, window_s=50),
            one(3, row_of(120, covered_from_ns=T0, backlog_messages=7) | {"subscription": "plain"}),
        ]
    )
    known = [row for row in rows if row["subscription"] == "s"]
    assert [(row["delayed_start"], row["delayed"]) for row in known] == [(None, 50), (50, 10)]
    assert [row["backlog_messages"] - (row["delayed"] or 0) for row in known] == [5, 55]
    plain = [row for row in rows if row["subscription"] == "plain"]
    assert {(row["delayed_start"], row["delayed"]) for row in plain} == {(None, None)}
