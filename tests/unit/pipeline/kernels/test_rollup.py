"""Namespaces are summed minute by minute, in whatever pieces their rows come.

That these are the rows of the Spark view is played in tests/spark.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from headgate.pipeline.kernels.rollup import (
    JUDGED_INPUT,
    JUDGED_SUMS,
    ROLLUP_COLUMNS,
    ROLLUP_KEY,
    SUBSCRIPTION_INPUT,
    SUBSCRIPTION_SUMS,
    TOPIC_INPUT,
    TOPIC_SUMS,
    judged_parts,
    rollup_table,
    subscription_parts,
    topic_parts,
)
from headgate.pipeline.kernels.totals import totals
from headgate.pipeline.tables.arrow_types import arrow_schema, table_arrow_schema
from headgate.pipeline.tables.attribution import ATTRIBUTION, SHARE_COLUMNS
from headgate.pipeline.tables.columns import Table
from headgate.pipeline.tables.intervals import INTERVALS
from tests.unit.pipeline.play import S

AT = datetime(2025, 11, 21, 10, 6, tzinfo=UTC)
NEXT = AT + timedelta(minutes=1)


def batch(table: Table, names: tuple[str, ...], *rows: dict[str, Any]) -> pa.RecordBatch:
    schema = pa.schema([table_arrow_schema(table).field(name) for name in names])
    plain = {**dict.fromkeys(names), "cluster": "c", "minute": AT}
    return pa.RecordBatch.from_pylist([plain | row for row in rows], schema=schema)


def topics(*rows: dict[str, Any]) -> pa.RecordBatch:
    return batch(INTERVALS, TOPIC_INPUT, *rows)


def test_times_beyond_what_a_double_has_exactly_end_no_job() -> None:
    row = {"topic": A, "parked_topic_rate_ns": (1 << 57) + 1}
    (found,) = rolled_up(of_topics=[topics(row)])
    assert found["parked_topic_rate_s"] == pytest.approx((1 << 57) / S)


A, B = "persistent://acme/one/a", "persistent://acme/two/b"


def rolled_up(
    *, of_topics: Any, of_subscriptions: Any = (), judged: Any = ()
) -> list[dict[str, Any]]:
    found = rollup_table(
        totals(map(topic_parts, of_topics), ROLLUP_KEY, TOPIC_SUMS),
        totals(map(subscription_parts, of_subscriptions), ROLLUP_KEY, SUBSCRIPTION_SUMS),
        totals(map(judged_parts, judged), ROLLUP_KEY, JUDGED_SUMS),
    )
    assert found.schema == arrow_schema(ROLLUP_COLUMNS)
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows


def test_topics_of_a_namespace_are_summed_by_minute() -> None:
    pieces = [
        topics(
            {"topic": A, "msgs_in": 3, "eviction_size_messages": 2, "oldest_age_max_ns": 5},
            {"topic": B, "msgs_in": 10, "parked_topic_rate_ns": 30 * S},
        ),
        topics(
            {"topic": A, "msgs_in": 4, "eviction_time_messages": 1, "oldest_age_max_ns": 9},
            {"topic": A, "minute": NEXT, "msgs_in": 7},
        ),
    ]
    first, second, last = rolled_up(of_topics=pieces)
    assert (first["namespace"], first["topics"], first["msgs_in"]) == ("acme/one", 2, 7)
    assert (first["evicted_messages"], first["oldest_age_max_ns"]) == (3, 9)
    assert (second["namespace"], second["parked_topic_rate_s"]) == ("acme/two", 30.0)
    assert (second["parked_s"], first["parked_s"]) == (30.0, 0.0)
    assert (last["namespace"], last["minute"], last["msgs_in"]) == ("acme/one", NEXT, 7)
    assert (first["subscriptions"], first["backlog_messages"]) == (0, 0)
    assert (first["blame_consumer_s"], first["throttled_s"]) == (None, 0.0)


def test_topics_without_a_cluster_s_name_have_their_subscriptions() -> None:
    nameless = {"topic": A, "cluster": None}
    named, none = rolled_up(
        of_topics=[topics({**nameless, "msgs_in": 1}, {"topic": A, "msgs_in": 2})],
        of_subscriptions=[
            batch(
                INTERVALS,
                SUBSCRIPTION_INPUT,
                {**nameless, "backlog_messages": 5},
                {"topic": A, "backlog_messages": 7},
            )
        ],
    )
    assert (named["cluster"], named["msgs_in"], named["backlog_messages"]) == ("c", 2, 7)
    assert (none["cluster"], none["msgs_in"], none["backlog_messages"]) == (None, 1, 5)


def test_blame_is_corrected_by_verdicts() -> None:
    shares = dict.fromkeys(SHARE_COLUMNS, 0.0)
    minute = {"topic": A, "completeness": 0.5, "from_ns": 0, "to_ns": 60 * S, "bystander": False}
    judged = batch(
        ATTRIBUTION,
        JUDGED_INPUT,
        minute | shares | {"verdict": "THROTTLED_TOPIC", "share_throttled_topic": 1.0},
        minute | shares | {"verdict": "NONE", "share_consumer": 1.0},
        minute | shares | {"topic": B, "verdict": "CONSUMER", "share_consumer": 1.0},
    )
    waiting = batch(
        INTERVALS,
        SUBSCRIPTION_INPUT,
        {"topic": A, "backlog_messages": 5},
        {"topic": A, "backlog_messages": None},
    )
    known = [topics({"topic": A})]
    (row,) = rolled_up(of_topics=known, of_subscriptions=[waiting], judged=[judged])
    assert (row["subscriptions"], row["backlog_messages"]) == (2, 5)
    assert row["blame_throttled_topic_s"] == pytest.approx(30)
    assert row["blame_none_s"] == pytest.approx(30)
    assert (row["blame_consumer_s"], row["throttled_s"]) == (0.0, pytest.approx(30))


def test_without_topics_there_are_no_rows() -> None:
    assert rolled_up(of_topics=[]) == []


def test_delayed_messages_that_are_not_due_are_no_backlog() -> None:
    known = [topics({"topic": A})]
    waiting = batch(
        INTERVALS,
        SUBSCRIPTION_INPUT,
        {"topic": A, "backlog_messages": 12, "delayed": 5},
        {"topic": A, "backlog_messages": 3, "delayed": 4},
        {"topic": A, "backlog_messages": 1, "delayed": None},
    )
    (row,) = rolled_up(of_topics=known, of_subscriptions=[waiting])
    assert row["backlog_messages"] == 8
