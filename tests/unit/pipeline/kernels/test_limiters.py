"""Granted and held amounts of limiters, from the minutes of stories."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from headgate.pipeline.kernels.limiters import (
    INTERVAL_COLUMNS,
    SAMPLE_COLUMNS,
    SAMPLES,
    SAMPLES_TYPE,
    timeline_table,
)
from headgate.pipeline.tables.arrow_types import table_arrow_schema
from headgate.pipeline.tables.columns import HOUR_NS, MINUTE_NS
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.tables.publishing import THROTTLE_TIMELINE
from headgate.pipeline.tables.quotas import EVENT_IDENTITY
from headgate.record.fields import Kind
from tests.unit.pipeline.limiters_by_row import timeline_by_row
from tests.unit.pipeline.play import S, bronze, minutes
from tests.unit.pipeline.random_rows import among, assert_same_rows, minutes_of_subjects
from tests.unit.pipeline.story_play import BEGIN, NS, tell

HOUR = BEGIN // HOUR_NS


def inputs(messages: list[bytes]) -> list[dict[str, Any]]:
    """Minutes of limiters with their samples, as the step puts them together."""
    samples = [row for row in bronze(messages).to_pylist() if row["kind"] == Kind.LIMITER.value]
    return [
        {
            **{name: minute[name] for name in INTERVAL_COLUMNS},
            SAMPLES: [
                {name: sample[name] for name in SAMPLE_COLUMNS}
                for sample in samples
                if sample["subject"] == minute["subject"]
                and (sample["covered_to_ns"] - 1) // MINUTE_NS == minute["from_ns"] // MINUTE_NS
            ],
        }
        for minute in minutes(messages, Kind.LIMITER)
    ]


SCHEMA = pa.schema(
    [
        *(table_arrow_schema(INTERVALS).field(name) for name in INTERVAL_COLUMNS),
        pa.field(SAMPLES, SAMPLES_TYPE),
    ]
)


def limiter_minute(minute: dict[str, Any]) -> dict[str, Any]:
    """The row of one minute."""
    table = pa.Table.from_pylist([minute], schema=SCHEMA)
    (row,) = timeline_table(table, {minute["from_ns"] // HOUR_NS}).to_pylist()
    return dict(row)


MESSAGES = tell(330)
INPUTS = inputs(MESSAGES)
HELD, IDLE = (
    [minute for minute in INPUTS if minute["level"] == level]
    for level in ("publish_broker", "subscription")
)


def test_a_row_for_each_minute_of_the_wanted_hours() -> None:
    table = pa.Table.from_pylist(INPUTS, schema=SCHEMA)
    found = timeline_table(table, {HOUR, HOUR + 1})
    assert found.schema == table_arrow_schema(THROTTLE_TIMELINE)
    assert found.num_rows == 2 * 6
    assert timeline_table(table, {HOUR + 1}).num_rows == 2


def test_waiters_of_a_whole_minute_are_listed() -> None:
    row = limiter_minute(HELD[1])
    assert row["limit_per_s"] == 100.0
    assert (row["offered"], row["granted"], row["held"]) == (9_000, 6_000, 3_000)
    assert (row["use"], row["waiting_share"]) == (1.0, 0.5)
    assert row["waiters_max"] == 6
    assert json.loads(row["waiters"]) == [
        {"waiter": f"{NS}under_broker|p1", "granted": 3_600},
        {"waiter": f"{NS}limited|p2", "granted": 150},
        {"waiter": f"{NS}raised|p2", "granted": 150},
    ]
    assert row["sentence"] == (
        "the broker-wide publish limit of 100 msg/s (broker setting"
        " brokerPublisherThrottlingMaxMessageRate) let 6,000 messages through, 100 % of what it"
        " allows; it had waiters for 50 % of the time, at most 6 at once, and what waits grew by"
        f" 3,000 messages; it held {NS}under_broker|p1 (granted 3,600), {NS}limited|p2 (granted"
        f" 150) and {NS}raised|p2 (granted 150)"
    )


def test_a_batch_that_was_read_twice_counts_once() -> None:
    twice = {**HELD[1], SAMPLES: HELD[1][SAMPLES] * 2}
    assert limiter_minute(twice) == limiter_minute(HELD[1])


def test_use_of_a_partial_minute_refers_to_its_covered_time() -> None:
    row = limiter_minute(HELD[-1])
    assert row["to_ns"] - row["from_ns"] == 30 * S
    assert (row["granted"], row["use"], row["waiting_share"]) == (3_000, 1.0, 0.5)


def test_with_lost_rows_shares_refer_to_the_whole_minute() -> None:
    row = limiter_minute({**HELD[1], "covered_ns": 50 * S, "gaps": 1})
    assert (row["use"], row["waiting_share"]) == (1.0, 0.5)


def test_during_downtime_shares_refer_to_the_covered_time() -> None:
    row = limiter_minute({**HELD[1], "covered_ns": 30 * S, "granted": 1_500})
    assert (row["use"], row["waiting_share"]) == (0.5, 1.0)


def test_a_limiter_without_waiters() -> None:
    row = limiter_minute({**IDLE[0], SAMPLES: None})
    assert row["waiters"] is None
    assert (row["use"], row["held"], row["waiters_max"]) == (pytest.approx(0.1), 0, 0)
    assert row["limit_per_s"] == 500.0
    assert row["sentence"] == (
        "the subscription's dispatch limit of 1,000 B per 2 s (namespace policy acme/ns) let 3,000"
        " bytes through, 10 % of what it allows; it had no waiters"
    )


def test_a_shrinking_waiting_amount_means_nothing_held() -> None:
    row = limiter_minute({**HELD[1], "offered": 5_000})
    assert row["held"] == 0
    assert "grew" not in row["sentence"]


@pytest.mark.parametrize("period_ns", [0, -5])
def test_a_period_that_is_none_ends_no_job(period_ns: int) -> None:
    assert limiter_minute(HELD[0] | {"limit_period_ns": period_ns})["sentence"]


def test_unknown_amounts_are_null() -> None:
    names = ("limit", "limit_period_ns", "limit_source", "offered", "granted", "waiting_ns")
    bare = {**HELD[1], **dict.fromkeys(names), SAMPLES: None, "covered_ns": 0}
    row = limiter_minute(bare)
    unknown = ("limit_per_s", "held", "use", "waiting_share", "waiters")
    assert [row[name] for name in unknown] == [None] * len(unknown)
    assert row["sentence"] == "the broker-wide publish limit was in force; it had no waiters"
    sample = {**dict.fromkeys(SAMPLE_COLUMNS), "waiter_1": "p"}
    assert json.loads(limiter_minute({**bare, SAMPLES: [sample]})["waiters"]) == [
        {"waiter": "p", "granted": None}
    ]


def _samples(random: Random) -> list[dict[str, Any]] | None:
    """Rows of a minute's telemetry, some of them read twice."""
    if random.random() < 0.3:
        return None
    found = []
    for seq in range(random.randrange(5)):
        names = [random.choice((None, "p", "q|1", 'r"é', "s")) for _ in range(5)]
        found.append(
            {
                **dict(
                    zip(EVENT_IDENTITY, ("demo", "boot", seq, random.randrange(2)), strict=True)
                ),
                "waiters_max": random.choice((None, 0, 3, 1_200)),
                **{f"waiter_{i + 1}": name for i, name in enumerate(names)},
                **{f"waiter_{i + 1}_amount": random.choice((None, 0, 7, 6_000)) for i in range(5)},
            }
        )
    return found + found[:1]


