"""One sentence for each situation of a backlog quota, word by word."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.base.units import MIB
from headgate.flow.quota.backlog_quota import QuotaPolicy
from headgate.flow.sentences.quota import BreachForecast, quota_sentence, quota_text

FACTS: dict[str, Any] = {
    "use": 0.83,
    "limit_text": "10 GiB",
    "source": "namespace policy acme/ns",
    "kind": "size",
    "policy": "producer_request_hold",
    "subscription": "billing",
    "oldest_age_s": 7_440.0,
    "seconds_to_breach": 1_560.0,
    "exceeded": False,
}
_AT = "the topic is at 83 % of its 10 GiB quota (namespace policy acme/ns)"
_OVER = "the topic is over its 10 GiB quota (namespace policy acme/ns)"
_HOLDER = "subscription billing holds the oldest message (2 h 4 min)"
_BREAKS = "at the present rate it breaks in 26 min, then: "


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, f"{_AT}, {_HOLDER}, {_BREAKS}producers held"),
        (
            {"policy": "producer_exception"},
            f"{_AT}, {_HOLDER}, {_BREAKS}producers are refused with an error",
        ),
        # Counters of a cluster do not tell the policy.
        ({"policy": ""}, f"{_AT}, {_HOLDER}, {_BREAKS}its policy is not known"),
        # The slowest loses to a size quota, and that need not be who holds the oldest.
        (
            {"policy": "consumer_backlog_eviction", "slowest": "audit"},
            f"{_AT}, subscription audit has the largest backlog, {_HOLDER}, {_BREAKS}"
            "subscription audit loses its oldest messages",
        ),
        ({"slowest": "billing"}, f"{_AT}, {_HOLDER}, {_BREAKS}producers held"),
        (
            {"exceeded": True, "use": 0.96},
            f"{_AT.replace('83', '96')}, after reaching it: producers are held until it is down to"
            f" 95 %; {_HOLDER}",
        ),
        (
            {"policy": "consumer_backlog_eviction", "slowest": "audit", "kind": "time"},
            f"{_AT.replace('quota', 'time quota')}, {_HOLDER}, {_BREAKS}"
            "subscription billing loses its oldest messages",
        ),
        (
            {"policy": "consumer_backlog_eviction", "subscription": None},
            f"{_AT}, {_BREAKS}its slowest subscription loses its oldest messages",
        ),
        ({"policy": "something_new"}, f"{_AT}, {_HOLDER}, {_BREAKS}something_new"),
        ({"seconds_to_breach": None}, f"{_AT}, {_HOLDER}"),
        (
            {"seconds_to_breach": None, "oldest_age_s": None},
            f"{_AT}, subscription billing holds the oldest message",
        ),
        ({"seconds_to_breach": None, "subscription": None}, _AT),
        (
            {"seconds_to_breach": None, "subscription": None, "source": "", "use": 0.0},
            "the topic is at 0 % of its 10 GiB quota",
        ),
        (
            {"seconds_to_breach": None, "subscription": None, "use": 0.9999},
            "the topic is at 99 % of its 10 GiB quota (namespace policy acme/ns)",
        ),
        (
            {"seconds_to_breach": None, "subscription": None, "kind": "time", "limit_text": "2 h"},
            "the topic is at 83 % of its 2 h time quota (namespace policy acme/ns)",
        ),
        ({"exceeded": True, "use": 1.0}, f"{_OVER}: producers are held; {_HOLDER}"),
        ({"exceeded": True, "use": 1.0, "subscription": None}, f"{_OVER}: producers are held"),
        (
            {
                "exceeded": True,
                "use": 1.0,
                "policy": "producer_exception",
                "subscription": None,
            },
            f"{_OVER}: producers are refused with an error",
        ),
        (
            {"exceeded": True, "policy": "consumer_backlog_eviction"},
            f"{_OVER}: its slowest subscription loses its oldest messages; {_HOLDER}",
        ),
    ],
)
def test_each_situation_has_its_words(changed: dict[str, Any], expected: str) -> None:
    assert quota_sentence(**{**FACTS, **changed}) == expected


def test_a_quota_is_named_in_other_sentences() -> None:
    assert quota_text("size", MIB, "topic policy") == "the size quota of 1 MiB (topic policy)"
    assert quota_text("time", 90.0, "") == "the time quota of 90 s"


def test_what_keeps_a_topic_just_below_its_limit_is_its_quota() -> None:
    facts = {**FACTS, "use": 0.91, "slowest": "billing", "exceeded": False}
    facts |= {"policy": "consumer_backlog_eviction", "reached": "3 s ago"}
    text = quota_sentence(**facts)
    assert " 3 s ago and is at 91 % of it: subscription billing loses its oldest messages" in text
    assert "breaks" not in text
    held = quota_sentence(**{**facts, "policy": "producer_request_hold"})
    assert " and is at 91 % of it: producers are held" in held


@pytest.mark.parametrize("policy", QuotaPolicy)
def test_no_policy_is_reported_by_its_name(policy: QuotaPolicy) -> None:
    for exceeded in (False, True):
        assert policy not in quota_sentence(**{**FACTS, "policy": policy, "exceeded": exceeded})


def test_a_breach_within_a_second_is_due_any_moment() -> None:
    text = quota_sentence(
        use=0.99,
        limit_text="1 MiB",
        source="",
        kind="size",
        policy="producer_request_hold",
        subscription=None,
        oldest_age_s=None,
        seconds_to_breach=0.4,
        exceeded=False,
    )
    assert text.endswith("at the present rate it breaks any moment, then: producers held")


_HOUR_S = 3_600.0


@pytest.mark.parametrize(
    ("kind", "seconds", "said"),
    [
        (
            "size",
            (1.5 * _HOUR_S, 2 * _HOUR_S, 3.1 * _HOUR_S),
            "it reaches 10 GiB in about 2 h (1.5 h to 3.1 h)",
        ),
        (
            "size",
            (4_000.0, 4_100.0, None),
            "it reaches 10 GiB in about 68 min (67 min at the earliest)",
        ),
        ("size", (None, 4_100.0, None), "it reaches 10 GiB in about 68 min"),
        # An edge that reads like the other tells nothing.
        ("size", (4_100.0, 4_101.0, 4_102.0), "it reaches 10 GiB in about 68 min"),
        ("size", (0.0, 0.5, 90.0), "it reaches 10 GiB any moment"),
        ("size", (1_200.0, None, None), "it may reach 10 GiB in 20 min at the earliest"),
        (
            "time",
            (60.0, 1_560.0, None),
            "its oldest message is 10 GiB old in about 26 min (60 s at the earliest)",
        ),
        (
            "time",
            (60.0, None, None),
            "its oldest message may be 10 GiB old in 60 s at the earliest",
        ),
        ("size", (None, None, None), ""),
    ],
)
def test_a_forecast_is_reported_in_place_of_the_present_rate(
    kind: str, seconds: tuple[float | None, ...], said: str
) -> None:
    facts = {**FACTS, "kind": kind, "subscription": None, "forecast": BreachForecast(*seconds)}
    at = _AT if kind == "size" else _AT.replace("quota", "time quota")
    expected = f"{at}, {said}, then: producers held" if said else at
    assert quota_sentence(**facts) == expected
    over = quota_sentence(**{**facts, "exceeded": True, "use": 1.0})
    assert "earliest" not in over
    assert "about" not in over
