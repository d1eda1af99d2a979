"""Bring the derived tables up to date with bronze: what changed, and what follows from it.

Every derived table remembers, in the last commit of a refresh, up to which version of its source
table it is right (the application transaction ``<source table>:<its id>``). So it does not matter
which run appended the source rows, or how often it was killed: the next trigger finds the hours of
all files that came since, recomputes them and those within look-back, and replaces them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Final

from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from headgate.base.errors import InputError
from headgate.pipeline.derived.coverage import GAP_HOURS_MAX, windows_around, windows_of
from headgate.pipeline.kernels.coverage_gaps import (
    CoverageGap,
    coverage,
    coverage_gaps,
    hours_across,
)
from headgate.pipeline.kernels.episodes import Newest
from headgate.pipeline.progress import nowhere
from headgate.pipeline.session import batches_by_count
from headgate.pipeline.steps import attribution, episodes, intervals, limits, publishing, quotas
from headgate.pipeline.store.delta_log import (
    AppTransaction,
    TableFile,
    commit_replace,
    ensure_table,
    files_added,
    kept_from_hour,
    partition_hour,
    source_key,
    table_files,
)
from headgate.pipeline.store.delta_writer import FORMAT
from headgate.pipeline.store.location import is_object_store
from headgate.pipeline.store.lock_tokens import writer_options
from headgate.pipeline.store.spark_reader import object_rows
from headgate.pipeline.store.table_store import store_of
from headgate.pipeline.tables.attribution import ATTRIBUTION, DEMONSTRATED_LOOK_BACK_NS
from headgate.pipeline.tables.bronze import BATCH_KIND, BRONZE_EVENTS, BRONZE_SAMPLES
from headgate.pipeline.tables.columns import HOUR_NS, MINUTE_NS, Table
from headgate.pipeline.tables.episodes import EPISODES
from headgate.pipeline.tables.intervals import INTERVALS, INTERVALS_LOOK_BACK_NS
from headgate.pipeline.tables.publishing import PUBLISH_ATTRIBUTION, THROTTLE_TIMELINE
from headgate.pipeline.tables.quotas import EVICTIONS, QUOTA_USAGE
from headgate.pipeline.tables.schemas import part_schema, table_schema
from headgate.pipeline.time_span import instant
from headgate.record.fields import Kind

PASS_HOURS: Final = 72
"""Hours of a table that are computed at once, in one commit. Proven rates are kept for each hour of
a pass and subscription: 58 MB for 100,000 of them. Each pass reads what its first hours look back
to once more: a third of its own."""


_ARE_PATTERNS: Final = "__globPaths__"
"""Spark's option, which it sets for tables of its own: whether ``[``, ``{``, ``*`` and ``?`` in a
path mean something. The folder's name may have them."""


@dataclass(frozen=True, slots=True)
class _Change:
    """Files of the source table that a derived table has not seen."""

    files: list[TableFile]
    transaction: AppTransaction


def _unseen(root: str, table: Table, source: DeltaTable, derived: DeltaTable) -> _Change | None:
    app_id = source_key(source)
    seen = derived.transaction_version(app_id)
    if seen is not None and seen >= source.version():
        return None
    return _Change(files_added(root, table, source, seen), AppTransaction(app_id, source.version()))


def near_hours(files: Iterable[TableFile]) -> set[int]:
    """Hours whose intervals depend on rows of the files, whatever else arrived."""
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


def _touched_intervals(
    root: str, new: Collection[TableFile], live: Collection[TableFile]
) -> set[int]:
    """Hours near the new rows, and all that a gap touches whose ends they are."""
    touched = near_hours(new)
    for hours in _passes(touched):
        part = [file for file in new if _near_any(file, hours)]
        around = windows_around(root, live, hours)
        touched |= hours_across(coverage_gaps(around), windows_of(root, part))
    return touched


def _within_silence(file: TableFile, hours: Collection[int]) -> bool:
    around = range(-GAP_HOURS_MAX, GAP_HOURS_MAX + 1)
    return any(file.hour + ahead in hours for ahead in around)