_DRAWS = {
    "level": among("publish_broker", "topic", "own", None),
    "dimension": among("messages", "bytes", None),
    "broker": among("one", None),
    "completeness": among(0.5, 1.0),
    "covered_ns": among(0, 20 * S, 60 * S),
    "limit": among(None, 0, 1, 1_000, 10**13 + 1),
    "limit_period_ns": among(None, S, 7 * S),
    "limit_source": among(None, "topic policy"),
    "offered": among(None, 0, 1, 9_000),
    "granted": among(None, 0, 1, 6_000),
    "waiting_ns": among(None, 0, 1, S // 10, 30 * S),
    "gaps": among(0, 0, 1),
    "waiters_max": among(None, 0, 2),
    SAMPLES: _samples,
}


@pytest.mark.parametrize("seed", range(6))
def test_random_minutes_have_the_rows_of_the_row_by_row_form(seed: int) -> None:
    rows = minutes_of_subjects(
        seed,
        12,
        40,
        lambda subject: {"cluster": "demo", "subject": f"t{subject}", "incarnation": 1},
        _DRAWS,
    )
    table = pa.Table.from_pylist(list(rows), schema=SCHEMA)
    for hours in ({HOUR, HOUR + 1}, {HOUR}):
        assert_same_rows(timeline_table(table, hours), timeline_by_row(table, hours))
