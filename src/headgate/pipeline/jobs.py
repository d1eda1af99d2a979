"""The jobs that read telemetry: ``headgate pipeline run``, ``attribute`` and ``stream``.

Each job is the same structured streaming query with a checkpoint in the folder, so each continues
where another stopped; they differ in the trigger, and in what they do with the tables then.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from typing import Any, TextIO

from pyspark.sql import DataFrame, SparkSession

from headgate.base.clock import SystemClock
from headgate.pipeline.derived.catalogue import DERIVED
from headgate.pipeline.job_session import ingest_session, query_session
from headgate.pipeline.lineage.datasets import source_sets
from headgate.pipeline.lineage.job_lineage import JobLineage, job_lineage
from headgate.pipeline.location import resolved_root
from headgate.pipeline.options import AttributeOptions, SourceOptions, StreamOptions
from headgate.pipeline.output.attribution import (
    messages_text,
    subscriptions_text,
    topics_text,
    write_judgements,
)
from headgate.pipeline.output.producers import write_producers
from headgate.pipeline.progress import Progress
from headgate.pipeline.quality import begin_quality, check_tables
from headgate.pipeline.queries.attribution import judge_producers, judge_range
from headgate.pipeline.record_file_ingest import ingest_record_files
from headgate.pipeline.record_files.folder import record_folders
from headgate.pipeline.refresh import recompute, refresh
from headgate.pipeline.scrape_ingest import ingest_scrapes
from headgate.pipeline.scrapes.folder import broker_folders
from headgate.pipeline.store.delta_log import (
    ensure_table,
    missing_columns,
    open_table,
)
from headgate.pipeline.store.folder import checkpoint_path
from headgate.pipeline.store.housekeeping.periodic import merge_after_run
from headgate.pipeline.store.lease import TableHeldError
from headgate.pipeline.store.log_changes import followed, followed_or_new
from headgate.pipeline.store.scan import TableScan, existing_tables
from headgate.pipeline.store.table_leases import fill_leases
from headgate.pipeline.store.table_store import store_of, table_names
from headgate.pipeline.streaming.gaps import TelemetryGaps
from headgate.pipeline.streaming.late_workers import repeat_if_late
from headgate.pipeline.streaming.listener import listening
from headgate.pipeline.streaming.metrics import StreamMetrics, served_metrics
from headgate.pipeline.streaming.query import (
    PASS_PATIENCE_MS,
    STREAM_PATIENCE_MS,
    run_until,
    start_query,
    telemetry_messages,
)
from headgate.pipeline.streaming.refresh_pace import StreamTables
from headgate.pipeline.tables.bronze import (
    BATCH_KIND,
    BRONZE_EVENTS,
    BRONZE_QUARANTINE,
    BRONZE_SAMPLES,
)
from headgate.pipeline.tables.catalogue import FILLED, TABLES
from headgate.pipeline.tables.columns import MINUTE_NS
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.tables.policy_backtest import POLICY_BACKTEST
from headgate.pipeline.tables.quality import QUALITY
from headgate.pipeline.time_span import Span, instant, parse_span


def run_once(
    source: SourceOptions,
    err: TextIO,
    *,
    recompute_days: tuple[date, date] | None = None,
    messages: Callable[[SparkSession], DataFrame] | None = None,
) -> int:
    """Read what the topics or a folder of files hold now and bring all tables up to date.

    ``recompute_days``: the first and the last day (UTC) whose rows are recomputed in every derived
    table.
    Progress goes to ``err``. ``messages`` replaces the topics, for tests. Returns how many
    expectations the new rows do not meet.

    Raises:
        InputError: no Java is there, the folder cannot be used, or a broker does not answer.
        PipelineError: a topic or broker cannot be read, or a table cannot be written.
    """
    root, progress = resolved_root(source.out), Progress(err)
    brokers, lineage = _brokers_of(source, messages), _lineage(source, "run", root, progress)
    with (
        lineage.running(),
        ingest_session(source, brokers, "headgate pipeline run", progress) as spark,
    ):
        checked = _bring_up_to_date(spark, source, messages, root, progress, lineage)
        if recompute_days is not None:
            first, last = recompute_days
            with progress.stage(f"Recomputing {first} to {last}") as stage:
                remarks = recompute(spark, root, first, last, stage.on_progress)
            for remark in remarks:
                progress.say(remark)
            checked += _check_tables(root, source.out, progress, lineage)
        merged = merge_after_run(root)
        if merged.replaced:
            progress.say(f"Merged {merged.replaced:,} small files into {merged.added:,}.")
    return checked


def run_attribute(
    options: AttributeOptions,
    out: TextIO,
    err: TextIO,
    *,
    messages: Callable[[SparkSession], DataFrame] | None = None,
) -> list[dict[str, Any]]:
    """Attribute the backlogs of a range, after reading what the topics or a folder of files hold.

    Rows go to ``out``, progress to ``err``. ``messages`` replaces the topics, for
    tests. Returns the judged subscriptions, with the columns of ``kernels.attribution``, or topics,
    with those of ``kernels.publishing``.

    Raises:
        InputError: a time is malformed, no Java is there, a folder cannot be used, or a broker
            does not answer.
        PipelineError: a topic or broker cannot be read, or a table cannot be written.
    """
    span = parse_span(options.since, options.until, SystemClock.wall_ns())
    source, root = options.source, resolved_root(options.source.out)
    progress, name = Progress(err), "headgate pipeline attribute"
    if options.reads:
        brokers = _brokers_of(source, messages)
        lineage = _lineage(source, "attribute", root, progress)
        with lineage.running(), ingest_session(source, brokers, name, progress) as spark:
            _bring_up_to_date(spark, source, messages, root, progress, lineage)
            rows = _judged(spark, root, span, options, progress)
    else:
        existing_tables(root)
        TableScan(root, INTERVALS.name)  # raises where there is nothing to judge
        with query_session(root, name, progress, source.spark) as spark:
            rows = _judged(spark, root, span, options, progress)
    remark = _range_remark(root, span, min((row["from_ns"] for row in rows), default=None))
    if remark:
        progress.say(remark)
    write = write_producers if options.is_about_producers else write_judgements
    write(rows, options.format, out, width=options.width, color=options.color)
    return rows


def _range_remark(root: str, asked: Span, begins_ns: int | None) -> str:
    """A sentence about a range that the tables hold only in part, or an empty one.

    ``begins_ns``: the start of what they hold of it; None: nothing.
    """
    if begins_ns is None:
        have = TableScan(root, INTERVALS.name).span()
        if have is None or have.since_ns is None or have.until_ns is None:
            return "There is no telemetry so far."
        return f"There is telemetry only from {instant(have.since_ns)} to {instant(have.until_ns)}."
    if asked.since_ns is not None and begins_ns > asked.since_ns + MINUTE_NS:
        return f"There is telemetry of this range only from {instant(begins_ns)} on."
    return ""


def _bring_up_to_date(
    spark: SparkSession,
    source: SourceOptions,
    messages: Callable[[SparkSession], DataFrame] | None,
    root: str,
    progress: Progress,
    lineage: JobLineage,
) -> int:
    """Returns how many expectations the new rows do not meet."""
    remarks: list[str] = []
    create_tables(root, progress.say)
    with (
        progress.stage(f"Reading telemetry into {root}") as stage,
        lineage.reading(BRONZE_SAMPLES, BRONZE_EVENTS, BRONZE_QUARANTINE),
    ):
        if source.scrapes is not None:
            remarks = ingest_scrapes(spark, source.scrapes, root)
        elif source.files is not None:
            gaps = TelemetryGaps(root)
            remarks = ingest_record_files(spark, source.files, root)
            remarks += gaps.new_sentences()
        else:
            gaps = TelemetryGaps(root)
            frame = _stream(spark, source, messages, PASS_PATIENCE_MS, remarks.append)
            checkpoint = checkpoint_path(source)
            repeat_if_late(
                lambda: start_query(frame, root, checkpoint, trigger_s=None).awaitTermination(),
                remarks.append,
            )
            remarks += gaps.new_sentences()
        stage.result = str(bronze_counts(root))
    for remark in remarks:
        progress.say(remark)
    for derived in DERIVED:
        with (
            progress.stage(f"Computing {derived.name}") as stage,
            lineage.filling(derived.table),
        ):
            refresh(spark, root, derived, stage.on_progress)
    unmet = _check_tables(root, source.out, progress, lineage)
    quarantined = TableScan(root, BRONZE_QUARANTINE.name).row_count
    if quarantined:
        progress.say(
            f"{messages_text(quarantined)} in quarantine, because this version cannot read them: "
            f"headgate pipeline show {BRONZE_QUARANTINE.name} --out {source.out}"
        )
    return unmet


def _lineage(
    source: SourceOptions,
    command: str,
    root: str,
    progress: Progress,
    *,
    is_streaming: bool = False,
) -> JobLineage:
    """The lineage of a job that fills all tables from telemetry."""
    tables = [TABLES[name] for name in FILLED]
    return job_lineage(
        source.lineage, root, command, source_sets(source), tables, progress.say,
        is_streaming=is_streaming,
    )  # fmt: skip


def _check_tables(root: str, out: str, progress: Progress, lineage: JobLineage) -> int:
    """Bring ``quality`` up to date; returns how many expectations are not met."""
    with progress.stage("Checking the tables") as stage:
        checked = check_tables(root)
        stage.result = str(checked)
    lineage.checked(checked.outcomes)
    for line in checked.lines(out):
        progress.say(line)
    return len(checked.failures)


def _judged(
    spark: SparkSession, root: str, span: Span, options: AttributeOptions, progress: Progress
) -> list[dict[str, Any]]:
    with progress.stage("Judging") as stage:
        if options.is_about_producers:
            rows = judge_producers(spark, root, span.since_ns, span.until_ns)
            stage.result = topics_text(len(rows))
        else:
            rows = judge_range(spark, root, span.since_ns, span.until_ns)
            stage.result = subscriptions_text(len(rows))
    return rows


def run_stream(
    options: StreamOptions,
    err: TextIO,
    *,
    messages: Callable[[SparkSession], DataFrame] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> None:
    """Keep the tables up to date until the process is interrupted or ``should_stop`` returns True.

    While it catches up, it refreshes derived tables less often (``streaming.refresh_pace``).
    Every batch is one line on ``err``; its figures are served as metrics if ``options`` say so.
    ``messages`` replaces the topics, for tests.

    Raises:
        InputError: no Java is there, the folder or the port cannot be used, or a broker does not
            answer.
        PipelineError: a topic or broker cannot be read, or a table cannot be written.
    """
    source, root = options.source, resolved_root(options.source.out)
    progress = Progress(err)
    metrics, name = StreamMetrics(SystemClock.wall_ns), "headgate pipeline stream"
    lineage = _lineage(source, "stream", root, progress, is_streaming=True)
    tables = StreamTables(
        root, metrics, retain_days=options.retain_days, say=progress.say, lineage=lineage
    )
    with (
        lineage.running(),
        served_metrics(metrics, options, progress),
        ingest_session(
            source, _brokers_of(source, messages), name, progress, is_long=True
        ) as spark,
    ):
        create_tables(root, progress.say)
        frame = _stream(spark, source, messages, STREAM_PATIENCE_MS, progress.say)
        with progress.stage(f"Bringing {root} up to date") as stage:
            # A run that was killed may have left bronze rows that nothing is derived from yet.
            tables.bring_up_to_date(spark)
            stage.result = str(bronze_counts(root))
        gaps = TelemetryGaps(root)

        def after(session: SparkSession, _: int) -> None:
            for remark in gaps.new_sentences():
                progress.say(remark)
            tables.after_batch(session)

        def run_query() -> None:
            query = start_query(
                frame, root, checkpoint_path(source), trigger_s=options.trigger_s, after=after
            )
            run_until(query, should_stop, between=lambda: tables.between_batches(spark))

        with listening(spark, metrics, progress):
            repeat_if_late(run_query, progress.say)
        tables.between_batches(spark)
    progress.say("Stopped; the next run continues from here.")


def _brokers_of(
    source: SourceOptions, messages: Callable[[SparkSession], DataFrame] | None
) -> SourceOptions | None:
    """The options, if brokers must be checked before Spark starts; None for folders and tests.

    Raises:
        InputError: the folder of scrapes or records is not one.
    """
    if source.scrapes is not None:
        broker_folders(source.scrapes)
    if source.files is not None:
        record_folders(source.files)
    return source if messages is None and source.folder is None else None


def _stream(
    spark: SparkSession,
    source: SourceOptions,
    messages: Callable[[SparkSession], DataFrame] | None,
    patience_ms: int,
    say: Callable[[str], None],
) -> DataFrame:
    if messages is not None:
        return messages(spark)
    return telemetry_messages(spark, source, patience_ms, say)


def create_tables(root: str, say: Callable[[str], None] = lambda _: None) -> None:
    """Create the tables that do not exist, and add missing columns to those that this job fills.

    The job holds the leases of those. ``say`` gets a line about added columns, and one for each
    table that an earlier release did not have.
    """
    added, there = [], table_names(root)
    new = [each for each in DERIVED if each.name not in there and each.source.name in there]
    for name in there:
        table = TABLES[name] if name in FILLED else None
        columns = missing_columns(open_table(root, table), table) if table else []
        if columns:
            added.append(f"{name} gets {', '.join(columns)}")
    for name in FILLED:
        if name != QUALITY.name:
            ensure_table(root, TABLES[name])
    if store_of(root).is_table(QUALITY.name):
        ensure_table(root, QUALITY)
    else:
        begin_quality(root)
    if not store_of(root).is_table(POLICY_BACKTEST.name):
        with suppress(TableHeldError), fill_leases(root, tables=[POLICY_BACKTEST.name]):
            ensure_table(root, POLICY_BACKTEST)
    if added:
        say(
            f"{root} was written by an earlier release: {'; '.join(added)}. "
            "Existing rows have null there; headgate pipeline upgrade recomputes them."
        )
    for derived in new:
        # A job that was killed while it created the first tables left no rows.
        if followed(root, derived.source.name).files():
            say(
                f"{root} was written by an earlier release and lacks the table {derived.name}: "
                f"this job computes it from all rows of {derived.source.name}."
            )


@dataclass(frozen=True, slots=True)
class BronzeCounts:
    """How much telemetry a folder holds."""

    messages: int
    samples: int
    until_ns: int
    """End of the newest window, since the epoch; 0 without any."""

    def __str__(self) -> str:
        if not self.messages:
            return "no telemetry so far"
        return f"{self.messages:,} messages, {self.samples:,} rows, up to {instant(self.until_ns)}"


def bronze_counts(root: str) -> BronzeCounts:
    """How much telemetry the table ``bronze_samples`` holds, by its log alone."""
    files = followed_or_new(root, BRONZE_SAMPLES).files()
    messages = sum(file.rows for file in files if file.partition["kind"] == BATCH_KIND)
    last_ns = max((file.span_ns[1] for file in files), default=-1)
    return BronzeCounts(messages, sum(file.rows for file in files) - messages, last_ns + 1)
