"""The configuration lines and commands that set the policy of a grid point. Pure.

Limits and quotas are set at their present source: for the namespace, and for topics with a topic
policy, which would override the namespace's.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headgate.base.units import MS_PER_S, NS_PER_MS
from headgate.flow.adaptive.cycle import AdaptiveSettings
from headgate.flow.limits.precedence import TOPIC_POLICY
from headgate.flow.quota.backlog_quota import Quota, QuotaPolicy, QuotaType
from headgate.pipeline.backtest.limit_sources import SOURCE_COLUMNS, Namespace, Setting, Value
from headgate.pipeline.backtest.policy import Policy, Rates, Recorded, adaptive_settings
from headgate.pipeline.output.attribution import topics_text

_PREFIX: Final = "adaptivePublisherThrottling"
_UPDATE: Final = "headgate admin brokers update-dynamic-config"
NAMESPACE: Final = "TENANT/NAMESPACE"
"""Placeholder if the caller knows no namespace."""
LISTED_MAX: Final = 10
"""Most namespaces, and most topics, with a command for each setting; the others are counted."""


@dataclass(frozen=True, slots=True)
class SettingsCommands:
    """The lines and commands that set a policy."""

    conf: tuple[str, ...]
    """Lines of ``broker.conf`` for the next start; each is also valid after ``--set``."""
    commands: tuple[str, ...]
    """Commands for a running broker, without settings that only a start can change. Lines that
    begin with ``#`` are comments."""


def settings_commands(
    policy: Policy, namespaces: Sequence[Namespace] = (), written: Collection[str] = ()
) -> SettingsCommands:
    """The lines and commands that set a policy, without settings that stay as recorded or are in
    force already.

    The controller is set for the whole broker, limits and quotas for each of ``namespaces`` and for
    their topics with topic policies. ``written`` are the controller settings in the grid file.
    Other settings are omitted if they have their defaults: telemetry does not have the broker's
    settings.
    """
    conf: list[str] = []
    commands: list[str] = []
    known = [each.is_adaptive for each in namespaces if each.is_adaptive is not None]
    is_on = any(known) if known else None
    if policy.adaptive is not None:
        keys = _ordered_keys(policy.adaptive, written)
        conf.append(f"{_PREFIX}Enabled=true")
        conf += [f"{_PREFIX}{key}={_text(value)}" for key, value in keys.items()]
        if not is_on:
            where = "The controller is off;" if is_on is False else "Where the controller is off,"
            start = f"before a start with {_PREFIX}Enabled=true:"
            commands.append(f"# {where} these have no effect {start}")
        commands += [
            f"{_UPDATE} --config {_PREFIX}{key} --value {_text(value)}"
            for key, value in keys.items()
        ]
        if policy.adaptive.observe_only:
            commands.append(
                "# Observe-only: the controller reports its decisions and sets no limit."
            )
        commands.append(f"# Settings of {_PREFIX}* that are not listed have their defaults.")
    elif is_on is not False:
        conf.append(f"{_PREFIX}Enabled=false")
    for setting, (verb, value) in _verbs(policy).items():
        commands += _commands(setting, verb, value, namespaces or (Namespace(NAMESPACE),))
    return SettingsCommands(tuple(conf), tuple(commands))


_KEYS: Final = {
    "observe_only": "ObserveOnly",
    "interval_ms": "IntervalMs",
    "memory_low": "MemoryLowWatermarkPct",
    "memory_high": "MemoryHighWatermarkPct",
    "backlog_low": "BacklogLowWatermarkPct",
    "backlog_high": "BacklogHighWatermarkPct",
    "min_rate_factor": "MinRateFactor",
    "max_rate_change_factor": "MaxRateChangeFactor",
    "law": "Law",
    "drain_set_point": "DrainSetPointPct",
    "drain_horizon_ms": "DrainHorizonMs",
}
"""Suffixes of the broker's settings, by the names in a grid file."""


