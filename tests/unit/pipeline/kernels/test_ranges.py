"""A range is judged from summed minutes, never from other verdicts."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from headgate.flow.account.account import LABELS
from headgate.pipeline.kernels.attribution import RANGE_COLUMNS
from headgate.pipeline.tables.attribution import BLAMES, SHARE_COLUMNS
from headgate.record.fields import STATE_CELLS, STATE_FIELD_NAMES
from tests.unit.pipeline.judged import judge_ranges
from tests.unit.pipeline.play import SITUATIONS, S, Situation, minutes, play


@cache
def played_minutes() -> list[dict[str, Any]]:
    """Minutes of every situation over two and a half minutes."""
    return minutes(play(150))


def judge_minutes(rows: list[dict[str, Any]], demonstrated_per_s: float | None) -> dict[str, Any]:
    """One subscription over its minutes."""
    (row,) = judge_ranges(rows, demonstrated_per_s)
    return row


def of(situation: Situation) -> list[dict[str, Any]]:
    return [
        r
        for r in played_minutes()
        if (r["topic"], r["subscription"]) == (situation.topic, situation.subscription)
    ]


def test_the_record_numbers_cells_as_the_account_does() -> None:
    assert [(c.state.value, c.dimension, c.consumer) for c in LABELS] == list(STATE_CELLS)


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda s: s.topic.rsplit("/", 1)[1])
def test_every_situation_gets_its_expected_verdict(situation: Situation) -> None:
    rows = of(situation)
    for some in (rows, rows[:1], rows[-1:]):
        judged = judge_minutes(some, None)
        assert judged["verdict"] == situation.verdict
        assert judged["confidence"] > 0.75
        assert judged["residual_messages"] == 0
        assert sum(judged[name] for name in SHARE_COLUMNS) == pytest.approx(1.0)
        assert set(judged) == {column.name for column in RANGE_COLUMNS}
    growth = (situation.published - situation.acked) * 150
    assert judge_minutes(rows, None)["growth_messages"] == growth


def test_sentence_names_the_limit_and_its_source() -> None:
    text = judge_minutes(of(SITUATIONS[2]), None)["sentence"]
    assert "topic limit of 200 msg/s (topic policy)" in text


def changed(limits: list[int | None], **last: Any) -> list[dict[str, Any]]:
    """A topic's minutes under a limit of 200 each; then the limits at their ends are others, and
    the last one has other values."""
    rows = [dict(row) for row in of(SITUATIONS[2])]
    for row, messages in zip(rows, limits, strict=True):
        row["limit_topic_messages"] = messages
    rows[-1] |= last
    return rows


def test_a_sentence_names_the_limit_that_held() -> None:
    """The limit of the range's end need not be the one that is to blame."""
    idle = dict.fromkeys(STATE_FIELD_NAMES, 0) | {"state_caught_up_ns": 30 * S}
    text = judge_minutes(changed([200, 200, 900], **idle), None)["sentence"]
    assert "topic limit of 200 msg/s (topic policy) held this subscription;" in text
    assert "; by the end it was 900 msg/s; " in text
    assert "raise" not in text
    # It was raised within the second minute: what held in it was still the old one.
    text = judge_minutes(changed([200, 900, 900], **idle), None)["sentence"]
    assert "topic limit of 200 msg/s" in text
    # It was lowered within it: what held is the new one.
    text = judge_minutes(changed([900, 200, 200]), None)["sentence"]
    assert "topic limit of 200 msg/s" in text
    assert "by the end" not in text
    text = judge_minutes(changed([200, 200, None], **idle), None)["sentence"]
    assert text.endswith("; by the end it was gone.")


def test_since_when_stops_at_a_change_of_the_limit() -> None:
    assert (
        "held this subscription for the last 2 min;"
        in judge_minutes(of(SITUATIONS[2]), None)["sentence"]
    )
    text = judge_minutes(changed([500, 200, 200]), None)["sentence"]
    assert "limit of 200 msg/s (topic policy) held this subscription for the last 90 s;" in text


