"""The job that reads a folder of record files into the bronze tables, each file once.

Each commit that appends rows also stores how far a cluster's files were read, as the version of the
application transaction ``files:<cluster>`` in milliseconds since the epoch. A file's rows go to
several tables, each with its own commit; the next run gives a table the rows that it lacks. So a
killed run neither loses nor duplicates rows. Each cluster is one Spark job, whose tasks share the
files.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import SparkSession

from headgate.pipeline.record_files.folder import SOURCE_PREFIX, record_folders, record_tasks
from headgate.pipeline.session import prepare_session
from headgate.pipeline.store.delta_log import ensure_table
from headgate.pipeline.store.delta_writer import FORMAT, RECORDS
from headgate.pipeline.store.lock_tokens import writer_options
from headgate.pipeline.tables.bronze import BRONZE_EVENTS, BRONZE_QUARANTINE, BRONZE_SAMPLES
from headgate.pipeline.timed_folders import PARTS_PER_CORE, TASK_COLUMN, TimedFolder
from headgate.record.frames import FILE_SUFFIX

_FILES_PER_TASK: Final = 64
"""Fewer files than this are one task: starting one costs more than reading them."""


def ingest_record_files(spark: SparkSession, folder: str, root: str) -> list[str]:
    """Append the new files of a folder to the bronze tables under ``root``.

    Returns warnings, one a line.

    Raises:
        InputError: the folder cannot be read, or holds no records.
    """
    prepare_session(spark)
    folders = record_folders(folder)
    for each in folders:
        _ingest(spark, each, root)
    return [
        f"{each.label}: {len(each.wrong_names):,} of the files are not read, because their names "
        f"are not <milliseconds since 1970>{FILE_SUFFIX}."
        for each in folders
        if each.wrong_names
    ]


def _ingest(spark: SparkSession, folder: TimedFolder, root: str) -> None:
    app_id = f"{SOURCE_PREFIX}{folder.label}"
    # Every file gives rows of samples, so the other tables only matter if they are ahead.
    samples_ms = ensure_table(root, BRONZE_SAMPLES).transaction_version(app_id)
    upto_ms = {BRONZE_SAMPLES.name: samples_ms}
    for table in (BRONZE_EVENTS, BRONZE_QUARANTINE):
        own_ms = ensure_table(root, table).transaction_version(app_id)
        upto_ms[table.name] = max(
            (ms for ms in (own_ms, samples_ms) if ms is not None), default=None
        )
    new = sum(1 for ms in folder.times_ms if samples_ms is None or ms > samples_ms)
    parts = min(PARTS_PER_CORE * spark.sparkContext.defaultParallelism, -(-new // _FILES_PER_TASK))
    tasks = record_tasks(folder, upto_ms, parts)
    if not tasks:
        return
    (
        spark.createDataFrame([(task.to_json(),) for task in tasks], f"{TASK_COLUMN} string")
        .repartition(len(tasks))
        .write.format(FORMAT)
        .mode("append")
        .options(**writer_options(root))
        .option("table", RECORDS)
        .option("app_id", app_id)
        .option("app_version", str(tasks[-1].times_ms[-1]))
        .save()
    )
