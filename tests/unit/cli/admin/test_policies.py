"""Bodies of rates, retentions and backlog quotas, and how quotas are printed."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from headgate.cli.admin.errors import AdminUsageError
from headgate.cli.admin.policies import (
    QUOTA_POLICIES,
    QUOTA_TYPES,
    SAYS_NOTHING,
    as_quotas,
    delay_body,
    older_quota_body,
    publish_rate_body,
    quota_body,
    quota_policy,
    quota_type,
    rate_body,
    retention_body,
)
from headgate.metadata.policies import QUOTA_KINDS, QuotaPolicyName

UNSET: dict[str, Any] = {
    "msgDispatchRate": -1,
    "byteDispatchRate": -1,
    "dispatchRatePeriodSec": 1,
    "relativeToPublishRate": False,
    "unlimited": False,
}


def test_a_rate_knows_unlimited_only_when_it_is_said() -> None:
    body = rate_body(UNSET | {"msgDispatchRate": 100, "relativeToPublishRate": True})
    assert list(body.items()) == [
        ("dispatchThrottlingRateInMsg", 100),
        ("dispatchThrottlingRateInByte", -1),
        ("relativeToPublishRate", True),
        ("ratePeriodInSecond", 1),
    ]
    body = rate_body(UNSET | {"unlimited": True})
    assert body == {
        "dispatchThrottlingRateInMsg": -1,
        "dispatchThrottlingRateInByte": -1,
        "relativeToPublishRate": False,
        "ratePeriodInSecond": 1,
        "unlimited": True,
    }


@pytest.mark.parametrize(
    "rate", [{"msgDispatchRate": 0}, {"byteDispatchRate": 5}, {"relativeToPublishRate": True}]
)
def test_unlimited_together_with_a_rate_means_nothing(rate: dict[str, Any]) -> None:
    with pytest.raises(AdminUsageError, match="--unlimited excludes"):
        rate_body(UNSET | {"unlimited": True} | rate)


PUBLISH_UNSET = {"msgPublishRate": -1, "bytePublishRate": -1, "unlimited": False}


def test_a_publish_rate_is_sent_as_pulsar_sends_it(capsys: pytest.CaptureFixture[str]) -> None:
    body = publish_rate_body(PUBLISH_UNSET | {"msgPublishRate": 50})
    assert list(body.items()) == [
        ("publishThrottlingRateInMsg", 50),
        ("publishThrottlingRateInByte", -1),
    ]
    assert publish_rate_body(PUBLISH_UNSET | {"unlimited": True}) == {
        "publishThrottlingRateInMsg": -1,
        "publishThrottlingRateInByte": -1,
        "unlimited": True,
    }
    assert capsys.readouterr().err == ""
    publish_rate_body(PUBLISH_UNSET)
    assert capsys.readouterr().err == f"{SAYS_NOTHING}\n"


@pytest.mark.parametrize("rate", [{"msgPublishRate": 0}, {"bytePublishRate": 5}])
def test_unlimited_together_with_a_publish_rate_means_nothing(rate: dict[str, Any]) -> None:
    with pytest.raises(
        AdminUsageError, match="excludes --msg-publish-rate and --byte-publish-rate"
    ):
        publish_rate_body(PUBLISH_UNSET | {"unlimited": True} | rate)


@pytest.mark.parametrize(
    ("age_s", "limit_bytes", "minutes", "megabytes"),
    [(600, 100 << 20, 10, 100), (-1, -1, -1, -1), (30, 500 << 10, 0, 0), (0, 0, 0, 0)],
)
def test_retentions(age_s: int, limit_bytes: int, minutes: int, megabytes: int) -> None:
    assert retention_body({"retentionTimeInSec": age_s, "sizeLimit": limit_bytes}) == {
        "retentionTimeInMinutes": minutes,
        "retentionSizeInMB": megabytes,
    }


@pytest.mark.parametrize("active", [True, False])
def test_delayed_delivery(active: bool) -> None:
    values = {"delayedDeliveryTimeInMills": 1_000, "delayedDeliveryMaxDelayInMillis": 60_000}
    body = {"tickTime": 1_000, "active": active, "maxDeliveryDelayInMillis": 60_000}
    assert delay_body({"enable": active, "disable": not active} | values) == body
    with pytest.raises(AdminUsageError, match="either --enable or --disable"):
        delay_body({"enable": active, "disable": active} | values)


def test_a_policy_that_says_nothing_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    """As in Pulsar it is sent, and means that the next level applies."""
    assert rate_body(UNSET | {"relativeToPublishRate": True})["relativeToPublishRate"] is True
    assert capsys.readouterr().err == f"{SAYS_NOTHING}\n"
    rate_body(UNSET | {"byteDispatchRate": 1})
    rate_body(UNSET | {"unlimited": True})
    assert capsys.readouterr().err == ""


QUOTA: dict[str, Any] = {
    "limit": None,
    "limitTimeInSec": None,
    "policyStr": "producer_exception",
    "backlogQuotaTypeStr": "destination_storage",
}


def test_the_words_are_those_of_the_broker() -> None:
    assert QUOTA_TYPES == QUOTA_KINDS
    assert get_args(QuotaPolicyName) == QUOTA_POLICIES
    assert [quota_type(word) for word in QUOTA_TYPES] == list(QUOTA_TYPES)
    assert [quota_policy(word) for word in QUOTA_POLICIES] == list(QUOTA_POLICIES)


@pytest.mark.parametrize("word", ["bogus", "", "Producer_Exception", "MESSAGE_AGE"])
def test_other_words_are_refused_with_those_that_are_allowed(word: str) -> None:
    with pytest.raises(AdminUsageError) as caught:
        quota_policy(word)
    assert caught.value.message == (
        f"Invalid retention policy type '{word}'. Valid options are: "
        "[producer_request_hold, producer_exception, consumer_backlog_eviction]"
    )
    with pytest.raises(AdminUsageError) as caught:
        quota_type(word)
    assert caught.value.message == (
        f"Invalid backlog quota type '{word}'. Valid options are: "
        "[destination_storage, message_age]"
    )


@pytest.mark.parametrize(
    ("given", "size", "age_s"),
    [
        ({"limit": 5}, 5, -1),
        ({"limit": 5, "limitTimeInSec": 6}, 5, -1),
        ({"limit": 0}, 0, -1),
        ({"limit": 5, "limitTimeInSec": 6, "backlogQuotaTypeStr": "message_age"}, -1, 6),
        ({"limitTimeInSec": 0, "backlogQuotaTypeStr": "message_age"}, -1, 0),
    ],
)
def test_a_quota_has_the_limit_of_its_type_alone(
    given: dict[str, Any], size: int, age_s: int
) -> None:
    assert list(quota_body(QUOTA | given).items()) == [
        ("limit", size),
        ("limitSize", size),
        ("limitTime", age_s),
        ("policy", "producer_exception"),
    ]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"limitTimeInSec": 6}, "Quota type of 'destination_storage' needs a size limit"),
        ({"limit": 5, "backlogQuotaTypeStr": "message_age"},
         "Quota type of 'message_age' needs a time limit"),
    ],
)  # fmt: skip
def test_a_quota_needs_the_limit_of_its_type(given: dict[str, Any], text: str) -> None:
    with pytest.raises(AdminUsageError) as caught:
        quota_body(QUOTA | given)
    assert caught.value.message == text


def test_the_older_verb_sends_both_limits() -> None:
    for given, limits in (
        ({}, (-1, -1)),
        ({"limit": 5}, (5, -1)),
        ({"limitTimeInSec": 0}, (-1, 0)),
        ({"limit": 0, "limitTimeInSec": 6}, (0, 6)),
    ):
        body = older_quota_body(QUOTA | given)
        assert (body["limit"], body["limitSize"], body["limitTime"]) == (limits[0], *limits)


def test_quotas_are_printed_as_java_writes_them() -> None:
    quota = {"limit": 10, "limitSize": 10, "limitTime": -1, "policy": "producer_exception"}
    text = "BacklogQuotaImpl(limit=10, limitSize=10, limitTime=-1, policy=producer_exception)"
    assert as_quotas({"destination_storage": quota, "message_age": quota}) == (
        f"destination_storage    {text}\nmessage_age    {text}"
    )
    assert as_quotas({}) == ""
    assert as_quotas(None) == "null"
