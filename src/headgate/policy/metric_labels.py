"""Which properties of topics may become labels on /metrics (PIP-447)."""

from __future__ import annotations

import re
from typing import Final

from headgate.policy.setting_info import TextRule, names_of

METRIC_LABELS_MAX: Final = 8
"""Most labels of this kind: each multiplies the text of every line about a topic."""

METRIC_LABEL_CHARACTERS_MAX: Final = 128
"""A longer value is cut."""

RESERVED_LABELS: Final = frozenset(
    {
        "broker", "cause", "cluster", "commit", "consumer", "content", "dimension", "direction",
        "file", "instance", "job", "kind", "le", "limiter", "log", "method", "metric", "namespace",
        "partition", "policy", "quota_type", "reason", "result", "source", "state", "subscription",
        "system_subscription", "system_topic", "tenant", "topic", "version",
    }
)  # fmt: skip
"""Labels that series have already, or that Prometheus adds."""

_LABEL: Final = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]{0,63}\Z")


def _problem(text: str) -> str:
    names = names_of(text)
    for name in names:
        if not _LABEL.match(name):
            return f"{name[:80]!r} is no name of a label"
        if name in RESERVED_LABELS:
            return f"{name!r} is a label already"
    return f"{len(names)} names" if len(set(names)) > METRIC_LABELS_MAX else ""


METRIC_LABELS: Final = TextRule(
    f"at most {METRIC_LABELS_MAX} names of labels with commas between them: letters, digits and _, "
    "which no series has",
    _problem,
)
"""The rule of ``allowedTopicPropertiesForMetrics``."""
