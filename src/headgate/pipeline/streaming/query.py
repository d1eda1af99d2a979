"""The structured streaming query that appends telemetry to the bronze tables."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headgate.pipeline.cluster_identity import cluster_identities
from headgate.pipeline.location import local_url
from headgate.pipeline.options import SourceOptions
from headgate.pipeline.session import prepare_session
from headgate.pipeline.spark_sources import register_source
from headgate.pipeline.store.clustering import messages_by_hour
from headgate.pipeline.store.delta_writer import BRONZE, FORMAT
from headgate.pipeline.store.folder import checkpoint_id
from headgate.pipeline.store.lock_tokens import writer_options
from headgate.pipeline.streaming.continuation import prepare_continuation
from headgate.pipeline.streaming.telemetry_source import TELEMETRY_FORMAT, TelemetrySource

MESSAGE_COLUMNS: Final = ("value", "__topic", "__messageId", "__publishTime")
"""Columns of a message that ingestion reads."""

PASS_PATIENCE_MS: Final = 120_000
STREAM_PATIENCE_MS: Final = 3_600_000
"""How long a broker may be unreachable before the job fails. It is shorter for ``attribute``,
because a user waits for it."""

BATCH_BYTES_MAX: Final = 256 << 20
"""Most stored bytes of telemetry in one batch. A first read finds days of it, up to 1 GiB of each
broker. A killed job repeats at most its last batch."""

LAST_BATCH_S: Final = 30.0
"""How long a stop waits for the running batch."""


def telemetry_messages(
    spark: SparkSession,
    source: SourceOptions,
    patience_ms: int = PASS_PATIENCE_MS,
    say: Callable[[str], None] = lambda _: None,
) -> DataFrame:
    """The telemetry topics of all brokers as one stream of messages, each from where it was read
    last, or from the earliest message.

    It prepares the checkpoint for these brokers, so the tables must be there, and the caller holds
    the leases of the tables. A batch has about :data:`BATCH_BYTES_MAX`, of all brokers together.
    ``say`` gets remarks.

    Raises:
        InputError: a broker does not answer, or as :func:`prepare_continuation`.
    """
    continuation = prepare_continuation(source, cluster_identities(source), say)
    shared = {
        "pollTimeoutMs": str(patience_ms),
        "failOnDataLoss": str(source.fail_on_data_loss).lower(),
        "maxBytesPerTrigger": str(max(1, BATCH_BYTES_MAX // len(source.broker_urls))),
        "columns": ",".join(MESSAGE_COLUMNS),
    }
    brokers = [
        source.source_options(broker_url, web_url) | shared
        for broker_url, web_url in zip(source.broker_urls, source.web_urls, strict=True)
    ]
    register_source(spark, TelemetrySource)
    return (
        spark.readStream.format(TELEMETRY_FORMAT)
        .option("brokers", json.dumps(brokers))
        .option("starts", json.dumps(continuation.starts))
        .option("absent", json.dumps(continuation.absent))
        .load()
        .select(*MESSAGE_COLUMNS)
    )


def ingest_batch(messages: DataFrame, batch_id: int, root: str, checkpoint: str) -> None:
    """Append one micro-batch of messages to the bronze tables, once."""
    prepare_session(messages.sparkSession)
    (
        messages_by_hour(messages)
        .write.format(FORMAT)
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

    writer = messages.writeStream.foreachBatch(process).option(
        "checkpointLocation", local_url(checkpoint)
    )
    if trigger_s is None:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{int(trigger_s * 1_000)} milliseconds")
    return writer.start()


def run_until(
    query: StreamingQuery,
    should_stop: Callable[[], bool],
    *,
    between: Callable[[], None] = lambda: None,
    poll_s: float = 1.0,
    last_batch_s: float = LAST_BATCH_S,
) -> None:
    """Let a query run until it ends or ``should_stop`` returns True, and stop it.

    ``between`` is called while no batch runs. A batch that runs at the end may finish, because the
    next run would repeat an interrupted one.

    Raises:
        StreamingQueryException: the query failed.
    """
    try:
        while not should_stop() and not query.awaitTermination(poll_s):
            if not query.status["isTriggerActive"]:
                between()
        deadline_s = time.monotonic() + last_batch_s
        while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline_s:
            time.sleep(0.05)
    finally:
        query.stop()
