"""Bring the derived tables up to date with bronze: what changed, what follows from it, one commit.

Every derived table remembers, in its own commit, up to which version of its source table it is
right (the application transaction ``<source table>:<its id>``). So it does not matter which run
appended the source rows, or how often it was killed: the next trigger finds the hours of all
files that came since, recomputes them and those within look-back, and replaces them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from headgate.pipeline import judgements, steps
from headgate.pipeline.session import batches_by_count
from headgate.pipeline.store.delta_log import (
    AppTransaction,
    TableFile,
    commit_replace,
    ensure_table,
    files_added,
    table_files,
)
from headgate.pipeline.store.delta_writer import FORMAT
from headgate.pipeline.tables.attribution import ATTRIBUTION, PROVEN_LOOK_BACK_NS
from headgate.pipeline.tables.bronze import BATCH_KIND, BRONZE_EVENTS, BRONZE_SAMPLES
from headgate.pipeline.tables.columns import HOUR_NS, Table
from headgate.pipeline.tables.intervals import INTERVALS, INTERVALS_LOOK_BACK_NS
from headgate.pipeline.tables.quotas import EVICTIONS, QUOTA_USAGE
from headgate.pipeline.tables.schemas import table_schema
from headgate.record.fields import Kind


@dataclass(frozen=True, slots=True)
class _Change:
    """Files of the source table that a derived table has not seen."""

    files: list[TableFile]
    transaction: AppTransaction


def _unseen(source: DeltaTable, derived: DeltaTable) -> _Change | None:
    app_id = f"{source.metadata().name}:{source.metadata().id}"
    seen = derived.transaction_version(app_id)
    if seen is not None and seen >= source.version():
        return None
    return _Change(files_added(source, seen), AppTransaction(app_id, source.version()))


def near_hours(files: Iterable[TableFile]) -> set[int]:
    """Hours whose intervals depend on rows of the files."""
    hours: set[int] = set()
    for file in files:
        first, last = file.span_ns
        hours.update(
            range(
                (first - INTERVALS_LOOK_BACK_NS) // HOUR_NS,
                (last + INTERVALS_LOOK_BACK_NS) // HOUR_NS + 1,
            )
        )
    return hours


def _near_any(file: TableFile, hours: Collection[int]) -> bool:
    return not near_hours([file]).isdisjoint(hours)


@dataclass(frozen=True, slots=True)
class _Derivation:
    """How one derived table follows from its source."""

    table: Table
    source: Table
    touched: Callable[[Collection[TableFile], Collection[TableFile]], set[int]]
    """The hours to recompute, from the files that are new and all that are live."""
    is_input: Callable[[TableFile, Collection[int]], bool]
    """Whether some hours depend on a live file."""
    rows: Callable[[SparkSession, str, list[TableFile], Collection[int]], DataFrame | None]
    """The rows of some hours, from the input files; None: there are none."""


def _by_hour(
    table: Table,
    source: Table,
    step: Callable[[DataFrame, Collection[int]], DataFrame],
    *,
    kind: str | None = None,
    look_back_hours: int = 0,
) -> _Derivation:
    """A table of which an hour follows from the source's same hour and some before it."""

    def touched(new: Collection[TableFile], live: Collection[TableFile]) -> set[int]:
        changed = {file.hour for file in new}
        looking_back = {
            file.hour
            for file in live
            if any(file.hour - back in changed for back in range(1, look_back_hours + 1))
        }
        return changed | looking_back

    def is_input(file: TableFile, hours: Collection[int]) -> bool:
        if kind is not None and file.partition["kind"] != kind:
            return False
        return any(file.hour + ahead in hours for ahead in range(look_back_hours + 1))

    def rows(
        spark: SparkSession, root: str, files: list[TableFile], hours: Collection[int]
    ) -> DataFrame | None:
        return step(read_files(spark, root, source, files), hours) if files else None

    return _Derivation(table, source, touched, is_input, rows)