@dataclass(frozen=True, slots=True)
class _Derivation:
    """How one derived table follows from its source."""

    table: Table
    source: Table
    touched: Callable[[str, Collection[TableFile], Collection[TableFile]], set[int]]
    """The hours to recompute, from a root and the source's files that are new and that are live."""
    is_input: Callable[[TableFile, Collection[int]], bool]
    """Whether some hours depend on a live file."""
    rows: Callable[[SparkSession, str, list[TableFile], Collection[int]], DataFrame | None]
    """The rows of some hours, from the input files; None: there are none."""
    look_back_hours: int = 24
    """How many hours of the source before its own an hour may depend on."""

    def computable(self, hours: Collection[int], source: DeltaTable) -> set[int]:
        """Those hours all of whose input retention has left; the others stay as they are."""
        first = kept_from_hour(source)
        return {hour for hour in hours if first is None or hour - self.look_back_hours >= first}

    def as_it_was(self, hours: Collection[int], source: DeltaTable) -> Iterator[str]:
        """A sentence about hours with rows that are not :meth:`computable`, if there are any."""
        kept = kept_from_hour(source)
        if hours and kept is not None:
            yield (
                f"{self.table.name} from {instant(min(hours) * HOUR_NS)} to "
                f"{instant((max(hours) + 1) * HOUR_NS)} stays as it was: rows follow from up to "
                f"{self.look_back_hours} h before them, and {self.source.name} is kept from "
                f"{instant(kept * HOUR_NS)} on."
            )


def _by_hour(
    table: Table,
    source: Table,
    step: Callable[[DataFrame, Collection[int]], DataFrame],
    *,
    columns: Collection[str],
    kind: str | Collection[str] | None = None,
    look_back_hours: int = 0,
) -> _Derivation:
    """A table of which an hour follows from the source's same hour and some before it.

    ``columns``: what ``step`` uses of the source. ``kind``: what is read of a source that is
    partitioned by kind.
    """
    kinds = (kind,) if isinstance(kind, str) else kind

    def touched(_root: str, new: Collection[TableFile], live: Collection[TableFile]) -> set[int]:
        changed = {file.hour for file in new}
        looking_back = {
            file.hour
            for file in live
            if any(file.hour - back in changed for back in range(1, look_back_hours + 1))
        }
        return changed | looking_back

    def is_input(file: TableFile, hours: Collection[int]) -> bool:
        if kinds is not None and file.partition["kind"] not in kinds:
            return False
        return any(file.hour + ahead in hours for ahead in range(look_back_hours + 1))

    def rows(
        spark: SparkSession, root: str, files: list[TableFile], hours: Collection[int]
    ) -> DataFrame | None:
        return step(read_files(spark, root, source, files, columns), hours) if files else None

    return _Derivation(table, source, touched, is_input, rows, look_back_hours)


def _interval_rows(
    spark: SparkSession, root: str, files: list[TableFile], hours: Collection[int]
) -> DataFrame | None:
    arrived = coverage(windows_around(root, files, hours), hours)
    samples = [
        file
        for file in files
        if file.partition["kind"] != BATCH_KIND
        and (_near_any(file, hours) or any(_is_of(file, gap) for gap in arrived.gaps))
    ]
    if not samples:
        return None
    return intervals.intervals(read_files(spark, root, BRONZE_SAMPLES, samples), hours, arrived)


def _is_of(file: TableFile, gap: CoverageGap) -> bool:
    first, last = file.span_ns
    return first < gap.until_ns and last >= gap.from_ns - 1


_LIMITER: Final = Kind.LIMITER.value


def _timeline_rows(
    spark: SparkSession, root: str, files: list[TableFile], hours: Collection[int]
) -> DataFrame | None:
    """Who waited stands in bronze alone, which ``intervals`` follows from: what changes there
    changes the source, too."""
    if not files:
        return None
    samples = [
        file
        for file in table_files(ensure_table(root, BRONZE_SAMPLES))
        if file.partition["kind"] == _LIMITER and file.hour in hours
    ]
    return limits.throttle_timeline(
        read_files(spark, root, INTERVALS, files, limits.LIMITER_MINUTE_COLUMNS),
        read_files(spark, root, BRONZE_SAMPLES, samples, limits.LIMITER_SAMPLE_COLUMNS),
        hours,
    )


def _touched_episodes(
    _root: str, new: Collection[TableFile], live: Collection[TableFile]
) -> set[int]:
    """The changed hours and those beside them, where episodes may begin to go on; and the last two
    before each: what was open there is not if telemetry goes on without it."""
    changed = {file.hour for file in new}
    there = {file.hour for file in live}
    touched = set(changed)
    for hour in changed:
        touched |= there & {hour - 1, hour + 1}
        last = max((other for other in there if other < hour), default=hour)
        touched |= there & {last - 1, last}
    return touched


def _around(file: TableFile, hours: Collection[int]) -> bool:
    return any(file.hour + ahead in hours for ahead in (-1, 0, 1))


