"""The law over arrays is the law of ``headgate.flow.account.verdict``, window by window."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.base.units import NS_PER_S
from headgate.flow.account.account import CELL_COUNT, Cell
from headgate.flow.account.verdict import (
    IN_FLIGHT_NS,
    INFERRED_CONFIDENCE,
    YOUNG_NS,
    Evidence,
    Judgement,
    LimitFact,
    Verdict,
    judge,
)
from headgate.flow.account.verdict import blame_shares as shares_of_one
from headgate.flow.limits.rate_limit import Dimension, Level
from headgate.pipeline.kernels.verdict_arrays import (
    NO_CODE,
    VERDICTS,
    EvidenceArrays,
    blame_shares,
    judge_arrays,
    winners,
)

MINUTE_NS = 60 * NS_PER_S


def arrays(windows: Sequence[Evidence]) -> EvidenceArrays:
    """The same windows side by side; votes only if one of them has parts."""

    def longs(name: str) -> Any:
        return np.array([getattr(window, name) for window in windows], np.int64)

    limits = np.full((len(Level), len(Dimension), len(windows)), np.nan)
    votes = np.zeros((len(VERDICTS), len(windows)), np.int64)
    for place, window in enumerate(windows):
        for fact in window.limits:
            for dimension, rate in enumerate((fact.messages_per_s, fact.bytes_per_s)):
                limits[fact.level, dimension, place] = math.nan if rate is None else rate
        if window.sub_windows_ns:
            parts = np.array(window.sub_windows_ns, np.int64).T
            np.add.at(votes[:, place], winners(blame_shares(parts)), parts.sum(axis=0))
    demonstrated = [window.demonstrated_ack_per_s for window in windows]
    return EvidenceArrays(
        window_ns=longs("window_ns"),
        cells_ns=np.array([window.cells_ns for window in windows], np.int64).T,
        backlog_start=longs("backlog_start"),
        backlog_end=longs("backlog_end"),
        oldest_age_ns_max=longs("oldest_age_ns_max"),
        appended=longs("appended"),
        delivered=longs("delivered"),
        acked=longs("acked"),
        unacked_start=longs("unacked_start"),
        unacked_end=longs("unacked_end"),
        evicted=longs("evicted"),
        delivered_bytes=longs("delivered_bytes"),
        limits_per_s=limits,
        demonstrated_ack_per_s=np.array([math.nan if p is None else p for p in demonstrated]),
        completeness=np.array([window.completeness for window in windows]),
        is_inferred=np.array([window.is_inferred for window in windows]),
        votes=votes if any(window.sub_windows_ns for window in windows) else None,
    )


def judgements(evidence: EvidenceArrays) -> list[Judgement]:
    """What the kernel says, as the law says it."""
    found = judge_arrays(evidence)
    return [
        Judgement(
            verdict=VERDICTS[found.verdict[i]],
            second=None if found.second[i] == NO_CODE else VERDICTS[found.second[i]],
            bystander=bool(found.bystander[i]),
            shares={v: float(found.shares[code, i]) for code, v in enumerate(VERDICTS)},
            dimension=None if found.dimension[i] == NO_CODE else Dimension(found.dimension[i]),
            confidence=float(found.confidence[i]),
            would_have_grown=(
                None if found.would_have_grown[i] == NO_CODE else bool(found.would_have_grown[i])
            ),
            growth=int(found.growth[i]),
            is_inferred=bool(evidence.is_inferred[i]),
        )
        for i in range(len(found.verdict))
    ]


def held(**parts: float) -> list[int]:
    """Nanoseconds of a minute, as parts of it by cell name."""
    cells = [0] * CELL_COUNT
    for name, part in parts.items():
        cells[Cell[name]] = round(part * MINUTE_NS)
    return cells


# A few values that meet, so that shares tie, are zero or lie just within 5 % of each other.
PARTS = st.sampled_from([0, 0, 0, 1, 475, 500, 525, 1_000, 20_000, 30_000_000_000])
CELLS = st.one_of(
    st.lists(PARTS, min_size=CELL_COUNT, max_size=CELL_COUNT),
    st.just([0] * CELL_COUNT),
    st.sampled_from(list(Cell)).map(lambda cell: held(**{cell.name: 1.0})),
)
COUNTS = st.sampled_from([0, 1, 2, 59, 60, 61, 1_000, 1_049, 1_050, 1_051, 3_000_000, 40_000_000])
RATES = st.sampled_from([None, 1.0, 16.666666666666668, 50.0, 1_000.0, 0.5])
EVIDENCE = st.builds(
    Evidence,
    window_ns=st.sampled_from([1, 7, NS_PER_S, MINUTE_NS, 59_999_999_999]),
    cells_ns=CELLS,
    backlog_start=COUNTS,
    backlog_end=COUNTS,
    oldest_age_ns_max=st.sampled_from(
        [0, 1, IN_FLIGHT_NS, IN_FLIGHT_NS + 1, YOUNG_NS - 1, YOUNG_NS, 10**12]
    ),
    appended=COUNTS,
    delivered=COUNTS,
    acked=COUNTS,
    unacked_start=COUNTS,
    unacked_end=COUNTS,
    evicted=st.one_of(st.just(0), COUNTS),
    delivered_bytes=COUNTS,
    limits=st.lists(
        st.builds(LimitFact, st.sampled_from(Level), RATES, RATES),
        max_size=3,
        unique_by=lambda fact: fact.level,
    ),
    sub_windows_ns=st.one_of(st.just(()), st.lists(CELLS, max_size=4)),
    demonstrated_ack_per_s=RATES,
    completeness=st.sampled_from([0.0, 0.3, 1.0]),
    is_inferred=st.booleans(),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(EVIDENCE, min_size=1, max_size=8))
def test_every_window_is_judged_as_the_law_judges_it(windows: list[Evidence]) -> None:
    for found, window in zip(judgements(arrays(windows)), windows, strict=True):
        expected = judge(window)
        assert replace(found, confidence=0.0, shares={}) == replace(
            expected, confidence=0.0, shares={}
        )
        assert found.shares == expected.shares
        assert found.confidence == pytest.approx(expected.confidence, rel=1e-12, abs=1e-15)


def evidence(**changes: Any) -> Evidence:
    return Evidence(
        **{
            "window_ns": MINUTE_NS,
            "cells_ns": held(TOPIC_MESSAGES_HUNGRY=1.0),
            "backlog_start": 0,
            "backlog_end": 6_000,
            "oldest_age_ns_max": 30 * NS_PER_S,
            "appended": 9_000,
            "delivered": 3_000,
            "acked": 3_000,
            **changes,
        }
    )


@pytest.mark.parametrize(
    ("changes", "verdict", "second"),
    [
        ({}, Verdict.THROTTLED_TOPIC, None),
        ({"cells_ns": held(NO_CONSUMER=0.9)}, Verdict.NO_CONSUMER, None),
        ({"cells_ns": held(STORAGE=0.9)}, Verdict.BROKER, None),
        ({"cells_ns": held(CAUGHT_UP=1.0)}, Verdict.NONE, None),
        ({"cells_ns": held()}, Verdict.NONE, None),
        ({"oldest_age_ns_max": 1}, Verdict.NONE, None),
        (
            {"cells_ns": held(NO_PERMITS=0.5, BROKER_BYTES_HUNGRY=0.5)},
            Verdict.CONSUMER,
            Verdict.THROTTLED_BROKER,
        ),
        (
            {"unacked_end": 1_200, "acked": 1_800},
            Verdict.CONSUMER,
            Verdict.THROTTLED_TOPIC,
        ),
    ],
)
def test_all_verdicts_occur(
    changes: dict[str, Any], verdict: Verdict, second: Verdict | None
) -> None:
    (found,) = judgements(arrays([evidence(**changes)]))
    assert (found.verdict, found.second) == (verdict, second)


def test_inferred_verdicts_have_less_confidence() -> None:
    measured, inferred = judgements(arrays([evidence(), evidence(is_inferred=True)]))
    assert measured.confidence == 1.0
    assert inferred.confidence == INFERRED_CONFIDENCE


@given(CELLS)
def test_shares_are_those_of_the_law(cells: list[int]) -> None:
    found = blame_shares(np.array([cells], np.int64).T)[:, 0]
    assert dict(zip(VERDICTS, found.tolist(), strict=True)) == shares_of_one(cells)
