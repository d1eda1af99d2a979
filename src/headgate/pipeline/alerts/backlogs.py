"""Alerts about backlogs: one for each open episode."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from headgate.pipeline.alerts.alert import (
    WARNING,
    Alert,
    identity,
    named,
    namespace_of,
)
from headgate.pipeline.kernels.episodes import SEGMENT_ORDER, joined_table
from headgate.pipeline.output.attribution import topic_text
from headgate.pipeline.store.scan import TableScan
from headgate.pipeline.tables.attribution import ATTRIBUTION_KEY
from headgate.pipeline.tables.columns import HOUR_NS
from headgate.pipeline.tables.episodes import EPISODES, SEGMENT_COLUMNS
from headgate.pipeline.time_span import Span, minute_text

ALERTNAME: Final = "HeadgateBacklog"

LOOK_BACK_HOURS: Final = 31 * 24
"""So far back the begin of an open episode is looked for; of a longer one it is taken as that."""


Row = Mapping[str, Any]


def backlog_alerts(
    root: str, newest: Mapping[str, int], after_ns: int, whole_max: int
) -> list[Alert]:
    """An alert for each episode that is open for ``after_ns`` or longer.

    ``newest``: the end of the newest telemetry of each cluster that counts. ``whole_max``: of how
    many episodes the begin is looked for; those with the oldest messages come first. The alerts of
    the others have no begin, and tell of their last hour.

    Raises:
        InputError: the folder has no table ``episodes``.
    """
    scan = TableScan(root, EPISODES.name)
    if not newest:
        return []
    since_ns = min(newest.values()) - 2 * HOUR_NS
    found = scan.rows(SEGMENT_COLUMNS, Span(max(0, since_ns)), ("is_open", [True])).to_pylist()
    rows = [row for row in found if (row["cluster"] or "") in newest]
    rows.sort(key=lambda row: -(row["oldest_age_max_ns"] or 0))
    before = _before(scan, rows[:whole_max])
    segments = pa.Table.from_pylist([*rows, *before], schema=_schema(scan))
    whole = joined_table(segments.sort_by([(name, "ascending") for name in SEGMENT_ORDER]))
    ends_ns = {_key(row): row["segment_end_ns"] for row in rows}
    cut = {_key(row) for row in rows[whole_max:] if row["continues_before"]}
    alerts: dict[str, Alert] = {}
    for row in whole.to_pylist():
        seen_ns = ends_ns.get(_key(row))
        is_cut = _key(row) in cut
        if seen_ns is None or (seen_ns - row["episode_start_ns"] < after_ns and not is_cut):
            continue
        alert = _alert(row, seen_ns, None if is_cut else row["episode_start_ns"])
        # A topic that was deleted and created again has the same labels; the later one counts.
        other = alerts.get(alert.identity)
        if other is None or (other.starts_ns or 0) < (alert.starts_ns or 0):
            alerts[alert.identity] = alert
    return list(alerts.values())


def _schema(scan: TableScan) -> pa.Schema:
    return scan.rows(SEGMENT_COLUMNS, Span(0, 0)).schema


def _before(scan: TableScan, rows: Sequence[Row]) -> list[Row]:
    """The segments of earlier hours of the same episodes, found hour by hour."""
    wanted = {(*_key(row), row["segment_start_ns"]): row for row in rows if row["continues_before"]}
    first_ns = min((file.hour for file in scan.files), default=0) * HOUR_NS
    same = [(name, {row[name] for row in rows}) for name in ("topic", "subscription")]
    found: list[Row] = []
    for _ in range(LOOK_BACK_HOURS):
        if not wanted:
            break
        edge_ns = max(key[-1] for key in wanted)
        if edge_ns <= first_ns:
            break
        pending = wanted
        wanted = {key: row for key, row in pending.items() if key[-1] < edge_ns}
        span = Span(max(0, edge_ns - HOUR_NS), edge_ns)
        filters = [("continues_after", [True]), *same]
        for row in scan.rows(SEGMENT_COLUMNS, span, *filters).to_pylist():
            if row["segment_end_ns"] == edge_ns and (*_key(row), edge_ns) in pending:
                found.append(row)
                if row["continues_before"]:
                    wanted[(*_key(row), row["segment_start_ns"])] = row
    return found


@dataclass(frozen=True, slots=True)
class OpenBacklog:
    """A backlog that a target still takes for open."""

    labels: Mapping[str, str]
    starts_ns: int
    seen_ns: int
    """Until when it was seen to last."""


def ended_ns(root: str, backlogs: Collection[OpenBacklog], now_ns: int) -> dict[str, int]:
    """When backlogs ended, since the epoch, by the identity of their labels.

    Those whose end the table does not have are left out.

    Raises:
        InputError: the folder has no table ``episodes``.
    """
    if not backlogs:
        return {}
    scan = TableScan(root, EPISODES.name)
    starts_ns = {identity(backlog.labels): backlog.starts_ns for backlog in backlogs}
    seen_ns = min(backlog.seen_ns for backlog in backlogs)
    # Rows that came late may end it before the instant up to which it was seen.
    first_ns = max(seen_ns - HOUR_NS, now_ns - LOOK_BACK_HOURS * HOUR_NS) - HOUR_NS
    names = sorted({backlog.labels.get("subscription", "") for backlog in backlogs})
    columns = [*ATTRIBUTION_KEY, "segment_end_ns", "is_open", "continues_after"]
    found: dict[str, int] = {}
    rows = scan.rows(columns, Span(max(0, first_ns)), ("subscription", names))
    for row in rows.to_pylist():
        key, end_ns = identity(_labels(row)), row["segment_end_ns"]
        if row["is_open"] or row["continues_after"] or end_ns <= starts_ns.get(key, end_ns):
            continue
        found[key] = min(found.get(key, end_ns), end_ns)
    return found


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in ATTRIBUTION_KEY)


def _labels(row: Row) -> dict[str, str]:
    return named(
        ALERTNAME,
        WARNING,
        cluster=row["cluster"],
        namespace=namespace_of(row["topic"] or ""),
        topic=topic_text(row),
        subscription=row["subscription"],
    )


def _alert(row: Row, seen_ns: int, starts_ns: int | None) -> Alert:
    sentence = row["sentence"] or ""
    texts = {
        "summary": (
            f"{row['subscription']} on {topic_text(row)} has a backlog since "
            f"{minute_text(row['episode_start_ns'])}"
        ),
        "description": sentence[:1].upper() + sentence[1:],
        "cause": row["cause"] or "",
        "peak_backlog_messages": str(row["peak_backlog_messages"]),
    }
    return Alert(
        _labels(row),
        {name: text for name, text in texts.items() if text},
        starts_ns,
        seen_ns,
        float(row["oldest_age_max_ns"] or 0),
        section="backlogs",
    )
