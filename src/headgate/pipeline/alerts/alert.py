"""One alert: its labels, its texts and its times. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

CRITICAL: Final = "critical"
WARNING: Final = "warning"
SEVERITIES: Final = (CRITICAL, WARNING)
"""Values of the label ``severity``, the more severe first."""

ALERT_NAME: Final = "alertname"
OWN_LABELS: Final = (
    ALERT_NAME, "severity", "cluster", "namespace", "topic", "subscription", "quota", "table",
    "expectation",
)  # fmt: skip
"""Labels that alerts have. The same backlog, quota or fault always has the same ones: what changes
while it lasts, such as its cause, is an annotation."""

DESCRIPTION: Final = "description"
"""The annotation with the sentence."""

_FNV_OFFSET: Final = 0xCBF29CE484222325
_FNV_PRIME: Final = 0x100000001B3
_UINT64: Final = (1 << 64) - 1
_SEPARATOR: Final = b"\xff"


@dataclass(frozen=True, slots=True)
class Alert:
    """Something that is wrong now."""

    labels: Mapping[str, str]
    """Its identity; labels without a value are left out."""
    annotations: Mapping[str, str]
    """Texts: ``summary``, ``description`` and others."""
    starts_ns: int | None
    """When it began, since the epoch; None: it begins when it is found first."""
    seen_ns: int
    """Until when it was seen to last, since the epoch."""
    weight: float = 0.0
    """Order among alerts of one severity and name: the largest is the most severe."""
    keeps_ns: int = 0
    """For so long the alert stays after it is not found any more."""
    section: str = ""
    """The section of the report that it belongs to."""
    identity: str = field(init=False)
    """That of its labels."""

    def __post_init__(self) -> None:
        """Compute the identity once."""
        object.__setattr__(self, "identity", identity(self.labels))

    @property
    def rank(self) -> int:
        """Its severity as a number; 0 is the most severe."""
        return SEVERITIES.index(self.labels["severity"])


def named(alertname: str, severity: str, **labels: str | None) -> dict[str, str]:
    """Labels of an alert, without those that have no value."""
    given = {ALERT_NAME: alertname, "severity": severity, **labels}
    return {name: value for name, value in given.items() if value}


def tenant_of_labels(labels: Mapping[str, str]) -> str:
    """The tenant that an alert is about; empty for one about none, such as a silent cluster."""
    return labels.get("namespace", "").partition("/")[0]


def namespace_of(topic: str) -> str:
    """``tenant/namespace`` of a topic's full name."""
    return "/".join(topic.partition("://")[2].split("/")[:2])


def identity(labels: Mapping[str, str]) -> str:
    """A text that no other set of labels has. Clients choose names of topics and subscriptions, and
    find some whose :func:`fingerprint` is that of an alert of another tenant in a minute."""
    return blake2b(json.dumps(sorted(labels.items())).encode(), digest_size=16).hexdigest()


def fingerprint(labels: Mapping[str, str]) -> str:
    """The hash of a set of labels that Alertmanager shows: FNV-1a in 16 hex digits."""
    value = _FNV_OFFSET
    for name, text in sorted(labels.items()):
        for byte in name.encode() + _SEPARATOR + text.encode() + _SEPARATOR:
            value = ((value ^ byte) * _FNV_PRIME) & _UINT64
    return f"{value:016x}"
