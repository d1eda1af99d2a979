"""Park causes of topics, from the minutes of stories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from headgate.flow.account.verdict import INFERRED, MEASURED
from headgate.flow.limits.precedence import ADAPTIVE_SOURCE
from headgate.pipeline.kernels.publish_limits import BROKER_LIMIT_COLUMNS
from headgate.pipeline.kernels.publishing import (
    INPUT_COLUMNS,
    INTERVAL_COLUMNS,
    publish_range_table,
    publish_table,
)
from headgate.pipeline.tables.arrow_types import arrow_schema, table_arrow_schema
from headgate.pipeline.tables.columns import DOUBLE, HOUR_NS, STRING, TableColumn
from headgate.pipeline.tables.intervals import INTERVALS, TOPIC_ORDER
from headgate.pipeline.tables.publishing import PARK_COLUMNS, PUBLISH_ATTRIBUTION
from headgate.record.fields import PARKED_FIELD_NAMES, Kind
from tests.unit.pipeline.play import S, minutes
from tests.unit.pipeline.publishing_by_row import publish_by_row, publish_range_by_row
from tests.unit.pipeline.random_rows import among, assert_same_rows, minutes_of_subjects
from tests.unit.pipeline.story_play import BEGIN, NS, TOPICS, tell

HOUR = BEGIN // HOUR_NS
BROKER_LIMIT = dict(zip(BROKER_LIMIT_COLUMNS, (100.0, "broker setting x", None, None), strict=True))
_SCHEMA = arrow_schema(
    (
        *(column for column in INTERVALS.columns if column.name in INTERVAL_COLUMNS),
        *(
            TableColumn(name, STRING if name.endswith("source") else DOUBLE)
            for name in BROKER_LIMIT_COLUMNS
        ),
    )
)


def table(rows: list[dict[str, Any]]) -> pa.Table:
    found = [{**row, **BROKER_LIMIT} for row in rows]
    made = pa.Table.from_pylist(found, schema=_SCHEMA).select(list(INPUT_COLUMNS))
    return made.sort_by([(name, "ascending") for name in TOPIC_ORDER])


def park_columns(
    rows: Sequence[dict[str, Any]], before: dict[str, Any] | None, *, is_range: bool = False
) -> dict[str, Any]:
    """The park columns of some minutes of one topic, after the minute ``before``."""
    earlier = [] if before is None else [{**before, "from_ns": rows[0]["from_ns"] - 60 * S}]
    given = [{**row, "to_ns": rows[0]["from_ns"]} for row in earlier] + list(rows)
    found = [{name: row.get(name) for name in INPUT_COLUMNS} for row in given]
    ordered = pa.Table.from_pylist(found, schema=_SCHEMA).select(list(INPUT_COLUMNS))
    if is_range or len(rows) > 1:
        judged = publish_range_table(ordered, rows[0]["from_ns"], rows[-1]["to_ns"])
    else:
        judged = publish_table(ordered, {rows[0]["from_ns"] // HOUR_NS})
    return {c.name: judged.column(c.name).to_pylist()[-1] for c in PARK_COLUMNS}


ROWS = minutes(tell(600), Kind.TOPIC)
FOUND = publish_table(table(ROWS), {HOUR, HOUR + 1}).to_pylist()


def of(topic: str, rows: list[dict[str, Any]] = FOUND) -> list[dict[str, Any]]:
    """Its minutes in order."""
    return [row for row in rows if row["topic"] == f"{NS}{topic}"]


def sentences(topic: str) -> list[str]:
    return [row["sentence"] for row in of(topic)]


def test_only_topics_with_published_or_parked_messages_have_a_row() -> None:
    assert {row["topic"] for row in FOUND} == set(TOPICS) - {f"{NS}idle"}
    assert len(FOUND) == 10 * (len(TOPICS) - 1)
    assert {row["hour"] for row in FOUND} == {10, 11}
    assert publish_table(table(ROWS), set()).schema == table_arrow_schema(PUBLISH_ATTRIBUTION)
    only = publish_table(table(ROWS), {HOUR + 1}).to_pylist()
    assert only == [row for row in FOUND if row["hour"] == 11]


def test_a_topic_without_publishes_whose_messages_wait_has_rows() -> None:
    held = of("quota_held")
    assert [row["msgs_in"] for row in held] == [3_000] * 3 + [0] * 7
    assert [row["held_share"] for row in held] == [0.0] * 3 + [1.0] * 7


def test_a_static_limit_is_named_with_its_source() -> None:
    for row in of("limited"):
        assert (row["cause"], row["second_cause"]) == ("topic_rate", None)
        assert row["held_share"] == pytest.approx(0.95)
        assert row["parked_topic_rate_ns"] == 57 * S
        assert row["parked_topic_rate_messages"] == 1_200
        assert row["sentence"] == (
            "the topic's publish limit of 10 msg/s (topic policy) held producers for 57 s of this"
            " minute; 1,200 messages wait at its end"
        )


def test_the_holding_limit_is_named_even_if_it_was_raised() -> None:
    told = sentences("raised")
    assert told[4].endswith("held producers for 60 s of this minute; 50 messages wait at its end")
    # 330 s after the beginning: within the first minute of the next hour.
    assert told[5] == (
        "the topic's publish limit of 10 msg/s (topic policy) held producers for 30 s of this"
        " minute; by the end the topic's publish limit was 900 msg/s"
    )
    assert told[6] == "nothing held publishing"


def test_of_static_and_adaptive_limit_the_holding_one_is_named() -> None:
    told = sentences("adaptive")
    assert told[0] == "nothing held publishing"
    assert told[1] == (
        "the adaptive controller's publish limit of 7,500 B/s held producers for 60 s of this"
        " minute"
    )
    assert told[2].endswith(
        "held producers for 30 s of this minute; by the end the adaptive controller's publish limit"
        " was gone"
    )
    assert of("adaptive")[2]["cause"] == "adaptive"


def test_the_broker_limit_and_the_second_cause_are_named() -> None:
    row = of("under_broker")[3]
    assert (row["cause"], row["second_cause"]) == ("broker_rate", "pending_limit")
    assert row["held_share"] == pytest.approx(0.5)
    assert row["sentence"] == (
        "the broker-wide publish limit of 100 msg/s (broker setting x) held producers for 30 s and"
        " too many unanswered messages of a connection (maxPendingPublishRequestsPerConnection) for"
        " 6 s of this minute; 7 messages wait at its end"
    )
    unknown = {**ROWS_OF_BROKER[3], **dict.fromkeys(BROKER_LIMIT_COLUMNS)}
    assert park_columns([unknown], None)["sentence"].startswith(
        "the broker-wide publish limit held producers for 30 s and"
    )


ROWS_OF_BROKER = of("under_broker", ROWS)


def test_quota_and_memory_are_named() -> None:
    assert sentences("quota_held")[5] == (
        "the backlog quota of 60 MiB (namespace policy acme/ns, producer_request_hold) held"
        " producers for 60 s of this minute; 5 messages wait at its end"
    )
    assert sentences("paused")[0] == (
        "too much that waited in memory (headgateMaxParkedBytesPerConnection,"
        " maxMessagePublishBufferSizeInMB) held producers for 10 s of this minute"
    )
    assert set(sentences("paused")[1:]) == {"nothing held publishing"}


def test_a_removed_quota_is_named_from_the_previous_minute() -> None:
    row = {**of("quota_held", ROWS)[5], **BROKER_LIMIT}
    lifted = {**row, "quota_size_limit_bytes": None}
    assert "the backlog quota held" in park_columns([lifted], None)["sentence"]
    assert "the backlog quota of 60 MiB (" in park_columns([lifted], row)["sentence"]


def test_a_lost_minute_breaks_the_chain_of_limits() -> None:
    """So that a minute follows from no more than itself and the one before."""
    rows = of("raised", ROWS)
    lonely = publish_table(table([*rows[:4], *rows[5:]]), {HOUR, HOUR + 1}).to_pylist()
    assert "limit of 900 msg/s (topic policy) held producers for 30 s" in lonely[4]["sentence"]


def test_the_previous_minute_counts_even_without_a_row() -> None:
    rows = of("raised", ROWS)
    nothing = {"msgs_in": 0, "bytes_in": 0, **dict.fromkeys(PARKED_FIELD_NAMES, 0)}
    rows[4] = {**rows[4], **nothing}
    found = publish_table(table(rows), {HOUR, HOUR + 1}).to_pylist()
    assert [row["minute"] for row in found] == [row["minute"] for row in rows if row != rows[4]]
    assert "limit of 10 msg/s (topic policy) held producers for 30 s" in found[4]["sentence"]


def test_a_minute_with_a_part_of_a_message_has_a_row() -> None:
    """A message between two looks is cut: sums over the hour lacked its bytes."""
    rows = of("raised", ROWS)
    part = {"msgs_in": 0, "bytes_in": 389, **dict.fromkeys(PARKED_FIELD_NAMES, 0)}
    rows[4] = {**rows[4], **part}
    found = publish_table(table(rows), {HOUR, HOUR + 1}).to_pylist()
    assert [row["minute"] for row in found] == [row["minute"] for row in rows]


def test_a_range_is_summed_from_seconds() -> None:
    found = publish_range_table(table(ROWS), BEGIN + 60 * S, BEGIN + 480 * S).to_pylist()
    assert {row["topic"] for row in found} == set(TOPICS)
    by_name = {row["topic"].removeprefix(NS): row for row in found}
    raised = by_name["raised"]
    assert (raised["from_ns"], raised["to_ns"]) == (BEGIN + 60 * S, BEGIN + 480 * S)
    assert raised["parked_topic_rate_ns"] == 270 * S
    assert raised["held_share"] == pytest.approx(270 / 420)
    assert raised["sentence"] == (
        "the topic's publish limit of 10 msg/s (topic policy) held producers for 4 min of these"
        " 7 min (64 %); by the end the topic's publish limit was 900 msg/s"
    )
    assert raised["msgs_in"] == 10 * 270 + 100 * 150
    assert by_name["idle"]["sentence"] == "nothing held publishing"
    assert by_name["idle"]["held_share"] == 0.0
    assert (
        "7,500 B/s held producers for 90 s of these 7 min (21 %)" in by_name["adaptive"]["sentence"]
    )
    assert publish_range_table(table(ROWS), 0, BEGIN).num_rows == 0


def test_a_range_within_one_minute_is_that_minute() -> None:
    (row,) = publish_range_table(table(of("limited", ROWS)), BEGIN + S, BEGIN + 2 * S).to_pylist()
    assert row["parked_topic_rate_ns"] == 57 * S


def test_unknown_amounts_are_null_and_evidence_is_the_weakest() -> None:
    rows = of("limited", ROWS)[:2]
    bare = [{**r, **BROKER_LIMIT, **dict.fromkeys(PARKED_FIELD_NAMES)} for r in rows]
    judged = park_columns([bare[0], {**bare[1], "evidence": INFERRED}], None)
    assert judged["parked_adaptive_ns"] is None
    assert judged["evidence"] == INFERRED
    assert (judged["cause"], judged["sentence"]) == (None, "nothing held publishing")
    assert set(judged) == {column.name for column in PARK_COLUMNS}
    nothing = {**bare[0], "covered_ns": 0}
    assert park_columns([nothing], None)["held_share"] is None


_PARKED = among(None, 0, 0, 0, 1, 100_000_000, 3 * S, 57 * S)
_DRAWS = {
    "broker": among("one", "two"),
    "evidence": among(MEASURED, MEASURED, INFERRED),
    "covered_ns": among(0, 20 * S, 60 * S),
    "msgs_in": among(None, 0, 0, 5),
    "bytes_in": among(None, 0, 5_000),
    "duplicates_dropped": among(None, None, 0, 1, 12),
    "gaps": among(0, 1),
    "producers": among(None, 2),
    **{name: _PARKED if name.endswith("_ns") else among(None, 0, 3) for name in PARKED_FIELD_NAMES},
    "publish_limit_messages_per_s": among(None, None, 0.2, 10.0, 900.0),
    "publish_limit_bytes_per_s": among(None, 7_500.0, 1e6),
    "publish_limit_source": among(
        None, "topic policy", ADAPTIVE_SOURCE, f"{ADAPTIVE_SOURCE} and topic policy"
    ),
    "natural_rate_messages_per_s": among(None, 1.5),
    "natural_rate_bytes_per_s": among(None, 2.5),
    "backlog_bytes": among(None, 0, 50, 100),
    "oldest_age_ns": among(None, 5 * S, 10 * S),
    "quota_size_limit_bytes": among(None, None, 0, 100),
    "quota_size_policy": among(None, "producer_request_hold"),
    "quota_size_source": among(None, "topic policy"),
    "quota_time_limit_ns": among(None, None, 0, 10 * S),
    "quota_time_policy": among(None, "producer_exception"),
    "quota_time_source": among(None, "namespace policy a/b"),
    BROKER_LIMIT_COLUMNS[0]: among(None, 100.0),
    BROKER_LIMIT_COLUMNS[1]: among(None, "broker setting x"),
    BROKER_LIMIT_COLUMNS[2]: among(None, 1e6, 2e6),
    BROKER_LIMIT_COLUMNS[3]: among(None, "broker setting y"),
}


def _random_table(seed: int, kept: float) -> pa.Table:
    rows = minutes_of_subjects(
        seed,
        12,
        30,
        lambda topic: {
            "cluster": "demo",
            "topic": f"t{topic // 2}",
            "partition": None if topic % 2 else 0,
            "incarnation": topic,
        },
        _DRAWS,
        kept=kept,
    )
    made = pa.Table.from_pylist(list(rows), schema=_SCHEMA).select(list(INPUT_COLUMNS))
    return made.sort_by([(name, "ascending") for name in TOPIC_ORDER])


@pytest.mark.parametrize("kept", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("seed", range(4))
def test_random_minutes_have_the_rows_of_the_row_by_row_form(seed: int, kept: float) -> None:
    made = _random_table(seed, kept)
    for hours in ({HOUR, HOUR + 1}, {HOUR}, {HOUR + 1}):
        assert_same_rows(publish_table(made, hours), publish_by_row(made, hours))


@pytest.mark.parametrize("kept", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("seed", range(4))
def test_random_ranges_have_the_rows_of_the_row_by_row_form(seed: int, kept: float) -> None:
    made = _random_table(seed, kept)
    first_ns = made.column("from_ns").to_pylist()[0]
    for since, until in ((0, 60), (7, 19), (3, 4), (200, 300)):
        span = (first_ns + since * 60 * S, first_ns + until * 60 * S + S)
        assert_same_rows(publish_range_table(made, *span), publish_range_by_row(made, *span))
