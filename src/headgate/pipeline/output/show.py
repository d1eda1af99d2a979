"""``headgate pipeline show``: rows of a table of the folder, without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TextIO

import pyarrow as pa
import pyarrow.compute as pc

from headgate.base.errors import InputError
from headgate.base.input_errors import closest_match, did_you_mean
from headgate.pipeline.options import Format
from headgate.pipeline.output.policy_settings import readable_settings
from headgate.pipeline.output.rows import write_rows
from headgate.pipeline.output.views import EpisodesScan, NamespacesScan
from headgate.pipeline.store.scan import Filter, TableScan, existing_tables
from headgate.pipeline.store.storage_failures import plain_storage_failures
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES
from headgate.pipeline.tables.catalogue import TABLES, VIEWS
from headgate.pipeline.tables.policy_backtest import POLICY_BACKTEST
from headgate.pipeline.time_span import EVERYTHING, Span

TABLE_ROWS_SHOWN: Final = 50
"""Rows on a terminal without ``--count``; JSON and CSV have all."""

_SHOWN: Final[Mapping[str, tuple[str, ...]]] = {
    "intervals": (
        "minute", "kind", "topic", "subscription", "level", "subject", "completeness",
        "backlog_messages",
    ),
    "attribution": (
        "minute", "topic", "subscription", "backlog_messages", "growth_messages", "verdict",
        "confidence", "sentence",
    ),
    "publish_attribution": (
        "minute", "topic", "partition", "msgs_in", "cause", "held_share", "sentence",
    ),
    "throttle_timeline": (
        "minute", "level", "subject", "limit_per_s", "offered", "granted", "waiting_share",
        "sentence",
    ),
    "episodes": (
        "topic", "subscription", "minutes", "peak_backlog_messages", "cause", "is_open",
        "sentence",
    ),
    "backlog_episodes": ("topic", "subscription", "peak_backlog_messages", "is_open", "sentence"),
    "namespace_rollup": (
        "minute", "namespace", "topics", "subscriptions", "msgs_in", "backlog_messages",
        "throttled_s", "parked_s",
    ),
    "quota_usage": (
        "minute", "topic", "partition", "size_use", "time_use", "seconds_to_breach", "method",
        "sentence",
    ),
    "evictions": ("time", "topic", "partition", "quota", "messages", "bytes"),
    "quality": (
        "hour_start", "table_name", "expectation", "is_met", "rows_checked", "rows_failed",
        "sentence",
    ),
    "policy_backtest": (
        "run_id", "rank", "name", "settings", "topic", "score", "is_pareto", "seconds_over_quota",
    ),
    "bronze_quarantine": ("publish_time", "message_topic", "message_id", "reason"),
}  # fmt: skip
"""Columns of wide tables on a terminal when none are named."""

_NOT_SHOWN: Final = ("date", "hour")
"""Partition columns, which repeat the time."""


_EXAMPLES: Final[Mapping[str, str]] = {
    "int32": "a whole number, such as 10",
    "int64": "a whole number, such as 10",
    "double": "a number, such as 0.5",
    "bool": "true or false",
    "date32[day]": "a day, such as 2026-11-21",
    "timestamp[us, tz=UTC]": "an instant, such as 2026-11-21T10:00:00Z",
}
"""An example value of each column type, for error messages."""


Scan = TableScan | EpisodesScan | NamespacesScan

_VIEW_SCANS: Final = {scan.name: scan for scan in (EpisodesScan, NamespacesScan)}


@dataclass(frozen=True, slots=True)
class ShowOptions:
    """Which rows of which table, and how they are written."""

    out: str
    """The folder of the tables."""
    table: str
    span: Span = EVERYTHING
    limit: int | None = None
    """So many of the latest rows; None: all, as a table :data:`TABLE_ROWS_SHOWN`."""
    where: tuple[tuple[str, str], ...] = ()
    """Pairs of a column and a value as text. Of each named column, any of its values must match."""
    columns: tuple[str, ...] = ()
    """Empty: all, as a table those that matter most."""
    format: Format = "table"
    width: int = 80
    color: bool = False


def show(options: ShowOptions, out: TextIO, err: TextIO) -> int:
    """Write rows of a table to ``out``; returns how many. ``err`` says how many are left out.

    Raises:
        InputError: the folder, the table or a column does not exist, or a value is not of its
            column's type.
        PipelineError: the table cannot be read.
    """
    with plain_storage_failures(f"show of {options.out} failed"):
        return _show(options, out, err)


def _show(options: ShowOptions, out: TextIO, err: TextIO) -> int:
    scan = _open_scan(options)
    filters = _checked_filters(options, scan)
    columns = _columns(options, scan)
    limit = options.limit
    if limit is None and options.format == "table":
        limit = TABLE_ROWS_SHOWN
    if limit is None:
        return write_rows(
            options.format, columns, _every_row(scan, columns, options.span, filters), out
        )
    rows, more = latest_rows(scan, columns, options.span, filters, limit)
    if options.format == "table" and scan.name == POLICY_BACKTEST.name and "settings" in columns:
        rows = [row | {"settings": readable_settings(row["settings"])} for row in rows]
    count = write_rows(options.format, columns, rows, out, width=options.width, color=options.color)
    if more is None:
        err.write(f"The latest {count:,} rows; --count shows more.\n")
    elif more:
        err.write(f"The latest {count:,} of {count + more:,} rows; --count shows more.\n")
    elif not count:
        err.write(f"{options.table} has {_nothing_text(options, scan)}.\n")
    return count


def _nothing_text(options: ShowOptions, scan: Scan) -> str:
    """What to print if no row was found."""
    if not isinstance(scan, TableScan) or scan.row_count:
        return "no such rows"
    has_samples = BRONZE_SAMPLES.name in existing_tables(options.out)
    if has_samples and not TableScan(options.out, BRONZE_SAMPLES.name).row_count:
        return f"no rows before headgate pipeline run --out {options.out} has read telemetry"
    return "no rows"


def latest_rows(
    scan: Scan, columns: Sequence[str], span: Span, filters: Sequence[Filter], limit: int
) -> tuple[list[dict[str, Any]], int | None]:
    """The latest ``limit`` rows in the order of time, and how many more there are; None if nobody
    knows: older files of a table are not read."""
    order = [name for name in (scan.time_column,) if name is not None]
    wanted = list(dict.fromkeys((*columns, *order)))
    parts: Iterable[tuple[Any, Iterable[pa.RecordBatch]]]
    if isinstance(scan, TableScan):
        parts = scan.newest_first(wanted, span, *filters)
    else:
        parts = [(None, scan.batches(wanted, span, *filters))]
    kept: pa.Table | None = None
    count, is_whole = 0, True
    for latest, batches in parts:
        if latest is not None and kept is not None and kept.num_rows >= limit > 0:
            kept = _tail(kept, order, limit)
            oldest = kept[order[0]][0].as_py()
            if oldest is not None and latest < oldest:
                is_whole = False
                break
        for batch in batches:
            count += batch.num_rows
            rows = pa.Table.from_batches([batch])
            kept = rows if kept is None else pa.concat_tables([kept, rows])
            if kept.num_rows > 2 * limit:
                kept = _tail(kept, order, limit)
    if kept is None:
        return [], 0
    found = _tail(kept, order, limit).select(list(columns)).to_pylist()
    if is_whole:
        return found, count - len(found)
    if isinstance(scan, TableScan) and span == EVERYTHING and not filters:
        return found, scan.row_count - len(found)
    return found, None


def _tail(rows: pa.Table, order: Sequence[str], limit: int) -> pa.Table:
    if order:
        rows = rows.take(pc.sort_indices(rows, [(name, "ascending") for name in order]))
    return rows.slice(max(0, rows.num_rows - limit))


def _every_row(
    scan: Scan, columns: Sequence[str], span: Span, filters: Sequence[Filter]
) -> Iterator[dict[str, Any]]:
    """The rows, file by file and so hour by hour."""
    for batch in scan.batches(columns, span, *filters):
        yield from batch.to_pylist()


def _open_scan(options: ShowOptions) -> Scan:
    tables = existing_tables(options.out)
    names = (*tables, *(view for view, table in VIEWS.items() if table in tables))
    if options.table not in names:
        raise InputError(_no_table(options.out, options.table, names))
    if options.table in VIEWS:
        return _VIEW_SCANS[options.table](options.out)
    return TableScan(options.out, options.table)


def _no_table(root: str, name: str, names: Sequence[str]) -> str:
    hint = ": no run has made it yet;" if name in TABLES else did_you_mean(name, names) or ":"
    return f"folder {root} has no table {name!r}{hint} there are {', '.join(names)}"


def _columns(options: ShowOptions, scan: Scan) -> tuple[str, ...]:
    have = tuple(scan.schema.names)
    if options.columns:
        return options.columns
    if options.format != "table":
        return have
    shown = tuple(name for name in _SHOWN.get(scan.name, ()) if name in have)
    return shown or tuple(name for name in have if name not in _NOT_SHOWN)


def _with_suggestion(name: str, known: Sequence[str]) -> str:
    close = closest_match(name, known)
    return f"{name!r} (did you mean {close}?)" if close else repr(name)


def _checked_filters(options: ShowOptions, scan: Scan) -> list[Filter]:
    """The filters of ``--where``.

    Raises:
        InputError: columns do not exist, or values are not of their column's type; the text names
            all of them.
    """
    have = scan.schema.names
    asked = dict.fromkeys((*options.columns, *(name for name, _ in options.where)))
    unknown = [_with_suggestion(name, have) for name in asked if name not in have]
    faults = []
    if unknown:
        faults.append(
            f"table {scan.name} has no column {', '.join(unknown)}; it has {', '.join(have)}"
        )
    values: dict[str, list[Any]] = {}
    for name, text in options.where:
        if name not in have:
            continue
        kind = scan.schema.field(name).type
        try:
            values.setdefault(name, []).append(pa.scalar(text).cast(kind).as_py())
        except pa.ArrowException:
            example = _EXAMPLES.get(str(kind), str(kind))
            faults.append(f"--where {name}={text}: {name} is {example}")
    if faults:
        raise InputError("\n".join(faults))
    return list(values.items())
