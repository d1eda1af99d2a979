"""Samples of the resources that all topics share on ``GET /metrics``: disk, commits,
connections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headgate.base.texts import label_value
from headgate.base.units import NS_PER_S
from headgate.telemetry.prometheus.series.definition import LinesOf, Series
from headgate.telemetry.prometheus.series.storage import (
    COMMIT_LONGEST_SERIES,
    COMMIT_RUNNING_SERIES,
    COMMIT_SECONDS_SERIES,
    COMMITS_SERIES,
    CONNECTIONS_REFUSED_SERIES,
    DISK_FREE_SERIES,
    DISK_FULL_IN_SERIES,
    DISK_FULL_SECONDS_SERIES,
    DISK_FULL_SERIES,
    DISK_GROWTH_SERIES,
    DISK_SIZE_SERIES,
    INDEX_SERIES,
    STORAGE_BYTES_SERIES,
    STORAGE_SEGMENTS_SERIES,
    STORAGE_WRITTEN_SERIES,
    TENANT_FULL_SERIES,
    TENANT_STORED_SERIES,
    TRIMS_FOUND_SERIES,
)

if TYPE_CHECKING:
    from headgate.broker.connection_admission import ConnectionAdmission
    from headgate.broker.sweeps.trimming import Trimming
    from headgate.engine.tenant_storage import TenantStorage
    from headgate.ledger import CommitLog, SpaceUse
    from headgate.storage.commit_latency import CommitLatency
    from headgate.storage.disk_monitor import DiskMonitor


class StorageLines:
    """Adds the samples of the disk, the commits and the connections to one page."""

    def __init__(
        self,
        disk: DiskMonitor,
        latency: CommitLatency,
        admission: ConnectionAdmission,
        logs: Mapping[str, CommitLog],
        trimming: Trimming,
        lines_of: LinesOf,
    ) -> None:
        self._disk = disk
        self._latency = latency
        self._admission = admission
        self._logs = logs
        self._trimming = trimming
        self._lines_of = lines_of

    def add_broker(self, labels: str, now_ns: int) -> None:
        """Add the samples of the whole broker; ``labels`` name the cluster and are still open."""
        disk, latency = self._disk, self._latency
        if disk.space is not None:
            self._add(DISK_FREE_SERIES, labels, disk.space.free_bytes)
            self._add(DISK_SIZE_SERIES, labels, disk.space.size_bytes)
        full_ns = disk.full_ns(now_ns)
        self._add(DISK_FULL_SERIES, labels, int(disk.full_since_ns is not None))
        self._add(DISK_FULL_SECONDS_SERIES, labels, f"{full_ns / NS_PER_S:.3f}")
        self._add_forecast(labels)
        self._add(COMMITS_SERIES, labels, latency.count)
        self._add(COMMIT_SECONDS_SERIES, labels, f"{latency.sum_ns / NS_PER_S:.6f}")
        self._add(COMMIT_LONGEST_SERIES, labels, f"{latency.facts().longest_s:.6f}")
        self._add(COMMIT_RUNNING_SERIES, labels, f"{latency.running_ns() / NS_PER_S:.3f}")
        self._add(CONNECTIONS_REFUSED_SERIES, labels, self._admission.refused_count)
        self._add(TRIMS_FOUND_SERIES, labels, self._trimming.found_by_walk)
        for name, log in self._logs.items():
            for series, value in zip(INDEX_SERIES, log.index_use(), strict=True):
                self._add(series, f'{labels},log="{name}"', value)
            self._add_space(f'{labels},log="{name}"', log.space_use())
            for content, size_bytes in log.written_bytes()._asdict().items():
                of_content = f'{labels},log="{name}",content="{content}"'
                self._add(STORAGE_WRITTEN_SERIES, of_content, size_bytes)

    def add_tenants(self, labels: str, known: TenantStorage) -> None:
        """Add what each tenant stores."""
        for stored in known.tenants():
            of_tenant = f'{labels},tenant="{label_value(stored.owner)}"'
            self._add(TENANT_STORED_SERIES, of_tenant, stored.bytes)
            self._add(TENANT_FULL_SERIES, of_tenant, int(known.is_full(stored)))

    def _add_forecast(self, labels: str) -> None:
        disk = self._disk
        if (full_in_s := disk.full_in_s()) is not None:
            self._add(DISK_FULL_IN_SERIES, labels, f"{full_in_s:.0f}")
        if (growth := disk.forecast().growth) is not None:
            for content, per_s in growth.by_content().items():
                self._add(DISK_GROWTH_SERIES, f'{labels},content="{content}"', f"{per_s:.1f}")

    def _add_space(self, labels: str, use: SpaceUse) -> None:
        for state, size_bytes in use.by_state().items():
            self._add(STORAGE_BYTES_SERIES, f'{labels},state="{state}"', size_bytes)
        self._add(STORAGE_SEGMENTS_SERIES, labels, use.segments)

    def _add(self, series: Series, labels: str, value: int | str) -> None:
        self._lines_of(series).append(f"{series.name}{labels}}} {value}")