def _episode_rows(
    spark: SparkSession, root: str, files: list[TableFile], hours: Collection[int]
) -> DataFrame | None:
    if not files:
        return None
    # Verdicts follow from intervals, and are up to date with them before episodes are.
    known = [
        file
        for file in table_files(ensure_table(root, INTERVALS))
        if file.partition["kind"] == Kind.SUBSCRIPTION.value and _around(file, hours)
    ]
    return episodes.episodes(
        read_files(spark, root, ATTRIBUTION, files, episodes.VERDICT_COLUMNS),
        read_files(spark, root, INTERVALS, known, episodes.MINUTE_COLUMNS),
        hours,
        newest_minutes(root, files),
    )


def newest_minutes(root: str, files: Iterable[TableFile]) -> Newest:
    """How far ``attribution`` goes, by cluster, where these files of it tell; and at all."""
    last: dict[tuple[str | None, int], int] = {}
    files = list(files)
    paths = [file.path for file in files]
    read = store_of(root).columns(ATTRIBUTION.name, paths, ["cluster", "to_ns"])
    for file, rows in zip(files, read, strict=True):
        for found in rows.group_by("cluster").aggregate([("to_ns", "max")]).to_pylist():
            newest = (found["to_ns_max"] - 1) // MINUTE_NS
            for hour in (file.hour - 1, file.hour):
                key = (found["cluster"], hour)
                last[key] = max(last.get(key, newest), newest)
    live = table_files(ensure_table(root, ATTRIBUTION))
    return Newest(last, max(file.hour for file in live))


_DERIVATIONS: Final = (
    _Derivation(
        INTERVALS,
        BRONZE_SAMPLES,
        _touched_intervals,
        _within_silence,
        _interval_rows,
        look_back_hours=GAP_HOURS_MAX,
    ),
    # A consumer's demonstrated rate looks back a day.
    _by_hour(
        ATTRIBUTION,
        INTERVALS,
        attribution.attribution,
        columns=attribution.MINUTE_COLUMNS,
        kind=Kind.SUBSCRIPTION.value,
        look_back_hours=DEMONSTRATED_LOOK_BACK_NS // HOUR_NS,
    ),
    _Derivation(
        EPISODES, ATTRIBUTION, _touched_episodes, _around, _episode_rows, look_back_hours=1
    ),
    # A minute's publish limit is that of its end or that of the minute before.
    _by_hour(
        PUBLISH_ATTRIBUTION,
        INTERVALS,
        publishing.publish_attribution,
        columns=publishing.MINUTE_COLUMNS,
        kind=(Kind.TOPIC.value, Kind.LIMITER.value),
        look_back_hours=1,
    ),
    _Derivation(
        THROTTLE_TIMELINE,
        INTERVALS,
        lambda _root, new, _live: {file.hour for file in new},
        lambda file, hours: file.partition["kind"] == _LIMITER and file.hour in hours,
        _timeline_rows,
        look_back_hours=0,
    ),
    # A forecast looks back an hour.
    _by_hour(
        QUOTA_USAGE,
        INTERVALS,
        quotas.quota_usage,
        columns=quotas.TOPIC_COLUMNS,
        kind=Kind.TOPIC.value,
        look_back_hours=1,
    ),
    _by_hour(EVICTIONS, BRONZE_EVENTS, quotas.evictions, columns=quotas.EVICTION_COLUMNS),
)

DERIVED: Final = tuple(derivation.table for derivation in _DERIVATIONS)
"""Every derived table, after those that it follows from."""


def refresh_all(spark: SparkSession, root: str) -> None:
    """Bring every derived table up to date."""
    for table in DERIVED:
        refresh(spark, root, table)


def refresh(
    spark: SparkSession, root: str, table: Table, at: Callable[[int, int], None] = nowhere
) -> set[int]:
    """Recompute the hours of one of :data:`DERIVED` that new rows of its source touch; which they
    were, counted since the epoch.

    ``at`` is called with the hours that are done and all, where they take more than one pass.
    """
    derivation = _DERIVATIONS[DERIVED.index(table)]
    source = ensure_table(root, derivation.source)
    change = _unseen(root, derivation.source, source, ensure_table(root, table))
    if change is None:
        return set()
    live = table_files(source)
    hours = derivation.computable(derivation.touched(root, change.files, live), source)
    _compute(spark, root, derivation, live, hours, change.transaction, at)
    return hours


