"""The policy of a grid point: the limits, laws and quotas of a replay."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, Final

from headgate.base.units import MS_PER_S, NS_PER_MS
from headgate.flow.adaptive.cycle import AdaptiveSettings
from headgate.flow.quota.backlog_quota import Quota, QuotaType


class Recorded(Enum):
    """The choice to keep a setting as recorded in each sample."""

    RECORDED = "recorded"


RECORDED: Final = Recorded.RECORDED


@dataclass(frozen=True, slots=True)
class Rates:
    """A publish limit per second for every topic; None: no limit in that dimension."""

    messages_per_s: int | None = None
    bytes_per_s: int | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """The policy of every topic in a replay; by default as recorded."""

    publish: Rates | Recorded = RECORDED
    adaptive: AdaptiveSettings | None = None
    """None: the controller is off, also if it was on when the samples were recorded."""
    size_quota: Quota | Recorded | None = RECORDED
    """None: no quota."""
    time_quota: Quota | Recorded | None = RECORDED


@dataclass(frozen=True, slots=True)
class Point:
    """A policy of a grid, with its number and an optional name."""

    number: int
    name: str
    policy: Policy
    written: frozenset[str] = frozenset()
    """Controller settings that the grid file has, also those at their defaults."""

    @property
    def label(self) -> str:
        """The name in text, or ``point 12`` without one."""
        return self.name or f"point {self.number}"


def settings_of(point: Point) -> dict[str, Any]:
    """The point as a table of a grid file, without settings that are recorded or off."""
    policy = point.policy
    found: dict[str, Any] = {"name": point.name} if point.name else {}
    if isinstance(policy.publish, Rates):
        rates = policy.publish
        pairs = (("messages_per_s", rates.messages_per_s), ("bytes_per_s", rates.bytes_per_s))
        found["publish"] = {name: rate for name, rate in pairs if rate is not None} or "none"
    if policy.adaptive is not None:
        found["adaptive"] = adaptive_settings(policy.adaptive, point.written)
    for name, quota in (("size_quota", policy.size_quota), ("time_quota", policy.time_quota)):
        if quota is None:
            found[name] = "none"
        elif isinstance(quota, Quota):
            amount = {"limit_bytes": quota.limit}
            if quota.type is QuotaType.TIME:
                amount = {"limit_s": quota.limit // MS_PER_S}
            found[name] = amount | {"policy": quota.policy.value}
    return found


def adaptive_settings(settings: AdaptiveSettings, written: Collection[str]) -> dict[str, Any]:
    """The law, and the fields that are in ``written`` or differ from their defaults; durations in
    milliseconds."""
    default = AdaptiveSettings()
    found: dict[str, Any] = {"law": settings.law.value}
    for field in fields(settings):
        value = getattr(settings, field.name)
        name = field.name
        if name.endswith("_ns"):
            name = name.removesuffix("_ns") + "_ms"
        if field.name == "law" or (value == getattr(default, field.name) and name not in written):
            continue
        found[name] = value // NS_PER_MS if name != field.name else value
    return found


def settings_text(point: Point) -> str:
    """The point as one line of JSON, for the column ``settings``."""
    return json.dumps(settings_of(point), separators=(",", ":"))
