"""Alerts about clusters whose telemetry is missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from headgate.base.units import NS_PER_HOUR, NS_PER_MINUTE
from headgate.pipeline.alerts.alert import CRITICAL, Alert, named
from headgate.pipeline.store.scan import TableScan
from headgate.pipeline.tables.bronze import BATCH_KIND, BRONZE_SAMPLES
from headgate.pipeline.time_span import Span, minute_text

ALERTNAME: Final = "HeadgateTelemetryMissing"

BEHIND_NS: Final = 10 * NS_PER_MINUTE
"""A cluster without telemetry for so long has stopped sending it, or the pipeline does not run."""

REMOVED_NS: Final = 24 * NS_PER_HOUR
"""A cluster whose telemetry ends so long before that of another one was removed."""


def newest_telemetry(root: str) -> dict[str, int]:
    """The end of the newest telemetry of each cluster, since the epoch; removed ones are left out.

    Raises:
        InputError: the folder has no table ``bronze_samples``.
    """
    scan = TableScan(root, BRONZE_SAMPLES.name)
    last_ns = max((file.span_ns[1] for file in scan.files), default=-1) + 1
    newest: dict[str, int] = {}
    recent = Span(max(0, last_ns - REMOVED_NS - NS_PER_HOUR))
    for batch in scan.batches(["cluster", "window_end_ns"], recent, ("kind", [BATCH_KIND])):
        found = pa.table(batch).group_by("cluster").aggregate([("window_end_ns", "max")])
        for row in found.to_pylist():
            name = row["cluster"] or ""
            newest[name] = max(newest.get(name, 0), row["window_end_ns_max"])
    first_ns = max(newest.values(), default=0) - REMOVED_NS
    return {name: end_ns for name, end_ns in newest.items() if end_ns > first_ns}


def clusters_behind(newest: Mapping[str, int], now_ns: int) -> frozenset[str]:
    """The clusters whose telemetry is missing."""
    return frozenset(name for name, end_ns in newest.items() if now_ns - end_ns >= BEHIND_NS)


def telemetry_alerts(newest: Mapping[str, int], now_ns: int) -> list[Alert]:
    """An alert for each cluster whose telemetry is missing."""
    return [_alert(name, newest[name], now_ns) for name in clusters_behind(newest, now_ns)]


def _alert(cluster: str, end_ns: int, now_ns: int) -> Alert:
    name = f"Cluster {cluster}" if cluster else "A cluster without a name"
    at = minute_text(end_ns)
    return Alert(
        named(ALERTNAME, CRITICAL, cluster=cluster),
        {
            "summary": f"{name} has no telemetry after {at}",
            "description": (
                f"The tables hold no telemetry of {name[0].lower()}{name[1:]} after {at}: its"
                " brokers do not publish it, or no job reads it. Alerts about its backlogs stay as"
                " they were, and none about its quotas is made."
            ),
        },
        end_ns,
        now_ns,
        float(now_ns - end_ns),
        section="quality",
    )
