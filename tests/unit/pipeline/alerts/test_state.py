"""The stored state of a target, and what becomes of a lost one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from headgate.base.errors import InputError
from headgate.pipeline.alerts.state import (
    AlertsHeldError,
    SentAlert,
    StateFile,
    TargetState,
    state_file,
)

URL = "http://am:9093/api/v2/alerts"
SHOWN = "http://am:9093"


def sent(topic: str = "t", **more: Any) -> SentAlert:
    asked: dict[str, Any] = {
        "labels": {"alertname": "A", "severity": "warning", "topic": topic},
        "annotations": {"summary": "ä"},
        "starts_ns": 1,
        "ends_ns": None,
        "seen_ns": 2,
        "found_ns": 3,
        "keeps_ns": 4,
        "delivered_ns": None,
        "section": "quotas",
    }
    return SentAlert(**{**asked, **more})


def test_it_comes_back_as_it_was_stored(tmp_path: Path) -> None:
    state = TargetState({sent().identity: sent()}, (sent("over", ends_ns=9),))
    file = StateFile(tmp_path / "a.json")
    assert file.load() == (TargetState(), "")
    file.save(state)
    assert file.load() == (state, "")
    assert os.stat(tmp_path / "a.json").st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_links_in_the_folder_have_no_other_file_written(tmp_path: Path) -> None:
    """Others may write to the folder of the tables."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "a.new").symlink_to(victim)
    StateFile(tmp_path / "a.json").save(TargetState())
    assert victim.read_text() == "mine"
    with state_file(str(tmp_path), "tables", URL, SHOWN):
        pass
    (lock,) = (tmp_path / "_alerts").glob("*.lock")
    lock.unlink()
    lock.symlink_to(victim)
    with pytest.raises(InputError, match="symbolic links"):
        state_file(str(tmp_path), "tables", URL, SHOWN).__enter__()
    assert victim.read_text() == "mine"


@pytest.mark.parametrize(
    "content", ["", "[]", '{"version": 2}', '{"version": 1, "open": [{}], "ended": []}', "\0"]
)
def test_a_damaged_one_is_a_lost_one(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    state, said = StateFile(path).load()
    assert state == TargetState()
    assert said == (
        f"The state {path} cannot be read (its content is damaged or of another release): all open "
        "alerts are sent again, and ends of earlier alerts may be missing."
    )
    path.write_bytes(b"\xff\xfe")
    assert "cannot be read" in StateFile(path).load()[1]


def test_a_full_disk_leaves_the_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = StateFile(tmp_path / "a.json")
    file.save(TargetState())

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("headgate.pipeline.alerts.state.os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        file.save(TargetState({}, (sent(),)))
    assert file.load() == (TargetState(), "")
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_one_process_at_a_time_has_the_state_of_a_target(tmp_path: Path) -> None:
    folder = str(tmp_path)
    with state_file(folder, "/t", URL, SHOWN) as file:
        file.save(TargetState())
        with (
            pytest.raises(
                AlertsHeldError, match=rf"\(process {os.getpid()}\) sends alerts of /t to"
            ),
            state_file(folder, "/t", URL, SHOWN),
        ):
            pass
        with state_file(folder, "/t", "http://other:9093/api/v2/alerts", "other"):
            pass
        with state_file(folder, "/t2", URL, SHOWN):
            pass
    with state_file(folder, "/t", URL, SHOWN):
        pass
    stored = list((tmp_path / "_alerts").glob("*.json"))
    assert len(stored) == 1
    assert json.loads(stored[0].read_text())["version"] == 1


def test_a_folder_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "_alerts").touch()
    with (
        pytest.raises(InputError, match="_alerts cannot be used: File exists"),
        state_file(str(tmp_path), "/t", URL, SHOWN),
    ):
        pass
