"""Each line names a file and what it costs, and the last ones what to do next."""

from __future__ import annotations

import json
from pathlib import Path

from tests.unit.app.test_ledger_tools import TOPIC, break_copies, damage, fill
from tests.unit.cli.test_ledger import call


def test_each_kind_of_cost_is_one_line(tmp_path: Path) -> None:
    fill(tmp_path)
    for file in (tmp_path / "log").glob("*.checkpoint*"):
        data = bytearray(file.read_bytes())
        data[30:34] = b"????"
        file.write_bytes(data)
    (tmp_path / "metadata.sqlite3").unlink()
    (tmp_path / "log" / "identity").write_bytes(b"x")
    result = call(tmp_path, "verify")
    assert result.exit_code == 1
    assert (
        "metadata: metadata.sqlite3 is missing\n    lost: names of topics, policies"
        in result.stdout
    )
    assert "lost: the positions and subscriptions of all topics" in result.stdout
    assert result.stdout.endswith("A broker does not start on this directory as it is.\n")


def test_a_repair_says_what_it_did_what_stays_lost_and_what_to_do(tmp_path: Path) -> None:
    fill(tmp_path)
    assert call(tmp_path, "repair").stdout == "Nothing is damaged, so nothing is changed.\n"
    break_copies(tmp_path)
    result = call(tmp_path, "repair", "--dry-run")
    assert result.exit_code == 1
    assert "    would: write it as the sound copy\n    costs no message\n" in result.stdout
    assert result.stdout.endswith("keep a copy first. Nothing is changed.\n")
    damage(tmp_path, b"threethree")
    result = call(tmp_path, "repair")
    assert result.exit_code == 1
    assert "    did: write it as the sound copy\n    costs no message\n" in result.stdout
    assert "Repaired 2 places. The bytes from before are in " in result.stdout
    assert "cannot bring it back" in result.stdout
    assert result.stdout.endswith(f"    headgate admin topics accept-damage {TOPIC}\n")
    result = call(tmp_path, "repair", "--json")
    assert json.loads(result.stdout)["repairs"] == []
    assert call(tmp_path, "repair").stdout.count("nothing is changed") == 1


def test_a_repair_leaves_damaged_metadata_and_says_so(tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / "metadata.sqlite3").unlink()
    result = call(tmp_path, "repair")
    assert result.exit_code == 1
    assert "metadata.sqlite3 is missing.\nPut metadata and logs back" in result.stdout
