"""The view ``namespace_rollup``: totals of each namespace and minute.

Both users of the view take its definition from here: ``show`` sums rows of files, and Spark sums
rows of a DataFrame (:func:`headgate.pipeline.steps.views.namespace_rollup`). Every column is a sum,
a count or a maximum, so rows may come in any batches. :func:`topic_parts`,
:func:`subscription_parts` and :func:`judged_parts` give the summands of a batch.
:func:`rollup_rows` gives the rows of the view from the sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from headgate.base.units import NS_PER_S
from headgate.pipeline.kernels.blame import BLAME_INPUT, LIMITERS, WEIGHT_INPUT, blamed_s
from headgate.pipeline.kernels.null_safe_join import joined_rows
from headgate.pipeline.tables.arrow_types import arrow_schema
from headgate.pipeline.tables.attribution import BLAMES
from headgate.pipeline.tables.columns import DOUBLE, LONG, STRING, ColumnType, TableColumn
from headgate.pipeline.tables.quotas import EVICTION_FIELDS
from headgate.record.fields import PARK_CAUSES

ROLLUP_KEY: Final = ("cluster", "namespace", "minute")

AMOUNTS: Final = ("msgs_in", "bytes_in", "msgs_out", "bytes_out", "backlog_bytes")
"""Columns that are sums over topics."""
_PARKED: Final = tuple(f"parked_{cause}_ns" for cause in PARK_CAUSES)
_BLAMED: Final = tuple(f"blame_{blame.lower()}_s" for blame in BLAMES)
_TOPIC_MINUTE: Final = ("cluster", "topic", "minute")

TOPIC_INPUT: Final = (*_TOPIC_MINUTE, *AMOUNTS, "oldest_age_max_ns", *EVICTION_FIELDS, *_PARKED)
"""Columns of ``intervals`` that are read of topics."""

SUBSCRIPTION_INPUT: Final = (*_TOPIC_MINUTE, "backlog_messages", "delayed")
"""Columns of ``intervals`` that are read of subscriptions."""

JUDGED_INPUT: Final = (*_TOPIC_MINUTE, *BLAME_INPUT, *WEIGHT_INPUT)
"""Columns of ``attribution`` that are read."""

Sums = list[tuple[str, str]]
"""Columns with their aggregate functions."""

TOPIC_SUMS: Final[Sums] = [
    ("minute", "count"),
    *((name, "sum") for name in (*AMOUNTS, "evicted_messages", "evicted_bytes", *_PARKED)),
    ("oldest_age_max_ns", "max"),
]
SUBSCRIPTION_SUMS: Final[Sums] = [("minute", "count"), ("backlog_messages", "sum")]
JUDGED_SUMS: Final[Sums] = [(name, "sum") for name in _BLAMED]

ROLLUP_COLUMNS: Final = (
    TableColumn("cluster", STRING, "Cluster."),
    TableColumn("namespace", STRING, "tenant/namespace."),
    TableColumn("minute", ColumnType.TIMESTAMP, "Start of the minute."),
    TableColumn("topics", LONG, "Topics; each partition counts as one."),
    *(TableColumn(name, LONG, f"{name} of all topics.") for name in AMOUNTS),
    TableColumn("oldest_age_max_ns", LONG, "Largest age of an unacknowledged message."),
    TableColumn("evicted_messages", LONG, "Messages that quotas evicted."),
    TableColumn("evicted_bytes", LONG, "Bytes that quotas evicted."),
    *(
        TableColumn(f"parked_{cause}_s", DOUBLE, f"Time in which {cause} parked messages. [s]")
        for cause in PARK_CAUSES
    ),
    TableColumn("subscriptions", LONG, "Subscriptions."),
    TableColumn(
        "backlog_messages",
        LONG,
        "Backlog at the minute's end, without delayed messages that are not due.",
    ),
    *(
        TableColumn(name, DOUBLE, f"Time with {blame} to blame. [s]")
        for name, blame in zip(_BLAMED, BLAMES, strict=True)
    ),
    TableColumn("throttled_s", DOUBLE, "Time with a dispatch limit to blame. [s]"),
    TableColumn("parked_s", DOUBLE, "Time in which any cause parked messages. [s]"),
)
"""Columns of the view. Times are summed over subscriptions and topics, so a minute may have
more than 60 s."""


def part_columns(sums: Sums) -> tuple[TableColumn, ...]:
    """The columns of the parts that these sums need: the key, and each summed column once."""
    types = {column.name: column for column in ROLLUP_COLUMNS}
    names = [name for name, _ in sums if name not in ROLLUP_KEY]
    return tuple(types.get(name, TableColumn(name, LONG, "")) for name in (*ROLLUP_KEY, *names))


def topic_parts(rows: pa.RecordBatch | pa.Table) -> pa.Table:
    """The key and the summands of :data:`TOPIC_SUMS`, from :data:`TOPIC_INPUT`."""
    evicted = {
        f"evicted_{unit}": _added(rows, [f for f in EVICTION_FIELDS if f.endswith(unit)])
        for unit in ("messages", "bytes")
    }
    return _keyed(rows, (*AMOUNTS, "oldest_age_max_ns", *_PARKED), evicted)


def subscription_parts(rows: pa.RecordBatch | pa.Table) -> pa.Table:
    """The key and the summands of :data:`SUBSCRIPTION_SUMS`, from :data:`SUBSCRIPTION_INPUT`."""
    waiting = pc.subtract(
        pc.fill_null(rows.column("backlog_messages"), 0), pc.fill_null(rows.column("delayed"), 0)
    )
    return _keyed(rows, (), {"backlog_messages": pc.max_element_wise(waiting, 0)})


def judged_parts(rows: pa.RecordBatch | pa.Table) -> pa.Table:
    """The key and the summands of :data:`JUDGED_SUMS`, from :data:`JUDGED_INPUT`."""
    seconds = blamed_s(rows)
    blamed = {name: seconds[blame] for name, blame in zip(_BLAMED, BLAMES, strict=True)}
    return _keyed(rows, (), blamed)


def _keyed(
    rows: pa.RecordBatch | pa.Table, names: Sequence[str], more: dict[str, pa.Array]
) -> pa.Table:
    names_of = pc.extract_regex(rows.column("topic"), r"^[^:]+://(?P<namespace>[^/]+/[^/]+)/")
    found = pc.struct_field(names_of, "namespace")
    columns = {
        "cluster": rows.column("cluster"),
        "namespace": pc.fill_null(found, ""),
        "minute": rows.column("minute"),
        **{name: rows.column(name) for name in names},
        **more,
    }
    return pa.table(columns)


def _added(rows: pa.RecordBatch | pa.Table, names: Sequence[str]) -> pa.Array:
    total = pa.array([0] * rows.num_rows, pa.int64())
    for name in names:
        total = pc.add(total, pc.fill_null(rows.column(name), 0))
    return total


def rollup_table(
    topics: pa.Table | None, subscriptions: pa.Table | None, judged: pa.Table | None
) -> pa.Table:
    """Rows of :data:`ROLLUP_COLUMNS` in order of time, from the sums; None if there are none of a
    kind.

    A namespace has a row in each minute in which it has a topic.
    """
    if topics is None:
        return arrow_schema(ROLLUP_COLUMNS).empty_table()
    joined = _plain(topics, TOPIC_SUMS, "topics")
    if subscriptions is not None:
        found = _plain(subscriptions, SUBSCRIPTION_SUMS, "subscriptions")
        joined = joined_rows(joined, found, ROLLUP_KEY)
    if judged is not None:
        joined = joined_rows(joined, _plain(judged, JUDGED_SUMS, ""), ROLLUP_KEY)
    order = [(name, "ascending") for name in ("minute", "cluster", "namespace")]
    return rollup_rows(joined).sort_by(order)


def rollup_rows(joined: pa.Table) -> pa.Table:
    """Rows of :data:`ROLLUP_COLUMNS` from the joined sums, which have the names of their summands.

    Columns that are absent are null.
    """
    schema = arrow_schema(ROLLUP_COLUMNS)

    def column(name: str) -> pa.ChunkedArray:
        if name in joined.column_names:
            return joined.column(name)
        return pa.chunked_array([pa.nulls(joined.num_rows, schema.field(name).type)])

    columns = {name: column(name) for name in (*ROLLUP_KEY, "oldest_age_max_ns", *_BLAMED)}
    counts = (*AMOUNTS, "topics", "subscriptions", "backlog_messages")
    for name in (*counts, "evicted_messages", "evicted_bytes"):
        columns[name] = pc.fill_null(column(name), 0)
    for cause in PARK_CAUSES:
        held_ns = pc.fill_null(column(f"parked_{cause}_ns"), 0).cast(pa.float64(), safe=False)
        columns[f"parked_{cause}_s"] = pc.divide(held_ns, float(NS_PER_S))
    columns["throttled_s"] = _total(columns, [f"blame_{name.lower()}_s" for name in LIMITERS])
    columns["parked_s"] = _total(columns, [f"parked_{cause}_s" for cause in PARK_CAUSES])
    return pa.table({name: columns[name] for name in schema.names}).cast(schema)


def _plain(sums: pa.Table, made: Sums, count: str) -> pa.Table:
    """The sums with the names of their summands; the row count is named ``count``."""
    names = [count if function == "count" else name for name, function in made]
    columns = [f"{name}_{function}" for name, function in made]
    return sums.select([*ROLLUP_KEY, *columns]).rename_columns([*ROLLUP_KEY, *names])


def _total(columns: dict[str, pa.ChunkedArray], names: Sequence[str]) -> pa.ChunkedArray:
    total = pc.fill_null(columns[names[0]], 0.0)
    for name in names[1:]:
        total = pc.add(total, pc.fill_null(columns[name], 0.0))
    return total
