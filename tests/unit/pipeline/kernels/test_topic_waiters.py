"""The number of subscriptions that waited for one topic limit."""

from __future__ import annotations

from functools import cache
from typing import Any

import pyarrow as pa

from headgate.pipeline.kernels.topic_waiters import INPUT_COLUMNS, TOPIC_KEY, waiters
from headgate.pipeline.tables.arrow_types import table_arrow_schema
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.record.fields import STATE_FIELD_NAMES
from tests.unit.pipeline.judged import judge_each, judge_ranges
from tests.unit.pipeline.play import HUNGRY, S, minutes, play


@cache
def played_minutes() -> list[dict[str, Any]]:
    """Minutes of every situation over three minutes."""
    return minutes(play(180))


@cache
def limited_minutes() -> list[dict[str, Any]]:
    """Those of the topic with a limit of its own."""
    return [row for row in played_minutes() if row["topic"].endswith("/topic-limit")]


HELD = next(name for name in STATE_FIELD_NAMES if HUNGRY["topic"] in name)


def counted(rows: list[dict[str, Any]], *place: str) -> list[dict[str, Any]]:
    table = pa.Table.from_pylist(rows, table_arrow_schema(INTERVALS))
    names = [*TOPIC_KEY, *place]
    columns = list(dict.fromkeys([*INPUT_COLUMNS, *names]))
    found: list[dict[str, Any]] = waiters(table.select(columns), names).to_pylist()
    return found


def test_two_waiters_are_counted_and_a_single_one_is_not() -> None:
    (found,) = counted(played_minutes())
    assert found["topic"].endswith("/topic-limit")
    assert found["topic_waiters"] == 2
    assert counted([row for row in limited_minutes() if row["subscription"] == "one"]) == []


def test_each_minute_separately() -> None:
    several = counted(played_minutes(), "minute")
    assert len(several) == len(limited_minutes()) / 2
    assert {row["topic_waiters"] for row in several} == {2}


def test_a_moment_of_throttling_does_not_count_as_waiting() -> None:
    moment = [
        row | ({HELD: S} if row["subscription"] == "two" else {}) | {"state_caught_up_ns": 59 * S}
        for row in limited_minutes()
    ]
    assert counted(moment) == []


def test_the_sentence_equals_that_of_explain() -> None:
    """Of each that shares a limit, for a minute and for a range."""
    for found in (
        *judge_each(limited_minutes(), None, 2),
        *judge_ranges(limited_minutes(), None, topic_waiters=2),
    ):
        assert "held 2 waiting subscriptions" in found["sentence"]
        assert (
            "500 msg/s are published and each of the 2 subscriptions needs them"
            in found["sentence"]
        )
        assert found["sentence"].endswith("so raise it above 1,000 msg/s.")
    for found in judge_each(
        [row for row in played_minutes() if row["topic"].endswith("/sub-limit")], None, 2
    ):
        assert "held this subscription" in found["sentence"]
