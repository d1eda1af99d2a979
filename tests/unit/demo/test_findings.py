"""Findings from explain and from the tables."""

from __future__ import annotations

from typing import Any

from headgate.demo.findings import from_explain, from_table
from tests.unit.demo.made import finding

_EXPLAINED: dict[str, Any] = {
    "topic": "persistent://public/default/clicks",
    "subscription": "search",
    "state": "throttled_topic",
    "stateConsumer": "hungry",
    "backlogMessages": 3_600,
    "growthMessages": 3_590,
    "verdict": "THROTTLED_TOPIC",
    "confidence": 0.98,
    "confidenceLevel": "high",
    "shares": {"THROTTLED_TOPIC": 0.99, "CONSUMER": 0.01},
    "limit": {"level": "topic", "text": "80 msg/s", "source": "topic policy"},
    "sentence": "THROTTLED_TOPIC: the topic limit of 80 msg/s held it.",
}


def test_explain_gives_a_finding() -> None:
    found = from_explain("demo", _EXPLAINED)
    assert found.subject.cluster == "demo"
    assert found.subject.text == "clicks / search"
    assert (found.backlog, found.growth, found.confidence) == (3_600, 3_590, 0.98)
    assert found.state == "throttled_topic, hungry"
    assert (found.limit_level, found.limit_text) == ("topic", "80 msg/s")
    assert found.limit_source == "topic policy"
    assert found.is_throttled


def test_explain_without_a_limit_gives_a_finding() -> None:
    report = _EXPLAINED | {"limit": None, "stateConsumer": "", "verdict": "CONSUMER"}
    found = from_explain("demo", report)
    assert (found.limit_level, found.limit_text, found.limit_source) == ("", "", "")
    assert found.state == "throttled_topic"
    assert not found.is_throttled


def test_the_tables_give_a_finding() -> None:
    row = {
        "cluster": "demo-wide",
        "topic": "persistent://public/default/sensors-a",
        "subscription": "store",
        "backlog": 5,
        "growth": -2,
        "verdict": "NONE",
        "confidence": None,
        "shares": {"NONE": 1.0},
        "sentence": "NONE: nothing is waiting.",
    }
    found = from_table(row)
    assert (found.subject.cluster, found.subject.text) == ("demo-wide", "sensors-a / store")
    assert (found.backlog, found.growth, found.confidence) == (5, -2, 0.0)
    assert found.reason == "nothing is waiting."


def test_shares_are_sorted_and_without_zeros() -> None:
    shares = {"BROKER": 0.005, "CONSUMER": 0.062, "NONE": 0.0, "THROTTLED_TOPIC": 0.933}
    text = finding("clicks / search", shares=shares).shares_text()
    assert text == "THROTTLED_TOPIC 93 %, CONSUMER 6 %"


def test_the_sentence_does_not_repeat_its_verdict() -> None:
    assert finding("orders / billing").reason == "this is why."
    assert finding("orders / billing", sentence="settling: 5 wait.").reason == "settling: 5 wait."
