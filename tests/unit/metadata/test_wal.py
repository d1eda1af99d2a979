"""Damage in SQLite's write-ahead log that SQLite itself does not tell."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from headgate.metadata.wal import wal_damage

HEADER_BYTES = 32
FRAME_BYTES = 24 + 4096
COUNT = 12


@pytest.fixture(scope="module")
def wal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[bytes]:
    """Some transactions of one frame each, the first two of more."""
    path = tmp_path_factory.mktemp("wal") / "m.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE t (x)")
        for number in range(COUNT):
            connection.execute("INSERT INTO t VALUES (?)", (number,))
        yield Path(f"{path}-wal").read_bytes()


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]


def test_nothing_and_a_whole_one_are_sound(wal: bytes) -> None:
    assert wal_damage(b"") is None
    assert wal_damage(bytes(HEADER_BYTES + FRAME_BYTES)) is None
    assert wal_damage(wal) is None


def test_a_file_that_ends_anywhere_is_a_torn_tail(wal: bytes) -> None:
    for size in range(0, len(wal), 509):
        assert wal_damage(wal[:size]) is None or size < HEADER_BYTES, size


def test_a_flipped_bit_before_the_last_two_transactions_is_found(wal: bytes) -> None:
    for at in range(0, len(wal) - 2 * FRAME_BYTES, 97):
        found = wal_damage(flipped(wal, at))
        behind = at - HEADER_BYTES
        frame = HEADER_BYTES + behind // FRAME_BYTES * FRAME_BYTES
        assert found == (0 if behind < 0 else frame), at


def test_a_flipped_bit_in_the_last_transaction_looks_like_a_torn_tail(wal: bytes) -> None:
    assert wal_damage(flipped(wal, len(wal) - 100)) is None


def test_what_an_earlier_round_of_the_file_left_is_no_damage(tmp_path: Path) -> None:
    """After a checkpoint SQLite writes from the beginning, with another salt."""
    path = tmp_path / "m.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE t (x)")
        for number in range(COUNT):
            connection.execute("INSERT INTO t VALUES (?)", (number,))
        connection.execute("PRAGMA wal_checkpoint(RESTART)")
        connection.execute("INSERT INTO t VALUES (99)")
        data = Path(f"{path}-wal").read_bytes()
    assert len(data) > HEADER_BYTES + 10 * FRAME_BYTES
    assert wal_damage(data) is None


def test_a_transaction_that_was_written_in_part_is_no_damage(wal: bytes) -> None:
    """Its frames reach the disk in any order: the last may be there and one before it not."""
    torn = flipped(wal, len(wal) - FRAME_BYTES - 100)
    assert wal_damage(torn) is None


@pytest.mark.parametrize("page_bytes", [0, 1, 100, 4095, 1 << 17, 1 << 31])
def test_a_page_of_no_size_is_damage(page_bytes: int) -> None:
    head = struct.pack(">6I", 0x377F0682, 3007000, page_bytes, 0, 1, 2)
    first = second = 0
    words = struct.unpack("<6I", head)
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    whole = head + struct.pack(">2I", first, second)
    assert wal_damage(whole + bytes(FRAME_BYTES)) == 0
