"""The expected rows of the bronze tables, decoded by the record's own codec.

Each message gives one row of kind ``batch`` and one row for each entry of its lists. Unlike the
other oracles this one needs no DuckDB: the source of bronze is messages, not tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from headgate.pipeline.tables.bronze import BRONZE_EVENTS
from headgate.pipeline.tables.columns import Table
from headgate.record.codec import Batch, decode
from headgate.record.fields import Kind

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Row = tuple[Any, ...]


def bronze_oracle(messages: Iterable[bytes], table: Table) -> Counter[Row]:
    """All columns of all rows of a table, however often each was received."""
    found: Counter[Row] = Counter()
    for message in messages:
        batch = decode(message)
        for row in _events(batch) if table is BRONZE_EVENTS else _samples(batch):
            row = {**_header(batch), **row}
            assert row.keys() <= set(table.column_names())
            found[tuple(row.get(name) for name in table.column_names())] += 1
    return found


def rows_received(rows: pa.Table, table: Table) -> Counter[Row]:
    """The same of the table itself."""
    return Counter(tuple(row[name] for name in table.column_names()) for row in rows.to_pylist())


def _samples(batch: Batch) -> Iterator[dict[str, Any]]:
    yield {"kind": "batch", "row": 0}
    for kind in (Kind.SUBSCRIPTION, Kind.TOPIC, Kind.LIMITER):
        for row in _rows(batch, kind):
            yield {"kind": kind.value, **row}


def _events(batch: Batch) -> Iterator[dict[str, Any]]:
    for row in _rows(batch, Kind.EVENT):
        yield {"time": _instant(row["time_ns"]), **row}


def _rows(batch: Batch, kind: Kind) -> Iterator[dict[str, Any]]:
    for place in range(batch.rows.get(kind, 0)):
        yield {"row": place} | {n: values[place] for n, values in batch.columns[kind].items()}


def _header(batch: Batch) -> dict[str, Any]:
    header = batch.header
    last = _instant(header.window_end_ns - 1)
    return {
        "date": last.date(),
        "hour": last.hour,
        "source": header.source,
        "cluster": header.cluster,
        "broker": header.broker,
        "boot_id": header.boot_id,
        "seq": batch.seq,
        "window_start_ns": header.window_start_ns,
        "window_end_ns": header.window_end_ns,
        "window_end": _instant(header.window_end_ns),
        "clock_step": header.clock_step,
        "evidence": "measured",
    }


def _instant(time_ns: int) -> datetime:
    return _EPOCH + timedelta(microseconds=time_ns // 1_000)
