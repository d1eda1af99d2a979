"""The list of commands, which imports none of them."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

from headgate.cli.group import main
from headgate.cli.pipeline.command import pipeline_group

COMMANDS = [
    "run", "stream", "attribute", "forecast", "backtest", "report", "serve", "alerts", "compact",
    "upgrade", "show", "sql", "views",
]  # fmt: skip


def test_summaries_are_whole_sentences() -> None:
    listed = CliRunner().invoke(main, ["pipeline", "--help"]).output.partition("Commands:")[2]
    rows = listed.strip().splitlines()
    assert [row.split()[0] for row in rows] == COMMANDS
    assert all(row.endswith(".") and not row.endswith("...") for row in rows)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_there_under_its_name(name: str) -> None:
    command = pipeline_group.get_command(pipeline_group.make_context("p", [name]), name)
    assert command is not None
    assert command.name == name
    result = CliRunner().invoke(main, ["pipeline", name, "--help"])
    assert result.exit_code == 0
    assert "--out" in result.output


def test_the_list_loads_no_command() -> None:
    code = (
        "import sys; from headgate.cli.group import main\n"
        "main(['pipeline', '--help'], standalone_mode=False)\n"
        "assert not {'pyarrow', 'rich', 'headgate.cli.pipeline.show'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
