"""Loads from telemetry rows: streams, gaps, quotas, and the measured drain."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headgate.pipeline.backtest.load import Load
from headgate.pipeline.backtest.series import topic_loads
from tests.unit.pipeline.backtest.rows import T0, S, sample, table_of

FOREVER = 1 << 62


def load_of(rows: list[dict[str, Any]], since: float = 0, until: float = 1e9, **more: Any) -> Load:
    (topic,) = topic_loads(table_of(rows), T0 + round(since * S), T0 + round(until * S), **more)
    return topic.load


def steady(seconds: list[int], **more: Any) -> list[dict[str, Any]]:
    """100 messages of 10 bytes a second, all of them drained."""
    return [sample(s, msgs_in=100 * s, bytes_in=1_000 * s, **more) for s in seconds]


def test_rates_are_differences_and_the_first_row_counts_from_its_beginning() -> None:
    load = load_of(steady([10, 20, 30]))
    assert (load.step_ns, load.from_ns, load.to_ns) == (10 * S, T0, T0 + 30 * S)
    assert load.steps[:, 0].tolist() == [1_000] * 3
    assert load.steps[:, 1].tolist() == [10] * 3
    assert load.steps[:, 2].tolist() == [1_000] * 3
    assert load.steps[0, 3:].tolist() == [-1, 0, -1, 0, inf, inf]


def test_a_first_row_within_a_stream_gives_levels_only() -> None:
    assert len(load_of(steady([20, 30])).steps) == 1
    assert list(topic_loads(table_of(steady([20])), 0, FOREVER)) == []
    assert list(topic_loads(table_of([]), 0, FOREVER)) == []


def test_duplicates_count_once() -> None:
    rows = steady([10, 20, 30])
    assert load_of([*rows, *rows]).steps[:, 0].tolist() == [1_000] * 3


def test_windows_without_a_row_are_windows_without_change() -> None:
    rows = steady([10, 20])
    later = sample(60, msgs_in=3_000, bytes_in=30_000, covered_from_ns=T0 + 20 * S)
    assert load_of([*rows, later]).steps[:, 0].tolist() == [1_000, 1_000, 0, 0, 0, 1_000]


def test_windows_of_years_make_no_longer_steps_than_a_minute() -> None:
    """Of a broker whose clock was set; the laws of a replay would make lists of a step's cycles."""
    rows = [row | {"window_start_ns": 0} for row in steady([60, 120, 180])]
    assert load_of(rows).step_ns == 60 * S


def test_a_row_of_years_has_no_steps() -> None:
    rows = steady([10, 20])
    years = sample(30, msgs_in=9, bytes_in=9, counting_since_ns=1, covered_from_ns=1, boot_id="x")
    assert len(load_of([*rows, years], since=-(T0 / S)).steps) == 2


def test_amounts_of_lost_rows_are_spread_over_their_time() -> None:
    assert load_of(steady([10, 20, 50])).steps[:, 0].tolist() == [1_000] * 5


def test_a_long_gap_is_left_out() -> None:
    load = load_of(steady([10, 20, 1_000, 1_010]))
    assert load.steps[:, 0].tolist() == [1_000] * 3
    assert (load.from_ns, load.to_ns) == (T0, T0 + 1_010 * S)


def test_counting_starts_over_after_a_restart() -> None:
    again: dict[str, Any] = {"boot_id": "c", "counting_since_ns": T0 + 25 * S}
    first = sample(30, msgs_in=500, bytes_in=5_000, **again, covered_from_ns=T0 + 25 * S)
    second = sample(40, msgs_in=1_500, bytes_in=15_000, **again)
    load = load_of([*steady([10, 20]), first, second])
    # Five seconds are unknown; half of a step is enough.
    assert load.steps[:, 0].tolist() == [1_000] * 4


def test_a_counter_that_fell_counts_from_zero() -> None:
    rows = [*steady([10, 20]), sample(30, msgs_in=10, bytes_in=100)]
    assert load_of(rows).steps[:, 0].tolist() == [1_000, 1_000, 10]


def test_demand_is_accepted_bytes_plus_growth_of_parked_bytes() -> None:
    rows = [
        sample(10, msgs_in=100, bytes_in=1_000, parked_bytes=4_000),
        sample(20, msgs_in=200, bytes_in=2_000, parked_bytes=4_000),
        sample(30, msgs_in=600, bytes_in=6_000, parked_bytes=0),
    ]
    assert load_of(rows).steps[:, 0].tolist() == [500, 100, 0]


def test_steps_held_by_a_limit_all_the_time_are_censored() -> None:
    waited_s = {10: 0, 20: 10, 30: 19.6, 40: 25}
    rows = [
        sample(s, bytes_in=1_000 * s, msgs_in=s, parked_ns=round(at * S))
        for s, at in waited_s.items()
    ]
    assert load_of(rows).censored_share == 0.5


