"""The Spark session: its settings and its start."""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Final, Protocol

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from headgate.base.errors import InputError
from headgate.base.memory_limit import memory_limit_bytes
from headgate.pipeline.failures import PipelineError
from headgate.pipeline.one_task import ONE_TASK_ROWS_MAX, one_task
from headgate.pipeline.source.data_source import HeadgateTables
from headgate.pipeline.spark_failures import start_failure
from headgate.pipeline.spark_options import (
    DEFAULTS,
    SHUFFLE_PARTITIONS,
    SparkOptions,
    check_no_connect,
    machine_settings,
    shuffle_partitions,
)
from headgate.pipeline.spark_sources import register_source
from headgate.pipeline.store.folder import open_log

_LONG_JVM_FLAGS: Final = "-Xshare:auto -XX:+UseSerialGC"
_JVM_FLAGS: Final = f"-XX:TieredStopAtLevel=1 {_LONG_JVM_FLAGS}"
"""A short job gains more from a fast start, which takes less than half of the default time. A long
job gains more from the full compiler: rows go between Java and Python twice as fast."""

_BATCH_BYTES: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
_BYTES_NOT_COUNTED: Final = (1 << 31) - 1
"""Spark's value for no limit."""

WORKER_DAEMON: Final = {"spark.python.daemon.module": "headgate.pipeline.worker_daemon"}
"""The daemon of Python workers on this machine. A cluster's machines may lack the module."""

WORKER_PATH: Final = str(Path(__file__).resolve().parent / "worker_path")
"""A folder on the path of the Python workers, which makes them start faster."""

_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""Variable that ``spark-submit`` sets: its Java process runs, and has the cluster's settings."""

_ONE_PROCESS: Final = re.compile(r"local(\[[^]]*\])?")
"""Values of ``MASTER`` with which Spark is one Java process."""

_CLOSED_PORTS: Final = {"spark.authenticate": "true"}
"""Java listens on ports of this machine, and gives whoever asks there the code and the rows of
tasks, which may have credentials. With this it makes a secret for each run, and gives nothing
without it. On a cluster, its operator has to set one."""

_QUERY_SETTINGS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "2000",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "false",
    # Spark brings the smaller side of a join into the driver if its files are small. But they are
    # compressed, with a hundred columns of which a join needs six. So it joins by the size that the
    # rows have after their shuffle.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "10m",
    # The options of the brokers may have a token: no text of a plan shows them.
    "spark.sql.redaction.options.regex": "(?i)url|auth|brokers",
}
"""Settings that queries are tuned to, or safe with. A cluster's own value of one takes precedence.
"""

_SETTINGS: Final = _QUERY_SETTINGS | {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Without these two, a seventh of the CPU time of a small refresh writes texts of plans for the
    # page, and tells Java the source line of every call that builds a plan.
    "spark.sql.ui.explainMode": "simple",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": _JVM_FLAGS,
    # A failure reaches the caller as an exception; the log would repeat it on a page.
    "spark.log.level": "FATAL",
}


def create_session(
    name: str,
    *,
    options: SparkOptions = DEFAULTS,
    log_path: Path | None = None,
    is_long: bool = False,
) -> SparkSession:
    """Start Spark on this machine, or take an existing session or ``spark-submit``'s cluster.

    The output of Java and of the Python workers goes to the file ``log_path``, which is emptied
    first; without one, to the output of this process. ``is_long``: the start is slower, and the job
    is faster from the second minute on.

    Raises:
        InputError: no Java is found, only ``spark-submit`` can set what ``options`` say, or a
            variable asks for Spark Connect.
        PipelineError: Java did not start, or Spark refuses a setting.
    """
    check_no_connect(os.environ)
    session = _existing_session()
    if session is None and _SUBMITTED in os.environ:
        options.check_submitted()
        session = _submitted_session(name, options.settings())
    if session is None:
        require_java(os.environ.get("JAVA_HOME"), shutil.which("java"))
        os.environ.update(python_variables(os.environ))
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        _extend_python_path()
        conf = SparkConf().setAppName(name)
        conf.setAll(list(started_settings(options, os.environ, is_long=is_long).items()))
        with deferred_signals():
            gateway = start_java(conf, log_path)
        with kept_interrupt_handler():
            SparkContext(conf=conf, gateway=gateway)
        session = SparkSession.builder.getOrCreate()
    return prepare_session(session)


def _existing_session() -> SparkSession | None:
    """The process's session, if Spark runs in it.

    The active session need not be that: after a batch of a stream Python may take for active the
    copy in which the batch ran, with the sources and settings of that stream.
    """
    if SparkSession.getActiveSession() is None:
        return None
    return SparkSession.builder.getOrCreate()


def started_settings(
    options: SparkOptions, environment: Mapping[str, str], *, is_long: bool
) -> dict[str, str]:
    """The settings of a session that this process starts, those of ``options`` last."""
    settings = dict(_SETTINGS)
    if is_on_this_machine(environment):
        cores = options.cores or len(os.sched_getaffinity(0))
        settings |= WORKER_DAEMON | machine_settings(cores, _memory_bytes())
    if _ONE_PROCESS.fullmatch(environment.get("MASTER", "local")):
        settings |= _CLOSED_PORTS
    if is_long:
        settings["spark.driver.extraJavaOptions"] = _LONG_JVM_FLAGS
    if "MASTER" not in environment:
        settings["spark.master"] = f"local[{options.cores or '*'}]"
    if options.driver_memory is not None:
        settings["spark.driver.memory"] = options.driver_memory
    return settings | options.settings()


def _memory_bytes() -> int:
    """The memory that this process and those that it starts may use."""
    physical_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return memory_limit_bytes(0, physical_bytes, _text_of)


