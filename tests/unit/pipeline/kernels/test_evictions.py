"""Rows of ``evictions`` by the kernel, event by event."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.units import KIB
from headgate.pipeline.kernels.decode import bronze_tables
from headgate.pipeline.kernels.evictions import INPUT_COLUMNS, eviction, evictions_table
from headgate.pipeline.tables.arrow_types import table_arrow_schema
from headgate.pipeline.tables.bronze import EVENT_IDENTITY
from headgate.pipeline.tables.columns import HOUR_NS
from headgate.pipeline.tables.quotas import EVICTION_EVENT, EVICTIONS
from tests.unit.pipeline.play import T0, S, message_batch
from tests.unit.pipeline.quota_play import NS, SOURCE, act, acts_until, quota_play

HOUR = T0 // HOUR_NS


def table(messages: list[bytes]) -> pa.Table:
    """Events of eviction, as the kernel gets them."""
    events = dict(bronze_tables(message_batch(messages)))["bronze_events"]
    assert set(events["event"].to_pylist()) == {EVICTION_EVENT, "quota_exceeded"}
    events = events.filter(pc.equal(events["event"], EVICTION_EVENT)).select(INPUT_COLUMNS)
    return events.sort_by([(name, "ascending") for name in EVENT_IDENTITY])


def test_an_event_gives_a_row_with_its_losses() -> None:
    found = evictions_table(table(quota_play(70)), {HOUR})
    assert found.schema == table_arrow_schema(EVICTIONS)
    assert found.num_rows == acts_until(70)
    row = found.to_pylist()[0]
    losses = json.loads(row.pop("subscriptions"))
    assert losses == [
        {"subscription": "audit", "messages": 90, "bytes": 90 * KIB},
        {"subscription": "ö", "messages": 10, "bytes": 10 * KIB},
    ]
    assert row == {
        "date": datetime(2025, 11, 21, tzinfo=UTC).date(),
        "hour": 10,
        "time": datetime(2025, 11, 21, 10, 0, 39, 999_999, tzinfo=UTC),
        "time_ns": T0 + 40 * S - 1,
        "cluster": "demo",
        "topic": f"{NS}aged",
        "partition": 2,
        "incarnation": 1,
        "broker": "b1:6650",
        "source": "b1",
        "boot_id": "boot-1",
        "seq": 3,
        "row": 0,
        "quota": "time",
        "policy": "consumer_backlog_eviction",
        "quota_source": SOURCE,
        "limit_bytes": None,
        "limit_ns": 40 * S,
        "backlog_bytes_start": 4_000 * KIB,
        "backlog_bytes": 3_600 * KIB,
        "oldest_age_ns_start": 40 * S,
        "oldest_age_ns": 36 * S,
        "acts": 1,
        "messages": 100,
        "bytes": 100 * KIB,
        "subscriptions_count": 5,
    }


def test_a_message_that_was_read_twice_counts_once() -> None:
    messages = quota_play(70)
    doubled = evictions_table(table([*messages, *messages[2:5]]), {HOUR})
    assert doubled.equals(evictions_table(table(messages), {HOUR}))


def test_an_event_without_a_topic_and_a_count_without_end_end_no_job() -> None:
    events = table(quota_play(70))
    wrong = events.to_pylist()
    wrong[0]["topic"] = None
    wrong[1]["outcome"] = f'{{"subscriptions": [{{}}], "subscriptions_more": {(1 << 63) - 1}}}'
    found = evictions_table(pa.Table.from_pylist(wrong, events.schema), {HOUR})
    assert found.num_rows == acts_until(70) - 1
    assert found["subscriptions_count"].to_pylist()[0] is None


def test_events_of_a_new_boot_are_separate() -> None:
    boots = [*quota_play(70), *quota_play(70, boot="boot-2", start_ns=T0 + 70 * S)]
    rows = evictions_table(table(boots), {HOUR}).to_pylist()
    assert [row["boot_id"] for row in rows] == ["boot-1"] * 8 + ["boot-2"] * 8
    assert len({row["time_ns"] for row in rows}) == 16


def test_only_wanted_hours_have_rows() -> None:
    both = table(quota_play(200, start_ns=T0 + 3_500 * S))
    counts = {hour: evictions_table(both, {hour}).num_rows for hour in (HOUR, HOUR + 1)}
    # The act at the full hour is in the window that ends there, and so in the hour before.
    assert counts == {HOUR: acts_until(100), HOUR + 1: acts_until(200) - acts_until(100)}
    assert evictions_table(both, {HOUR + 2}).num_rows == 0


@pytest.mark.parametrize(
    ("name", "topic", "partition"),
    [
        (f"{NS}t-partition-11", f"{NS}t", 11),
        (f"{NS}t", f"{NS}t", None),
        ("persistent://0a/1b/2c-partition-0", "persistent://0a/1b/2c", 0),
        ("no topic at all/", "no topic at all/", None),
        (None, None, None),
    ],
)
def test_topics_are_named_as_in_samples(
    name: str | None, topic: str | None, partition: int | None
) -> None:
    row = eviction(_event(topic=name))
    assert (row["topic"], row["partition"]) == (topic, partition)


@pytest.mark.parametrize(
    "outcome",
    [None, "", "{", "[]", "7", "null", "[" * 100_000, '{"messages":true,"subscriptions":{}}'],
)
def test_a_malformed_outcome_is_unknown(outcome: str | None) -> None:
    row = eviction(_event(outcome=outcome))
    assert (row["quota"], row["limit_ns"]) == ("time", 40 * S)
    for name in (
        "acts",
        "messages",
        "bytes",
        "backlog_bytes",
        "subscriptions",
        "subscriptions_count",
    ):
        assert row[name] is None


def test_values_out_of_range_are_unknown() -> None:
    outcome = {
        "messages": 1 << 63,
        "bytes": 1.5,
        "subscriptions": [7, {"subscription": "\ud800", "messages": "1", "more": 1}],
        "subscriptions_more": "many",
    }
    row = eviction(_event(outcome=json.dumps(outcome)))
    assert (row["messages"], row["bytes"], row["subscriptions_count"]) == (None, None, 1)
    expected = [{"subscription": "?", "messages": None, "bytes": None}]
    assert json.loads(row["subscriptions"]) == expected


def _event(**values: Any) -> dict[str, Any]:
    return {**dict.fromkeys(INPUT_COLUMNS), **act(), **values}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["quota", "source", "limit_ns", "messages", "subscriptions", "subscription"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.none() | st.text(max_size=20) | _JSON.map(json.dumps), _JSON.map(json.dumps))
def test_malformed_texts_do_not_stop_the_job(inputs: str | None, outcome: str) -> None:
    row = eviction(_event(inputs=inputs, outcome=outcome))
    written = pa.Table.from_pylist([row], schema=table_arrow_schema(EVICTIONS))
    assert written.num_rows == 1
    assert row["subscriptions"] is None or isinstance(json.loads(row["subscriptions"]), list)
