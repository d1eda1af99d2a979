"""FaultyFs: asks its plan, numbers operations, tears writes."""

from __future__ import annotations

import errno

import pytest

from headgate.fs import FaultyFs, MemFs, Operation


def test_each_operation_is_announced_with_its_number() -> None:
    seen: list[Operation] = []
    fs = FaultyFs(MemFs(), seen.append)
    fs.make_directory("/d")
    fs.lock("/d/l")
    file = fs.create("/d/x")
    file.allocate(8)
    file.write_at(0, [b"ab", b"c"])
    file.sync_data()
    file.truncate(3)
    file.close()
    fs.rename("/d/x", "/d/y")
    fs.sync_directory("/d")
    assert fs.open("/d/y").read_at(0, 9) == b"abc"
    assert fs.open("/d/y").size() == 3
    fs.remove("/d/y")
    assert fs.list_directory("/d") == ["l"]
    assert [one.index for one in seen] == list(range(len(seen))) == list(range(fs.operations_count))
    assert [(one.kind, one.path, one.size) for one in seen] == [
        ("lock", "/d/l", 0),
        ("create", "/d/x", 0),
        ("allocate", "/d/x", 8),
        ("write", "/d/x", 3),
        ("sync", "/d/x", 0),
        ("truncate", "/d/x", 3),
        ("rename", "/d/x", 0),
        ("sync_directory", "/d", 0),
        ("open", "/d/y", 0),
        ("read", "/d/y", 9),
        ("open", "/d/y", 0),
        ("remove", "/d/y", 0),
    ]


def test_a_plan_may_raise_instead() -> None:
    def plan(operation: Operation) -> None:
        if operation.kind == "sync":
            raise OSError(errno.EIO, "broken")

    fs = FaultyFs(MemFs(), plan)
    fs.make_directory("/d")
    file = fs.create("/d/x")
    with pytest.raises(OSError, match="broken"):
        file.sync_data()


def test_a_plan_may_tear_a_write() -> None:
    fs = FaultyFs(MemFs(), lambda operation: 2 if operation.kind == "write" else None)
    fs.make_directory("/d")
    file = fs.create("/d/x")
    with pytest.raises(OSError, match="no space") as caught:
        file.write_at(0, [b"a", b"bcd"])
    assert caught.value.errno == errno.ENOSPC
    assert file.read_at(0, 9) == b"ab"
