"""The units of systemd call commands that exist."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
import pytest

from headgate.cli.group import main

UNITS = sorted(Path(__file__).parents[3].glob("deploy/systemd/*.service"))


def test_there_is_a_unit_for_the_broker_and_for_the_agent() -> None:
    assert [unit.name for unit in UNITS] == ["headgate-agent.service", "headgate.service"]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_the_command_of_a_unit_has_these_options(unit: Path) -> None:
    lines = unit.read_text().splitlines()
    (start,) = (line.partition("=")[2] for line in lines if line.startswith("ExecStart="))
    _, name, *arguments = shlex.split(start)
    command = main.get_command(click.Context(main), name)
    assert command is not None
    options = {option for each in command.params for option in each.opts}
    assert {each for each in arguments if each.startswith("--")} <= options
