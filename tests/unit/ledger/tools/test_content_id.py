"""The identity of a segment changes with its content, and not with holes."""

from __future__ import annotations

from headgate.fs import MemFs
from headgate.ledger.tools.content_id import content_id
from tests.unit.app.backup.directories import DATA, empty_disk, fill


def sealed(count: int = 12, stamp_bit: int = 0) -> tuple[MemFs, str]:
    fs = empty_disk()
    fill(fs, count)
    path = f"{DATA}/log/0000000000000001.log"
    if stamp_bit:
        file = fs.open(path, writable=True)
        file.write_at(24, [bytes([file.read_at(24, 1)[0] ^ stamp_bit])])
    return fs, path


def identity(fs: MemFs, path: str) -> str | None:
    file = fs.open(path)
    return content_id(file, 1, file.size())


def test_equal_segments_have_equal_identities() -> None:
    assert identity(*sealed()) == identity(*sealed()) is not None


def test_another_stamp_or_index_is_another_content() -> None:
    assert len({identity(*sealed()), identity(*sealed(stamp_bit=1)), identity(*sealed(2))}) == 3


def test_a_hole_changes_nothing() -> None:
    fs, path = sealed()
    before = identity(fs, path)
    assert fs.open(path, writable=True).punch(4096, 4096)
    assert identity(fs, path) == before


def test_without_a_sound_footer_there_is_none() -> None:
    fs, path = sealed()
    file = fs.open(path, writable=True)
    assert content_id(file, 1, file.size() - 1) is None
    assert content_id(file, 2, file.size()) is None
    assert content_id(file, 1, 10) is None
    file.write_at(file.size() - 4, [b"rot!"])
    assert identity(fs, path) is None
