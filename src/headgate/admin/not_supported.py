"""What the admin API of a Pulsar has and this broker does not: refused in words, at once.

docs/guide/not-supported.md lists the answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headgate.base.names import NON_PERSISTENT
from headgate.metadata.errors import RefusalError

_SUBJECT_SEGMENTS: Final = {"persistent": 6, "namespaces": 5}
"""Segments of the path of a topic, and of a namespace; what follows says what is asked for."""

_V3: Final[dict[str, tuple[int, str]]] = {
    "functions": (405, "Pulsar Function Worker is not enabled: functions are not supported"),
    "sources": (405, "Pulsar Function Worker is not enabled: sources are not supported"),
    "sinks": (405, "Pulsar Function Worker is not enabled: sinks are not supported"),
    "packages": (405, "Package management is not supported by this broker"),
    "transactions": (
        503,
        "This Broker is not configured with transactionCoordinatorEnabled=true: transactions are "
        "not supported",
    ),
}
"""Status and reason by the first segment behind ``admin/v3``."""

_V2: Final[dict[str, tuple[int, str]]] = {
    NON_PERSISTENT: (404, "Non-persistent topics are not supported"),
    "scalable": (405, "Scalable topics are not supported by this broker"),
    "worker": _V3["functions"],
    "worker-stats": _V3["functions"],
    "functions": _V3["functions"],
    "resourcegroups": (405, "Resource groups are not supported by this broker"),
}

_OF_TOPIC: Final[dict[str, tuple[int, str]]] = {
    "compaction": (405, "Compaction is not supported by this broker"),
    "compactionThreshold": (405, "Compaction is not supported by this broker"),
    "offload": (405, "Tiered storage is not supported by this broker"),
    "offloadPolicies": (405, "Tiered storage is not supported by this broker"),
    "replicatorDispatchRate": (405, "Geo-replication is not supported by this broker"),
    "shadowTopics": (405, "Geo-replication is not supported by this broker"),
}
"""Also of a namespace."""


def refusal_of(raw_path: str, segments: Sequence[str]) -> RefusalError:
    """The refusal of a path that no route has, cut into its segments."""
    if len(segments) > 2 and segments[0] == "admin":
        subjects = {"v2": _V2, "v3": _V3}.get(segments[1], {})
        found = subjects.get(segments[2]) or _of_subject(segments)
        if found is not None:
            return RefusalError(*found)
    return RefusalError(404, f"No such resource: {raw_path[:200]}")


def _of_subject(segments: Sequence[str]) -> tuple[int, str] | None:
    before = _SUBJECT_SEGMENTS.get(segments[2], 0)
    if not before or len(segments) <= before:
        return None
    return _OF_TOPIC.get(segments[before])
