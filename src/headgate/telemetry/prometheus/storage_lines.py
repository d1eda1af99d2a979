"""Samples of what all topics stand on, on ``GET /metrics``: the disk, commits, connections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.base.units import NS_PER_S
from headgate.telemetry.prometheus.series import (
    COMMIT_LONGEST_SERIES,
    COMMIT_RUNNING_SERIES,
    COMMIT_SECONDS_SERIES,
    COMMITS_SERIES,
    CONNECTIONS_REFUSED_SERIES,
    DISK_FREE_SERIES,
    DISK_FULL_SECONDS_SERIES,
    DISK_FULL_SERIES,
    DISK_SIZE_SERIES,
    LinesOf,
    Series,
)

if TYPE_CHECKING:
    from headgate.broker.service import Broker


class StorageLines:
    """Adds them to one page."""

    def __init__(self, broker: Broker, lines_of: LinesOf) -> None:
        self._broker = broker
        self._lines_of = lines_of

    def broker(self, labels: str) -> None:
        """The whole broker's; ``labels`` name the cluster and are still open."""
        disk = self._broker.disk
        if disk.space is not None:
            self._add(DISK_FREE_SERIES, labels, disk.space.free_bytes)
            self._add(DISK_SIZE_SERIES, labels, disk.space.size_bytes)
        full_ns = disk.full_ns(self._broker.engine.now_ns)
        self._add(DISK_FULL_SERIES, labels, int(disk.full_since_ns is not None))
        self._add(DISK_FULL_SECONDS_SERIES, labels, f"{full_ns / NS_PER_S:.3f}")
        pace = self._broker.committer.pace
        self._add(COMMITS_SERIES, labels, pace.count)
        self._add(COMMIT_SECONDS_SERIES, labels, f"{pace.sum_ns / NS_PER_S:.6f}")
        self._add(COMMIT_LONGEST_SERIES, labels, f"{pace.facts().longest_s:.6f}")
        self._add(COMMIT_RUNNING_SERIES, labels, f"{pace.running_ns() / NS_PER_S:.3f}")
        self._add(CONNECTIONS_REFUSED_SERIES, labels, self._broker.door.refused_count)

    def _add(self, series: Series, labels: str, value: int | str) -> None:
        self._lines_of(series).append(f"{series.name}{labels}}} {value}")
