"""Bring the derived tables up to date with bronze: what changed, what follows from it, one commit.

Every derived table remembers, in its own commit, up to which version of its source table it is
right (the application transaction ``<source table>:<its id>``). So it does not matter which run
appended the source rows, or how often it was killed: the next trigger finds the hours of all
files that came since, recomputes them and those within look-back, and replaces them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from headgate.pipeline import steps
from headgate.pipeline.delta_log import (
    AppTransaction,
    TableFile,
    commit_replace,
    ensure_table,
    files_added,
    table_files,
)
from headgate.pipeline.delta_writer import FORMAT
from headgate.pipeline.schemas import table_schema
from headgate.pipeline.tables import (
    ATTRIBUTION,
    BATCH_KIND,
    BRONZE_SAMPLES,
    HOUR_NS,
    INTERVALS,
    INTERVALS_LOOK_BACK_NS,
    PROVEN_LOOK_BACK_NS,
    Table,
)

_PROVEN_HOURS = PROVEN_LOOK_BACK_NS // HOUR_NS


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


def refresh_intervals(spark: SparkSession, root: str) -> set[int]:
    """Recompute the hours of ``intervals`` that new bronze rows touch; which they were."""
    bronze = ensure_table(root, BRONZE_SAMPLES)
    change = _unseen(bronze, ensure_table(root, INTERVALS))
    if change is None:
        return set()
    hours = near_hours(change.files)
    inputs = [file for file in table_files(bronze) if _near_any(file, hours)]
    beats = heartbeats(root, inputs, hours)
    samples = [file for file in inputs if file.partition["kind"] != BATCH_KIND]
    if not samples:
        commit_replace(root, INTERVALS, [], hours, change.transaction)
        return hours
    rows = steps.intervals(read_files(spark, root, BRONZE_SAMPLES, samples), hours, beats)
    _replace(rows, root, INTERVALS, hours, change.transaction)
    return hours


def refresh_attribution(spark: SparkSession, root: str) -> set[int]:
    """Recompute the hours of ``attribution`` that changed intervals touch; which they were."""
    intervals = ensure_table(root, INTERVALS)
    change = _unseen(intervals, ensure_table(root, ATTRIBUTION))
    if change is None:
        return set()
    changed = {file.hour for file in change.files}
    live = table_files(intervals)
    # A consumer's proven rate looks back a day, so later hours follow from earlier ones.
    hours = changed | {
        file.hour
        for file in live
        if any(hour < file.hour <= hour + _PROVEN_HOURS for hour in changed)
    }
    needed = {back for hour in hours for back in range(hour - _PROVEN_HOURS, hour + 1)}
    inputs = [
        file for file in live if file.hour in needed and file.partition["kind"] == "subscription"
    ]
    if not inputs:
        commit_replace(root, ATTRIBUTION, [], hours, change.transaction)
        return hours
    minutes = read_files(spark, root, INTERVALS, inputs)
    rows = steps.attribution(minutes, hours)
    _replace(rows, root, ATTRIBUTION, hours, change.transaction)
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
