"""Why a SEND waits: names that telemetry, /metrics and explain share."""

from __future__ import annotations

from headgate.base.park_cause import ParkCause


def test_the_labels_in_their_order() -> None:
    """They index lists and name columns of the telemetry record: both must stay."""
    assert [(cause.value, cause.label) for cause in ParkCause] == [
        (0, "topic_rate"),
        (1, "broker_rate"),
        (2, "adaptive"),
        (3, "backlog_quota"),
        (4, "pending_limit"),
        (5, "memory"),
        (6, "disk_full"),
    ]
