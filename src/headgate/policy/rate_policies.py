"""Conversion between the rates that REST stores and the policies that precedence compares."""

from __future__ import annotations

from msgspec import UNSET

from headgate.flow.limits.precedence import RatePolicy
from headgate.metadata.policies import DispatchRate, PublishRate


def dispatch_policy(rate: DispatchRate | None) -> RatePolicy | None:
    """The policy of a stored dispatch rate."""
    if rate is None:
        return None
    return RatePolicy(
        messages=rate.dispatch_throttling_rate_in_msg,
        bytes=rate.dispatch_throttling_rate_in_byte,
        period_s=rate.rate_period_in_second,
        relative=rate.relative_to_publish_rate,
        unlimited=rate.is_unlimited,
    )


def publish_policy(rate: PublishRate | None) -> RatePolicy | None:
    """The policy of a stored publish rate: over one second, never relative."""
    if rate is None:
        return None
    return RatePolicy(
        messages=rate.publish_throttling_rate_in_msg,
        bytes=rate.publish_throttling_rate_in_byte,
        unlimited=rate.is_unlimited,
    )


def dispatch_rate(policy: RatePolicy | None) -> DispatchRate:
    """What REST shows for the effective dispatch policy; rates of 0 without one, as Pulsar does."""
    if policy is None:
        return DispatchRate(rate_period_in_second=1)
    return DispatchRate(
        dispatch_throttling_rate_in_msg=policy.messages,
        dispatch_throttling_rate_in_byte=policy.bytes,
        relative_to_publish_rate=policy.relative,
        rate_period_in_second=policy.period_s,
        unlimited=True if policy.unlimited else UNSET,
    )


def publish_rate(policy: RatePolicy | None) -> PublishRate | None:
    """What REST shows for the effective publish policy; nothing without one, as Pulsar does."""
    if policy is None:
        return None
    return PublishRate(
        publish_throttling_rate_in_msg=policy.messages,
        publish_throttling_rate_in_byte=policy.bytes,
        unlimited=True if policy.unlimited else UNSET,
    )
