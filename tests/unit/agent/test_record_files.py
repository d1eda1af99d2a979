"""Windows in files: whole or absent, in order, bounded, and continued after a kill."""

from __future__ import annotations

import errno

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.agent.record_files import FileBounds, RecordFiles, RecordFilesError
from headgate.agent.records import Record
from headgate.base.errors import InputError
from headgate.fs import FaultyFs, MemFs, Operation
from headgate.record.codec import BatchHeader
from headgate.record.frames import frames

FOLDER = "/records/prod"
T0_MS = 1_763_719_260_000


def window(number: int, size: int = 20, messages: int = 2) -> list[Record]:
    header = BatchHeader("agent:prod", "prod", "b1", "boot-1", 1, 2, is_inferred=True)
    return [
        Record(header, place, number.to_bytes(2, "big") + bytes([place]) * size)
        for place in range(messages)
    ]


def names(fs: MemFs) -> list[str]:
    return [name for name in fs.list_directory(FOLDER) if not name.startswith(".")]


def content(fs: MemFs, name: str) -> list[bytes]:
    file = fs.open(f"{FOLDER}/{name}")
    at = 0

    def read(size: int) -> bytes:
        nonlocal at
        piece = file.read_at(at, size)
        at += len(piece)
        return piece

    return list(frames(read))


def test_a_window_is_a_file_named_after_its_end() -> None:
    fs = MemFs()
    files = RecordFiles(fs, FOLDER)
    files.write(window(7), T0_MS)
    assert names(fs) == [f"{T0_MS}.records"]
    assert content(fs, f"{T0_MS}.records") == [each.data for each in window(7)]
    assert (files.counts.files, files.counts.bytes) == (1, files.held_bytes)


def test_names_ascend_also_if_the_clock_goes_back_and_over_a_restart() -> None:
    fs = MemFs()
    files = RecordFiles(fs, FOLDER)
    files.write(window(0), T0_MS)
    files.write(window(1), T0_MS - 3_600_000)
    files.close()
    RecordFiles(fs, FOLDER).write(window(2), T0_MS)
    assert names(fs) == [f"{T0_MS + n}.records" for n in range(3)]


def test_two_agents_do_not_share_a_folder() -> None:
    fs = MemFs()
    files = RecordFiles(fs, FOLDER)
    with pytest.raises(InputError, match="is used by another agent"):
        RecordFiles(fs, FOLDER)
    files.close()
    RecordFiles(fs, FOLDER)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 40), st.integers(0, 2**32))
def test_a_power_cut_leaves_whole_windows_and_none_that_was_written_is_lost(
    operations: int, seed: int
) -> None:
    disk = MemFs()
    written: list[int] = []

    def stop(operation: Operation) -> None:
        if operation.index >= operations:
            raise OSError(errno.EIO, "the machine stops")

    faulty = FaultyFs(disk, stop)
    try:
        files = RecordFiles(faulty, FOLDER)
        for number in range(4):
            files.write(window(number), T0_MS + number)
            written.append(number)
    except (InputError, RecordFilesError):
        pass
    after = disk.crash_clone(seed)
    restarted = RecordFiles(after, FOLDER)
    found = [content(after, name) for name in names(after)]
    assert [messages[0][:2] for messages in found[: len(written)]] == [
        n.to_bytes(2, "big") for n in written
    ]
    assert all(len(messages) == 2 for messages in found)
    restarted.write(window(9), T0_MS)
    assert content(after, names(after)[-1])[0][:2] == (9).to_bytes(2, "big")
    assert not [name for name in after.list_directory(FOLDER) if name.startswith(".1")]


def test_the_folder_is_bounded_by_bytes_and_age() -> None:
    fs = MemFs()
    files = RecordFiles(fs, FOLDER, FileBounds(bytes_max=250))
    for number in range(10):
        files.write(window(number), T0_MS + number)
    assert files.held_bytes <= 250
    kept = len(names(fs))
    assert (kept, files.counts.removed) == (4, 6)
    files.close()
    aged = RecordFiles(fs, FOLDER, FileBounds(age_ms_max=60_000))
    aged.write(window(10), T0_MS + 3_600_000)
    assert names(fs) == [f"{T0_MS + 3_600_000}.records"]
    # A file that the reader removed is no failure.
    fs.remove(f"{FOLDER}/{T0_MS + 3_600_000}.records")
    aged.write(window(11), T0_MS + 7_200_000)
    assert aged.counts.failures == 0


def test_a_full_disk_loses_a_window_and_frees_the_oldest() -> None:
    disk = MemFs()
    RecordFiles(disk, FOLDER).close()
    faulty = FaultyFs(disk)
    files = RecordFiles(faulty, FOLDER)
    files.write(window(0), T0_MS)
    files.write(window(1), T0_MS + 1)

    def full(operation: Operation) -> int | None:
        return 3 if operation.kind == "write" else None

    faulty.plan = full
    with pytest.raises(RecordFilesError, match="no space left"):
        files.write(window(2), T0_MS + 2)
    assert names(disk) == [f"{T0_MS + 1}.records"]
    faulty.plan = lambda _: None
    files.write(window(3), T0_MS + 3)
    assert names(disk) == [f"{T0_MS + 1}.records", f"{T0_MS + 3}.records"]
    assert (files.counts.failures, files.counts.removed) == (1, 1)
