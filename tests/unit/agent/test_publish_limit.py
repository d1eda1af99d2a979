"""When the publish limit of a topic is named as what holds its producers."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

import pytest

from headgate.agent.cluster_history import ClusterHistory
from headgate.agent.looks import LimitsLook
from headgate.agent.publish_limit import Published, publish_limit_sentence
from headgate.explain.delivery import Instant
from headgate.flow.limits.precedence import NO_LIMIT, EffectiveLimit
from headgate.flow.limits.rate_limit import RateLimit
from tests.unit.agent.looks import TOPIC, S, look

LIMIT = EffectiveLimit(RateLimit(1_000, None), "topic policy")


def published(*per_s: int, each_s: int = 5) -> list[Published]:
    """Looks between which so much a second was published."""
    amounts = accumulate((rate * each_s for rate in per_s), initial=7)
    return [Published(n * each_s * S, amount, None) for n, amount in enumerate(amounts)]


@pytest.mark.parametrize("rates", [(990, 960, 950, 1_001), (10, 990, 990, 100, 990)])
def test_a_rate_at_the_limit_is_the_limit(rates: tuple[int, ...]) -> None:
    assert publish_limit_sentence(published(*rates), LIMIT).startswith(
        "the topic's publish limit of 1,000 msg/s (topic policy) probably holds producers: "
    )


@pytest.mark.parametrize(
    "rates", [(), (999, 999, 999), (990, 990, 940, 940), (990, 990, 990, 0, 0), (949,) * 7]
)
def test_of_anything_else_nothing_is_said(rates: tuple[int, ...]) -> None:
    assert publish_limit_sentence(published(*rates), LIMIT) == ""


def test_what_is_not_known_says_nothing() -> None:
    at_limit = published(1_000, 1_000, 1_000, 1_000)
    assert publish_limit_sentence(at_limit, NO_LIMIT) == ""
    assert publish_limit_sentence(at_limit, EffectiveLimit(RateLimit(None, 5), "x")) == ""
    unknown = [at_limit[0], at_limit[1]._replace(messages=None), *at_limit[2:]]
    assert publish_limit_sentence(unknown, LIMIT) == ""
    fell = [*at_limit[:2], *(one._replace(messages=1) for one in at_limit[2:])]
    assert publish_limit_sentence(fell, LIMIT) == ""


def test_bytes_count_as_messages_do() -> None:
    by_bytes = [Published(one.at_ns, None, one.messages) for one in published(*[990] * 4)]
    limit = replace(LIMIT, limit=RateLimit(None, 1_000))
    assert "1,000 B/s" in publish_limit_sentence(by_bytes, limit)


def test_explain_names_it_while_looks_are_fresh() -> None:
    history = ClusterHistory("c")
    for second in range(6):
        history.note_look(look(5 * second, published=5_000 * second))
    at = Instant(26 * S, 0)
    assert history.top(5, at)["publishing"] == []
    assert history.topic(TOPIC, at)["publishing"]["sentence"] == ""
    history.note_limits(LimitsLook(TOPIC, 25 * S, (NO_LIMIT,) * 3, {}, LIMIT, ()))
    (held,) = history.top(5, at)["publishing"]
    assert (held["topic"], held["causes"], held["messages"]) == (TOPIC, ["topic_rate"], None)
    assert history.topic(TOPIC, at)["publishing"]["sentence"] == held["sentence"] != ""
    assert history.top(5, Instant(600 * S, 0))["publishing"] == []
