"""Values that may not be, and what is said about them."""

from __future__ import annotations

import pytest

from headgate.base.names import parse_topic
from headgate.metadata.checks import (
    PARTITIONS_MAX,
    check_partition_count,
    check_partition_name,
    check_quotas_fit,
    check_retention,
)
from headgate.metadata.errors import RefusalError
from headgate.metadata.policies import BacklogQuota, QuotaKind, Retention
from headgate.metadata.rows import PartitionedRow


@pytest.mark.parametrize(
    ("count", "at_least", "status", "text"),
    [
        (0, 1, 406, "Number of partitions should be more than 0"),
        (-1, 1, 406, "Number of partitions should be more than 0"),
        (PARTITIONS_MAX + 1, 1, 406, f"less than or equal to {PARTITIONS_MAX}"),
        (2, 4, 422, "Desired partitions 2 can't be less than the current partitions 4."),
    ],
)
def test_bad_counts(count: int, at_least: int, status: int, text: str) -> None:
    with pytest.raises(RefusalError) as caught:
        check_partition_count(count, at_least=at_least)
    assert caught.value.status == status
    assert text in caught.value.reason


def test_good_counts() -> None:
    check_partition_count(1)
    check_partition_count(PARTITIONS_MAX, at_least=PARTITIONS_MAX)


def test_a_partition_beyond_the_count_is_refused() -> None:
    base = PartitionedRow(partitions=3, created_ms=0)
    check_partition_name(parse_topic("x-partition-2"), base)
    check_partition_name(parse_topic("x-partition-9"), None)
    with pytest.raises(RefusalError, match="number of partitions, 3"):
        check_partition_name(parse_topic("x-partition-3"), base)


@pytest.mark.parametrize(
    ("retention", "text"),
    [
        (Retention(-2, 0), "time limit must be >= -1"),
        (Retention(0, -2), "size limit must be >= -1"),
        (Retention(0, 5), "Setting a single time or size limit to 0 is invalid"),
        (Retention(5, 0), "Setting a single time or size limit to 0 is invalid"),
    ],
)
def test_bad_retention(retention: Retention, text: str) -> None:
    with pytest.raises(RefusalError, match=text) as caught:
        check_retention(retention)
    assert caught.value.status == 400


@pytest.mark.parametrize(
    "retention", [None, Retention(0, 0), Retention(-1, -1), Retention(5, -1), Retention(5, 5)]
)
def test_good_retention(retention: Retention | None) -> None:
    check_retention(retention)


MIB = 1 << 20
HOLD = "producer_request_hold"
SIZE: QuotaKind = "destination_storage"
AGE: QuotaKind = "message_age"


@pytest.mark.parametrize(
    ("kind", "quota", "retention", "numbers"),
    [
        (SIZE, BacklogQuota(HOLD, 5 * MIB), Retention(-1, 5), "5242880 bytes, retention 5 MB"),
        (SIZE, BacklogQuota(HOLD, 9 * MIB), Retention(1, 5), "9437184 bytes, retention 5 MB"),
        (AGE, BacklogQuota(HOLD, -1, 300), Retention(5, -1), "300 s, retention 5 min"),
        (AGE, BacklogQuota(HOLD, -1, 999), Retention(5, 1), "999 s, retention 5 min"),
    ],
)
def test_quotas_that_no_retention_covers(
    kind: QuotaKind, quota: BacklogQuota, retention: Retention, numbers: str
) -> None:
    with pytest.raises(RefusalError) as caught:
        check_quotas_fit({kind: quota}, retention, "Too much.")
    assert (caught.value.status, caught.value.reason) == (412, f"Too much. (quota {numbers})")


@pytest.mark.parametrize("retention", [None, Retention(0, 0), Retention(-1, -1)])
def test_retention_of_nothing_and_everything_covers_all(retention: Retention | None) -> None:
    large = BacklogQuota(HOLD, 1 << 60, 1 << 30)
    check_quotas_fit({SIZE: large, AGE: large}, retention, "Too much.")


def test_quotas_below_the_retention() -> None:
    retention = Retention(5, 5)
    check_quotas_fit({}, retention, "Too much.")
    size, age = BacklogQuota(HOLD, 5 * MIB - 1, 1 << 30), BacklogQuota(HOLD, 1 << 60, 299)
    check_quotas_fit({SIZE: size, AGE: age}, retention, "Too much.")
    for nothing in (BacklogQuota(HOLD), BacklogQuota(HOLD, 0, 0)):
        check_quotas_fit({SIZE: nothing, AGE: nothing}, retention, "Too much.")


def test_one_dimension_that_is_kept_without_end_leaves_the_other() -> None:
    size, age = BacklogQuota(HOLD, 1 << 60), BacklogQuota(HOLD, -1, 1 << 30)
    check_quotas_fit({SIZE: size}, Retention(5, -1), "Too much.")
    check_quotas_fit({AGE: age}, Retention(-1, 5), "Too much.")
