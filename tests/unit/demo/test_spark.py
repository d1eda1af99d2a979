"""The requirements of the Spark job, and its progress."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.base.errors import InputError
from headgate.demo import spark
from headgate.demo.spark import (
    ATTEMPTS,
    SparkSpec,
    java_problem,
    missing_requirement,
    progress_text,
    with_retries,
)


def _java(folder: Path, says: str) -> str:
    """A command that answers like ``java -version``, on its error output."""
    path = folder / "java"
    path.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("says", "problem"),
    [
        ('openjdk version "17.0.17" 2025-10-21', ""),
        ('java version "21" 2023-09-19 LTS', ""),
        ('openjdk version "11.0.2" 2019-01-15', "Java 17 or newer is needed, {java} is 11"),
        ('java version "1.8.0_392"', "Java 17 or newer is needed, {java} is 8"),
        ("no such thing", "{java} does not say its version"),
    ],
)
def test_an_old_java_is_refused(tmp_path: Path, says: str, problem: str) -> None:
    java = _java(tmp_path, says)
    assert java_problem(java) == problem.format(java=java)


def test_a_broken_java_is_refused(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text("not a program")
    assert "cannot be run" in java_problem(str(java))


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of the packages that are installed."""
    found = {"pyspark", "pyspark_pulsar", "pyarrow", "pandas", "deltalake"}
    monkeypatch.setattr(
        spark.importlib.util, "find_spec", lambda name: object() if name in found else None
    )
    return found


def test_a_complete_installation_has_no_problem(
    packages: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert packages
    _java(tmp_path, 'openjdk version "17.0.1"')
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert missing_requirement() == ""


def test_java_home_precedes_the_path(
    packages: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert packages
    (tmp_path / "bin").mkdir()
    java = _java(tmp_path / "bin", 'openjdk version "11.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert missing_requirement() == f"Java 17 or newer is needed, {java} is 11"
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    assert missing_requirement() == f"no Java in JAVA_HOME={tmp_path / 'gone'}"


def test_a_missing_java_is_named(
    packages: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert packages
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert missing_requirement() == "no Java was found"


def test_the_first_missing_package_is_named(packages: set[str]) -> None:
    packages -= {"pyarrow", "deltalake"}
    assert missing_requirement() == "the package pyarrow is not installed"


def test_a_spec_is_parsed_from_its_command_line() -> None:
    spec = SparkSpec(("pulsar://a", "pulsar://b"), ("http://a", "http://b"), "/tables", 2.5)
    assert SparkSpec.from_json(spec.to_json()) == spec


class _Work:
    """Fails some times, then succeeds."""

    def __init__(self, *errors: Exception) -> None:
        self._errors = list(errors)
        self.done = 0

    def __call__(self) -> None:
        self.done += 1
        if self._errors:
            raise self._errors.pop(0)


def test_a_failed_step_is_retried() -> None:
    told: list[Exception] = []
    slow = [RuntimeError("first"), RuntimeError("second")]
    work = _Work(*slow)
    with_retries(work, told.append)
    assert (work.done, told) == (ATTEMPTS, slow)


def test_a_permanent_failure_is_raised() -> None:
    told: list[Exception] = []
    work = _Work(*(RuntimeError(f"number {number}") for number in range(9)))
    with pytest.raises(RuntimeError, match=f"number {ATTEMPTS - 1}"):
        with_retries(work, told.append)
    assert (work.done, len(told)) == (ATTEMPTS, ATTEMPTS - 1)


def test_an_input_error_is_not_retried() -> None:
    told: list[Exception] = []
    work = _Work(InputError("the folder is in use"))
    with pytest.raises(InputError):
        with_retries(work, told.append)
    assert (work.done, told) == (1, [])


def test_progress_is_readable() -> None:
    assert progress_text({"stage": "started", "seconds": 4.21}).startswith("Spark started in 4.2 s")
    batch = progress_text({"stage": "batch", "number": 3, "rows": 1_234})
    assert batch == "Spark: 1,234 samples in the tables after batch 3"
    assert "all 5 samples" in progress_text({"stage": "read", "rows": 5})
    assert progress_text({"stage": "intervals", "rows": 5}).startswith("intervals")
    again = progress_text({"stage": "again", "reason": "a worker was slow"})
    assert again == "Spark tries again: a worker was slow"
    judged = progress_text({"stage": "judged", "rows": 5, "found": [{}, {}]})
    assert judged == "attribution: 2 subscriptions judged"
