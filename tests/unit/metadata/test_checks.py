"""Values that may not be, and what is said about them."""

from __future__ import annotations

import pytest

from headgate.base.names import parse_topic
from headgate.metadata.checks import (
    PARTITIONS_MAX,
    check_partition_count,
    check_partition_name,
    check_retention,
)
from headgate.metadata.errors import RefusalError
from headgate.metadata.policies import Retention
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
