"""Missing modules and interrupted jobs, for all commands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from headgate.cli.group import main
from headgate.cli.pipeline.common import interruptible, load


@pytest.mark.parametrize(
    ("words", "missing"), [(["attribute"], "pyspark"), (["show", "x"], "pyarrow")]
)
def test_what_is_not_installed_is_named_with_what_to_do(words: list[str], missing: str) -> None:
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        f"from headgate.cli.group import main; main({['pipeline', *words, '--out', 't']!r})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"Error: the pipeline needs Spark, and the package {missing!r} is not installed: "
        "pip install 'headgate[spark]', and have Java 17 or newer\n"
    )


def test_a_module_of_our_own_that_is_missing_is_a_bug() -> None:
    with pytest.raises(ModuleNotFoundError):
        load("no_such_module")


def test_an_interrupted_job_says_that_nothing_is_lost() -> None:
    @click.command()
    def command() -> None:
        with interruptible():
            raise KeyboardInterrupt

    result = CliRunner().invoke(command)
    assert result.stderr.startswith("Interrupted; the next run continues from here.\n")


@pytest.mark.parametrize("command", ["run", "stream", "attribute", "forecast", "sql", "upgrade"])
def test_spark_connect_is_refused_before_anything_else(command: str, tmp_path: Path) -> None:
    words = ["pipeline", command, "--out", str(tmp_path / "tables")]
    result = CliRunner().invoke(main, words, env={"SPARK_REMOTE": "sc://localhost:15002"})
    assert result.exit_code == 2
    assert result.stderr == (
        "Error: SPARK_REMOTE=sc://localhost:15002 asks for Spark Connect, which cannot run "
        "headgate pipeline: unset SPARK_REMOTE to use Spark on this machine, or bring the command "
        "to a cluster with spark-submit\n"
    )
    assert not (tmp_path / "tables").exists()
