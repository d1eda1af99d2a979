"""One sentence for each decision, word by word (law 5.6)."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from headgate.flow.adaptive.cycle import (
    Decision,
    DecisionKind,
    Inputs,
    Law,
    MemoryRule,
    PublishLimit,
    Rule,
)
from headgate.flow.sentences.adaptive import decision_sentence, publish_limit_text

INPUTS = Inputs(
    memory_pressure=0.0,
    backlog_pressure=0.0,
    backlog_bytes=71_000,
    size_limit=100_000,
    age_ms=-1,
    age_limit_ms=None,
    published_bytes_per_s=900_000.0,
    drain_bytes_per_s=380_000.4,
    natural_messages_per_s=1_000.0,
    natural_bytes_per_s=1_000_000.0,
    seconds_to_breach=None,
)
DECISION = Decision(
    kind=DecisionKind.ACTIVATED,
    observe_only=False,
    law=Law.DRAIN,
    rule=Rule.TARGET,
    inputs=INPUTS,
    old=None,
    new=PublishLimit(None, 412_000),
    step_factor=0.25,
)
DRAINS = "the backlog is at 71 % of its quota and consumers drain 380,000 B/s"
NO_EFFECT = "slowing all topics for 60 s did not bring memory down"
MEMORY = (
    "memory is short (40 % of the way between its watermarks) and the topic is among those that"
    " use it up"
)


def told(inputs: dict[str, Any] | None = None, **changed: Any) -> str:
    facts = INPUTS._replace(**(inputs or {}))
    return decision_sentence(dataclasses.replace(DECISION, inputs=facts, **changed))


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, f"slowed to 412,000 B/s: {DRAINS}"),
        ({"observe_only": True}, f"would be slowed to 412,000 B/s: {DRAINS}"),
        (
            {"rule": Rule.STEP, "kind": DecisionKind.CHANGED, "old": PublishLimit(None, 300_000)},
            f"raised to 412,000 B/s: {DRAINS}; limit bound by the step of 25 %",
        ),
        (
            {"kind": DecisionKind.CHANGED, "old": PublishLimit(None, 500_000)},
            f"slowed further to 412,000 B/s: {DRAINS}",
        ),
        (
            {"rule": Rule.MINIMUM, "new": PublishLimit(None, 1)},
            f"slowed to 1 B/s: {DRAINS}; at the lowest possible limit",
        ),
        (
            {"inputs": {"seconds_to_breach": 42.0}},
            "slowed to 412,000 B/s: the backlog is at 71 % of its quota, consumers drain"
            " 380,000 B/s and at the present rates the quota breaks in 42 s",
        ),
        (
            {"inputs": {"drain_bytes_per_s": None, "size_limit": None, "age_ms": 900,
                        "age_limit_ms": 1_000}},
            "slowed to 412,000 B/s: the oldest message is at 90 % of its time quota",
        ),
        (
            {"law": Law.PRESSURE, "rule": Rule.FLOOR, "new": PublishLimit(100, 102_400),
             "inputs": {"memory_pressure": 0.4}},
            f"slowed to 100 msg/s and 102,400 B/s: {MEMORY};"
            " at the floor of its natural rate",
        ),
        (
            {"law": Law.PRESSURE, "new": PublishLimit(700, None), "kind": DecisionKind.CHANGED,
             "old": PublishLimit(500, None), "rule": Rule.RAMP},
            "raised to 700 msg/s: memory and backlog are clear; on its way to no limit",
        ),
        (
            {"law": Law.PRESSURE, "inputs": {"memory_pressure": 0.4, "backlog_pressure": 0.1,
                                             "backlog_bytes": 76_500}},
            f"slowed to 412,000 B/s: {MEMORY} and the backlog is at 76 % of its quota",
        ),
        (
            {"new": None, "old": PublishLimit(None, 1), "kind": DecisionKind.DEACTIVATED,
             "rule": Rule.CLEAR},
            "no longer slowed: no limit is needed any more",
        ),
        (
            {"new": None, "old": PublishLimit(None, 1), "kind": DecisionKind.DEACTIVATED,
             "rule": Rule.LET_GO},
            "no longer slowed: released at once",
        ),
        (
            {"law": Law.PRESSURE, "rule": Rule.FLOOR, "new": PublishLimit(100, 102_400),
             "inputs": {"memory_pressure": 1.0, "memory_rule": MemoryRule.EVERYBODY}},
            "slowed to 100 msg/s and 102,400 B/s: memory is short (100 % of the way between its"
            " watermarks) and no single topic uses it up, so all publishing topics are slowed;"
            " at the floor of its natural rate",
        ),
        (
            {"law": Law.PRESSURE, "new": PublishLimit(350, None), "kind": DecisionKind.CHANGED,
             "old": PublishLimit(100, None), "rule": Rule.RAMP,
             "inputs": {"memory_rule": MemoryRule.NO_EFFECT}},
            f"raised to 350 msg/s: {NO_EFFECT}; on its way to no limit",
        ),
        (
            {"new": None, "old": PublishLimit(850, None), "kind": DecisionKind.DEACTIVATED,
             "rule": Rule.CLEAR, "inputs": {"memory_rule": MemoryRule.NO_EFFECT}},
            f"no longer slowed: {NO_EFFECT}",
        ),
    ],
)  # fmt: skip
def test_each_decision_has_its_words(changed: dict[str, Any], expected: str) -> None:
    """Rule 5.6."""
    assert told(**changed) == expected


def test_two_parts_of_memory_are_joined() -> None:
    text = told({"memory_pressure": 0.4, "drain_bytes_per_s": None})
    assert text.endswith(f"{MEMORY} and the backlog is at 71 % of its quota")


def test_a_breach_within_a_second_is_reported_without_a_figure() -> None:
    assert told({"seconds_to_breach": 0.3}).endswith("breaks in less than a second")


@pytest.mark.parametrize("rule", Rule)
@pytest.mark.parametrize("law", Law)
def test_every_rule_and_law_makes_one_line(rule: Rule, law: Law) -> None:
    text = told(rule=rule, law=law)
    assert "\n" not in text
    assert not text.endswith(".")
    assert "_" not in text


def test_limits_are_reported_in_what_they_limit() -> None:
    assert publish_limit_text(PublishLimit(1_000, None)) == "1,000 msg/s"
    assert publish_limit_text(PublishLimit(7, 8_000)) == "7 msg/s and 8,000 B/s"