def test_the_drain_is_measured_where_old_messages_waited_and_demonstrated_elsewhere() -> None:
    old, young = 5 * S, S
    rows = [
        sample(10, bytes_in=10_000, backlog_bytes=9_000, oldest_age_ns=old),
        sample(20, bytes_in=20_000, backlog_bytes=12_000, oldest_age_ns=old),
        sample(30, bytes_in=20_000, backlog_bytes=5_000, oldest_age_ns=old),
        sample(40, bytes_in=20_000, backlog_bytes=0, oldest_age_ns=None),
        sample(50, bytes_in=25_000, backlog_bytes=100, oldest_age_ns=young),
        sample(60, bytes_in=45_000, backlog_bytes=100, oldest_age_ns=young),
    ]
    load = load_of(rows)
    # Old messages at the end: what they took. Else what they have shown between old messages, or
    # what they took if that is more.
    assert load.steps[:, 2].tolist() == [100, 700, 700, 700, 700, 2_000]
    assert load.drain_known_share == 0.5


def test_evicted_bytes_do_not_count_as_drained() -> None:
    rows = [
        sample(10, bytes_in=10_000, backlog_bytes=10_000, oldest_age_ns=9 * S),
        sample(20, bytes_in=20_000, backlog_bytes=13_000, oldest_age_ns=9 * S, evicted_bytes=5_000),
    ]
    assert load_of(rows).steps[1, 2] == 200


def test_quotas_and_limits_are_those_of_each_sample() -> None:
    quota: dict[str, Any] = {
        "quota_size_limit_bytes": 5_000,
        "quota_size_policy": "producer_exception",
        "quota_time_limit_ns": 30 * S,
        "quota_time_policy": "consumer_backlog_eviction",
        "publish_limit_messages_per_s": 7.0,
    }
    rows = [*steady([10]), *steady([20], **quota)]
    levels = load_of(rows).steps[:, 3:]
    assert levels[0].tolist() == [-1, 0, -1, 0, inf, inf]
    assert levels[1].tolist() == [5_000, 2, 30_000, 3, 7, inf]


def limited(second: int, messages: float | None, size: float | None, source: str) -> dict[str, Any]:
    """A row with a publish limit in force."""
    (row,) = steady(
        [second],
        publish_limit_messages_per_s=messages,
        publish_limit_bytes_per_s=size,
        publish_limit_source=source,
    )
    return row


def test_the_controller_s_limit_is_not_a_configured_one() -> None:
    set_, both = "namespace policy of a/b", "adaptive controller and namespace policy of a/b"
    rows = [
        limited(10, 3.0, 30.0, "adaptive controller"),
        limited(20, None, 900.0, set_),
        limited(30, 5.0, 900.0, both),
        limited(40, 4.0, 40.0, "adaptive controller"),
        limited(50, 80.0, 700.0, set_),
        limited(60, 4.0, 650.0, both),
        limited(70, 70.0, 40.0, "namespace policy of a/b and adaptive controller"),
        limited(80, None, None, ""),
        limited(90, 4.0, 40.0, "adaptive controller"),
    ]
    assert load_of(rows).steps[:, 7:].tolist() == [
        [inf, inf],
        [inf, 900],
        [inf, 900],
        [inf, 900],
        [80, 700],
        [80, 650],
        [70, 650],
        [inf, inf],
        [inf, inf],
    ]


def test_a_limit_seen_by_one_broker_holds_under_the_controller_of_the_next() -> None:
    moved: dict[str, Any] = {"source": "a", "counting_since_ns": T0 + 10 * S}
    rows = [
        limited(10, None, 900.0, "namespace policy of a/b"),
        limited(20, 4.0, 40.0, "adaptive controller") | moved,
    ]
    for names in ("ab", "ba"):
        named = [row | {"source": name} for row, name in zip(rows, names, strict=True)]
        assert load_of(named).steps[:, 8].tolist() == [900, 900]


def handed_over(*names: str) -> list[dict[str, Any]]:
    """A topic that each broker had for 30 s, one after the other; 600 of 1,000 bytes a second are
    drained."""
    rows = []
    for turn, name in enumerate(names):
        since = 30 * turn
        for second in (10, 20, 30):
            rows.append(
                sample(
                    since + second,
                    source=name,
                    boot_id=name,
                    counting_since_ns=T0 + since * S,
                    msgs_in=100 * second,
                    bytes_in=1_000 * second,
                    backlog_bytes=400 * (since + second),
                    oldest_age_ns=(since + second) * S // 2,
                )
            )
    return rows


def test_a_topic_that_moved_between_brokers_is_one_load_whatever_their_names() -> None:
    for names in ("ab", "ba", "bab", "aba", "cabc"):
        load = load_of(handed_over(*names))
        assert (load.from_ns, load.to_ns) == (T0, T0 + 30 * len(names) * S)
        assert load.steps[:, 0].tolist() == [1_000] * 3 * len(names)
        assert load.steps[:, 2].tolist() == [600] * 3 * len(names)
        assert load.drain_known_share == 1