def recompute(
    spark: SparkSession,
    root: str,
    first_day: date,
    last_day: date,
    at: Callable[[int, int], None] = nowhere,
) -> list[str]:
    """Compute the rows of some days (UTC, both included) of every derived table anew.

    Exactly these days are replaced; files of other days stay, also where they follow from these.
    Before, all tables are brought up to date. Hours that follow from what retention has dropped
    stay as they are, because with a part of their input they would come out otherwise; returns a
    sentence for each table with such hours. ``at`` is called with the hours of all tables that are
    done, and all.

    Raises:
        InputError: the last day lies before the first, or the telemetry of all is gone.
    """
    if last_day < first_day:
        raise InputError(f"the last day, {last_day}, lies before the first, {first_day}")
    hours = range(_first_hour(first_day), _first_hour(last_day) + 24)
    kept = kept_from_hour(ensure_table(root, BRONZE_SAMPLES))
    if kept is not None and hours[-1] <= kept:
        raise InputError(
            f"{first_day} to {last_day} cannot be computed anew: telemetry is kept from "
            f"{instant(kept * HOUR_NS)} on"
        )
    refresh_all(spark, root)
    remarks: list[str] = []
    for place, derivation in enumerate(_DERIVATIONS):
        at(place * len(hours), len(_DERIVATIONS) * len(hours))
        source = ensure_table(root, derivation.source)
        derived = ensure_table(root, derivation.table)
        computable = derivation.computable(hours, source)
        there = {file.hour for file in table_files(derived)}
        remarks += derivation.as_it_was(there.intersection(hours) - computable, source)
        # What was computed above is new to the tables that follow from it, and no reason to
        # compute more than was asked for: they note that they have seen it.
        change = _unseen(root, derivation.source, source, derived)
        _compute(
            spark,
            root,
            derivation,
            table_files(source),
            computable,
            None if change is None else change.transaction,
            partial(_at_hours, at, place * len(hours), len(_DERIVATIONS) * len(hours)),
        )
    return remarks


def _at_hours(at: Callable[[int, int], None], before: int, total: int, done: int, _: int) -> None:
    """Tell the hours of one table as a part of those of all."""
    at(before + done, total)


def _first_hour(day: date) -> int:
    return partition_hour({"date": day.isoformat(), "hour": "0"})


def _compute(
    spark: SparkSession,
    root: str,
    derivation: _Derivation,
    live: Collection[TableFile],
    hours: Collection[int],
    transaction: AppTransaction | None,
    at: Callable[[int, int], None],
) -> None:
    """Replace some hours of a derived table by what follows from its source's live files.

    A pass has at most :data:`PASS_HOURS`. Only the last one notes what was seen of the source: who
    is killed before it does all of them again, which gives the same rows.
    """
    passes = _passes(hours) or [frozenset()]
    for place, part in enumerate(passes, 1):
        noted = transaction if place == len(passes) else None
        if len(passes) > 1:
            at((place - 1) * PASS_HOURS, len(hours))
        _compute_pass(spark, root, derivation, live, part, noted)


def _passes(hours: Collection[int]) -> list[frozenset[int]]:
    ordered = sorted(hours)
    return [frozenset(ordered[at : at + PASS_HOURS]) for at in range(0, len(ordered), PASS_HOURS)]


def _compute_pass(
    spark: SparkSession,
    root: str,
    derivation: _Derivation,
    live: Collection[TableFile],
    hours: Collection[int],
    transaction: AppTransaction | None,
) -> None:
    inputs = [file for file in live if derivation.is_input(file, hours)]
    rows = derivation.rows(spark, root, inputs, hours)
    if rows is None:
        commit_replace(root, derivation.table, [], hours, transaction)
    elif derivation.source is BRONZE_EVENTS:
        _replace(rows, root, derivation.table, hours, transaction)
    else:
        # Samples and minutes are numbers and names; events may hold long texts.
        with batches_by_count(spark):
            _replace(rows, root, derivation.table, hours, transaction)


def _replace(
    rows: DataFrame,
    root: str,
    table: Table,
    hours: Collection[int],
    transaction: AppTransaction | None,
) -> None:
    options = {"table": table.name, "hours": json.dumps(sorted(hours)), **writer_options(root)}
    if transaction is not None:
        options |= {"app_id": transaction.app_id, "app_version": str(transaction.version)}
    rows.write.format(FORMAT).mode("append").options(**options).save()


def read_files(
    spark: SparkSession,
    root: str,
    table: Table,
    files: Iterable[TableFile],
    columns: Collection[str] | None = None,
) -> DataFrame:
    """Live files of a table as a DataFrame of its schema; without one it is empty.

    ``columns``: those that are used; None: all. In an object store no others are read.
    """
    files = list(files)
    schema = part_schema(table, columns)
    if not (paths := [file.path for file in files]):
        return spark.createDataFrame([], schema)
    if is_object_store(root):
        return object_rows(spark, root, table, files, columns)
    folder = store_of(root).path(table.name)
    # Without basePath the partition columns would be null.
    return (
        spark.read.schema(table_schema(table))
        .option("basePath", folder)
        .option(_ARE_PATTERNS, "false")
        .parquet(*[f"{folder}/{path}" for path in paths])
        .select(*schema.names)
    )
