"""A point as settings to paste: lines of ``broker.conf`` and ``headgate admin`` commands. Pure.

Limits and quotas are set where they are set now: for the namespace, and for topics that have a
policy of their own, which would else go before it.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from headgate.base.units import MS_PER_S, NS_PER_MS
from headgate.flow.adaptive import AdaptiveSettings
from headgate.flow.limits import TOPIC_POLICY
from headgate.flow.quota import Quota, QuotaPolicy, QuotaType
from headgate.pipeline.backtest.levels import SOURCE_COLUMNS, Namespace, Setting
from headgate.pipeline.backtest.policy import Policy, Rates, Recorded
from headgate.pipeline.render import topics_text

_PREFIX: Final = "adaptivePublisherThrottling"
_UPDATE: Final = "headgate admin brokers update-dynamic-config"
_WATERMARKS: Final = ("Memory", "Backlog")
NAMESPACE: Final = "TENANT/NAMESPACE"
"""Stands where the caller knows no namespace."""
LISTED_MAX: Final = 10
"""Of each setting so many namespaces and so many topics have a command; more are counted."""


@dataclass(frozen=True, slots=True)
class Paste:
    """What sets a policy."""

    conf: tuple[str, ...]
    """Lines of ``broker.conf``, for the next start; each also goes after ``--set``."""
    commands: tuple[str, ...]
    """For a running broker; what only a start can change is not among them. Lines that begin with
    ``#`` are for who reads them."""


def paste(policy: Policy, namespaces: Sequence[Namespace] = ()) -> Paste:
    """How to set a policy; nothing for what it leaves as recorded.

    The controller is set for the whole broker, limits and quotas for each of ``namespaces`` and for
    their topics that have policies of their own.
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
    for setting, verb in _verbs(policy).items():
        commands += _commands(setting, verb, namespaces or (Namespace(NAMESPACE),))
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


@dataclass(frozen=True, slots=True)
class _Verb:
    """What sets something; the same for a namespace and for a topic."""

    name: str
    options: str

    def command(self, group: str, subject: str) -> str:
        return f"headgate admin {group} {self.name} {shlex.quote(subject)} {self.options}"


def _verbs(policy: Policy) -> dict[Setting, _Verb]:
    """How to set what a policy does not leave as recorded."""
    found = {}
    publish = policy.publish
    if isinstance(publish, Rates):
        rates = (("-m", publish.messages_per_s), ("-b", publish.bytes_per_s))
        limits = " ".join(f"{flag} {rate}" for flag, rate in rates if rate is not None)
        found[Setting.PUBLISH] = _Verb("set-publish-rate", limits or "--unlimited")
    for setting, quota_type, quota in (
        (Setting.SIZE_QUOTA, QuotaType.SIZE, policy.size_quota),
        (Setting.TIME_QUOTA, QuotaType.TIME, policy.time_quota),
    ):
        if not isinstance(quota, Recorded):
            found[setting] = _Verb("set-backlog-quota", _quota_options(quota_type, quota))
    return found


def _quota_options(quota_type: QuotaType, quota: Quota | None) -> str:
    limit, policy = -1, QuotaPolicy.HOLD
    if quota is not None:
        limit, policy = quota.limit, quota.policy
        if quota_type is QuotaType.TIME:
            limit //= MS_PER_S
    option = "--limit" if quota_type is QuotaType.SIZE else "--limitTime"
    return f"{option} {limit} --policy {policy.value} --type {quota_type.pulsar_name}"


def _commands(setting: Setting, verb: _Verb, namespaces: Sequence[Namespace]) -> list[str]:
    levels = [namespace.levels.get(setting) for namespace in namespaces]
    # Where all topics have policies of their own the namespace's would change none of them.
    wide = [
        namespace.name
        for namespace, own in zip(namespaces, levels, strict=True)
        if own is None or own.others or own.unknown
    ]
    found = [verb.command("namespaces", name) for name in wide[:LISTED_MAX]]
    if len(wide) > LISTED_MAX:
        found.append(f"# {len(wide) - LISTED_MAX:,} more namespaces were replayed: set each alike.")
    topics = [topic for own in levels if own is not None for topic in own.own]
    if topics:
        have = "has a policy of its" if len(topics) == 1 else "have policies of their"
        found.append(
            f"# {topics_text(len(topics))} {have} own for the {setting.value}, which goes "
            "before the namespace's:"
        )
    found += [verb.command("topicPolicies", topic) for topic in topics[:LISTED_MAX]]
    if len(topics) > LISTED_MAX:
        found.append(
            f"# {len(topics) - LISTED_MAX:,} more: the topics in the table intervals whose "
            f"{SOURCE_COLUMNS[setting]} is {TOPIC_POLICY!r}."
        )
    unknown = sum(own.unknown for own in levels if own is not None)
    if unknown:
        found.append(
            f"# Where the {setting.value} of {topics_text(unknown)} is set is not known: a "
            "policy of its own would go before the namespace's."
        )
    return found
