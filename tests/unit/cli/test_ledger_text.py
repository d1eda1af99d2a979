"""Each line names a file and what it costs, and the last ones what to do next."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headgate.cli.ledger_text import repair_text
from tests.unit.app.test_ledger_tools import TOPIC, break_copies, copy_metadata, damage, files, fill
from tests.unit.cli.test_ledger import call

Row = dict[str, Any]


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
        "metadata: metadata.sqlite3 is missing\n    rebuild it from the numbers of the topics, "
        "since there is no copy: 2 tenants, 3 namespaces, 1 topics\n"
        "    lost: names of topics, tenants, policies, schemas and settings\n"
        "    topic number 1 gets the name persistent://public/recovered/topic-1\n" in result.stdout
    )
    assert "the log has its first segment, so a start reads all from there" in result.stdout
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


def test_metadata_without_a_copy_are_rebuilt_only_if_asked(tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / "metadata.sqlite3").unlink()
    before = files(tmp_path)
    for words in ((), ("--dry-run",)):
        result = call(tmp_path, "repair", *words)
        assert result.exit_code == 1
        assert "would: rebuild it from the numbers of the topics" in result.stdout
        assert "Put metadata and logs back from the same backup. If there is none" in result.stdout
        assert f"headgate ledger repair --rebuild-metadata --data-dir {tmp_path}" in result.stdout
        assert files(tmp_path) == before
    result = call(tmp_path, "repair", "--rebuild-metadata", "--dry-run")
    assert (result.exit_code, files(tmp_path)) == (1, before)
    assert "A repair would change 1 place, and keep a copy first" in result.stdout
    result = call(tmp_path, "repair", "--rebuild-metadata")
    assert result.exit_code == 0
    assert "    did: rebuild it from the numbers of the topics" in result.stdout
    assert "Repaired 1 place. The bytes from before are in " in result.stdout
    assert call(tmp_path, "verify").exit_code == 0


def test_metadata_with_a_copy_are_rebuilt(tmp_path: Path) -> None:
    fill(tmp_path)
    copy_metadata(tmp_path)
    (tmp_path / "metadata.sqlite3").write_bytes(b"no database at all" * 100)
    result = call(tmp_path, "verify")
    assert result.exit_code == 1
    assert "is damaged: file is not a database\n" in result.stdout
    text = "rebuild it from log/metadata.copy: 2 tenants, 2 namespaces, 1 topics\n"
    rest = "    nothing that the logs know of is lost\n"
    assert f"    {text}{rest}" in result.stdout
    result = call(tmp_path, "repair")
    assert result.exit_code == 0
    assert f"    did: {text}{rest}" in result.stdout


def test_a_log_that_is_gone_is_no_fault_of_the_metadata(tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / "telemetry-log").mkdir()
    (tmp_path / "log").rename(tmp_path.parent / f"{tmp_path.name}-away")
    result = call(tmp_path, "repair")
    assert result.exit_code == 1
    assert f"The metadata does not fit: {tmp_path}/log is missing, but" in result.stdout
    assert "Put metadata and logs back from the same backup.\n" in result.stdout


def finding(what: str, *, refuses: bool = False) -> Row:
    cost = {"kind": "may be lost", "topicNumber": 1, "topic": TOPIC, "firstOrdinal": 9}
    return {
        "file": "0000000000000003.log", "offset": 0, "bytes": 0, "what": what, "isDamage": True,
        "refusesStart": refuses, "costs": [{**cost, "firstMessageId": "1:9"}],
    }  # fmt: skip


def repaired(*repairs: Row, left: Sequence[Row] = ()) -> str:
    return repair_text(
        {
            "directory": "d", "dryRun": False, "isSound": not left, "copies": "d/repaired-1",
            "repairs": list(repairs), "metadataProblem": None, "metadataRepair": None,
            "logs": [{"log": "log", "findings": list(left)}],
        }
    )  # fmt: skip


def test_what_a_repair_gives_up_is_said_once_and_to_be_final() -> None:
    gone = {"log": "log", "copy": None, **finding("the file is missing", refuses=True)}
    text = repaired(
        {**gone, "changed": "durable_end", "change": "move it away"},
        {**gone, "changed": "identity", "change": "forget the last batch"},
    )
    assert text.count("may be lost") == 1
    assert "    did: in durable_end: move it away\n    did: in identity: forget" in text
    assert "is given up: no topic refuses because of it" in text
    assert text.endswith("has it, put all of the backup back instead.\n")


def test_a_name_is_one_word_of_the_command_to_copy() -> None:
    """Clients choose the names of topics."""
    name = "persistent://a/b/x;touch $(id) 'y'"
    lost = {"log": "log", "copy": None, **finding("the file is damaged")}
    lost["costs"][0]["topic"] = name
    (line,) = (each for each in repaired(left=[lost]).splitlines() if "accept-damage" in each)
    assert shlex.split(line) == ["headgate", "admin", "topics", "accept-damage", name]
