"""A manifest says whether it is whole, and leads to no file outside of its folders."""

from __future__ import annotations

import msgspec
import pytest

from headgate.app.backup.manifest import (
    BackupError,
    LogEnd,
    Manifest,
    StoredFile,
    decode_manifest,
    encode_manifest,
)
from headgate.base.errors import CorruptionError

FILE = StoredFile("log/0000000000000001.log", 10, "0" * 64, "log.1.x.y")
MANIFEST = Manifest(1, 3, "2026", "1", "id", True, {"log": LogEnd(4, 1, 99)}, (FILE, FILE))


def test_it_is_read_as_it_was_written() -> None:
    assert decode_manifest(encode_manifest(MANIFEST), "m") == MANIFEST
    assert MANIFEST.size_bytes == 20


@pytest.mark.parametrize("bit", [0, 13, 200])
def test_a_flipped_bit_is_noticed(bit: int) -> None:
    data = bytearray(encode_manifest(MANIFEST))
    data[bit] ^= 1
    with pytest.raises(CorruptionError, match="manifest m is damaged"):
        decode_manifest(bytes(data), "m")


@pytest.mark.parametrize("size", [0, 1, 100])
def test_a_part_of_it_is_no_manifest(size: int) -> None:
    with pytest.raises(CorruptionError):
        decode_manifest(encode_manifest(MANIFEST)[:size], "m")


@pytest.mark.parametrize(
    "path", ["../etc/passwd", "/etc/passwd", "log/../../x", "other/x", "", ".."]
)
def test_no_path_leaves_the_data_directory(path: str) -> None:
    file = msgspec.structs.replace(FILE, path=path)
    data = encode_manifest(msgspec.structs.replace(MANIFEST, files=(file,)))
    with pytest.raises(CorruptionError, match="names the file"):
        decode_manifest(data, "m")


@pytest.mark.parametrize("stored", ["../x", "a/b", ".hidden", ""])
def test_no_stored_name_leaves_the_backup(stored: str) -> None:
    file = msgspec.structs.replace(FILE, stored=stored)
    data = encode_manifest(msgspec.structs.replace(MANIFEST, files=(file,)))
    with pytest.raises(CorruptionError, match="names the file"):
        decode_manifest(data, "m")


def test_a_later_version_is_refused_as_such() -> None:
    data = encode_manifest(msgspec.structs.replace(MANIFEST, version=2))
    with pytest.raises(BackupError, match="has version 2"):
        decode_manifest(data, "m")