def _ordered_keys(settings: AdaptiveSettings, written: Collection[str]) -> dict[str, Any]:
    """The broker's settings with their values, in an order that a broker with default settings
    accepts one by one."""
    values, default = adaptive_settings(settings, written), AdaptiveSettings()
    names = list(values)
    for low, high, default_high in (
        ("memory_low", "memory_high", default.memory_high),
        ("backlog_low", "backlog_high", default.backlog_high),
    ):
        # After each command, a low watermark must be below the high one.
        if low in names and high in names and values[low] >= default_high:
            at, to = names.index(low), names.index(high)
            names[at], names[to] = high, low
    return {_KEYS[name]: values[name] for name in names}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True)
class _Verb:
    """The verb and options of a command, for a namespace or a topic."""

    name: str
    options: str

    def command(self, group: str, subject: str) -> str:
        return f"headgate admin {group} {self.name} {shlex.quote(subject)} {self.options}"


def _verbs(policy: Policy) -> dict[Setting, tuple[_Verb, Value]]:
    """By setting that a policy changes: the verb, with the value that is in force then."""
    found: dict[Setting, tuple[_Verb, Value]] = {}
    publish = policy.publish
    if isinstance(publish, Rates):
        rates = (("-m", publish.messages_per_s), ("-b", publish.bytes_per_s))
        limits = " ".join(f"{flag} {rate}" for flag, rate in rates if rate is not None)
        verb = _Verb("set-publish-rate", limits or "--unlimited")
        found[Setting.PUBLISH] = (verb, tuple(rate for _, rate in rates))
    for setting, quota_type, quota in (
        (Setting.SIZE_QUOTA, QuotaType.SIZE, policy.size_quota),
        (Setting.TIME_QUOTA, QuotaType.TIME, policy.time_quota),
    ):
        if not isinstance(quota, Recorded):
            verb = _Verb("set-backlog-quota", _quota_options(quota_type, quota))
            found[setting] = (verb, _quota_value(quota))
    return found


def _quota_options(quota_type: QuotaType, quota: Quota | None) -> str:
    limit, policy = -1, QuotaPolicy.HOLD
    if quota is not None:
        limit, policy = quota.limit, quota.policy
        if quota_type is QuotaType.TIME:
            limit //= MS_PER_S
    option = "--limit" if quota_type is QuotaType.SIZE else "--limitTime"
    return f"{option} {limit} --policy {policy.value} --type {quota_type.pulsar_name}"


def _quota_value(quota: Quota | None) -> Value:
    if quota is None:
        return (None, None)
    scale = NS_PER_MS if quota.type is QuotaType.TIME else 1
    return (quota.limit * scale, quota.policy.value)


def _commands(
    setting: Setting, verb: _Verb, value: Value, namespaces: Sequence[Namespace]
) -> list[str]:
    levels = [namespace.levels.get(setting) for namespace in namespaces]
    # If all topics have topic policies, the namespace's would affect none of them.
    wide = [
        namespace.name
        for namespace, own in zip(namespaces, levels, strict=True)
        if own is None or own.unknown or (own.others and own.other_values != {value})
    ]
    found = [verb.command("namespaces", name) for name in wide[:LISTED_MAX]]
    if len(wide) > LISTED_MAX:
        found.append(
            f"# {len(wide) - LISTED_MAX:,} more namespaces were replayed: set each the same way."
        )
    topics = [
        topic
        for own in levels
        if own is not None
        for topic in own.own
        if own.own_values.get(topic) != frozenset({value})
    ]
    if topics:
        have = "has a topic policy" if len(topics) == 1 else "have topic policies"
        found.append(
            f"# {topics_text(len(topics))} {have} for the {setting.value}, which "
            f"{'overrides' if len(topics) == 1 else 'override'} the namespace's:"
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
            f"# It is unknown where the {setting.value} of {topics_text(unknown)} is set: a topic "
            "policy would override the namespace's."
        )
    return found
