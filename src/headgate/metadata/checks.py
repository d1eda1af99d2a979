"""Checks of single values, with Pulsar's status codes and texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headgate.base.names import TopicName
from headgate.base.units import MIB, S_PER_MINUTE
from headgate.metadata.errors import RefusalError, not_allowed
from headgate.metadata.policies import BacklogQuota, QuotaKind, Retention
from headgate.metadata.rows import PartitionedRow

PARTITIONS_MAX = 4_096
"""Most partitions of one topic. Pulsar has no limit by default. Each partition is a topic row, a
part of every stats response and a set of metric series, so a mistyped count must not fill the
broker."""


def check_partition_count(partitions: int, *, at_least: int = 1) -> None:
    """Return if a topic may have ``partitions`` partitions.

    Raises:
        RefusalError: 406 if out of range, 422 if fewer than ``at_least``, the present count.
    """
    if partitions <= 0:
        raise RefusalError(406, "Number of partitions should be more than 0")
    if partitions > PARTITIONS_MAX:
        raise RefusalError(
            406, f"Number of partitions should be less than or equal to {PARTITIONS_MAX}"
        )
    if partitions < at_least:
        raise RefusalError(
            422,
            f"Desired partitions {partitions} can't be less than the current partitions "
            f"{at_least}.",
        )


def check_partition_name(topic: TopicName, base: PartitionedRow | None) -> None:
    """Return if a topic that is named like a partition may be created.

    Without a partitioned topic of that name it is a topic like any other.

    Raises:
        RefusalError: 412 if its partitioned topic has fewer partitions.
    """
    if base is not None and topic.partition >= base.partitions:
        raise not_allowed(
            f'Can\'t create topic {topic} with "-partition-" followed by a number larger than '
            f"the number of partitions, {base.partitions}, of the existing partitioned topic"
        )


def check_counts(policies: Mapping[str, object], names: Mapping[Any, str]) -> None:
    """Return if those of ``policies``, by field, that limit a number are allowed. ``names`` are
    the names of such fields in texts.

    Raises:
        RefusalError: 412.
    """
    for field, name in names.items():
        count = policies.get(field)
        if isinstance(count, int) and count < 0:
            raise not_allowed(f"{name} must be 0 or more")


def check_retention(retention: Retention | None) -> None:
    """Return if ``retention`` is allowed.

    Raises:
        RefusalError: 400.
    """
    if retention is None:
        return
    time_min, size_mb = retention.retention_time_in_minutes, retention.retention_size_in_mb
    if time_min < -1:
        raise RefusalError(400, "Invalid retention policy: time limit must be >= -1")
    if size_mb < -1:
        raise RefusalError(400, "Invalid retention policy: size limit must be >= -1")
    if (time_min == 0) != (size_mb == 0):
        raise RefusalError(
            400,
            "Invalid retention policy: Setting a single time or size limit to 0 is invalid when "
            "one of the limits has a non-zero value. Use the value of -1 instead of 0 to ignore a "
            "specific limit. To disable retention both limits must be set to 0.",
        )


NAMESPACE_QUOTA_TOO_LARGE = (
    "Backlog Quota exceeds configured retention quota for namespace. "
    "Please increase retention quota and retry"
)
TOPIC_QUOTA_TOO_LARGE = (
    "Backlog Quota exceeds configured retention quota for topic. "
    "Please increase retention quota and retry"
)
NAMESPACE_RETENTION_TOO_SMALL = (
    "Retention Quota must exceed configured backlog quota for namespace."
)
TOPIC_RETENTION_TOO_SMALL = (
    "Retention Quota must exceed configured backlog quota for topic. "
    "Please increase retention quota and retry"
)


def check_quotas_fit(
    quotas: Mapping[QuotaKind, BacklogQuota], retention: Retention | None, refusal: str
) -> None:
    """Return if each of ``quotas`` is below ``retention``.

    The size limit is compared with the retained size and the time limit with the retained time,
    if that is above 0: a retention of 0 or -1 bounds no backlog.

    Raises:
        RefusalError: 412 with ``refusal`` and both numbers.
    """
    if retention is None:
        return
    size, age = quotas.get("destination_storage"), quotas.get("message_age")
    size_mb, time_min = retention.retention_size_in_mb, retention.retention_time_in_minutes
    if size is not None and size_mb > 0 and size.limit_size >= size_mb * MIB:
        raise not_allowed(f"{refusal} (quota {size.limit_size} bytes, retention {size_mb} MB)")
    if age is not None and time_min > 0 and age.limit_time >= time_min * S_PER_MINUTE:
        raise not_allowed(f"{refusal} (quota {age.limit_time} s, retention {time_min} min)")
