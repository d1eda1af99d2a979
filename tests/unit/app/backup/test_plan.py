"""What is stored under which name, and what a backup may remove."""

from __future__ import annotations

from headgate.app.backup.manifest import Manifest, StoredFile
from headgate.app.backup.plan import (
    expired,
    path_key,
    segment_key,
    stored_by_key,
    stored_name,
    unused,
)

SHA_A, SHA_B = "a" * 64, "b" * 64


def manifest(*stored: str) -> Manifest:
    files = tuple(StoredFile(f"log/{name}", 1, SHA_A, name) for name in stored)
    return Manifest(1, 1, "", "", "", False, {}, files)


def test_a_segment_is_found_by_its_content_and_not_by_its_file_name() -> None:
    old, new = segment_key("log", 7, "aa"), segment_key("log", 7, "bb")
    assert old != new
    found = stored_by_key([stored_name(old, SHA_A), "incoming.tmp", "readme"])
    assert found == {old: SHA_A}
    assert new not in found


def test_the_logs_do_not_share_keys() -> None:
    assert segment_key("log", 7, "aa") != segment_key("telemetry-log", 7, "aa")
    assert path_key("log/identity") != path_key("telemetry-log/identity")


def test_two_contents_of_one_path_are_two_files() -> None:
    key = path_key("log/identity")
    assert stored_name(key, SHA_A) != stored_name(key, SHA_B)


def test_the_newest_generations_stay() -> None:
    assert expired([3, 1, 2], 2) == [1]
    assert expired([3, 1, 2], 1) == [1, 2]
    assert expired([1], 2) == []
    assert expired([], 1) == []


def test_a_file_of_any_kept_generation_stays() -> None:
    a, b, c, d = (stored_name(key, SHA_A) for key in ("a", "b", "c", "d"))
    kept = {1: manifest(a, b), 2: manifest(b, c)}
    assert unused([a, b, c, d, "incoming.tmp"], kept) == [d, "incoming.tmp"]
    assert unused([a], {}) == [a]


def test_what_no_backup_made_stays() -> None:
    """The folder of the files may be a link, in a backup from elsewhere."""
    assert unused(["thesis.txt", "notes.tmp", "a.beef", f"a.{'A' * 64}", f".{SHA_A}x"], {}) == []
