"""Refresh: bring the derived tables up to date with bronze.

The last commit of a refresh stores in the derived table which version of its source it covers (the
application transaction ``<source table>:<its id>``). So it does not matter which run appended the
source rows, or how often it was killed: the next refresh finds the minutes of all rows that were
added or replaced since, recomputes them and those within look-back, and replaces them. Files of
other minutes stay as they are.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import date
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from headgate.base.errors import InputError
from headgate.pipeline.derived.catalogue import DERIVED
from headgate.pipeline.derived.derived_table import DerivedTable, SourceFiles, passes
from headgate.pipeline.progress import OnProgress, no_progress
from headgate.pipeline.session import batches_by_count, sized_for
from headgate.pipeline.store.clustering import clustered
from headgate.pipeline.store.delta_log import (
    AppTransaction,
    TableFile,
    commit_replace,
    ensure_table,
    kept_from_hour,
    partition_hour,
    source_key,
)
from headgate.pipeline.store.delta_writer import FORMAT
from headgate.pipeline.store.followed_log import FollowedLog
from headgate.pipeline.store.lock_tokens import writer_options
from headgate.pipeline.store.log_changes import SourceChange, change_since, followed_or_new
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES
from headgate.pipeline.tables.columns import HOUR_NS, Table
from headgate.pipeline.tables.touched_minutes import TouchedMinutes
from headgate.pipeline.time_span import instant


@dataclass(frozen=True, slots=True)
class _Unseen:
    """What a derived table has not seen of its source, and the transaction that notes it."""

    change: SourceChange
    transaction: AppTransaction


def _unseen(root: str, source: FollowedLog[TableFile], derived: DerivedTable) -> _Unseen | None:
    with source.lock:
        app_id, version = source_key(source.delta), source.version
    seen = followed_or_new(root, derived.table).delta.transaction_version(app_id)
    if seen is not None and seen >= version:
        return None
    change = change_since(root, derived.source.name, seen, version, source.files)
    return _Unseen(change, AppTransaction(app_id, version))


def refresh_all(spark: SparkSession, root: str) -> None:
    """Bring every derived table up to date."""
    for derived in DERIVED:
        refresh(spark, root, derived)


def refresh(
    spark: SparkSession,
    root: str,
    derived: DerivedTable,
    on_progress: OnProgress = no_progress,
) -> set[int]:
    """Recompute the minutes of a table that new rows of its source touch; returns their hours,
    counted since the epoch.

    ``on_progress`` is called with the hours done and the hours in all, if they take more than
    one pass.
    """
    source = followed_or_new(root, derived.source)
    unseen = _unseen(root, source, derived)
    if unseen is None:
        return set()
    touched = derived.touched(root, unseen.change, source)
    if not derived.is_by_minute:
        touched = touched.whole_hours()
    touched = touched.only(derived.computable(touched, source.delta))
    _compute(spark, root, derived, source, touched, unseen.transaction, on_progress)
    return set(touched)


def recompute(
    spark: SparkSession,
    root: str,
    first_day: date,
    last_day: date,
    on_progress: OnProgress = no_progress,
) -> list[str]:
    """Recompute the rows of some days (UTC, both included) of every derived table.

    First all tables are brought up to date. Then exactly these days are replaced; files of other
    days stay, even those that follow from these days. Hours that follow from what retention dropped
    keep their rows, because a part of their input would give other rows; returns a sentence for
    each table with such hours. ``on_progress`` is called with the hours done and the hours in all,
    summed over tables.

    Raises:
        InputError: the last day lies before the first, or retention dropped the telemetry of all.
    """
    if last_day < first_day:
        raise InputError(f"the last day, {last_day}, lies before the first, {first_day}")
    hours = range(_first_hour(first_day), _first_hour(last_day) + 24)
    kept = kept_from_hour(ensure_table(root, BRONZE_SAMPLES))
    if kept is not None and hours[-1] <= kept:
        raise InputError(
            f"{first_day} to {last_day} cannot be recomputed: telemetry is kept from "
            f"{instant(kept * HOUR_NS)} on"
        )
    refresh_all(spark, root)
    remarks: list[str] = []
    total = len(DERIVED) * len(hours)
    for number, derived in enumerate(DERIVED):
        before = number * len(hours)
        on_progress(before, total)
        source = followed_or_new(root, derived.source)
        computable = derived.computable(hours, source.delta)
        there = set(followed_or_new(root, derived.table).hours())
        remarks += derived.kept_rows_text(there.intersection(hours) - computable, source.delta)
        # Rows that were recomputed above are new to the tables that follow from them. These tables
        # note that they have seen them; no hour outside the days is computed for that.
        unseen = _unseen(root, source, derived)
        _compute(
            spark,
            root,
            derived,
            source,
            TouchedMinutes.whole(computable),
            None if unseen is None else unseen.transaction,
            partial(_report_hours, on_progress, before, total),
        )
    return remarks


def recompute_hours(
    spark: SparkSession,
    root: str,
    derived: DerivedTable,
    hours: Collection[int],
    on_progress: OnProgress = no_progress,
) -> None:
    """Replace some computable hours of one table that is up to date; they count since the epoch."""
    if hours:
        source = followed_or_new(root, derived.source)
        whole = TouchedMinutes.whole(hours)
        _compute(spark, root, derived, source, whole, None, on_progress)


def _report_hours(on_progress: OnProgress, before: int, total: int, done: int, _: int) -> None:
    """Report the hours of one table as a part of the hours of all tables."""
    on_progress(before + done, total)


def _first_hour(day: date) -> int:
    return partition_hour({"date": day.isoformat(), "hour": "0"})


def _compute(
    spark: SparkSession,
    root: str,
    derived: DerivedTable,
    source: SourceFiles,
    touched: TouchedMinutes,
    transaction: AppTransaction | None,
    on_progress: OnProgress,
) -> None:
    """Replace some minutes of a derived table by what follows from its source's live files.

    Only the last pass notes the source's version. After a run that was killed before it, the next
    one repeats all passes, with the same rows.
    """
    parts = passes(touched) or [frozenset()]
    done = 0
    for part in parts:
        if len(parts) > 1:
            on_progress(done, len(touched))
        noted = transaction if part is parts[-1] else None
        _compute_pass(spark, root, derived, source, touched.only(part), noted)
        done += len(part)


def _compute_pass(
    spark: SparkSession,
    root: str,
    derived: DerivedTable,
    source: SourceFiles,
    touched: TouchedMinutes,
    transaction: AppTransaction | None,
) -> None:
    files = derived.inputs(source, touched)
    replaced = touched.whole_hours() if derived.has_hour_rows else touched
    with (
        sized_for(spark, derived.read_for(root, files, touched)),
        nullcontext() if derived.has_long_texts else batches_by_count(spark),
    ):
        rows = derived.rows(spark, root, files, touched)
        if rows is None:
            commit_replace(root, derived.table, [], replaced, transaction)
        else:
            if replaced.partial or not derived.is_in_input_order:
                rows = clustered(rows, derived.table, by_minute=bool(replaced.minute_files))
            _replace(rows, root, derived.table, replaced, transaction)


def _replace(
    rows: DataFrame,
    root: str,
    table: Table,
    touched: TouchedMinutes,
    transaction: AppTransaction | None,
) -> None:
    options = {"table": table.name, "touched": touched.to_json(), **writer_options(root)}
    if transaction is not None:
        options |= {"app_id": transaction.app_id, "app_version": str(transaction.version)}
    rows.write.format(FORMAT).mode("append").options(**options).save()
