"""What backlog quotas took: events of the broker in Arrow, rows of ``evictions`` out.

The input has only events named :data:`~headgate.pipeline.tables.quotas.EVICTION_EVENT`, all that
there are of each identity, sorted by :data:`EVENT_IDENTITY`. Its two JSON texts are another
program's: what is missing in them or of another type is null, and never stops the job.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa

from headgate.base.names import InvalidNameError, parse_topic
from headgate.base.units import INT64_MAX
from headgate.pipeline.tables.arrow_types import changes, table_arrow_schema
from headgate.pipeline.tables.columns import HOUR_NS
from headgate.pipeline.tables.quotas import EVENT_IDENTITY, EVICTIONS

_SAME: Final = ("time", "time_ns", "cluster", "incarnation", "broker", *EVENT_IDENTITY)
"""Columns that the row has from the event as they are."""

INPUT_COLUMNS: Final = (*_SAME, "window_end_ns", "topic", "inputs", "outcome")
"""Columns of ``bronze_events`` that are needed."""

Event = Mapping[str, Any]
"""One row of ``bronze_events``."""


def evictions_table(table: pa.Table, hours: Collection[int]) -> pa.Table:
    """One row for each event of the wanted hours (numbers since the epoch), however often the
    message that brought it was read. As in bronze, the hour is that of the message's window."""
    found: list[dict[str, Any]] = []
    for event in table.filter(pa.array(changes(table, EVENT_IDENTITY))).to_pylist():
        hour = (event["window_end_ns"] - 1) // HOUR_NS
        if hour in hours:
            start = datetime.fromtimestamp(hour * 3_600, UTC)
            found.append({"date": start.date(), "hour": start.hour, **eviction(event)})
    return pa.Table.from_pylist(found, schema=table_arrow_schema(EVICTIONS))


def eviction(event: Event) -> dict[str, Any]:
    """The row of one event, but for the columns of its partition.

    ``event`` has :data:`INPUT_COLUMNS`.
    """
    inputs, outcome = _document(event["inputs"]), _document(event["outcome"])
    topic, partition = _topic(event["topic"])
    losses = _losses(outcome.get("subscriptions"))
    return {
        **{name: event[name] for name in _SAME},
        "topic": topic,
        "partition": partition,
        "quota": _text(inputs.get("quota")),
        "policy": _text(inputs.get("policy")),
        "quota_source": _text(inputs.get("source")),
        "limit_bytes": _whole(inputs.get("limit_bytes")),
        "limit_ns": _whole(inputs.get("limit_ns")),
        "backlog_bytes_start": _whole(inputs.get("backlog_bytes")),
        "backlog_bytes": _whole(outcome.get("backlog_bytes")),
        "oldest_age_ns_start": _whole(inputs.get("oldest_age_ns")),
        "oldest_age_ns": _whole(outcome.get("oldest_age_ns")),
        "acts": _whole(outcome.get("acts")),
        "messages": _whole(outcome.get("messages")),
        "bytes": _whole(outcome.get("bytes")),
        "subscriptions": None if losses is None else json.dumps(losses),
        "subscriptions_count": (
            None
            if losses is None
            else len(losses) + (_whole(outcome.get("subscriptions_more")) or 0)
        ),
    }


def _document(text: str | None) -> Mapping[str, Any]:
    """One JSON object; empty where the text holds none."""
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _topic(name: str | None) -> tuple[str | None, int | None]:
    """The columns ``topic`` and ``partition`` of a full name, as samples have them."""
    try:
        found = parse_topic(name or "")
    except InvalidNameError:
        return name, None
    return found.base.full, found.partition if found.partition >= 0 else None


def _losses(value: Any) -> list[dict[str, Any]] | None:
    """Who lost how much, of known fields only."""
    if not isinstance(value, list):
        return None
    return [
        {
            "subscription": _text(loss.get("subscription")),
            "messages": _whole(loss.get("messages")),
            "bytes": _whole(loss.get("bytes")),
        }
        for loss in value
        if isinstance(loss, dict)
    ]


def _text(value: Any) -> str | None:
    """A text; JSON may spell halves of characters, which no table can hold."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else None


def _whole(value: Any) -> int | None:
    """A whole number that a column can hold."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return value if is_whole and -INT64_MAX <= value <= INT64_MAX else None
