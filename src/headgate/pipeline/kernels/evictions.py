"""Rows of ``evictions`` from the broker's eviction events.

The input has only events named :data:`~headgate.pipeline.tables.quotas.EVICTION_EVENT`, sorted by
:data:`EVENT_IDENTITY`, with all duplicates of each. A field that is missing in one of their two
JSON texts, or has another type, becomes null. It never stops the job.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, Final

import pyarrow as pa

from headgate.base.names import InvalidNameError, parse_topic
from headgate.base.units import INT64_MAX
from headgate.pipeline.tables.arrow_types import changes, table_arrow_schema
from headgate.pipeline.tables.bronze import EVENT_IDENTITY
from headgate.pipeline.tables.columns import HOUR_NS, hour_partition
from headgate.pipeline.tables.quotas import EVICTIONS

_SAME: Final = ("time", "time_ns", "cluster", "incarnation", "broker", *EVENT_IDENTITY)
"""Columns that are copied from the event."""

INPUT_COLUMNS: Final = (*_SAME, "window_end_ns", "topic", "inputs", "outcome")
"""Columns of ``bronze_events`` that the kernel needs."""

Event = Mapping[str, Any]
"""One row of ``bronze_events``."""


def evictions_table(table: pa.Table, hours: Collection[int]) -> pa.Table:
    """One row for each event of some hours (numbers since the epoch).

    An event whose message was read several times gives one row, and one without a topic none. As in
    bronze, its hour is that of the message's window.
    """
    found: list[dict[str, Any]] = []
    for event in table.filter(pa.array(changes(table, EVENT_IDENTITY))).to_pylist():
        hour = (event["window_end_ns"] - 1) // HOUR_NS
        if hour in hours and event["topic"]:
            found.append({**hour_partition(hour), **eviction(event)})
    return pa.Table.from_pylist(found, schema=table_arrow_schema(EVICTIONS))


def eviction(event: Event) -> dict[str, Any]:
    """The row of one event without its partition columns.

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
            else _whole(len(losses) + (_whole(outcome.get("subscriptions_more")) or 0))
        ),
    }


def _document(text: str | None) -> Mapping[str, Any]:
    """The JSON object in a text; empty if there is none."""
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _topic(name: str | None) -> tuple[str | None, int | None]:
    """The columns ``topic`` and ``partition``, as in samples, from a full topic name."""
    try:
        found = parse_topic(name or "")
    except InvalidNameError:
        return name, None
    return found.base.full, found.partition if found.partition >= 0 else None


def _losses(value: Any) -> list[dict[str, Any]] | None:
    """The loss of each subscription, by its known fields."""
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
    """A text, with lone surrogates replaced: JSON allows them, tables do not."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else None


def _whole(value: Any) -> int | None:
    """A whole number that fits the column; None for any other value."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return value if is_whole and -INT64_MAX <= value <= INT64_MAX else None