def test_a_range_after_a_move_begins_with_the_backlog_of_the_broker_before() -> None:
    for names in ("ab", "ba"):
        load = load_of(handed_over(*names), since=30)
        assert (load.backlog_bytes, load.oldest_age_s) == (12_000, 15)


def test_a_clock_that_ran_ahead_hides_nothing_of_the_time_after_it() -> None:
    rows = [
        sample(s, seq=n, msgs_in=100 * n, bytes_in=1_000 * n)
        for n, s in enumerate((10, 20, 5_000, 5_010, 30, 40, 50), 1)
    ]
    load = load_of(rows, until=100)
    assert (load.from_ns, load.to_ns) == (T0, T0 + 50 * S)
    assert load.steps[:, 0].tolist() == [100] * 4


def test_rows_of_a_clock_that_is_years_off_cost_no_steps() -> None:
    far = 100_000_000
    rows = [*steady([10, 20]), *steady([far, far + 10, far + 20])]
    tracemalloc.start()
    try:
        load = load_of(rows, until=2e9)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert load.steps[:, 0].tolist() == [1_000] * 4
    assert load.to_ns == T0 + (far + 20) * S
    assert peak_bytes < 10_000_000


def test_a_window_in_which_the_clock_was_set_years_ahead_is_not_known() -> None:
    far = 100_000_000
    jump: dict[str, Any] = {"clock_step": True, "covered_from_ns": T0 + 20 * S}
    rows = [*steady([10, 20]), *steady([far], **jump), *steady([far + 10])]
    load = load_of(rows, until=2e9)
    assert load.steps[:, 0].tolist() == [1_000] * 3


@given(
    st.permutations(["a", "b", "c"]),
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(1, 30), st.integers(0, 9), st.integers(0, 3)),
        min_size=2,
        max_size=20,
    ),
)
def test_a_load_is_independent_of_broker_names(
    names: list[str], drawn: list[tuple[int, int, int, int]]
) -> None:
    counted = [0, 0, 0]
    rows = []
    for number, (broker, place, gain, backlog) in enumerate(sorted(drawn, key=lambda d: d[1])):
        counted[broker] += 100 * gain
        rows.append(
            (
                broker,
                sample(
                    10 * place + broker,
                    seq=number,
                    msgs_in=counted[broker],
                    bytes_in=10 * counted[broker],
                    backlog_bytes=1_000 * backlog,
                    oldest_age_ns=3 * S if backlog else None,
                ),
            )
        )

    def found(labels: list[str]) -> list[Load]:
        table = table_of([row | {"source": labels[broker]} for broker, row in rows])
        return [topic.load for topic in topic_loads(table, 0, FOREVER)]

    one, other = found(["a", "b", "c"]), found(names)
    assert [replace(load, steps=None) for load in one] == [  # type: ignore[arg-type]
        replace(load, steps=None)
        for load in other  # type: ignore[arg-type]
    ]
    for load, again in zip(one, other, strict=True):
        np.testing.assert_array_equal(load.steps, again.steps)


def test_a_range_begins_with_the_backlog_of_its_time() -> None:
    rows = [
        sample(s, bytes_in=1_000 * s, msgs_in=s, backlog_bytes=500 * s, oldest_age_ns=s * S // 2)
        for s in (10, 20, 30, 40)
    ]
    load = load_of(rows, since=20, until=30)
    assert (load.from_ns, load.to_ns) == (T0 + 20 * S, T0 + 30 * S)
    assert load.backlog_bytes == 10_000
    assert load.oldest_age_s == 10


def test_steps_may_be_longer_than_samples() -> None:
    load = load_of(steady([10, 20, 30, 40, 50, 60]), step_ns=30 * S)
    assert load.steps[:, 0].tolist() == [1_000] * 2


def test_topics_do_not_mix() -> None:
    rows = [
        row | {"topic": name, "partition": partition}
        for name, partition in (("a", None), ("a", 0), ("b", None))
        for row in steady([10, 20])
    ]
    table = table_of(rows)
    found = list(topic_loads(table, 0, FOREVER))
    names = [
        (table["topic"][t.first_row].as_py(), table["partition"][t.first_row].as_py())
        for t in found
    ]
    assert len(set(names)) == 3
    assert all(len(topic.load.steps) == 2 for topic in found)


def test_the_message_size_of_a_step_without_messages_is_the_previous_one() -> None:
    rows = [
        sample(10, msgs_in=0, bytes_in=0),
        sample(20, msgs_in=10, bytes_in=500),
        sample(30, msgs_in=10, bytes_in=500),
    ]
    assert load_of(rows).steps[:, 1].tolist() == [50, 50, 50]
    assert load_of(rows[:1]).steps[:, 1].tolist() == [1_000]
