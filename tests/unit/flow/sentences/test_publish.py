"""What operators read about producers that wait."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headgate.base.park_cause import ParkCause
from headgate.flow.sentences.publish import NOTHING_HOLDS, ParkSummary, publish_sentence

TOPIC = ParkSummary(
    ParkCause.TOPIC_RATE,
    producers=2,
    messages=1_000,
    minute_s=58.8,
    hour_s=600.0,
    waiting_s=0.4,
    limit_text="10 msg/s",
    limit_source="topic policy",
)
BROKER = ParkSummary(
    ParkCause.BROKER_RATE,
    producers=1,
    messages=7,
    minute_s=3.0,
    waiting_s=3.0,
    limit_text="1,000 B/s",
    limit_source="broker setting brokerPublisherThrottlingMaxByteRate",
)


def only(cause: ParkCause, producers: int = 1, messages: int = 1) -> str:
    return publish_sentence([ParkSummary(cause, producers=producers, messages=messages)])


def test_who_waits_for_which_limit_set_where() -> None:
    assert publish_sentence([TOPIC]) == (
        "2 producers wait for the topic's publish limit of 10 msg/s (topic policy):"
        " 1,000 messages wait in the broker; held for 98 % of the last minute"
    )
    assert publish_sentence([BROKER]) == (
        "1 producer waits for the broker-wide publish limit of 1,000 B/s (broker setting"
        " brokerPublisherThrottlingMaxByteRate): 7 messages wait in the broker;"
        " held for 3 s without a break"
    )
    adaptive = ParkSummary(
        ParkCause.ADAPTIVE,
        producers=1,
        messages=1,
        waiting_s=300.0,
        minute_s=60.0,
        limit_text="75 msg/s",
        limit_source="adaptive controller",
    )
    assert publish_sentence([adaptive]) == (
        "1 producer waits for the adaptive controller's publish limit of 75 msg/s:"
        " 1 message waits in the broker; held for 5 min without a break"
    )


@pytest.mark.parametrize(
    ("producers", "unread", "expected"),
    [
        (1, 1, "its connection is not read"),
        (2, 2, "their connections are not read"),
        (7, 2, "the connections of 2 of them are not read"),
    ],
)
def test_whose_own_is_too_much_is_not_read_meanwhile(
    producers: int, unread: int, expected: str
) -> None:
    held = replace(TOPIC, producers=producers, unread=unread)
    assert (
        f"1,000 messages wait in the broker; {expected} until half of them are accepted; held for"
        in (publish_sentence([held]))
    )


@pytest.mark.parametrize(
    ("cause", "one", "more"),
    [
        (
            ParkCause.TOPIC_RATE,
            "1 producer waits for the topic's publish limit: 1 message waits in the broker",
            "2 producers wait for the topic's publish limit: 3 messages wait in the broker",
        ),
        (
            ParkCause.BACKLOG_QUOTA,
            "1 producer waits for room in the backlog quota: 1 message waits in the broker",
            "2 producers wait for room in the backlog quota: 3 messages wait in the broker",
        ),
        (
            ParkCause.PENDING_LIMIT,
            "1 producer waits for answers to what it sent before"
            " (maxPendingPublishRequestsPerConnection): 1 message waits in the broker",
            "2 producers wait for answers to what they sent before"
            " (maxPendingPublishRequestsPerConnection): 3 messages wait in the broker",
        ),
    ],
)
def test_each_cause_in_words(cause: ParkCause, one: str, more: str) -> None:
    assert only(cause) == one
    assert only(cause, 2, 3) == more


def test_a_connection_that_is_not_read_has_no_messages() -> None:
    assert only(ParkCause.MEMORY, 1, 0) == (
        "the connection of 1 producer is not read, because too much waits in memory"
    )
    assert only(ParkCause.MEMORY, 2, 0) == (
        "the connections of 2 producers are not read, because too much waits in memory"
    )


def test_of_several_causes_the_one_that_holds_most_comes_first() -> None:
    assert publish_sentence([BROKER, TOPIC]) == (
        f"{publish_sentence([TOPIC])}; 1 producer waits for the broker-wide publish limit of"
        " 1,000 B/s (broker setting brokerPublisherThrottlingMaxByteRate)"
    )


@pytest.mark.parametrize(
    ("minute_s", "hour_s", "said"),
    [
        (20.4, 900.0, "held producers for 34 % of the last minute"),
        (0.1, 900.0, "held producers for 15 min of the last hour"),
    ],
)
def test_what_held_producers_lately(minute_s: float, hour_s: float, said: str) -> None:
    """The limit may have been another one then."""
    held = ParkSummary(
        ParkCause.TOPIC_RATE,
        minute_s=minute_s,
        hour_s=hour_s,
        limit_text="10 msg/s",
        limit_source="topic policy",
    )
    assert publish_sentence([held]) == (
        f"nothing waits now; the topic's publish limit, now 10 msg/s (topic policy), {said}"
    )


def test_all_that_held_producers_lately() -> None:
    causes = [ParkSummary(cause, minute_s=30.0 - cause) for cause in ParkCause]
    said = publish_sentence(causes)
    assert said.startswith("nothing waits now; the topic's publish limit held producers for 50 %")
    for subject in (
        "the broker-wide publish limit",
        "the adaptive controller's publish limit",
        "the backlog quota",
        "too many unanswered messages of a connection",
        "too much that waited in memory",
    ):
        assert f" and {subject} held producers for " in said
    assert said.endswith(" of the last minute")


def test_nothing_holds_what_was_hardly_ever_held() -> None:
    assert publish_sentence([]) == NOTHING_HOLDS
    assert (
        publish_sentence([ParkSummary(ParkCause.TOPIC_RATE, minute_s=0.1, hour_s=0.2)])
        == NOTHING_HOLDS
    )


def test_a_quota_that_is_reached_lets_nobody_publish_though_nothing_waits() -> None:
    said = "the backlog quota stops all publishing now"
    assert publish_sentence([], stopped=True) == said
    held = ParkSummary(ParkCause.BACKLOG_QUOTA, minute_s=20.0)
    assert publish_sentence([held], stopped=True) == (
        f"{said}; the backlog quota held producers for 33 % of the last minute"
    )


def test_each_partition_has_its_topics_limit() -> None:
    assert " of 10 msg/s (topic policy) on each of 3 partitions:" in publish_sentence(
        [TOPIC], partitions=3
    )
    assert "partitions" not in publish_sentence([BROKER], partitions=3)
    slowed = ParkSummary(ParkCause.ADAPTIVE, producers=1, messages=1, limit_text="75 msg/s")
    assert " of 75 msg/s on one of the partitions:" in publish_sentence([slowed], partitions=3)


def test_who_waits_longer_than_clients_do_is_warned() -> None:
    """What a client has given up is stored all the same, and its next messages wait behind it."""
    held = ParkSummary(
        ParkCause.TOPIC_RATE, 1, 1_000, waiting_s=5.0, limit_text="20 msg/s", last_goes_s=50.0
    )
    warning = (
        ", the last of which is accepted in 50 s, while clients give up after their sendTimeout"
        " (default 30 s)"
    )
    assert warning in publish_sentence([held])
    assert "give up" not in publish_sentence([replace(held, last_goes_s=29.0)])
