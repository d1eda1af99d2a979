"""Policies in JSON, and which level counts."""

from __future__ import annotations

import msgspec
import pytest

from headgate.metadata.policies import DispatchRate, NamespacePolicies, Retention


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


def test_numbers_beyond_javas_are_refused() -> None:
    for text in (b'{"dispatchThrottlingRateInMsg":2147483648}',
                 b'{"dispatchThrottlingRateInByte":9223372036854775808}'):  # fmt: skip
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(text, type=DispatchRate)


def test_retention_keeps_pulsars_capitals() -> None:
    assert msgspec.json.encode(Retention(10, 100)) == (
        b'{"retentionTimeInMinutes":10,"retentionSizeInMB":100}'
    )


def test_a_policy_that_an_older_version_did_not_know_reads_as_not_set() -> None:
    assert msgspec.json.decode(b"{}", type=NamespacePolicies) == NamespacePolicies()
    assert msgspec.json.encode(NamespacePolicies()) == b"{}"
