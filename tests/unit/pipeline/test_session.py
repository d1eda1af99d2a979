"""Java, signals and settings of the Spark session. Starts no Spark."""

from __future__ import annotations

import gc
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark import SparkConf

from headgate.base.errors import InputError
from headgate.pipeline.failures import PipelineError
from headgate.pipeline.one_task import ONE_TASK_ROWS_MAX, is_one_task
from headgate.pipeline.session import (
    batches_by_count,
    deferred_signals,
    kept_interrupt_handler,
    open_settings,
    python_variables,
    require_java,
    sized_for,
    start_java,
    started_settings,
)
from headgate.pipeline.spark_options import SparkOptions


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def make_java(home: Path, words: str) -> None:
    """A Java that says something and fails."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{words}' >&2\nexit 1\n")
    java.chmod(0o755)


def test_java_is_searched_where_spark_searches(tmp_path: Path) -> None:
    require_java(None, "/usr/bin/java")
    require_java("", "/usr/bin/java")
    with pytest.raises(InputError, match="no java command was found"):
        require_java(None, None)
    # Spark takes JAVA_HOME without a look at the PATH.
    with pytest.raises(InputError, match=f"JAVA_HOME={tmp_path} has no bin/java"):
        require_java(str(tmp_path), "/usr/bin/java")
    make_java(tmp_path, "")
    require_java(str(tmp_path), None)


def test_on_this_machine_workers_run_the_python_that_runs_here() -> None:
    here = dict.fromkeys(("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"), sys.executable)
    here["PYTHONSAFEPATH"] = "1"  # and nothing of the folder in which the command was started
    of_a_cluster = {"PYSPARK_PYTHON": "./environment/bin/python"}
    for environment in ({}, of_a_cluster, of_a_cluster | {"MASTER": "local[2]"}):
        assert python_variables(environment) == here
    elsewhere = {"MASTER": "spark://a:7077"}
    assert python_variables(elsewhere | of_a_cluster) == {}
    assert python_variables(elsewhere) == {"PYSPARK_PYTHON": sys.executable}


def test_a_cluster_keeps_its_settings() -> None:
    """Without a word of the caller, too, its shuffles have as many partitions as it says."""
    nothing_given = open_settings(lambda _: False)
    assert "spark.sql.shuffle.partitions" not in nothing_given
    assert nothing_given["spark.sql.session.timeZone"] == "UTC"
    assert re.search(nothing_given["spark.sql.redaction.options.regex"], "brokers")
    assert re.search(nothing_given["spark.sql.redaction.options.regex"], "authParams")
    assert open_settings(lambda _: True) == {}


def test_what_is_set_wins_over_what_follows_from_the_machine() -> None:
    plain = started_settings(SparkOptions(), {}, is_long=False)
    assert plain["spark.master"] == "local[*]"
    assert int(plain["spark.sql.shuffle.partitions"]) >= 4
    assert plain["spark.driver.memory"].endswith("m")
    conf = ("spark.sql.shuffle.partitions=7", "spark.ui.enabled=true")
    given = started_settings(SparkOptions(3, "2g", conf), {}, is_long=True)
    assert given["spark.master"] == "local[3]"
    assert given["spark.driver.memory"] == "2g"
    assert given["spark.sql.shuffle.partitions"] == "7"
    assert given["spark.ui.enabled"] == "true"
    assert "TieredStopAtLevel" not in given["spark.driver.extraJavaOptions"]


def test_a_cluster_named_by_a_variable_keeps_its_own_defaults() -> None:
    settings = started_settings(SparkOptions(), {"MASTER": "spark://a:7077"}, is_long=False)
    kept = {"spark.master", "spark.sql.shuffle.partitions", "spark.driver.memory"}
    assert not kept & set(settings)


@pytest.mark.parametrize("environment", [{}, {"MASTER": "local"}, {"MASTER": "local[2]"}])
def test_the_ports_of_java_are_closed_to_other_users(environment: dict[str, str]) -> None:
    settings = started_settings(SparkOptions(), environment, is_long=False)
    assert settings["spark.authenticate"] == "true"


@pytest.mark.parametrize("master", ["spark://a:7077", "local-cluster[2,1,1024]"])
def test_a_cluster_has_a_secret_of_its_own_or_none(master: str) -> None:
    """Spark makes one for a single process only, and does not start without one elsewhere."""
    settings = started_settings(SparkOptions(), {"MASTER": master}, is_long=False)
    assert "spark.authenticate" not in settings


class Settings:
    """The settings of a session."""

    def __init__(self, **values: str) -> None:
        self.values = values
        self.unset = self.values.pop
        self.set = self.values.__setitem__

    def get(self, name: str, default: str | None = None) -> str | None:
        """The value of a setting."""
        return self.values.get(name, default)


@pytest.mark.parametrize(
    ("master", "rows", "set_to", "inside", "is_one"),
    [
        ("local[2]", 9, "4", "4", True),
        ("local[2]", ONE_TASK_ROWS_MAX + 1, "4", "100", False),
        ("local[2]", 9, "7", "7", False),
        ("spark://a:1", 9, "4", "4", False),
    ],
    ids=["small", "large", "of-the-user", "of-a-cluster"],
)
def test_few_rows_are_one_task_and_many_have_many_partitions(
    master: str, rows: int, set_to: str, inside: str, is_one: bool
) -> None:
    name = "spark.sql.shuffle.partitions"
    settings = Settings(**{name: set_to})
    session: Any = SimpleNamespace(
        conf=settings, sparkContext=SimpleNamespace(master=master, defaultParallelism=2)
    )
    files: list[Any] = [SimpleNamespace(rows=rows, size_bytes=1_600 << 20)]
    with sized_for(session, files):
        assert (settings.get(name), is_one_task(session)) == (inside, is_one)
    assert settings.values == {name: set_to}


# PySpark leaves the pipe to a process that failed to the garbage collection.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_failing_java_gives_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_java(tmp_path / "java", "Error: Could not find the memory")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    log_path = tmp_path / "spark.log"
    log_path.write_text("of an earlier run: Error: another\n")
    with pytest.raises(PipelineError) as caught:
        start_java(SparkConf(loadDefaults=False), log_path)
    text = str(caught.value)
    del caught
    gc.collect()
    assert text == "Spark's Java process did not start: Error: Could not find the memory"


def test_a_link_in_place_of_the_log_empties_no_other_file(tmp_path: Path) -> None:
    other, log_path = tmp_path / "keys", tmp_path / "_spark.log"
    other.write_text("mine\n")
    log_path.symlink_to(other)
    with pytest.raises(OSError, match="symbolic links"):
        start_java(SparkConf(loadDefaults=False), log_path)
    assert other.read_text() == "mine\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_are_deferred_until_the_block_ends(number: signal.Signals) -> None:
    came: list[int] = []
    signal.signal(number, lambda number, _: came.append(number))
    with deferred_signals():
        signal.raise_signal(number)
        signal.raise_signal(number)
        assert came == []
    assert came == [number]
    signal.raise_signal(number)
    assert came == [number, number]


def test_the_handler_of_ctrl_c_is_restored() -> None:
    def mine(*_: object) -> None:
        """Does nothing."""

    signal.signal(signal.SIGINT, mine)
    with kept_interrupt_handler():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGINT) is mine


def test_batches_are_cut_by_count_only_inside() -> None:
    name = "spark.sql.execution.arrow.maxBytesPerBatch"
    values = {name: "64m"}
    conf = SimpleNamespace(get=values.__getitem__, set=values.__setitem__)

    def fails_inside() -> None:
        with batches_by_count(cast(Any, SimpleNamespace(conf=conf))):
            assert values == {name: "2147483647"}
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails_inside()
    assert values == {name: "64m"}
