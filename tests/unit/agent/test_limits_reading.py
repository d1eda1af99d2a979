"""Policies and settings become the limits in force, with where they are set."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.agent.limits_reading import (
    UNKNOWN_BROKER,
    UNKNOWN_NAMESPACE,
    UNKNOWN_TOPIC,
    LimitAnswers,
    limits_look,
)
from headgate.agent.reading import ReadingError
from headgate.flow.limits.precedence import NO_LIMIT
from headgate.flow.limits.rate_limit import Level, RateLimit
from tests.unit.agent.recorded import recorded

TOPIC = "persistent://acme/ns/t1"


def _rate(messages: int, size: int = -1) -> bytes:
    rate = {"dispatchThrottlingRateInMsg": messages, "dispatchThrottlingRateInByte": size}
    return json.dumps({**rate, "relativeToPublishRate": False, "ratePeriodInSecond": 1}).encode()


def test_what_a_real_pulsar_answers_where_nothing_is_set() -> None:
    found = limits_look(
        TOPIC,
        7,
        LimitAnswers(
            dispatch_rate=b"",
            subscription_dispatch_rate=recorded(
                "persistent/acme/ns/t1/subscriptionDispatchRate?applied=true"
            ),
            publish_rate=b"",
            namespace=recorded("namespaces/acme/b2"),
            settings=recorded("brokers/configuration/runtime"),
        ),
    )
    assert found.dispatch == (NO_LIMIT,) * 3
    assert (found.publish, found.by_subscription, found.unknown) == (NO_LIMIT, {}, ())


def test_policies_that_a_real_pulsar_answers() -> None:
    found = limits_look(
        TOPIC,
        7,
        LimitAnswers(
            publish_rate=recorded("persistent/acme/ns/t1/publishRate?applied=true"),
            by_subscription={"sub1": recorded("persistent/acme/ns/t1/sub1/dispatchRate")},
        ),
    )
    assert found.publish.limit == RateLimit(50, None)
    assert found.publish.source == "topic policy"
    own = found.by_subscription["sub1"]
    assert (own.limit, own.source) == (RateLimit(10, None), "subscription policy")


def test_the_most_specific_policy_holds() -> None:
    namespace = {
        "topicDispatchRate": {"standalone": json.loads(_rate(80))},
        "subscriptionDispatchRate": {
            "other": json.loads(_rate(9)), "standalone": json.loads(_rate(40, 5_000)),
        },
        "publishMaxMessageRate": {
            "standalone": {"publishThrottlingRateInMsg": 7, "publishThrottlingRateInByte": -1}
        },
    }  # fmt: skip
    answers = LimitAnswers(
        dispatch_rate=_rate(60),
        subscription_dispatch_rate=b"",
        publish_rate=b"",
        namespace=json.dumps(namespace).encode(),
        settings=json.dumps(
            {"dispatchThrottlingRateInMsg": "120", "dispatchThrottlingRatePerTopicInMsg": "5"}
        ).encode(),
    )
    found = limits_look(TOPIC, 7, answers, cluster="standalone")
    assert [(limit.limit, limit.source) for limit in found.dispatch] == [
        (RateLimit(40, 5_000), "namespace policy acme/ns"),
        (RateLimit(60, None), "topic policy"),
        (RateLimit(120, None), "broker setting dispatchThrottlingRateInMsg"),
    ]
    assert (found.publish.limit, found.publish.source) == (
        RateLimit(7, None),
        "namespace policy acme/ns",
    )
    assert found.dispatch[Level.BROKER].policy is not None


def test_what_was_refused_is_named() -> None:
    assert limits_look(TOPIC, 7, LimitAnswers()).unknown == (
        UNKNOWN_TOPIC,
        UNKNOWN_NAMESPACE,
        UNKNOWN_BROKER,
    )
    answers = LimitAnswers(b"", b"", b"", namespace=b"{}")
    assert limits_look(TOPIC, 7, answers).unknown == (UNKNOWN_BROKER,)


def test_a_page_of_html_is_refused() -> None:
    with pytest.raises(ReadingError, match=f"not a rate of {TOPIC}: .*a proxy answered"):
        limits_look(TOPIC, 7, LimitAnswers(dispatch_rate=b"<html>"))


_KEYS = st.sampled_from(
    ["dispatchThrottlingRateInMsg", "topicDispatchRate", "ratePeriodInSecond", "c"]
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(_JSON, st.sampled_from(["dispatch_rate", "namespace", "settings", "publish_rate"]))
def test_no_answer_raises_anything_else(answer: object, place: str) -> None:
    answers: dict[str, Any] = {place: json.dumps(answer).encode()}
    with suppress(ReadingError):
        limits_look(TOPIC, 7, LimitAnswers(**answers))
