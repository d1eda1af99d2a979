"""Sentences of many verdicts equal those of the law, each built once."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.pipeline.kernels import sentences
from headgate.record.fields import STATE_FIELD_NAMES
from tests.unit.pipeline.judged import judge_each
from tests.unit.pipeline.play import SITUATIONS, S, minutes, play
from tests.unit.pipeline.row_by_row import judge_minutes

ROWS = minutes(play(60))
HEALTHY = next(row for row in ROWS if row["topic"].endswith("/keeps-up"))
BYTES = {
    "limit_topic_bytes": 20_000,
    "limit_topic_messages": None,
    "state_throttled_topic_bytes_hungry_ns": 60 * S,
    "state_throttled_topic_messages_hungry_ns": 0,
}


def of(name: str, **changes: Any) -> dict[str, Any]:
    return next(row for row in ROWS if row["topic"].endswith(f"/{name}")) | changes


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda s: s.topic.rsplit("/", 1)[1])
def test_sentences_equal_those_of_the_scalar_law(situation: Any) -> None:
    rows = [row for row in ROWS if row["topic"] == situation.topic]
    for found, row in zip(judge_each(rows, None), rows, strict=True):
        assert found["sentence"] == judge_minutes([row], None)["sentence"]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (of("topic-limit", **BYTES), "topic limit of 20,000 B/s"),
        (of("topic-limit", msgs_out=12_000), "so raise it above that."),
        (of("topic-limit", consumers=0), "for 97 % of the time; 500 msg/s"),
        (of("topic-limit", limit_topic_source=None), "the topic limit of 200 msg/s held"),
        (of("slow", unacked=100, unacked_start=0), "the consumer's receiver queue was full"),
        (of("alone"), "no consumer has been connected for 60 s, 12,000 messages wait"),
        (of("alone", delayed=11_999), "1 message waits; connect one, or delete"),
        (of("alone", delayed=11_999), "; 11,999 messages are not due yet."),
        (
            HEALTHY | {"backlog_messages": 1, "delayed": 1},
            "are in flight; 1 message is not due yet.",
        ),
    ],
)
def test_what_is_not_known_is_left_out(row: dict[str, Any], words: str) -> None:
    (found,) = judge_each([row], None)
    assert words in found["sentence"]
    assert found["sentence"] == judge_minutes([row], None)["sentence"]


def test_sentences_keep_the_order_of_rows() -> None:
    idle = dict.fromkeys(STATE_FIELD_NAMES, 0) | {"state_caught_up_ns": 60 * S}
    rows = [HEALTHY, of("slow"), HEALTHY | idle, HEALTHY | {"acked": 6}, of("alone"), HEALTHY]
    found = [row["sentence"] for row in judge_each(rows, None)]
    assert found == [judge_minutes([row], None)["sentence"] for row in rows]
    assert found[2] == "NONE: nothing is waiting."


def test_a_sentence_of_healthy_minutes_is_built_once_per_rate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built = []
    by_law = sentences.sentence

    def counted(*arguments: Any) -> str:
        built.append(arguments)
        return by_law(*arguments)

    monkeypatch.setattr(sentences, "sentence", counted)
    rates = [{"acked": 60 * (7_000 + i % 3)} for i in range(100)]
    judge_each([HEALTHY | rate for rate in rates], None)
    assert len(built) == 3