def _text_of(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError:
        return None


def is_on_this_machine(environment: Mapping[str, str]) -> bool:
    """Whether Spark's workers run on this machine, by the variable ``MASTER``."""
    return environment.get("MASTER", "local").startswith("local")


def python_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that choose the Python of Spark's workers, if they must be set.

    On this machine they choose the Python that runs here, whatever the shell has set for
    ``spark-submit``: ``PYSPARK_PYTHON=./environment/bin/python`` is a path on a cluster's machines,
    and ``PYSPARK_DRIVER_PYTHON=jupyter`` cannot run a worker. A cluster keeps its own.

    Workers here import nothing from the folder in which the command was started: in one such as
    ``/tmp``, files of other users could stand for Python's own modules.
    """
    if is_on_this_machine(environment):
        chosen = dict.fromkeys(("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"), sys.executable)
        return {**chosen, "PYTHONSAFEPATH": "1"}
    return {} if "PYSPARK_PYTHON" in environment else {"PYSPARK_PYTHON": sys.executable}


def _submitted_session(name: str, settings: Mapping[str, str]) -> SparkSession:
    builder = SparkSession.builder.appName(name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    for key, value in open_settings(session.sparkContext.getConf().contains).items():
        session.conf.set(key, value)
    return session


def open_settings(is_given: Callable[[str], bool]) -> dict[str, str]:
    """The settings for a session of ``spark-submit``: only those that its caller did not set.

    The number of shuffle partitions stays the cluster's, which fits its size.
    """
    return {key: value for key, value in _QUERY_SETTINGS.items() if not is_given(key)}


def start_java(conf: SparkConf, log_path: Path | None) -> Any:
    """Start Spark's Java process and return the gateway to it.

    Java gets its own operating-system session, so that Ctrl-C reaches only Python, which then stops
    in order. When Python has ended, Java ends, too.
    """
    if log_path is None:
        return launch_gateway(conf, {"start_new_session": True})
    with open_log(log_path) as log:
        log.truncate(0)
        try:
            gateway = launch_gateway(
                conf, {"stdout": log, "stderr": log, "start_new_session": True}
            )
        except PySparkRuntimeError as error:
            raise PipelineError(start_failure(log_path.read_text(errors="replace"))) from error
    # py4j logs each interrupted call to the root logger, with its traceback.
    log_lines = TextIOWrapper(open_log(log_path), "utf-8", "backslashreplace")
    logging.getLogger().addHandler(logging.StreamHandler(log_lines))
    return gateway


@contextmanager
def deferred_signals() -> Iterator[None]:
    """Defer signals: an interrupted start would leave its Java process running."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    handlers = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        signal.signal(number, lambda number, _: received.append(number))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if received:
        signal.raise_signal(signal.Signals(received[0]))


@contextmanager
def kept_interrupt_handler() -> Iterator[None]:
    """Restore the handler of Ctrl-C, which Spark replaces when it starts."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, handler)


def prepare_session(session: SparkSession) -> SparkSession:
    """Give a session that was started elsewhere the pipeline's settings."""
    session.conf.set("spark.sql.session.timeZone", "UTC")
    register_source(session, HeadgateTables)
    return session


class InputFile(Protocol):
    """What the size of the work follows from."""

    @property
    def rows(self) -> int:
        """Its number of rows."""

    @property
    def size_bytes(self) -> int:
        """Its size."""


@contextmanager
def sized_for(session: SparkSession, files: Collection[InputFile]) -> Iterator[None]:
    """In the context, Spark works as these files need: few rows are one task, and shuffles of a
    large input have more partitions.

    A number of partitions that the user set, or a cluster, stays.
    """
    before, context = session.conf.get(SHUFFLE_PARTITIONS), session.sparkContext
    cores = context.defaultParallelism
    if not context.master.startswith("local") or before != str(shuffle_partitions(cores, 0)):
        yield
        return
    if sum(file.rows for file in files) <= ONE_TASK_ROWS_MAX:
        with one_task(session):
            yield
        return
    input_bytes = sum(file.size_bytes for file in files)
    session.conf.set(SHUFFLE_PARTITIONS, str(shuffle_partitions(cores, input_bytes)))
    try:
        yield
    finally:
        session.conf.set(SHUFFLE_PARTITIONS, before)


@contextmanager
def batches_by_count(session: SparkSession) -> Iterator[None]:
    """In the context, bound the batches that go to Python by rows only; for small rows.

    Otherwise Spark computes the size of every column after each row, which takes a third of the
    time with sixty columns.
    """
    before = session.conf.get(_BATCH_BYTES)
    session.conf.set(_BATCH_BYTES, str(_BYTES_NOT_COUNTED))
    try:
        yield
    finally:
        session.conf.set(_BATCH_BYTES, before)


def require_java(java_home: str | None, command: str | None) -> None:
    """Check that Spark will find a Java; ``command`` is the ``java`` of the PATH, or None.

    Raises:
        InputError: there is none.
    """
    if java_home:
        if not Path(java_home, "bin", "java").exists():
            raise InputError(
                f"Spark needs Java 17 or newer, and JAVA_HOME={java_home} has no bin/java; set it "
                "to a Java runtime, or unset it to use the java command"
            )
    elif command is None:
        raise InputError(
            "Spark needs Java 17 or newer and no java command was found; install a Java runtime "
            "or set JAVA_HOME"
        )


def _extend_python_path() -> None:
    """Let Spark's Python workers import what this process imports from a source tree, and PySpark
    from its package."""
    wanted = (str(Path(__file__).resolve().parents[2]), WORKER_PATH)
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    added = [path for path in wanted if path not in paths]
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in (*added, *paths) if path)
