"""Missing modules and interrupted jobs, for all commands."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

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
