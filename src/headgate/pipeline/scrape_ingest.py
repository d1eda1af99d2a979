"""The job that reads a folder of scrapes into the bronze tables, each file once.

The commit that appends the rows also stores how far a broker was read, as the version of the
application transaction ``scrapes:<broker>`` in milliseconds since the epoch. So a killed run
neither loses nor duplicates rows. Each broker is one Spark job, whose tasks share the files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.sql import SparkSession

from headgate.pipeline.scrapes.folder import (
    BrokerFolder,
    broker_folders,
    file_name,
    scrape_gaps,
    scrape_tasks,
)
from headgate.pipeline.scrapes.rows import scrape_source
from headgate.pipeline.session import prepare_session
from headgate.pipeline.store.delta_log import TableFile, ensure_table
from headgate.pipeline.store.delta_writer import FORMAT, SCRAPES
from headgate.pipeline.store.lock_tokens import writer_options
from headgate.pipeline.store.log_changes import followed_or_new
from headgate.pipeline.store.table_store import store_of
from headgate.pipeline.tables.bronze import BATCH_KIND, BRONZE_QUARANTINE, BRONZE_SAMPLES
from headgate.pipeline.tables.columns import Table
from headgate.pipeline.timed_folders import PARTS_PER_CORE, TASK_COLUMN


def ingest_scrapes(spark: SparkSession, folder: str, root: str) -> list[str]:
    """Append the new scrapes of a folder to the bronze tables under ``root``.

    Returns warnings, one a line.

    Raises:
        InputError: the folder cannot be read, or holds no scrapes.
    """
    prepare_session(spark)
    brokers = broker_folders(folder)
    read, refused = _read_before(root), _refused_before(root)
    for broker in brokers:
        source = scrape_source(broker.label)
        _ingest(spark, broker, root, read.get(source, set()) | refused.get(source, set()))
    return [*_warnings(brokers), *_refused(brokers, root)]


def _ingest(spark: SparkSession, broker: BrokerFolder, root: str, known: set[str]) -> None:
    """Append the scrapes of one broker. ``known``: the files that an earlier run read."""
    app_id = f"scrapes:{broker.label}"
    upto_ms = ensure_table(root, BRONZE_SAMPLES).transaction_version(app_id)
    cores = spark.sparkContext.defaultParallelism
    found = scrape_tasks(broker, upto_ms, known, PARTS_PER_CORE * cores)
    if not found:
        return
    rows = [(task.to_json(),) for task in found]
    read = found[-1].times_ms
    # Refused files do not advance the transaction; their quarantine rows make them known.
    mark = {"app_id": app_id, "app_version": str(read[-1])} if read else {}
    (
        spark.createDataFrame(rows, f"{TASK_COLUMN} string")
        .repartition(len(found))
        .write.format(FORMAT)
        .mode("append")
        .options(**writer_options(root))
        .option("table", SCRAPES)
        .options(**mark)
        .save()
    )


def _read_before(root: str) -> dict[str, set[str]]:
    """Names of the files that were read, by broker, from the rows of kind batch."""
    batches = [
        file
        for file in followed_or_new(root, BRONZE_SAMPLES).files()
        if file.partition["kind"] == BATCH_KIND
    ]
    found: dict[str, set[str]] = {}
    for source, seq in _values(root, BRONZE_SAMPLES, batches, "source", "seq"):
        found.setdefault(source, set()).add(file_name(seq))
    return found


def _refused_before(root: str) -> dict[str, set[str]]:
    """Names of the files that were not read, or not whole, by broker."""
    files = followed_or_new(root, BRONZE_QUARANTINE).files()
    found: dict[str, set[str]] = {}
    for source, name in _values(root, BRONZE_QUARANTINE, files, "message_topic", "message_id"):
        found.setdefault(source, set()).add(name)
    return found


def _values(
    root: str, table: Table, files: Iterable[TableFile], *names: str
) -> Iterator[tuple[Any, ...]]:
    """Some columns, row by row. The driver reads them, because both tables are small here.

    A filter of delta-rs would skip files without statistics of its column.
    """
    paths = [file.path for file in files]
    for rows in store_of(root).columns(table.name, paths, names):
        yield from zip(*(rows.column(name).to_pylist() for name in names), strict=True)


def _warnings(brokers: list[BrokerFolder]) -> list[str]:
    found = []
    for broker in brokers:
        if len(broker.times_ms) == 1:
            found.append(f"{broker.label} has one scrape: rows need a second one.")
        wide = list(scrape_gaps(broker))
        if wide:
            longest_s = max(after - before for before, after in wide) / 1_000
            found.append(
                f"{broker.label} has {len(wide):,} gaps of more than two minutes, which "
                f"give no rows; the longest is {longest_s:,.0f} s. Scrape every 15 to 60 s."
            )
    return found


def _refused(brokers: list[BrokerFolder], root: str) -> list[str]:
    found = []
    refused = _refused_before(root)
    for broker in brokers:
        names = len(refused.get(scrape_source(broker.label), ()))
        if names:
            found.append(
                f"{broker.label}: {names:,} of the files could not be read, or not all of their "
                f"lines; {BRONZE_QUARANTINE.name} says why."
            )
    return found
