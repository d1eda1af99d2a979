"""Answers of a real Pulsar 4.0.8 become looks; no answer raises anything but a ReadingError."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import astuple
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.agent.looks import ConsumerLook, CursorLook, SubscriptionLook, TopicLook
from headgate.agent.reading import (
    AGE_S_MAX,
    ReadingError,
    proof_look,
    survey_looks,
    topic_look,
)
from headgate.base.names import NAME_CHARACTERS_MAX
from tests.unit.agent.recorded import recorded

TOPIC = "persistent://acme/ns/t1"
STATS = "persistent/acme/ns/t1/stats"


def _subscriptions(look: TopicLook) -> dict[str, SubscriptionLook]:
    return {subscription.name: subscription for subscription in look.subscriptions}


def test_statistics_of_a_real_pulsar() -> None:
    look = topic_look(recorded(STATS), TOPIC, 7, "127.0.0.1:8080")
    assert (look.topic, look.at_ns, look.owner, look.is_survey) == (
        TOPIC, 7, "127.0.0.1:8080", False,
    )  # fmt: skip
    assert (look.published, look.published_bytes) == (1_000, 122_379)
    assert (look.storage_bytes, look.backlog_bytes) == (122_379, 110_143)
    assert look.publisher_addresses == ("/127.0.0.1:35150",)
    assert (look.quota_size_bytes, look.quota_age_s, look.oldest_age_s) == (None, None, None)
    slow = _subscriptions(look)["slow"]
    assert (slow.type, slow.is_durable, slow.is_blocked) == ("Exclusive", True, False)
    assert (slow.backlog, slow.delayed, slow.unacked, slow.sent) == (18, 0, 0, 300)
    assert slow.backlog_bytes == 110_143
    assert slow.events == (0, 0, 0, 0, 0, 0)
    assert (slow.last_consumed_ms, slow.last_acked_ms) == (1795218393026, 1795218393042)
    assert slow.mark_delete_moved_ms == 1795218393090
    assert slow.consumers == (
        ConsumerLook(
            "slow-c", "/127.0.0.1:35150", "2026-11-20T23:46:32.944564648Z", -170, 0, False, 300, 50
        ),
    )
    assert _subscriptions(look)["fast"].consumers[0].permits == 1_000


def test_internal_statistics_of_a_real_pulsar() -> None:
    look = proof_look(recorded("persistent/acme/ns/t1/internalStats"), TOPIC, 7)
    assert (look.topic, look.at_ns, look.last_position, look.entries) == (TOPIC, 7, (8, 19), 20)
    assert look.cursors == (
        CursorLook("fast", (8, 20), (8, 19), 0, True, True, False),
        CursorLook("slow", (8, 6), (8, 1), 0, False, False, False),
    )


def _survey(stats: dict[str, Any]) -> bytes:
    bundles = {"0x00000000_0x80000000": {"persistent": {TOPIC: stats}, "non-persistent": {}}}
    return json.dumps({"acme/ns": bundles, "acme/empty": {}}).encode()


def test_a_survey_has_other_names_for_some_figures() -> None:
    stats = {
        "publishers": [{"address": "/10.0.0.1:1"}],
        "msgInCount": 50,
        "bytesInCount": 5_000,
        "storageSize": 4_000,
        "subscriptions": {
            "s": {
                "type": "Shared",
                "msgBacklog": 9,
                "consumers": [
                    {"consumerName": "a", "availablePermits": -3, "unackedMessages": 4},
                    {"consumerName": "b", "availablePermits": 5, "unackedMessages": 2},
                ],
            }
        },
    }
    (look,) = survey_looks(_survey(stats), 7, "b1")
    assert (look.topic, look.owner, look.is_survey) == (TOPIC, "b1", True)
    assert (look.published, look.published_bytes) == (50, 5_000)
    (found,) = look.subscriptions
    assert (found.backlog, found.unacked, found.sent, found.events) == (9, 6, None, None)
    assert [consumer.permits for consumer in found.consumers] == [-3, 5]


def test_a_name_of_megabytes_is_left_out_and_counted() -> None:
    """Pulsar has no limit, and a client of one topic chooses the name. 50 of a megabyte made all of
    the agent's metrics more than a scrape may have, and telemetry of 48 MB each minute."""
    long = "n" * (NAME_CHARACTERS_MAX + 1)
    consumer = {"consumerName": long, "address": long, "connectedSince": long}
    body = {
        "subscriptions": {
            long: {},
            long[1:]: {"consumers": [consumer], "activeConsumerName": long},
        },
        "oldestBacklogMessageSubscriptionName": long,
    }
    found = topic_look(json.dumps(body).encode(), TOPIC, 1)
    assert ([each.name for each in found.subscriptions], found.nameless) == ([long[1:]], 1)
    (seen,) = found.subscriptions[0].consumers
    texts = (seen.name, seen.address, seen.connected_since, found.oldest_subscription,
             found.subscriptions[0].active_consumer)  # fmt: skip
    assert set(texts) == {long[1:]}
    survey = {"a/b": {"0x0_0x1": {"persistent": {TOPIC: body}}}}
    (found,) = survey_looks(json.dumps(survey).encode(), 1)
    assert found.nameless == 1


