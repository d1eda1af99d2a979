"""Which policies about what ends, and about what is created, are allowed."""

from __future__ import annotations

from math import inf, nan

import pytest

from headgate.metadata.errors import RefusalError
from headgate.metadata.expiry_checks import TOPIC_TTL_REFUSED, check_expiry
from headgate.metadata.policies import AutoTopicCreation, InactiveTopicPolicies, Persistence

DETAIL = "Invalid configuration for autoTopicCreationOverride. the detail is "


def refusal_of(**policies: object) -> tuple[int, str]:
    with pytest.raises(RefusalError) as refused:
        check_expiry(policies, TOPIC_TTL_REFUSED)
    return refused.value.status, refused.value.reason


def test_what_is_allowed() -> None:
    check_expiry(
        {
            "message_ttl_in_seconds": 0,
            "subscription_expiration_time_minutes": 5,
            "inactive_topic_policies": InactiveTopicPolicies(),
            "auto_topic_creation": AutoTopicCreation(True, "partitioned", 3),
            "persistence": Persistence(1, 1, 1, 0.5),
        },
        TOPIC_TTL_REFUSED,
    )
    check_expiry({"auto_topic_creation": AutoTopicCreation(True, "non-partitioned")}, "")
    check_expiry({"auto_topic_creation": AutoTopicCreation(False), "persistence": None}, "")
    check_expiry({"persistence": Persistence()}, "")
    check_expiry({"persistence": Persistence(1, 1, 1, None)}, "")


def test_times_are_not_below_0() -> None:
    assert refusal_of(message_ttl_in_seconds=-1) == (412, "Invalid value for message TTL")
    assert refusal_of(subscription_expiration_time_minutes=-1) == (
        412,
        "Invalid value for subscription expiration time",
    )
    inactive = InactiveTopicPolicies("delete_when_no_subscriptions", -1, True)
    assert refusal_of(inactive_topic_policies=inactive) == (
        412,
        "maxInactiveDurationSeconds must be 0 or more",
    )


@pytest.mark.parametrize(
    ("creation", "status", "reason"),
    [
        (AutoTopicCreation(True), 412, f"{DETAIL}Unknown topic type [null]"),
        (AutoTopicCreation(True, "partitioned"), 412,
         f"{DETAIL}[defaultNumPartitions] cannot be null when the type is partitioned."),
        (AutoTopicCreation(True, "partitioned", 0), 412,
         f"{DETAIL}[defaultNumPartitions] cannot be less than 1 for partition type."),
        (AutoTopicCreation(True, "non-partitioned", 1), 412,
         f"{DETAIL}[defaultNumPartitions] is not allowed to be set when the type is "
         "non-partition."),
        (AutoTopicCreation(True, "partitioned", 10_000), 406,
         "Number of partitions should be less than or equal to 4096"),
    ],
)  # fmt: skip
def test_automatic_creation(creation: AutoTopicCreation, status: int, reason: str) -> None:
    assert refusal_of(auto_topic_creation=creation) == (status, reason)


@pytest.mark.parametrize(
    ("persistence", "status", "words"),
    [
        (Persistence(1, 2, 1), 400, "Bookkeeper Ensemble (1) >= WriteQuorum (2) >= AckQuorum (1)"),
        (Persistence(2, 2, 2), 412, "one copy of each message"),
        (Persistence(1, 1, 1, -1.0), 400, "managedLedgerMaxMarkDeleteRate must be 0 or more"),
        (Persistence(1, 1, 1, inf), 400, "managedLedgerMaxMarkDeleteRate must be 0 or more, and"),
        (Persistence(1, 1, 1, nan), 400, "managedLedgerMaxMarkDeleteRate must be 0 or more, and"),
    ],
)
def test_copies(persistence: Persistence, status: int, words: str) -> None:
    found, reason = refusal_of(persistence=persistence)
    assert (found, words in reason) == (status, True)