@pytest.mark.parametrize("kind", ["Exclusive", "Failover"])
def test_more_consumers_are_not_advised_where_one_gets_everything(kind: str) -> None:
    rows = [row | {"type": "Shared"} for row in of(SITUATIONS[0])]
    for some in (rows, rows[:1]):
        assert "faster or more consumers" in judge_minutes(some, None)["sentence"]
        alone = [row | {"type": kind} for row in some]
        text = judge_minutes(alone, None)["sentence"]
        assert "a faster consumer would help, another would only stand by" in text
        # Another consumer may get another partition.
        part = [row | {"partition": 3} for row in alone]
        assert "faster or more consumers" in judge_minutes(part, None)["sentence"]


def test_permits_without_consumers_are_not_free() -> None:
    rows = of(SITUATIONS[2])
    assert "permits are free" in judge_minutes(rows, None)["sentence"]
    rows[-1] = rows[-1] | {"consumers": 0}
    assert "permits are free" not in judge_minutes(rows, None)["sentence"]


def test_a_subscription_that_uses_a_whole_topic_limit_is_the_only_waiter() -> None:
    shared = judge_minutes(of(SITUATIONS[2]), None)["sentence"]
    assert shared.endswith("above that, or above the sum if several subscriptions share it.")
    alone = [row | {"msgs_out": 2 * row["msgs_out"]} for row in of(SITUATIONS[2])]
    text = judge_minutes(alone, None)["sentence"]
    assert text.endswith("; 500 msg/s are published, so raise it above that.")


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


def test_the_counterfactual_uses_the_demonstrated_rate() -> None:
    held = of(SITUATIONS[1])
    assert judge_minutes(held, None)["grows_without_limit"] is None
    assert judge_minutes(held, 300.0)["grows_without_limit"] is True
    assert judge_minutes(held, 900.0)["grows_without_limit"] is False


def test_blames_are_the_verdicts() -> None:
    assert set(BLAMES) == {s.verdict for s in SITUATIONS} | {"BROKER"}


def moving(limits: list[int]) -> list[dict[str, Any]]:
    """A topic's minutes under one limit that moves with the publish rate."""
    return [
        row | {"limit_topic_source": "topic policy, above the publish rate"}
        for row in changed(list(limits))
    ]


def test_a_limit_that_moves_with_the_publish_rate_is_one_limit() -> None:
    """Its movements are no changes: neither of who holds nor of since when."""
    text = judge_minutes(moving([200, 900, 250]), None)["sentence"]
    assert "topic limit of 250 msg/s (topic policy, above the publish rate) held" in text
    assert "for the last 2 min" in text
    assert "by the end" not in text
    then_plain = moving([200, 250, 200])[:2] + changed([200, 200, 200])[2:]
    text = judge_minutes(then_plain, None)["sentence"]
    assert "above the publish rate" in text
    assert "; by the end it was 200 msg/s" in text


@pytest.mark.parametrize(("silent", "told"), [(1, "30 s"), (2, "90 s")])
def test_the_sentence_about_a_silent_consumer_equals_that_of_explain(
    silent: int, told: str
) -> None:
    """However its mean over the range is; more consumers would not help."""
    slow = next(one for one in SITUATIONS if one.verdict == "CONSUMER")
    rows = of(slow)
    assert "faster or more consumers would help" in judge_minutes(rows, None)["sentence"]
    last = len(rows) - silent
    hangs = [row | ({"acked": 0} if at >= last else {}) for at, row in enumerate(rows)]
    sentence = judge_minutes(hangs, None)["sentence"]
    assert f"nothing for the last {told}" in sentence
    assert sentence.endswith("check whether it hangs, fails or never acknowledges.")
    assert "more consumers" not in sentence
