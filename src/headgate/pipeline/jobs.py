"""The jobs that read telemetry: ``headgate pipeline run``, ``attribute`` and ``stream``.

Session, topics, folder and clock meet here and in ``answers``, the jobs over a folder alone. All
jobs here are one structured streaming query with a checkpoint in the folder, so each goes on
where another stopped; they differ in the trigger and in what they do then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from datetime import date
from functools import reduce
from pathlib import Path
from typing import Any, Final, TextIO

from deltalake.exceptions import DeltaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headgate.base.clock import SystemClock
from headgate.base.units import INT64_MAX
from headgate.pipeline.derived.catalogue import DERIVED
from headgate.pipeline.failures import PipelineError, reason_of
from headgate.pipeline.options import AttributeOptions, SourceOptions, StreamOptions
from headgate.pipeline.output.attribution import (
    messages_text,
    subscriptions_text,
    topics_text,
    write_judgements,
)
from headgate.pipeline.output.producers import write_producers
from headgate.pipeline.preflight import check_brokers
from headgate.pipeline.progress import Progress
from headgate.pipeline.refresh import recompute, refresh
from headgate.pipeline.scrapes.folder import broker_folders
from headgate.pipeline.scrapes.ingest import ingest_scrapes
from headgate.pipeline.scrapes.mixture import refuse_mixture
from headgate.pipeline.session import batches_by_count, create_session, prepare_session
from headgate.pipeline.steps import attribution, publishing
from headgate.pipeline.store.delta_log import (
    ensure_table,
    missing_columns,
    opened_table,
    table_files,
)
from headgate.pipeline.store.delta_writer import BRONZE, FORMAT
from headgate.pipeline.store.folder import (
    checkpoint_id,
    checkpoint_path,
    folder_lock,
    log_folder,
    spark_log_path,
    work_folder,
)
from headgate.pipeline.store.housekeeping.compact import table_names
from headgate.pipeline.store.location import resolved_root
from headgate.pipeline.store.lock_tokens import writer_options
from headgate.pipeline.store.scan import TableScan, existing_tables
from headgate.pipeline.store.spark_reader import read_files
from headgate.pipeline.streaming.gaps import TelemetryGaps
from headgate.pipeline.streaming.listener import listening
from headgate.pipeline.streaming.metrics import StreamMetrics, served_metrics
from headgate.pipeline.streaming.refresh_pace import StreamTables
from headgate.pipeline.tables.attribution import DEMONSTRATED_LOOK_BACK_NS
from headgate.pipeline.tables.bronze import BATCH_KIND, BRONZE_QUARANTINE, BRONZE_SAMPLES
from headgate.pipeline.tables.catalogue import TABLES
from headgate.pipeline.tables.columns import HOUR_NS, MINUTE_NS
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.time_span import Span, instant, parse_span
from headgate.record.fields import Kind

MESSAGE_COLUMNS: Final = ("value", "__topic", "__messageId", "__publishTime")
"""Columns of ``format("pulsar")`` that ingestion reads."""

PASS_PATIENCE_MS: Final = 120_000
STREAM_PATIENCE_MS: Final = 3_600_000
"""How long a broker may be gone in the middle of a job before the job gives up: somebody waits
for ``attribute``, nobody for ``stream``."""

BATCH_BYTES_MAX: Final = 256 << 20
"""Most telemetry, as it is stored, in one batch. A first read finds days of it, up to 1 GiB of each
broker, and a job that is killed does no more than its last batch again."""

_LAST_BATCH_S: Final = 30.0
"""How long a stream that is told to stop waits for the batch that runs."""


@contextmanager
def _plain_errors(log_path: Path) -> Iterator[None]:
    """Turn an engine's page of stack traces into one sentence; the page goes to the log.

    What the disk refuses under the tables is no bug either, and told the same way.
    """
    try:
        yield
    except (PySparkException, DeltaError, OSError) as error:
        reason = reason_of(str(error))
        with suppress(OSError):  # a full disk, perhaps the very reason
            with log_path.open("a", encoding="utf-8") as log:
                log.write(f"{error}\n")
            reason += f" (all of it: {log_path})"
        raise PipelineError(reason) from error


def telemetry_messages(
    spark: SparkSession, source: SourceOptions, patience_ms: int = PASS_PATIENCE_MS
) -> DataFrame:
    """The telemetry topics of all brokers as one stream of messages, from the earliest on.

    A batch has about :data:`BATCH_BYTES_MAX` of them all together.
    """
    frames = [
        spark.readStream.format("pulsar")
        .options(**source.source_options(broker_url, web_url))
        .option("pollTimeoutMs", str(patience_ms))
        .option("startingOffsets", "earliest")
        .option("failOnDataLoss", str(source.fail_on_data_loss).lower())
        .option("maxBytesPerTrigger", str(max(1, BATCH_BYTES_MAX // len(source.broker_urls))))
        .option("columns", ",".join(MESSAGE_COLUMNS))
        .load()
        for broker_url, web_url in zip(source.broker_urls, source.web_urls, strict=True)
    ]
    return reduce(DataFrame.union, frames).select(*MESSAGE_COLUMNS)


def ingest_batch(messages: DataFrame, batch_id: int, root: str, checkpoint: str) -> None:
    """Append one micro-batch of messages to the bronze tables, once."""
    prepare_session(messages.sparkSession)
    (
        messages.write.format(FORMAT)
        .mode("append")
        .options(**writer_options(root))
        .option("table", BRONZE)
        .option("app_id", checkpoint_id(checkpoint))
        .option("app_version", str(batch_id))
        .save()
    )


def start_query(
    messages: DataFrame,
    root: str,
    checkpoint: str,
    *,
    trigger_s: float | None,
    after: Callable[[SparkSession, int], None] | None = None,
) -> StreamingQuery:
    """Start ingestion; without ``trigger_s`` it ends when what is there now has been read.

    ``after`` is called with the session and the batch's number when bronze has a batch.
    """

    def process(batch: DataFrame, batch_id: int) -> None:
        ingest_batch(batch, batch_id, root, checkpoint)
        if after is not None:
            after(batch.sparkSession, batch_id)

    writer = messages.writeStream.foreachBatch(process).option("checkpointLocation", checkpoint)
    if trigger_s is None:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{int(trigger_s * 1_000)} milliseconds")
    return writer.start()


def judge_range(
    spark: SparkSession, root: str, since_ns: int | None, until_ns: int | None
) -> list[dict[str, Any]]:
    """Judge every subscription over a range of the table ``intervals``."""
    return _judged_range(
        spark, root, since_ns, until_ns, attribution.range_judgements,
        columns=attribution.MINUTE_COLUMNS, kinds=(Kind.SUBSCRIPTION,),
        look_back_ns=DEMONSTRATED_LOOK_BACK_NS,
    )  # fmt: skip


def judge_producers(
    spark: SparkSession, root: str, since_ns: int | None, until_ns: int | None
) -> list[dict[str, Any]]:
    """Say of every topic what held its producers over a range of the table ``intervals``."""
    return _judged_range(
        spark, root, since_ns, until_ns, publishing.publish_judgements,
        columns=publishing.MINUTE_COLUMNS, kinds=(Kind.TOPIC, Kind.LIMITER),
        look_back_ns=MINUTE_NS,
    )  # fmt: skip


def _judged_range(
    spark: SparkSession,
    root: str,
    since_ns: int | None,
    until_ns: int | None,
    step: Callable[[DataFrame, int, int], DataFrame],
    *,
    columns: Collection[str],
    kinds: Collection[Kind],
    look_back_ns: int,
) -> list[dict[str, Any]]:
    """Rows of ``step`` over the files of ``intervals`` that a range needs, of some kinds."""
    first = 0 if since_ns is None else since_ns
    last = INT64_MAX if until_ns is None else until_ns
    wanted = {kind.value for kind in kinds}
    files = [
        file
        for file in table_files(opened_table(root, INTERVALS))
        if file.partition["kind"] in wanted
        and (first - look_back_ns) // HOUR_NS <= file.hour <= last // HOUR_NS
    ]
    if not files:
        return []
    minutes = read_files(spark, root, INTERVALS, files, columns)
    with batches_by_count(spark):
        rows = step(minutes, first, last).toArrow()
    found: list[dict[str, Any]] = rows.to_pylist()
    return found


def run_once(
    source: SourceOptions,
    err: TextIO,
    *,
    anew: tuple[date, date] | None = None,
    messages: Callable[[SparkSession], DataFrame] | None = None,
) -> None:
    """Read what the topics or a folder of scrapes hold now and bring all tables up to date.

    Days from the first to the last of ``anew`` (UTC) are computed anew in every derived table.
    Progress goes to ``err``. ``messages`` replaces the topics, for tests.

    Raises:
        InputError: no Java is there, the folder cannot be used, or a broker does not answer.
        PipelineError: a topic or broker cannot be read, or a table cannot be written.
    """
    root, progress = resolved_root(source.out), Progress(err)
    asked = _asked(source, messages)
    with _opened(source, asked, "headgate pipeline run", progress) as spark:
        _bring_up_to_date(spark, source, messages, root, progress)
        if anew is not None:
            with progress.stage(f"Computing {anew[0]} to {anew[1]} anew") as stage:
                remarks = recompute(spark, root, *anew, stage.at)
            for remark in remarks:
                progress.say(remark)


def run_attribute(
    options: AttributeOptions,
    out: TextIO,
    err: TextIO,
    *,
    messages: Callable[[SparkSession], DataFrame] | None = None,
) -> list[dict[str, Any]]:
    """Judge the range; before, read what the topics or a folder of scrapes hold now and bring the
    tables up to date.

    Judgements alone go to ``out``, progress to ``err``. ``messages`` replaces the topics, for
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
        with _opened(source, _asked(source, messages), name, progress) as spark:
            _bring_up_to_date(spark, source, messages, root, progress)
            rows = _judged(spark, root, span, options, progress)
    else:
        existing_tables(root)
        TableScan(root, INTERVALS.name)  # raises where there is nothing to judge
        with opened_folder(root, name, progress) as spark:
            rows = _judged(spark, root, span, options, progress)
    remark = _range_remark(root, span, min((row["from_ns"] for row in rows), default=None))
    if remark:
        progress.say(remark)
    write = write_producers if options.is_about_producers else write_judgements
    write(rows, options.format, out, width=options.width, color=options.color)
    return rows


