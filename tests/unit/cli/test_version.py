"""The version, from the command and from the option."""

from __future__ import annotations

from click.testing import CliRunner

from headgate import __version__
from headgate.cli.group import main


def test_both_ways_name_the_version() -> None:
    assert (
        CliRunner().invoke(main, ["version"]).output.startswith(f"headgate {__version__} (Python")
    )
    assert __version__ in CliRunner().invoke(main, ["--version"]).output
