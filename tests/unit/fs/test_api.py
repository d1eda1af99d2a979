"""The implementations have every method of the protocols."""

from __future__ import annotations

import pytest

from headgate.fs import FaultyFs, File, Fs, Lock, MemFs, OsFs
from headgate.fs.faulty_fs import FaultyFile
from headgate.fs.mem_fs import MemFile, MemLock
from headgate.fs.os_fs import OsFile, OsLock


def methods(kind: type) -> set[str]:
    return {name for name in vars(kind) if not name.startswith("_")}


@pytest.mark.parametrize(
    ("protocol", "kinds"),
    [
        (Fs, [OsFs, MemFs, FaultyFs]),
        (File, [OsFile, MemFile, FaultyFile]),
        (Lock, [OsLock, MemLock]),
    ],
)
def test_complete(protocol: type, kinds: list[type]) -> None:
    assert methods(protocol)
    for kind in kinds:
        assert methods(protocol) <= methods(kind)