def _range_remark(root: str, asked: Span, begins_ns: int | None) -> str:
    """What is to be said where the tables do not have all of a range; ``begins_ns``: from when on
    they have it, None: they have nothing of it."""
    if begins_ns is None:
        have = TableScan(root, INTERVALS.name).span()
        if have is None or have.since_ns is None or have.until_ns is None:
            return "There is no telemetry so far."
        return (
            f"There is telemetry from {instant(have.since_ns)} to {instant(have.until_ns)} alone."
        )
    if asked.since_ns is not None and begins_ns > asked.since_ns + MINUTE_NS:
        return f"There is telemetry of this range only from {instant(begins_ns)} on."
    return ""


def _bring_up_to_date(
    spark: SparkSession,
    source: SourceOptions,
    messages: Callable[[SparkSession], DataFrame] | None,
    root: str,
    progress: Progress,
) -> None:
    remarks: list[str] = []
    _create_tables(root, progress)
    with progress.stage(f"Reading telemetry into {root}") as stage:
        if source.scrapes is not None:
            remarks = ingest_scrapes(spark, source.scrapes, root)
        else:
            missing = TelemetryGaps(root)
            frame = _stream(spark, source, messages)
            start_query(frame, root, checkpoint_path(source), trigger_s=None).awaitTermination()
            remarks = missing.news()
        stage.result = _bronze_text(root)
    for remark in remarks:
        progress.say(remark)
    for table in DERIVED:
        with progress.stage(f"Computing {table.name}") as stage:
            refresh(spark, root, table, stage.at)
    quarantined = TableScan(root, BRONZE_QUARANTINE.name).row_count
    if quarantined:
        progress.say(
            f"{messages_text(quarantined)} in quarantine, as no telemetry that this version reads: "
            f"headgate pipeline show {BRONZE_QUARANTINE.name} --out {source.out}"
        )


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
    """Keep the tables up to date until the process is interrupted or ``should_stop`` says so.

    While it catches up, derived tables follow now and then (``streaming.refresh_pace``).
    Every batch is one line on ``err``, and its figures are the metrics that are served where
    ``options`` say so. ``messages`` replaces the topics, for tests.

    Raises:
        InputError: no Java is there, the folder or the port cannot be used, or a broker does not
            answer.
        PipelineError: a topic or broker cannot be read, or a table cannot be written.
    """
    source, root = options.source, resolved_root(options.source.out)
    progress = Progress(err)
    metrics, name = StreamMetrics(SystemClock.wall_ns), "headgate pipeline stream"
    tables = StreamTables(root, metrics)
    with (
        served_metrics(metrics, options, progress),
        _opened(source, _asked(source, messages), name, progress, is_long=True) as spark,
    ):
        frame = _stream(spark, source, messages, STREAM_PATIENCE_MS)
        _create_tables(root, progress)
        with progress.stage(f"Bringing {root} up to date") as stage:
            # A run that was killed may have left bronze rows that nothing is derived from yet.
            tables.bring_up_to_date(spark)
            stage.result = _bronze_text(root)
        missing = TelemetryGaps(root)

        def after(session: SparkSession, _: int) -> None:
            for remark in missing.news():
                progress.say(remark)
            tables.after_batch(session)

        with listening(spark, metrics, progress):
            query = start_query(
                frame, root, checkpoint_path(source), trigger_s=options.trigger_s, after=after
            )
            try:
                while not should_stop() and not query.awaitTermination(1):
                    if not query.status["isTriggerActive"]:
                        tables.between_batches(spark)
                _await_idle(query)
            finally:
                query.stop()
        tables.between_batches(spark)
    progress.say("Stopped; the next run continues from here.")


