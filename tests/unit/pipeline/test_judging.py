"""Minutes to judgements: the law's verdict, sums never verdicts of verdicts."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.flow.account import LABELS
from headgate.pipeline.judging import judge_minutes, proven_rate_per_s
from headgate.pipeline.tables import BLAMES, JUDGEMENT_COLUMNS, SHARE_COLUMNS
from headgate.record.fields import STATE_CELLS
from tests.unit.pipeline.play import SITUATIONS, Situation, minutes, play

ROWS = minutes(play(150))


def of(situation: Situation) -> list[dict[str, Any]]:
    return [
        r
        for r in ROWS
        if (r["topic"], r["subscription"]) == (situation.topic, situation.subscription)
    ]


def test_the_record_numbers_cells_as_the_account_does() -> None:
    assert [(c.state.value, c.dimension, c.consumer) for c in LABELS] == list(STATE_CELLS)


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda s: s.topic.rsplit("/", 1)[1])
def test_every_situation_is_what_it_was_built_to_be(situation: Situation) -> None:
    rows = of(situation)
    for some in (rows, rows[:1], rows[-1:]):
        judged = judge_minutes(some, None)
        assert judged["verdict"] == situation.verdict
        assert judged["confidence"] > 0.75
        assert judged["residual_messages"] == 0
        assert sum(judged[name] for name in SHARE_COLUMNS) == pytest.approx(1.0)
        assert set(judged) == {column.name for column in JUDGEMENT_COLUMNS}
    growth = (situation.published - situation.acked) * 150
    assert judge_minutes(rows, None)["growth_messages"] == growth


def test_sentence_names_the_limit_and_its_source() -> None:
    text = judge_minutes(of(SITUATIONS[2]), None)["sentence"]
    assert "topic limit of 200 msg/s (topic policy)" in text


def test_unexplained_growth_lowers_confidence() -> None:
    rows = [dict(row) for row in of(SITUATIONS[0])]
    before = judge_minutes(rows, None)
    rows[-1]["backlog_messages"] += 30_000
    after = judge_minutes(rows, None)
    assert after["residual_messages"] == 30_000
    assert after["confidence"] < before["confidence"]


def test_missing_time_lowers_confidence_and_completeness() -> None:
    rows = of(SITUATIONS[0])
    judged = judge_minutes([rows[0], rows[2]], None)
    assert judged["completeness"] == pytest.approx(0.6)
    assert judged["confidence"] < judge_minutes(rows, None)["confidence"]


def test_proven_rate_is_of_unthrottled_minutes_with_backlog() -> None:
    assert proven_rate_per_s(of(SITUATIONS[0])) == pytest.approx(100.0)
    assert proven_rate_per_s(of(SITUATIONS[1])) is None
    assert proven_rate_per_s(of(SITUATIONS[-1])) is None


def test_a_consumer_that_keeps_up_proves_no_rate() -> None:
    """One message in flight at both ends of a minute is no backlog that it worked on."""
    row = of(SITUATIONS[0])[0]
    flying = row | {"oldest_age_max_ns": 20_000_000, "backlog_messages": 1}
    assert proven_rate_per_s([row | {"backlog_messages_start": 500}]) is not None
    assert proven_rate_per_s([flying | {"backlog_messages_start": 2}]) is None
    assert proven_rate_per_s([row | {"backlog_messages_start": 0}]) is None


def test_counterfactual_asks_the_proven_rate() -> None:
    held = of(SITUATIONS[1])
    assert judge_minutes(held, None)["grows_without_limit"] is None
    assert judge_minutes(held, 300.0)["grows_without_limit"] is True
    assert judge_minutes(held, 900.0)["grows_without_limit"] is False


def test_blames_are_the_verdicts() -> None:
    assert set(BLAMES) == {s.verdict for s in SITUATIONS} | {"BROKER"}
