"""What operators read about producers that waited."""

from __future__ import annotations

import pytest

from headgate.base.park_cause import ParkCause
from headgate.flow.sentences.past_publish import (
    NOTHING_HELD,
    PastParkSummary,
    past_publish_sentence,
)

TOPIC = PastParkSummary(
    ParkCause.TOPIC_RATE,
    seconds=57.0,
    messages=1_200,
    limit_text="10 msg/s",
    limit_source="topic policy",
)


def test_a_minute_under_one_limit() -> None:
    assert past_publish_sentence([TOPIC]) == (
        "the topic's publish limit of 10 msg/s (topic policy) held producers for 57 s of this"
        " minute; 1,200 messages wait at its end"
    )


def test_a_range_states_its_length_and_the_share() -> None:
    held = PastParkSummary(ParkCause.ADAPTIVE, 720.0, 1, "75 msg/s", "adaptive controller")
    assert past_publish_sentence([held], range_s=7_200.0) == (
        "the adaptive controller's publish limit of 75 msg/s held producers for 12 min of these 2 h"
        " (10 %); 1 message waits at their end"
    )


def test_the_longest_is_reported_first_and_what_is_too_short_not_at_all() -> None:
    quota = PastParkSummary(
        ParkCause.BACKLOG_QUOTA,
        seconds=3.5,
        limit_text="60 MiB",
        limit_source="namespace policy acme/ns, producer_request_hold",
    )
    short = PastParkSummary(ParkCause.PENDING_LIMIT, seconds=0.2)
    assert past_publish_sentence([short, quota, TOPIC]) == (
        "the topic's publish limit of 10 msg/s (topic policy) held producers for 57 s and the"
        " backlog quota of 60 MiB (namespace policy acme/ns, producer_request_hold) for 3.5 s of"
        " this minute; 1,200 messages wait at its end"
    )


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        (ParkCause.BROKER_RATE, "the broker-wide publish limit held producers for 9 s"),
        (
            ParkCause.PENDING_LIMIT,
            "too many unanswered messages of a connection (maxPendingPublishRequestsPerConnection)"
            " held producers for 9 s",
        ),
        (
            ParkCause.MEMORY,
            "too much that waited in memory (headgateMaxParkedBytesPerConnection,"
            " maxMessagePublishBufferSizeInMB) held producers for 9 s",
        ),
    ],
)
def test_what_has_no_limit_in_the_telemetry(cause: ParkCause, said: str) -> None:
    assert past_publish_sentence([PastParkSummary(cause, 9.0)]) == f"{said} of this minute"


def test_a_limit_that_became_another_is_reported() -> None:
    held = PastParkSummary(ParkCause.TOPIC_RATE, 30.0, 0, "10 msg/s", "topic policy", "900 msg/s")
    assert past_publish_sentence([held]).endswith(
        "for 30 s of this minute; by the end the topic's publish limit was 900 msg/s"
    )


def test_nothing_held() -> None:
    assert past_publish_sentence([]) == NOTHING_HELD == "nothing held publishing"
    assert past_publish_sentence([PastParkSummary(ParkCause.TOPIC_RATE)]) == NOTHING_HELD
    short = PastParkSummary(ParkCause.TOPIC_RATE, 0.1, 2)
    assert past_publish_sentence([short]) == (
        "nothing held publishing for as long as 0.3 s; 2 messages wait at its end"
    )


@pytest.mark.parametrize(
    ("count", "what"), [(1, "1 message that had"), (1_200, "1,200 messages that had")]
)
def test_dropped_duplicates_stand_at_the_end(count: int, what: str) -> None:
    said = past_publish_sentence([TOPIC], duplicates=count)
    assert said.endswith(f"wait at its end; deduplication dropped {what} been stored before")
    assert past_publish_sentence([], duplicates=count).startswith(f"{NOTHING_HELD}; deduplication")
