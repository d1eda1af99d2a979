"""Policies in JSON, and which level counts."""

from __future__ import annotations

import msgspec
import pytest

from headgate.metadata.policies import (
    QUOTA_KINDS,
    BacklogQuota,
    DispatchRate,
    NamespacePolicies,
    PublishRate,
    Retention,
    TopicPolicies,
    with_quota,
)


def test_a_rate_is_written_with_pulsars_names_and_all_fields() -> None:
    rate = DispatchRate(100, -1, True, 2)
    assert msgspec.json.encode(rate) == (
        b'{"dispatchThrottlingRateInMsg":100,"dispatchThrottlingRateInByte":-1,'
        b'"relativeToPublishRate":true,"ratePeriodInSecond":2}'
    )


def test_fields_left_out_are_zero_and_unknown_ones_ignored() -> None:
    decoded = msgspec.json.decode(b'{"unknownField":1}', type=DispatchRate)
    assert decoded == DispatchRate(0, 0, False, 0)
    assert not decoded.is_limit
    assert decoded.period_s == 1


def test_a_publish_rate_has_pulsars_names_and_minus_one_where_nothing_is_said() -> None:
    assert msgspec.json.encode(PublishRate(50)) == (
        b'{"publishThrottlingRateInMsg":50,"publishThrottlingRateInByte":-1}'
    )
    assert msgspec.json.decode(b'{"unknownField":1}', type=PublishRate) == PublishRate(-1, -1)
    unlimited = msgspec.json.decode(b'{"unlimited":true}', type=PublishRate)
    assert unlimited.is_unlimited
    assert msgspec.json.decode(msgspec.json.encode(unlimited), type=PublishRate) == unlimited
    assert not PublishRate(5, unlimited=False).is_unlimited


@pytest.mark.parametrize("rate", [{"InMsg": 1}, {"InByte": 1}])
def test_an_unlimited_publish_rate_has_no_rate(rate: dict[str, int]) -> None:
    fields = {f"publishThrottlingRate{name}": value for name, value in rate.items()}
    text = msgspec.json.encode({"unlimited": True, **fields})
    with pytest.raises(msgspec.ValidationError, match="unlimited excludes rates above 0"):
        msgspec.json.decode(text, type=PublishRate)


@pytest.mark.parametrize("type_", [NamespacePolicies, TopicPolicies])
def test_a_publish_rate_is_stored_and_reads_as_not_set_in_older_rows(type_: type) -> None:
    row = type_(publish_rate=PublishRate(50, 1_000))
    assert msgspec.json.decode(msgspec.json.encode(row), type=type_) == row
    old = msgspec.json.decode(b'{"dispatch_rate":{"dispatchThrottlingRateInMsg":1}}', type=type_)
    assert old.publish_rate is None


def test_numbers_beyond_javas_are_refused() -> None:
    for text in (b'{"dispatchThrottlingRateInMsg":2147483648}',
                 b'{"dispatchThrottlingRateInByte":9223372036854775808}'):  # fmt: skip
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(text, type=DispatchRate)
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(text.replace(b"dispatch", b"publish"), type=PublishRate)


def test_retention_keeps_pulsars_capitals() -> None:
    assert msgspec.json.encode(Retention(10, 100)) == (
        b'{"retentionTimeInMinutes":10,"retentionSizeInMB":100}'
    )


def test_a_policy_that_an_older_version_did_not_know_reads_as_not_set() -> None:
    assert msgspec.json.decode(b"{}", type=NamespacePolicies) == NamespacePolicies()
    assert msgspec.json.encode(NamespacePolicies()) == b"{}"


HOLD = BacklogQuota("producer_request_hold", 5)
EVICT = BacklogQuota("consumer_backlog_eviction", -1, 60)


def test_a_backlog_quota_left_out_of_a_stored_row_is_none_and_so_is_its_limit() -> None:
    for type_ in (NamespacePolicies, TopicPolicies):
        old = msgspec.json.decode(b'{"retention":{"retentionTimeInMinutes":1}}', type=type_)
        assert old.backlog_quotas == {}
    decoded = msgspec.json.decode(b'{"policy":"producer_exception"}', type=BacklogQuota)
    assert decoded == BacklogQuota("producer_exception", -1, -1)


def test_backlog_quotas_are_stored_whole() -> None:
    for row in (
        NamespacePolicies(backlog_quotas={"message_age": EVICT}),
        TopicPolicies(backlog_quotas={"destination_storage": HOLD}),
    ):
        assert msgspec.json.decode(msgspec.json.encode(row), type=type(row)) == row


def test_one_type_of_quota_is_replaced_or_removed() -> None:
    age = with_quota({}, "message_age", EVICT)
    assert age == {"message_age": EVICT}
    both = with_quota(age, "destination_storage", HOLD)
    assert tuple(both) == QUOTA_KINDS == ("destination_storage", "message_age")
    assert age == {"message_age": EVICT}
    assert with_quota(both, "message_age", HOLD) == {
        "destination_storage": HOLD, "message_age": HOLD,
    }  # fmt: skip
    assert with_quota(both, "destination_storage", None) == age
    assert with_quota({}, "message_age", None) == {}
