"""A point as settings to paste: lines of ``broker.conf`` and ``headgate admin`` commands. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from headgate.base.units import MS_PER_S, NS_PER_MS
from headgate.flow.adaptive import AdaptiveSettings
from headgate.flow.quota import Quota, QuotaPolicy, QuotaType
from headgate.pipeline.backtest.policy import Policy, Rates, Recorded

_PREFIX: Final = "adaptivePublisherThrottling"
_UPDATE: Final = "headgate admin brokers update-dynamic-config"
_WATERMARKS: Final = ("Memory", "Backlog")
NAMESPACE: Final = "TENANT/NAMESPACE"
"""Stands where the caller knows no namespace."""


@dataclass(frozen=True, slots=True)
class Paste:
    """What sets a policy."""

    conf: tuple[str, ...]
    """Lines of ``broker.conf``, for the next start; each also goes after ``--set``."""
    commands: tuple[str, ...]
    """For a running broker; what only a start can change is not among them."""


def paste(policy: Policy, namespaces: Sequence[str] = ()) -> Paste:
    """How to set a policy; nothing for what it leaves as recorded.

    The controller is set for the whole broker, limits and quotas for each of ``namespaces``.
    """
    conf: list[str] = []
    commands: list[str] = []
    if policy.adaptive is None:
        conf.append(f"{_PREFIX}Enabled=false")
    else:
        keys = _adaptive_keys(policy.adaptive)
        conf.append(f"{_PREFIX}Enabled=true")
        conf += [f"{_PREFIX}{key}={_text(value)}" for key, value in keys.items()]
        # A low watermark has to lie below the present high one: first make room.
        room = {f"{name}HighWatermarkPct": 1.0 for name in _WATERMARKS}
        for part in (room, keys):
            commands += [
                f"{_UPDATE} --config {_PREFIX}{key} --value {_text(value)}"
                for key, value in part.items()
            ]
    for namespace in namespaces or (NAMESPACE,):
        commands += _namespace_commands(policy, shlex.quote(namespace))
    return Paste(tuple(conf), tuple(commands))


def _adaptive_keys(settings: AdaptiveSettings) -> dict[str, Any]:
    return {
        "ObserveOnly": settings.observe_only,
        "IntervalMs": settings.interval_ns // NS_PER_MS,
        "MemoryLowWatermarkPct": settings.memory_low,
        "MemoryHighWatermarkPct": settings.memory_high,
        "BacklogLowWatermarkPct": settings.backlog_low,
        "BacklogHighWatermarkPct": settings.backlog_high,
        "MinRateFactor": settings.min_rate_factor,
        "MaxRateChangeFactor": settings.max_rate_change_factor,
        "Law": settings.law.value,
        "DrainSetPointPct": settings.drain_set_point,
        "DrainHorizonMs": settings.drain_horizon_ns // NS_PER_MS,
    }


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _namespace_commands(policy: Policy, namespace: str) -> list[str]:
    found = []
    publish = policy.publish
    if isinstance(publish, Rates):
        rates = ((" -m ", publish.messages_per_s), (" -b ", publish.bytes_per_s))
        limits = "".join(f"{flag}{rate}" for flag, rate in rates if rate is not None)
        command = f"headgate admin namespaces set-publish-rate {namespace}"
        found.append(command + (limits or " --unlimited"))
    for quota_type, quota in (
        (QuotaType.SIZE, policy.size_quota),
        (QuotaType.TIME, policy.time_quota),
    ):
        if not isinstance(quota, Recorded):
            found.append(_quota_command(namespace, quota_type, quota))
    return found


def _quota_command(namespace: str, quota_type: QuotaType, quota: Quota | None) -> str:
    limit, policy = -1, QuotaPolicy.HOLD
    if quota is not None:
        limit, policy = quota.limit, quota.policy
        if quota_type is QuotaType.TIME:
            limit //= MS_PER_S
    option = "--limit" if quota_type is QuotaType.SIZE else "--limitTime"
    return (
        f"headgate admin namespaces set-backlog-quota {namespace} {option} {limit} "
        f"--policy {policy.value} --type {quota_type.pulsar_name}"
    )
