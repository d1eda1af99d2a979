"""The Spark session, at the edge: how it is started, and what it needs from the machine."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from headgate.base.errors import InputError
from headgate.pipeline.delta_writer import HeadgateTables

_JVM_FLAGS: Final = "-XX:TieredStopAtLevel=1 -Xshare:auto -XX:+UseSerialGC"
"""For a short job the time to start counts more than the last bit of speed; measured as less
than half of the default start-up."""

_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": _JVM_FLAGS,
    # A failure reaches the caller as an exception; the log would say it again, in a page.
    "spark.log.level": "FATAL",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "2000",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "false",
}


def create_session(name: str, *, cores: int | None = None) -> SparkSession:
    """Start Spark on this machine, or take the session that is there (``spark-submit``).

    Raises:
        InputError: no Java is found.
    """
    active = SparkSession.getActiveSession()
    if active is None:
        _require_java()
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        _show_workers_the_way()
        builder = SparkSession.builder.appName(name)
        if "MASTER" not in os.environ:
            builder = builder.master(f"local[{cores or '*'}]")
        for key, value in _SETTINGS.items():
            builder = builder.config(key, value)
        active = builder.getOrCreate()
    return prepare_session(active)


def prepare_session(session: SparkSession) -> SparkSession:
    """Make a session that somebody else started fit for the pipeline."""
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.dataSource.register(HeadgateTables)
    return session


def _require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if home and Path(home, "bin", "java").exists():
        return
    if shutil.which("java") is None:
        raise InputError(
            "Spark needs Java 17 or newer and no java command was found; install a Java runtime "
            "or set JAVA_HOME"
        )


def _show_workers_the_way() -> None:
    """Let Spark's Python workers import what this process imports from a source tree."""
    here = str(Path(__file__).resolve().parents[2])
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if here not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join(path for path in (here, *paths) if path)
