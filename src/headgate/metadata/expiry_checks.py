"""Checks of the policies about what ends, and about what a client's use creates.

Statuses and texts are Pulsar's.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Final

from headgate.metadata.checks import check_partition_count
from headgate.metadata.errors import RefusalError, not_allowed
from headgate.metadata.policies import AutoTopicCreation, InactiveTopicPolicies, Persistence

NAMESPACE_TTL_REFUSED: Final = "Invalid value for message TTL, message TTL must >= 0"
TOPIC_TTL_REFUSED: Final = "Invalid value for message TTL"
_EXPIRATION_REFUSED: Final = "Invalid value for subscription expiration time"


def check_expiry(policies: Mapping[str, object], ttl_refusal: str) -> None:
    """Return if those of ``policies``, by field, that are about expiry, automatic creation or
    persistence are allowed. ``ttl_refusal`` is the text for a TTL below 0.

    Raises:
        RefusalError: 412; 406 for more partitions than are allowed; 400 for numbers of copies that
            contradict each other.
    """
    ttl_s = policies.get("message_ttl_in_seconds")
    if isinstance(ttl_s, int) and ttl_s < 0:
        raise not_allowed(ttl_refusal)
    expiration_min = policies.get("subscription_expiration_time_minutes")
    if isinstance(expiration_min, int) and expiration_min < 0:
        raise not_allowed(_EXPIRATION_REFUSED)
    inactive = policies.get("inactive_topic_policies")
    if isinstance(inactive, InactiveTopicPolicies) and inactive.max_inactive_duration_seconds < 0:
        raise not_allowed("maxInactiveDurationSeconds must be 0 or more")
    creation = policies.get("auto_topic_creation")
    if isinstance(creation, AutoTopicCreation):
        _check_creation(creation)
    persistence = policies.get("persistence")
    if isinstance(persistence, Persistence):
        _check_persistence(persistence)


def _check_creation(creation: AutoTopicCreation) -> None:
    problem, partitions = "", creation.default_num_partitions
    if not creation.allow_auto_topic_creation:
        return
    if creation.topic_type is None:
        problem = "Unknown topic type [null]"
    elif creation.topic_type == "non-partitioned" and partitions is not None:
        problem = "[defaultNumPartitions] is not allowed to be set when the type is non-partition."
    elif creation.topic_type == "partitioned" and partitions is None:
        problem = "[defaultNumPartitions] cannot be null when the type is partitioned."
    elif partitions is not None and partitions <= 0:
        problem = "[defaultNumPartitions] cannot be less than 1 for partition type."
    if problem:
        raise not_allowed(
            f"Invalid configuration for autoTopicCreationOverride. the detail is {problem}"
        )
    if partitions is not None:
        check_partition_count(partitions)


def _check_persistence(persistence: Persistence) -> None:
    copies = (
        persistence.bookkeeper_ensemble,
        persistence.bookkeeper_write_quorum,
        persistence.bookkeeper_ack_quorum,
    )
    if not copies[0] >= copies[1] >= copies[2] >= 0:
        raise RefusalError(
            400,
            f"Bookkeeper Ensemble ({copies[0]}) >= WriteQuorum ({copies[1]}) >= AckQuorum "
            f"({copies[2]}) is required",
        )
    if max(copies) > 1:
        raise not_allowed(
            f"bookkeeperEnsemble={copies[0]}, bookkeeperWriteQuorum={copies[1]} and "
            f"bookkeeperAckQuorum={copies[2]} are not possible: this broker keeps one copy of each "
            "message on its own disk, so 1 is allowed"
        )
    # Infinity would be stored as null.
    if not 0 <= (persistence.managed_ledger_max_mark_delete_rate or 0.0) < inf:
        raise RefusalError(400, "managedLedgerMaxMarkDeleteRate must be 0 or more, and finite")
