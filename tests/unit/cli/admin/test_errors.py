"""The texts of failures, each with exit status 1."""

from __future__ import annotations

import click
import pytest

from headgate.cli.admin.errors import AdminUsageError, NotConnectedError, RefusedError


def test_refusals_say_their_reason_twice(capsys: pytest.CaptureFixture[str]) -> None:
    error = RefusedError("Namespace not found")
    error.show()
    assert capsys.readouterr() == ("", "Namespace not found\n\nReason: Namespace not found\n")
    assert error.exit_code == 1


def test_silence_ends_as_pulsar_admin_ends(capsys: pytest.CaptureFixture[str]) -> None:
    error = NotConnectedError("http://b:1 refuses")
    error.show()
    assert capsys.readouterr() == ("", "http://b:1 refuses\n\nError connecting to Pulsar\n")
    assert error.exit_code == 1


def test_wrong_usage_is_followed_by_the_right_one(capsys: pytest.CaptureFixture[str]) -> None:
    command = click.Command("verb", params=[click.Argument(["name"])])
    error = AdminUsageError("Unknown option: '-x'", click.Context(command, info_name="verb"))
    error.show()
    assert capsys.readouterr().err == (
        "Unknown option: '-x'\nUsage: verb [OPTIONS] NAME\nTry 'verb --help' for help.\n"
    )
    group = click.Group("group", commands=[command])
    AdminUsageError("No verb", click.Context(group, info_name="group")).show()
    assert "Commands:\n  verb" in capsys.readouterr().err
    AdminUsageError("Bare").show()
    assert (capsys.readouterr().err, error.exit_code) == ("Bare\n", 1)
