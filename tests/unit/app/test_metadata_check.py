"""Each way in which metadata and its copy can be wrong is named, and nothing is changed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from headgate.app.metadata_check import MetadataCheck, check_metadata
from tests.unit.app.test_ledger_tools import TOPIC, copy_metadata, files, fill
from tests.unit.app.test_open_stores import run

METADATA = "metadata.sqlite3"


def checked(path: Path) -> MetadataCheck:
    before = files(path)
    found = check_metadata(str(path), ["log"])
    assert files(path) == before
    return found


def flip(path: Path) -> None:
    file = path / METADATA
    data = bytearray(file.read_bytes())
    data[data.index(b"orders")] ^= 1
    file.write_bytes(data)


def put_foreign(path: Path) -> None:
    run(path.parent / "other")
    shutil.copy(path.parent / "other" / METADATA, path / METADATA)


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda path: (path / METADATA).unlink(), "is missing"),
    "empty": (lambda path: (path / METADATA).write_bytes(b""), "does not belong to"),
    "short": (lambda path: (path / METADATA).write_bytes(b"SQLite format 3\0"), "is damaged"),
    "not a database": (lambda path: (path / METADATA).write_bytes(b"x" * 9999), "is damaged"),
    "a flipped bit": (flip, "is damaged"),
    "foreign": (put_foreign, "does not belong to"),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_wrong_metadata_are_named_and_the_copy_has_the_names(how: str, tmp_path: Path) -> None:
    path = tmp_path / "data"
    fill(path)
    copy_metadata(path)
    damage, text = DAMAGE[how]
    damage(path)
    found = checked(path)
    assert text in found.problem
    assert "headgate-" not in found.problem  # the folder in which they were read
    assert not found.is_log_at_fault
    assert found.copied is not None
    assert (found.copy_problem, found.copy_rest_bytes) == ("", 0)
    if found.rows is None:
        assert found.names("log") == {1: TOPIC}
    assert found.known_identity("log") is None


def test_sound_metadata(tmp_path: Path) -> None:
    fill(tmp_path)
    found = checked(tmp_path)
    assert (found.problem, found.copied, found.copy_problem) == ("", None, "")
    assert found.names("log") == {1: TOPIC}
    assert found.known_identity("log") is not None
    assert found.known_identity("telemetry-log") is None


def test_an_older_log_is_at_fault(tmp_path: Path) -> None:
    fill(tmp_path)
    shutil.copytree(tmp_path / "log", tmp_path / "yesterday")
    run_again(tmp_path)
    shutil.rmtree(tmp_path / "log")
    (tmp_path / "yesterday").rename(tmp_path / "log")
    found = checked(tmp_path)
    assert "is older than" in found.problem
    assert found.is_log_at_fault


def run_again(path: Path) -> None:
    for _ in range(3):
        run(path)


def test_a_log_that_is_gone(tmp_path: Path) -> None:
    fill(tmp_path)
    shutil.rmtree(tmp_path / "log")
    found = check_metadata(str(tmp_path), [])
    assert found.is_log_at_fault
    assert "log is missing" in found.problem


def test_a_lost_identity_is_known_only_with_a_proof(tmp_path: Path) -> None:
    fill(tmp_path)
    identity = tmp_path / "log" / "identity"
    text = identity.read_bytes()
    identity.unlink()
    found = checked(tmp_path)
    assert "is no longer bound" in found.problem
    assert found.known_identity("log") is None
    copy_metadata(tmp_path)
    found = checked(tmp_path)
    known = found.known_identity("log")
    assert found.problem == ""
    assert known is not None
    assert known.text() >= text
    identity.write_bytes(b"damaged")
    assert checked(tmp_path).known_identity("log") == known


@pytest.mark.parametrize(
    ("content", "text"),
    [(b"", "first line"), (b"headgate-metadata-copy 9\n", "of another release")],
)
def test_an_unusable_copy(content: bytes, text: str, tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / "log" / "metadata.copy").write_bytes(content)
    found = checked(tmp_path)
    assert (found.problem, found.copied) == ("", None)
    assert text in found.copy_problem


def test_the_copy_of_another_directory(tmp_path: Path) -> None:
    for name in "ab":
        fill(tmp_path / name)
        copy_metadata(tmp_path / name)
    shutil.copy(tmp_path / "a/log/metadata.copy", tmp_path / "b/log/metadata.copy")
    found = checked(tmp_path / "b")
    assert found.copied is None
    assert "it is the copy of another directory than log" in found.copy_problem


def test_a_copy_whose_last_change_is_cut(tmp_path: Path) -> None:
    fill(tmp_path)
    copy_metadata(tmp_path)
    file = tmp_path / "log" / "metadata.copy"
    file.write_bytes(file.read_bytes() + b"half a record")
    assert checked(tmp_path).copy_rest_bytes == 13


@pytest.mark.parametrize("suffix", ["", "-wal"])
def test_a_file_that_takes_no_room_is_not_copied(tmp_path: Path, suffix: str) -> None:
    """A copy of its terabyte would fill the disk."""
    path = tmp_path / "data"
    fill(path)
    with (path / f"{METADATA}{suffix}").open("ab") as file:
        file.truncate(1 << 40)
    found = check_metadata(str(path), ["log"])
    assert "bytes: 4,294,967,296 at most" in found.problem