def _interval_rows(
    spark: SparkSession, root: str, files: list[TableFile], hours: Collection[int]
) -> DataFrame | None:
    beats = heartbeats(root, files, hours)
    samples = [file for file in files if file.partition["kind"] != BATCH_KIND]
    if not samples:
        return None
    return steps.intervals(read_files(spark, root, BRONZE_SAMPLES, samples), hours, beats)


_DERIVATIONS: Final = (
    _Derivation(
        INTERVALS, BRONZE_SAMPLES, lambda new, _: near_hours(new), _near_any, _interval_rows
    ),
    # A consumer's proven rate looks back a day.
    _by_hour(
        ATTRIBUTION,
        INTERVALS,
        judgements.attribution,
        kind=Kind.SUBSCRIPTION.value,
        look_back_hours=PROVEN_LOOK_BACK_NS // HOUR_NS,
    ),
    # A forecast looks back an hour.
    _by_hour(QUOTA_USAGE, INTERVALS, steps.quota_usage, kind=Kind.TOPIC.value, look_back_hours=1),
    _by_hour(EVICTIONS, BRONZE_EVENTS, steps.evictions),
)

DERIVED: Final = tuple(derivation.table for derivation in _DERIVATIONS)
"""Every derived table, after those that it follows from."""


def refresh_all(spark: SparkSession, root: str) -> None:
    """Bring every derived table up to date."""
    for table in DERIVED:
        refresh(spark, root, table)


def refresh(spark: SparkSession, root: str, table: Table) -> set[int]:
    """Recompute the hours of one of :data:`DERIVED` that new rows of its source touch; which they
    were, counted since the epoch."""
    derivation = _DERIVATIONS[DERIVED.index(table)]
    source = ensure_table(root, derivation.source)
    change = _unseen(source, ensure_table(root, table))
    if change is None:
        return set()
    live = table_files(source)
    hours = derivation.touched(change.files, live)
    inputs = [file for file in live if derivation.is_input(file, hours)]
    rows = derivation.rows(spark, root, inputs, hours)
    if rows is None:
        commit_replace(root, table, [], hours, change.transaction)
    elif derivation.source is BRONZE_EVENTS:
        _replace(rows, root, table, hours, change.transaction)
    else:
        # Samples and minutes are numbers and names; events may hold long texts.
        with batches_by_count(spark):
            _replace(rows, root, table, hours, change.transaction)
    return hours


def _replace(
    rows: DataFrame, root: str, table: Table, hours: Collection[int], transaction: AppTransaction
) -> None:
    (
        rows.write.format(FORMAT)
        .mode("append")
        .option("root", root)
        .option("table", table.name)
        .option("hours", json.dumps(sorted(hours)))
        .option("app_id", transaction.app_id)
        .option("app_version", str(transaction.version))
        .save()
    )


def read_files(
    spark: SparkSession, root: str, table: Table, files: Iterable[TableFile]
) -> DataFrame:
    """Live files of a table as a DataFrame of its schema; at least one."""
    folder = str(Path(root, table.name).resolve())
    # Without basePath the partition columns would be null.
    return (
        spark.read.schema(table_schema(table))
        .option("basePath", folder)
        .parquet(*[f"{folder}/{file.path}" for file in files])
    )


def heartbeats(
    root: str, files: Iterable[TableFile], hours: Collection[int]
) -> dict[tuple[int, str, str], int]:
    """End of the last window of every (target hour, source, boot), among the hour's input.

    The files of kind ``batch`` have one small row for each message: the driver reads them.
    """
    last: dict[tuple[int, str, str], int] = {}
    folder = Path(root, BRONZE_SAMPLES.name)
    for file in files:
        if file.partition["kind"] != BATCH_KIND:
            continue
        rows = pq.ParquetFile(folder / file.path).read(["source", "boot_id", "window_end_ns"])
        for source, boot, end in zip(*(rows.column(i).to_pylist() for i in range(3)), strict=True):
            first = (end - 1 - INTERVALS_LOOK_BACK_NS) // HOUR_NS
            for hour in range(first, (end - 1 + INTERVALS_LOOK_BACK_NS) // HOUR_NS + 1):
                key = (hour, source, boot)
                if hour in hours and last.get(key, 0) < end:
                    last[key] = end
    return last