@contextmanager
def locked_folder(root: str, name: str, progress: Progress) -> Iterator[SparkSession]:
    """As :func:`opened_folder`, for who writes a table: while nobody else has the folder."""
    existing_tables(root)
    with folder_lock(root, progress.say), opened_folder(root, name, progress) as spark:
        yield spark


@contextmanager
def opened_folder(root: str, name: str, progress: Progress) -> Iterator[SparkSession]:
    """A session over a folder that is only read, so that it needs no lock.

    Raises:
        InputError: no Java is there, or the folder has no tables.
        PipelineError: the job failed in Spark.
    """
    existing_tables(root)
    with log_folder(root) as folder:
        log_path = Path(folder, f"_spark-{name.rsplit(' ', 1)[-1]}.log")
        with _plain_errors(log_path):
            with progress.stage("Starting Spark"):
                spark = create_session(name, log_path=log_path)
            yield spark


@contextmanager
def _opened(
    source: SourceOptions,
    asked: SourceOptions | None,
    name: str,
    progress: Progress,
    *,
    is_long: bool = False,
) -> Iterator[SparkSession]:
    """The session, while nobody else has the folder; the brokers are asked before, if any.

    Raises:
        InputError: the folder cannot be used, or is filled from elsewhere, or the job has none for
            its own files.
    """
    root = resolved_root(source.out)
    own = work_folder(source)
    if asked is not None:
        # Before anything is made: what fails here leaves no folder behind.
        with progress.stage("Asking the brokers"):
            check_brokers(asked)
    with (
        folder_lock(root, progress.say),
        log_folder(root if own is None else own) as folder,
        _plain_errors(spark_log_path(folder)),
    ):
        refuse_mixture(root, is_about_scrapes=source.scrapes is not None)
        with progress.stage("Starting Spark"):
            spark = create_session(name, log_path=spark_log_path(folder), is_long=is_long)
        yield spark


