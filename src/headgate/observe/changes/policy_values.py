"""The values of policies in words."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import msgspec

from headgate.base.texts import printable, size_text, time_text
from headgate.base.units import MIB, S_PER_MINUTE
from headgate.flow.limits.precedence import RatePolicy
from headgate.flow.limits.rate_limit import Dimension
from headgate.flow.sentences.backlog import limit_text
from headgate.metadata.policies import BacklogQuota, DispatchRate, PublishRate, Retention
from headgate.policy.rate_policies import dispatch_policy, publish_policy

TEXT_MAX: Final = 100
"""Characters of a value that are kept."""


def value_text(name: str, value: object) -> str | None:
    """A policy's value in words; None if it sets nothing. ``name`` is the policy's field."""
    if value is None:
        return None
    if isinstance(value, DispatchRate):
        return _rate_text(dispatch_policy(value))
    if isinstance(value, PublishRate):
        return _rate_text(publish_policy(value))
    if isinstance(value, BacklogQuota):
        return _quota_text(value)
    if isinstance(value, Retention):
        return _retention_text(value)
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int) and name.endswith("_in_seconds"):
        return time_text(value) if value else "none"
    if isinstance(value, str | int):
        return _cut(str(value))
    if isinstance(value, Collection) and all(isinstance(each, str) for each in value):
        return _cut(", ".join(map(str, value))) or None
    return _cut(msgspec.json.encode(value).decode())


def _rate_text(policy: RatePolicy | None) -> str | None:
    if policy is None or policy.says_nothing():
        return None
    limit = policy.limit()
    if limit is None:
        return "no limit"
    parts = [limit_text(limit, each) for each in Dimension if limit.amount(each) is not None]
    above = " above the publish rate" if limit.relative else ""
    return " and ".join(parts) + above


def _quota_text(quota: BacklogQuota) -> str:
    bounds = []
    if quota.limit_size >= 0:
        bounds.append(size_text(quota.limit_size))
    if quota.limit_time >= 0:
        bounds.append(time_text(quota.limit_time))
    return f"{' and '.join(bounds) or 'no limit'} ({quota.policy})"


def _retention_text(retention: Retention) -> str:
    minutes, size_mb = retention.retention_time_in_minutes, retention.retention_size_in_mb
    time = "any age" if minutes < 0 else time_text(minutes * S_PER_MINUTE)
    size = "any size" if size_mb < 0 else size_text(size_mb * MIB)
    return f"{time} and {size}"


def _cut(text: str) -> str:
    text = printable(text)
    return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}..."
