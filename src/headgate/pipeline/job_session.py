"""The session of a job: brokers are checked, leases are taken, then Spark starts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headgate.pipeline.failures import PipelineError
from headgate.pipeline.location import resolved_root
from headgate.pipeline.options import SourceOptions
from headgate.pipeline.preflight import check_brokers
from headgate.pipeline.progress import Progress
from headgate.pipeline.session import create_session
from headgate.pipeline.single_source import check_single_source
from headgate.pipeline.spark_failures import reason_of
from headgate.pipeline.spark_options import SparkOptions
from headgate.pipeline.store.folder import log_folder, open_log, spark_log_path, work_folder
from headgate.pipeline.store.scan import existing_tables
from headgate.pipeline.store.storage_failures import STORAGE_FAILURES, storage_reason
from headgate.pipeline.store.table_leases import fill_leases


@contextmanager
def plain_errors(log_path: Path) -> Iterator[None]:
    """Turn a failure of Spark, Delta or the disk into one sentence; the log has the full text.

    Raises:
        PipelineError: with that sentence.
    """
    try:
        yield
    except (PySparkException, *STORAGE_FAILURES) as error:
        is_of_spark = isinstance(error, PySparkException)
        reason = reason_of(str(error)) if is_of_spark else storage_reason(error)
        with suppress(OSError):  # the disk may be full, which may be the reason
            with open_log(log_path) as log:
                log.write(f"{error}\n".encode(errors="backslashreplace"))
            reason += f" (all of it: {log_path})"
        raise PipelineError(reason) from error


@contextmanager
def filling_session(
    root: str, table: str, name: str, progress: Progress, options: SparkOptions
) -> Iterator[SparkSession]:
    """A session over a folder, for a job that fills one table and reads the others.

    Raises:
        InputError: as :func:`query_session`, or another job fills that table.
        PipelineError: the job failed in Spark.
    """
    existing_tables(root)
    with (
        fill_leases(root, progress.say, tables=[table]),
        query_session(root, name, progress, options) as spark,
    ):
        yield spark


@contextmanager
def query_session(
    root: str, name: str, progress: Progress, options: SparkOptions
) -> Iterator[SparkSession]:
    """A session over a folder that the job only reads, without a lease.

    Raises:
        InputError: no Java is there, or the folder has no tables.
        PipelineError: the job failed in Spark.
    """
    existing_tables(root)
    with log_folder(root) as folder:
        log_path = Path(folder, f"_spark-{name.rsplit(' ', 1)[-1]}.log")
        with plain_errors(log_path):
            with progress.stage("Starting Spark"):
                spark = create_session(name, options=options, log_path=log_path)
            yield spark


@contextmanager
def ingest_session(
    source: SourceOptions,
    brokers: SourceOptions | None,
    name: str,
    progress: Progress,
    *,
    is_long: bool = False,
) -> Iterator[SparkSession]:
    """A session that reads telemetry into a folder, under the leases of the tables that it fills.

    ``brokers``: options whose brokers are checked first; None: none. ``is_long``: see
    :func:`headgate.pipeline.session.create_session`.

    Raises:
        InputError: the folder cannot be used, or is filled from another source, or the job has no
            folder for its own files.
        PipelineError: the job failed in Spark.
    """
    root = resolved_root(source.out)
    own = work_folder(source)
    if brokers is not None:
        # Before any folder is created, so that a failure leaves none behind.
        with progress.stage("Checking the brokers"):
            check_brokers(brokers)
    with (
        fill_leases(root, progress.say),
        log_folder(root if own is None else own) as folder,
        plain_errors(spark_log_path(folder)),
    ):
        check_single_source(root, is_about_scrapes=source.scrapes is not None)
        with progress.stage("Starting Spark"):
            spark = create_session(
                name, options=source.spark, log_path=spark_log_path(folder), is_long=is_long
            )
        yield spark
