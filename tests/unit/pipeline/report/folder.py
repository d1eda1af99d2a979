"""Folders of tables for the report and ``show``, written without a job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.schema import Schema

from headgate.pipeline.store.delta_log import LAYOUT_VERSION
from headgate.pipeline.tables.arrow_types import table_arrow_schema
from headgate.pipeline.tables.attribution import BLAMES
from headgate.pipeline.tables.catalogue import TABLES
from headgate.pipeline.tables.columns import MINUTE_NS
from headgate.record.fields import PARKED_FIELD_NAMES, Kind
from tests.unit.pipeline.play import T0, S, minutes, play

NS = "persistent://public/default/"
TIMESTAMP = pa.timestamp("us", tz="UTC")

Rows = Iterable[Mapping[str, Any]]


def write(
    root: Path,
    name: str,
    rows: Rows,
    partition_by: Sequence[str] = ("date", "hour"),
    *,
    layout: int = LAYOUT_VERSION,
) -> None:
    """Append rows to a table, in a commit of its own; it is made with their columns."""
    table = pa.Table.from_pylist(list(rows))
    schema = table_arrow_schema(TABLES[name]) if name in TABLES else pa.schema([])
    declared = {field.name: field.type for field in schema}
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(place, field.name, table.column(place).cast(TIMESTAMP))
        elif pa.types.is_null(field.type):
            found = declared.get(field.name, pa.string())
            table = table.set_column(place, field.name, table.column(place).cast(found))
    path = str(root / name)
    if not DeltaTable.is_deltatable(path):
        DeltaTable.create(
            path,
            Schema.from_arrow(table.schema),
            partition_by=list(partition_by),
            name=name,
            configuration={"headgate.layout": str(layout)},
            raise_if_key_not_exists=False,
        )
    write_deltalake(path, table, mode="append")


def at(time_ns: int) -> dict[str, Any]:
    """Date, hour and minute of an instant."""
    when = datetime.fromtimestamp(time_ns / S, UTC)
    return {"date": when.date(), "hour": when.hour, "minute": when.replace(second=0)}


def topic_key(topic: str, partition: int | None = None) -> dict[str, Any]:
    """The columns that name a topic."""
    return {"cluster": "c1", "topic": topic, "partition": partition, "incarnation": 1}


def played(root: Path, seconds: int = 180) -> None:
    """``intervals`` and ``attribution`` of the situations that ``play`` has."""
    messages = play(seconds, 10)
    rows = minutes(messages)
    write(
        root,
        "intervals",
        [{**at(row["from_ns"]), **row} for row in rows + minutes(messages, Kind.TOPIC)],
        ("date", "hour", "kind"),
    )
    write(root, "attribution", [judged(row) for row in rows])


def judged(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row of ``attribution`` for a row of ``intervals``, all blamed on the consumer."""
    growth = row["backlog_messages"] - row["backlog_messages_start"]
    blame = "CONSUMER" if growth > 0 else "NONE"
    return {
        **at(row["from_ns"]),
        **{n: row[n] for n in ("cluster", "topic", "partition", "subscription", "incarnation")},
        **{n: row[n] for n in ("from_ns", "to_ns", "backlog_messages", "completeness")},
        **{f"share_{b.lower()}": float(b == blame) for b in BLAMES},
        "growth_messages": growth,
        "verdict": blame,
        "confidence": 0.9,
        "sentence": f"{blame}: in words.",
    }


def quota_row(place: int, topic: str = NS + "filling", **more: Any) -> dict[str, Any]:
    """A topic whose quota fills by 10 % a minute, forecast at the first one's start."""
    return {
        **at(T0 + place * MINUTE_NS),
        **topic_key(topic),
        "size_use": min(1.0, 0.1 * place),
        "time_use": None if place else 0.0,
        "size_policy": "producer_request_hold",
        "time_policy": None if place else "consumer_backlog_eviction",
        "held_seconds": 0.0,
        "breach_quota": "size",
        "method": "theil_sen",
        "forecast_at": datetime.fromtimestamp(T0 / S, UTC),
        "seconds_to_breach_earliest": 540.0,
        "seconds_to_breach": 600.0,
        "seconds_to_breach_latest": 720.0,
        "sentence": "The size quota fills.",
        **more,
    }


def held_row(place: int, topic: str = NS + "held", **parked_s: float) -> dict[str, Any]:
    """A topic whose producers were held, by cause in seconds."""
    return {
        **at(T0 + place * MINUTE_NS),
        **topic_key(topic),
        **dict.fromkeys((n for n in PARKED_FIELD_NAMES if n.endswith("_ns")), 0),
        **{f"parked_{cause}_ns": int(seconds * S) for cause, seconds in parked_s.items()},
        "from_ns": T0 + place * MINUTE_NS,
        "to_ns": T0 + (place + 1) * MINUTE_NS,
        "sentence": f"Held in minute {place}.",
    }


def limiter_row(place: int, subject: str = NS + "slow|s", **more: Any) -> dict[str, Any]:
    """A limit of 100/s of which 60/s more is wanted."""
    return {
        **at(T0 + place * MINUTE_NS),
        "cluster": "c1",
        "level": "subscription",
        "subject": subject,
        "dimension": "messages",
        "incarnation": 1,
        "from_ns": T0 + place * MINUTE_NS,
        "to_ns": T0 + (place + 1) * MINUTE_NS,
        "covered_ns": MINUTE_NS,
        "limit_per_s": 100.0,
        "offered": 160 * 60,
        "granted": 100 * 60,
        "held": 60 * 60,
        "waiting_ns": MINUTE_NS // 2,
        "sentence": "Somebody waits.",
        **more,
    }


def eviction_row(place: int, topic: str = NS + "lost", **more: Any) -> dict[str, Any]:
    """An act of eviction."""
    time_ns = T0 + place * MINUTE_NS
    when = at(time_ns)
    del when["minute"]
    return {
        **when,
        **topic_key(topic),
        "time": datetime.fromtimestamp(time_ns / S, UTC),
        "time_ns": time_ns,
        "quota": "size",
        "acts": 1,
        "messages": 100,
        "bytes": 1_000,
        "subscriptions": '[{"subscription":"audit","messages":100,"bytes":1000}]',
        **more,
    }


def backtest_row(point: int, run: str = "r1", **more: Any) -> dict[str, Any]:
    """A grid point of a run."""
    return {
        "run_id": run,
        "run_at": datetime(2026, 11, 21, 10, point % 60, tzinfo=UTC),
        "grid_point": point,
        "settings": f'{{"law": "drain", "target": {0.5 + point / 100:.2f}}}',
        **topic_key(NS + "filling"),
        "seconds_over_quota": float(100 - 4 * point),
        "parked_seconds": float(3 * point),
        "drain_used": 0.9,
        "censored_share": 0.1,
        "activations": point,
        "evicted_bytes": 0,
        "score": 1.0 * point,
        "rank": point + 1,
        "is_pareto": point < 5,
        **more,
    }
