"""Which properties of topics may become labels on /metrics (PIP-447)."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

METRIC_LABELS_MAX: Final = 8
"""Most labels of this kind: each multiplies the text of every line about a topic."""

METRIC_LABEL_CHARACTERS_MAX: Final = 128
"""A longer value is cut."""

RESERVED_LABELS: Final = frozenset(
    {
        "broker", "cause", "cluster", "commit", "consumer", "content", "dimension", "direction",
        "file", "instance", "job", "kind", "le", "limiter", "log", "method", "metric", "namespace",
        "operation", "partition", "policy", "quota_type", "reason", "result", "source", "state",
        "subscription", "system_subscription", "system_topic", "tenant", "topic", "version",
    }
)  # fmt: skip
"""Labels that series have already, or that Prometheus adds."""

ALLOWED_LABELS: Final = (
    f"at most {METRIC_LABELS_MAX} names of labels: letters, digits and _, which no series has"
)
"""The allowed names, in words."""

_LABEL: Final = re.compile(r"(?!__|pulsar_|otel_)[a-zA-Z_][a-zA-Z0-9_]{0,63}\Z")
"""Names that begin as Pulsar's and OpenTelemetry's own are refused by Pulsar, too."""


def problem_of_labels(names: Collection[str]) -> str:
    """What is wrong with some names of labels; empty if nothing is."""
    for name in names:
        if not _LABEL.match(name):
            return f"{name[:80]!r} is no name of a label"
        if name in RESERVED_LABELS:
            return f"{name!r} is a label already"
    return f"{len(names)} names" if len(set(names)) > METRIC_LABELS_MAX else ""
