"""Alerts about backlog quotas: those that are reached, and those that soon will be."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.base.units import NS_PER_MINUTE, NS_PER_S, NS_PER_US
from headgate.pipeline.alerts.alert import CRITICAL, WARNING, Alert, named, namespace_of
from headgate.pipeline.output.attribution import topic_text
from headgate.pipeline.output.breach_times import BREACH_COLUMNS, likely_ns
from headgate.pipeline.store.scan import TableScan
from headgate.pipeline.tables.arrow_types import changes
from headgate.pipeline.tables.quotas import QUOTA_USAGE
from headgate.pipeline.time_span import Span, minute_text, since_epoch_us

REACHED: Final = "HeadgateQuotaReached"
EXPECTED: Final = "HeadgateQuotaBreachExpected"

KEEPS_NS: Final = 10 * NS_PER_MINUTE
"""A forecast changes every few minutes; an alert that came and went with it would be sent again
and again."""

FRESH_NS: Final = 5 * NS_PER_MINUTE
"""A topic whose last minute is older than its cluster's newest by more than this was deleted."""

_TOPIC: Final = ("cluster", "topic", "partition")
_COLUMNS: Final = tuple(
    dict.fromkeys((*_TOPIC, "incarnation", *BREACH_COLUMNS, "breach_quota", "method", "sentence"))
)

Row = Mapping[str, Any]


def quota_alerts(
    root: str, newest: Mapping[str, int], behind: Collection[str], within_ns: int
) -> list[Alert]:
    """An alert for each topic whose quota is reached, or is likely reached within ``within_ns``.

    ``newest``: the end of the newest telemetry of each cluster; the time is counted from it. A
    cluster in ``behind`` has no alerts: its forecasts are too old.

    Raises:
        InputError: the folder has no table ``quota_usage``.
    """
    scan = TableScan(root, QUOTA_USAGE.name)
    current = {name: end_ns for name, end_ns in newest.items() if name not in behind}
    if not current:
        return []
    since_ns = min(current.values()) - FRESH_NS - NS_PER_MINUTE
    last = _last_of_each_topic(scan.rows(_COLUMNS, Span(max(0, since_ns))))
    near = last.filter(pc.and_(pc.is_valid(last["seconds_to_breach"]), pc.is_valid(last["method"])))
    alerts = []
    for row in near.to_pylist():
        newest_ns, at_ns = current.get(row["cluster"] or ""), likely_ns(row)
        minute_ns = since_epoch_us(row["minute"]) * NS_PER_US
        if newest_ns is None or at_ns is None or minute_ns <= newest_ns - FRESH_NS - NS_PER_MINUTE:
            continue
        if row["seconds_to_breach"] == 0 or at_ns - newest_ns <= within_ns:
            alerts.append(_alert(row, at_ns, newest_ns))
    return alerts


def _last_of_each_topic(rows: pa.Table) -> pa.Table:
    """The newest row of each topic, of its last incarnation."""
    order = [(name, "ascending") for name in (*_TOPIC, "minute", "incarnation")]
    ordered = rows.sort_by(order)
    first = changes(ordered, _TOPIC)
    is_last = np.append(first[1:], True)[: ordered.num_rows]
    return ordered.filter(pa.array(is_last))


def _alert(row: Row, at_ns: int, newest_ns: int) -> Alert:
    is_reached = row["seconds_to_breach"] == 0
    name, quota = topic_text(row), row["breach_quota"] or ""
    when = "is reached" if is_reached else f"is likely reached at {minute_text(at_ns)}"
    return Alert(
        named(
            REACHED if is_reached else EXPECTED,
            CRITICAL if is_reached else WARNING,
            cluster=row["cluster"],
            namespace=namespace_of(row["topic"] or ""),
            topic=name,
            quota=quota,
        ),
        {
            "summary": " ".join(f"The {quota} quota of {name} {when}".split()),
            "description": row["sentence"] or "",
        },
        None,
        newest_ns,
        -float(at_ns) / NS_PER_S,
        keeps_ns=0 if is_reached else KEEPS_NS,
        section="quotas",
    )