def _asked(
    source: SourceOptions, messages: Callable[[SparkSession], DataFrame] | None
) -> SourceOptions | None:
    """Whom to ask before Spark starts, when it is about brokers.

    Raises:
        InputError: it is about a folder of scrapes, and that is none.
    """
    if source.scrapes is not None:
        broker_folders(source.scrapes)
    return source if messages is None and source.scrapes is None else None


def _stream(
    spark: SparkSession,
    source: SourceOptions,
    messages: Callable[[SparkSession], DataFrame] | None,
    patience_ms: int = PASS_PATIENCE_MS,
) -> DataFrame:
    return telemetry_messages(spark, source, patience_ms) if messages is None else messages(spark)


def _await_idle(query: StreamingQuery) -> None:
    """Let the batch that runs come to its end: to interrupt it would only have it done again."""
    deadline_s = time.monotonic() + _LAST_BATCH_S
    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline_s:
        time.sleep(0.05)


def _create_tables(root: str, progress: Progress) -> None:
    """Make the tables that are not there; those of an earlier release get what this one has."""
    told = []
    for name in table_names(root):
        table = TABLES.get(name)
        columns = missing_columns(opened_table(root, table), table) if table else []
        if columns:
            told.append(f"{name} gets {', '.join(columns)}")
    for table in TABLES.values():
        ensure_table(root, table)
    if told:
        progress.say(
            f"{root} is of an earlier release: {'; '.join(told)}. Rows that are there have null."
        )


def _bronze_text(root: str) -> str:
    """How much telemetry the folder holds, and up to when."""
    files = table_files(ensure_table(root, BRONZE_SAMPLES))
    received = sum(file.rows for file in files if file.partition["kind"] == BATCH_KIND)
    rows = sum(file.rows for file in files) - received
    if not received:
        return "no telemetry so far"
    last_ns = max(file.span_ns[1] for file in files) + 1
    return f"{received:,} messages, {rows:,} rows, up to {instant(last_ns)}"
