"""The commands print plain lines or JSON, and the exit status says what was found."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result

from headgate.cli.group import main
from tests.unit.app.test_ledger_tools import TOPIC, damage, fill, owned


def call(path: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["ledger", *words, "--data-dir", str(path)])


def test_a_sound_directory_has_status_0(tmp_path: Path) -> None:
    fill(tmp_path)
    result = call(tmp_path, "verify")
    assert result.exit_code == 0
    assert result.stdout.endswith("Nothing is damaged.\n")
    assert "5 sound entries" in result.stdout
    assert json.loads(call(tmp_path, "verify", "--json").stdout)["isSound"]


def test_damage_has_status_1_and_says_what_it_costs(tmp_path: Path) -> None:
    fill(tmp_path)
    damage(tmp_path, b"threethree")
    result = call(tmp_path, "verify")
    assert result.exit_code == 1
    assert "a message has a wrong checksum\n    lost: message " in result.stdout
    assert f":2 of {TOPIC}\n" in result.stdout
    assert result.stdout.endswith("DAMAGED in 1 place.\n")
    result = call(tmp_path, "verify", "--json")
    assert result.exit_code == 1
    assert not json.loads(result.stdout)["isSound"]


def test_what_cannot_be_read_has_status_2(tmp_path: Path) -> None:
    fill(tmp_path)
    assert call(tmp_path / "missing", "verify").exit_code == 2
    with owned(tmp_path):
        for command in ("verify", "repair", "dump"):
            result = call(tmp_path, command)
            assert result.exit_code == 2
            assert "stop it first" in result.stderr


def test_a_dump_has_a_record_in_each_line(tmp_path: Path) -> None:
    fill(tmp_path)
    result = call(tmp_path, "dump", "--topic", TOPIC, "--from-ordinal", "3", "--bodies")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["ordinal"] for row in rows if row["kind"] == "entry"] == [3, 4]
    assert call(tmp_path, "dump", "--segment", "0000000000000009.log").stdout == ""
    result = call(tmp_path, "dump", "--segment", "orders")
    assert result.exit_code == 2
    assert "is no segment file" in result.stderr