def test_an_age_has_a_bound() -> None:
    """Pulsar may tell it by the publish time, for which a producer names any number."""
    for told, read in ((1.7e9, 1.7e9), (1e13, AGE_S_MAX), (9.2e18, AGE_S_MAX), (-1, None)):
        stats = {
            "subscriptions": {"s": {"oldestBacklogMessageAgeSeconds": told}},
            "oldestBacklogMessageAgeSeconds": told,
        }
        look = topic_look(json.dumps(stats).encode(), TOPIC, 7)
        assert (look.oldest_age_s, look.subscriptions[0].oldest_age_s) == (read, read)


def test_a_topic_without_statistics_hides_no_other() -> None:
    bundle = {"persistent": {f"{TOPIC}-{n}": {"subscriptions": {}} for n in range(3)}}
    bundle["persistent"][f"{TOPIC}-1"] = {"subscriptions": 3}
    looks = survey_looks(json.dumps({"acme/ns": {"b": bundle}}).encode(), 7)
    assert [next(looks).topic, next(looks).topic] == [f"{TOPIC}-0", f"{TOPIC}-2"]
    with pytest.raises(ReadingError, match=f"not statistics of {TOPIC}-1"):
        next(looks)


@pytest.mark.parametrize("figure", ["-1", "NaN", "-Infinity", '"NaN"', "[]", "null", "true"])
def test_a_figure_that_is_no_number_is_not_known(figure: str) -> None:
    body = '{"msgInCounter": %s, "subscriptions": {"s": {"msgBacklog": %s, "consumers": []}}}'
    look = topic_look((body % (figure, figure)).encode(), TOPIC, 7)
    assert look.published is None
    assert look.subscriptions[0].backlog is None


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "truncated"),
        (b"<html>bad gateway</html>", "a proxy answered"),
        (b"[]", "Expected `object`"),
        (b'{"status": "ok"}', "it tells no subscriptions"),
        (b'{"subscriptions": {"s": {"consumers": 3}}}', "Expected `array"),
        (b"\xff", "UTF-8|malformed"),
        (b'{"msgInCounter":' + b"[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_statistics_is_refused_in_one_sentence(body: bytes, why: str) -> None:
    with pytest.raises(ReadingError, match=f"not statistics of {TOPIC}.*{why}") as caught:
        topic_look(body, TOPIC, 7)
    assert "\n" not in str(caught.value)


_FIELDS = [
    *("msgInCounter", "publishers", "subscriptions", "consumers", "availablePermits", "address"),
    *("msgBacklog", "type", "s", "cursors", "readPosition", "lastConfirmedEntry", "persistent"),
    *("unackedMessages", "isDurable"),
]

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(_FIELDS) | st.text(max_size=3), inner, max_size=5)
    ),
    max_leaves=25,
)


@given(_JSON | st.binary(max_size=40))
def test_no_answer_raises_anything_else(answer: Any) -> None:
    body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    figures: list[Any] = []
    for read in (
        lambda: astuple(topic_look(body, TOPIC, 7)),
        lambda: astuple(proof_look(body, TOPIC, 7)),
        lambda: [astuple(look) for look in survey_looks(body, 7)],
    ):
        with suppress(ReadingError):
            figures.append(read())
    assert "nan" not in repr(figures).lower() or "nan" in str(answer).lower()


@given(st.dictionaries(st.sampled_from(_FIELDS), st.floats() | st.integers()))
def test_no_figure_is_negative(figures: dict[str, float]) -> None:
    stats = {"msgInCounter": figures.get("s"), "subscriptions": {"s": {**figures, "consumers": []}}}
    look = topic_look(json.dumps(stats).encode(), TOPIC, 7)
    (found,) = look.subscriptions
    for figure in (look.published, found.backlog, found.unacked):
        assert figure is None or figure >= 0
