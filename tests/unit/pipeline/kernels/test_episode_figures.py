"""Causes and sentences that follow from the sums of an episode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headgate.flow.sentences.episode import Ending
from headgate.pipeline.kernels.episode_figures import (
    EpisodeFigures,
    first_of_largest,
    group_begins,
    last_positive,
)
from headgate.pipeline.tables.arrow_types import TIMESTAMP
from headgate.pipeline.tables.attribution import BLAMES
from tests.unit.pipeline.play import T0, S


def columns(blame: dict[str, int], ending: Ending = Ending.OVER, **more: Any) -> dict[str, Any]:
    """The columns of one episode of ten minutes with such seconds of blame."""
    facts = {
        "start_ns": np.array([T0]),
        "end_ns": np.array([T0 + 600 * S]),
        "before": np.array([False]),
        "minutes": np.array([8]),
        "peak": np.array([1_200]),
        "peak_minute": pa.chunked_array([pa.array([T0 // 1_000]).cast(TIMESTAMP)]),
        "growth": np.array([7]),
        "oldest_age_ns_max": np.array([9]),
        "blame_ns": np.array([[blame.get(name, 0) * S] for name in BLAMES]),
        "stuck_ns": np.array([0]),
        "covered_ns": np.array([300.0 * S]),
        "is_inferred": np.array([False]),
        "evicted": np.array([0]),
        "evicted_by": pa.table({"evicted_by": [None], "evicted_by_limit": [None]}),
        "expired": np.array([0]),
        "expired_by": pa.table({"expired_by_ttl_ns": [None], "expired_by_source": [None]}),
    }
    found = EpisodeFigures(**(facts | more)).columns([ending])
    return {name: column.to_pylist()[0] for name, column in found.items()}


@pytest.mark.parametrize(
    ("blame", "cause", "second"),
    [
        ({"NONE": 600}, None, None),
        ({"NONE": 500, "BROKER": 100}, "BROKER", None),
        ({"CONSUMER": 300, "BROKER": 300}, "CONSUMER", "BROKER"),
        ({"CONSUMER": 95, "THROTTLED_TOPIC": 5}, "CONSUMER", "THROTTLED_TOPIC"),
        ({"CONSUMER": 96, "THROTTLED_TOPIC": 4}, "CONSUMER", None),
        ({}, None, None),
    ],
)
def test_causes_follow_from_blame(
    blame: dict[str, int], cause: str | None, second: str | None
) -> None:
    found = columns(blame)
    assert (found["cause"], found["second_cause"]) == (cause, second)
    assert found["blame_broker_ns"] == blame.get("BROKER", 0) * S


def test_the_sentence_has_cause_and_peak() -> None:
    found = columns({"CONSUMER": 450, "NONE": 150}, Ending.SKIPPED)
    assert found["sentence"] == (
        "a backlog from 2025-11-21 10:00 UTC to 2025-11-21 10:10 UTC (10 min), at most 1,200"
        " messages (at 2025-11-21 10:00 UTC); the consumer is to blame for 75 % of the time; it"
        " ended when the waiting messages were skipped"
    )
    assert (found["completeness"], found["evidence"], found["is_open"]) == (0.5, "measured", False)


def test_what_was_lost_is_named_with_its_cause() -> None:
    quota = {
        "evicted_by": ["size"],
        "evicted_by_limit": [1 << 20],
        "evicted_by_source": ["topic policy"],
    }
    ttl = {"expired_by_ttl_ns": [60 * S], "expired_by_source": ["topic policy"]}
    found = columns(
        {"CONSUMER": 600},
        evicted=np.array([1]),
        evicted_by=pa.table(quota),
        expired=np.array([1_200]),
        expired_by=pa.table(ttl),
    )
    assert found["sentence"].endswith(
        "; the size quota of 1 MiB (topic policy) evicted 1 message before it was acknowledged; the"
        " message TTL of 60 s (topic policy) expired 1,200 messages before they were acknowledged"
    )
    assert (found["evicted"], found["expired"], found["expired_by_ttl_ns"]) == (1, 1_200, 60 * S)


def test_the_last_loss_of_each_group() -> None:
    lost = np.array([0, 3, 0, 0, 0, 2])
    assert last_positive(lost, np.array([0, 3, 5])).to_pylist() == [1, None, 5]


def test_an_open_episode_that_began_before() -> None:
    more = {"before": np.array([True]), "is_inferred": np.array([True])}
    found = columns({"CONSUMER": 600}, Ending.OPEN, **more)
    assert found["sentence"].startswith("a backlog since before 2025-11-21 10:00 UTC, still going")
    assert (found["is_open"], found["evidence"], found["continues_before"]) == (
        True,
        "inferred",
        True,
    )


def test_groups_and_their_largest() -> None:
    begins = group_begins(np.array([False, True, False, False]))
    assert begins.tolist() == [0, 2]
    assert first_of_largest(np.array([1, 3, 5, 2, 5]), begins).tolist() == [1, 2]


def test_a_dispatcher_that_was_stuck_for_most_of_the_brokers_time_is_said() -> None:
    blame = {"BROKER": 400, "CONSUMER": 200}
    stuck = columns(blame, Ending.OPEN, stuck_ns=np.array([201 * S]))
    assert "dispatcher, which was stuck, is to blame for 67 %" in stuck["sentence"]
    assert stuck["sentence"].endswith("; unload the topic")
    assert stuck["stuck_ns"] == 201 * S
    other = columns(blame, Ending.OPEN, stuck_ns=np.array([200 * S]))
    assert "the broker itself is to blame" in other["sentence"]
