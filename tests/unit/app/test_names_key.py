"""The key of hashed names, configured or made once."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from headgate.app.names_key import KEY_FILE_NAME, names_key
from headgate.base.errors import InputError, StorageError
from headgate.policy.settings import Settings


def hashing(key_file: object = "") -> Settings:
    return Settings(headgateTelemetryNames="hash", headgateTelemetryNamesKeyFile=str(key_file))


def test_plain_names_need_no_key(tmp_path: Path) -> None:
    assert names_key(Settings(headgateTelemetryNamesKeyFile="/nowhere"), str(tmp_path)) is None
    assert list(tmp_path.iterdir()) == []


def test_a_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    (tmp_path / "telemetry-names.tmp").write_text("of a start that was killed")
    key = names_key(hashing(), str(tmp_path))
    assert key is not None
    assert len(key) == 64
    made = tmp_path / KEY_FILE_NAME
    assert made.read_bytes() == key + b"\n"
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    assert names_key(hashing(), str(tmp_path)) == key
    assert [path.name for path in tmp_path.iterdir()] == [KEY_FILE_NAME]
    (tmp_path / "other").mkdir()
    assert names_key(hashing(), str(tmp_path / "other")) != key


def test_a_given_key_is_used_and_none_is_made(tmp_path: Path) -> None:
    given = tmp_path / "shared.key"
    given.write_bytes(b" any sixteen bytes\r\n")
    given.chmod(0o640)
    with pytest.raises(InputError, match=r"may be read or written by others: chmod 600 \S+key$"):
        names_key(hashing(given), str(tmp_path))
    given.chmod(0o600)
    assert names_key(hashing(given), str(tmp_path)) == b" any sixteen bytes"
    assert [path.name for path in tmp_path.iterdir()] == ["shared.key"]


def test_a_given_file_that_is_no_key_is_refused(tmp_path: Path) -> None:
    short = tmp_path / "short.key"
    short.write_bytes(b"fifteen bytes..\n\n")
    short.chmod(0o600)
    wanted = r"headgateTelemetryNamesKeyFile=\S+short.key cannot be used: it has 15 bytes"
    with pytest.raises(InputError, match=wanted):
        names_key(hashing(short), str(tmp_path))
    with pytest.raises(InputError, match="nowhere cannot be used: No such file"):
        names_key(hashing(tmp_path / "nowhere"), str(tmp_path))


def test_a_damaged_key_in_the_data_directory_is_not_replaced(tmp_path: Path) -> None:
    made = tmp_path / KEY_FILE_NAME
    made.write_bytes(b"")
    with pytest.raises(StorageError, match="cannot be used: it has 0 bytes, and 16 or more are"):
        names_key(hashing(), str(tmp_path))
    assert made.read_bytes() == b""
    with pytest.raises(StorageError, match="No such file"):
        names_key(hashing(), str(tmp_path / "missing"))


def test_nobody_waits_for_a_pipe_in_the_place_of_the_key(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / KEY_FILE_NAME)
    with pytest.raises(StorageError, match="what is in the place of a file is none"):
        names_key(hashing(), str(tmp_path))
