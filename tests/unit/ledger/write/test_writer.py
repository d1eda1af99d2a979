"""The commit thread's side, by itself."""

from __future__ import annotations

import errno

import pytest

from headgate.base.errors import InvariantError, StorageError
from headgate.fs import FaultyFs, MemFs, Operation
from headgate.ledger import LogFailedError, LogFullError
from headgate.ledger.format.records import segment_name
from headgate.ledger.write.batch import Batch, Chunk
from headgate.ledger.write.writer import LogWriter
from headgate.testing.interleaved import Interleaving


def writer(fs: MemFs | FaultyFs) -> LogWriter:
    fs.make_directory("/d")
    return LogWriter(fs, "/d", 4096, 5)


def failing(kind: str, code: int) -> FaultyFs:
    def plan(operation: Operation) -> None:
        if operation.kind == kind:
            raise OSError(code, "broken")

    return FaultyFs(MemFs(), plan)


def test_a_prepared_segment_survives_a_power_cut() -> None:
    fs = MemFs()
    one = writer(fs)
    one.prepare(1)
    one.prepare(1)
    assert one.has(1)
    assert fs.crash_clone().open(f"/d/{segment_name(1)}").size() == 4096
    one.discard(1)
    one.discard(1)
    assert not one.has(1)
    assert fs.crash_clone().list_directory("/d") == []


@pytest.mark.parametrize(
    ("kind", "code", "error"),
    [
        ("create", errno.ENOSPC, LogFullError),
        ("allocate", errno.ENOSPC, LogFullError),
        ("allocate", errno.EDQUOT, LogFullError),
        ("allocate", errno.EFBIG, LogFullError),
        ("write", errno.ENOSPC, LogFullError),
        ("create", errno.EMFILE, StorageError),
        ("sync", errno.ENOSPC, LogFailedError),
        ("sync", errno.EIO, LogFailedError),
        ("sync_directory", errno.EIO, LogFailedError),
        ("create", errno.EROFS, LogFailedError),
    ],
)
def test_what_each_error_means(kind: str, code: int, error: type[StorageError]) -> None:
    fs = failing(kind, code)
    one = writer(fs)
    with pytest.raises(error) as caught:
        one.prepare(1)
    assert caught.value.retryable is (error is not LogFailedError)
    fs.plan = lambda _operation: None
    if error is LogFailedError:
        with pytest.raises(LogFailedError):
            one.prepare(2)
    else:
        one.prepare(1)


def test_sealing_cuts_the_file_and_closes_it() -> None:
    fs = MemFs()
    one = writer(fs)
    one.prepare(1)
    one.seal(1, 100, [b"foot", b"er"])
    assert not one.has(1)
    after = fs.crash_clone()
    assert after.open(f"/d/{segment_name(1)}").read_at(100, 99) == b"footer"
    one.sync(1)
    one.seal(1, 100, [b"x"])
    assert one.close() == []


def test_a_small_segment_becomes_whole() -> None:
    fs = MemFs(2_000)
    one = writer(fs)
    with pytest.raises(LogFullError):
        one.prepare(1)
    one.prepare_small(1)
    assert (one.has(1), one.is_whole(1)) == (True, False)
    with pytest.raises(LogFullError):
        one.prepare(1)
    assert fs.used_bytes() < 200
    fs.capacity_bytes = None
    one.prepare(1)
    assert one.is_whole(1)
    assert fs.crash_clone().open(f"/d/{segment_name(1)}").size() == 4096
    one.prepare_small(1)
    assert one.is_whole(1)


def test_a_cut_spares_what_is_written() -> None:
    fs = MemFs()
    one = writer(fs)
    one.prepare(1)
    one.cut(2)
    body = b"x" * 1_000
    one.write_batch(Batch((Chunk(1, 1, 64, 64 + len(body), [body]),), (), (), len(body), 1))
    one.cut(1)
    one.cut(1)
    assert (one.has(1), one.is_whole(1)) == (True, False)
    file = fs.crash_clone().open(f"/d/{segment_name(1)}")
    assert file.read_at(64, 1_000) == body
    assert file.size() == 64 + 1_000 + 4096 // 64


@pytest.mark.parametrize("what", ["cut", "prepare"])
def test_a_disk_that_fails_a_cut_or_an_enlargement_is_named(what: str) -> None:
    armed: list[str] = []

    def plan(operation: Operation) -> None:
        if operation.kind in armed:
            raise OSError(errno.EIO, "broken")

    one = writer(FaultyFs(MemFs(), plan))
    if what == "cut":
        one.prepare(1)
    else:
        one.prepare_small(1)
    armed += ["truncate", "allocate"]
    with pytest.raises(LogFailedError):
        getattr(one, what)(1)
    with pytest.raises(LogFailedError):
        getattr(one, what)(1)


def test_what_is_not_there_is_not_reserved() -> None:
    """Else it would be taken, for a moment, from others on the disk: once a second while full."""
    asked: list[str] = []

    def plan(operation: Operation) -> None:
        asked.append(operation.kind)

    inner = MemFs(4_095)
    fs = FaultyFs(inner, plan)
    one = writer(fs)
    asked.clear()
    with pytest.raises(LogFullError, match="needs 4,096 bytes, and 4,095 are free"):
        one.prepare(1)
    one.prepare_small(1)
    asked.clear()
    inner.capacity_bytes = 4_095
    with pytest.raises(LogFullError, match="needs 4,032 bytes, and 4,031 are free"):
        one.prepare(1)
    assert asked == []


# -- two threads ---------------------------------------------------------------------------------


def batch_of(segment: int, start: int, data: bytes) -> Batch:
    end = start + len(data)
    return Batch((Chunk(1, segment, start, end, [data]),), (), (), len(data), 1)


@pytest.mark.parametrize("commit_first", [True, False])
@pytest.mark.parametrize("steps_before", range(8))
def test_two_threads_that_make_one_segment_lose_nothing(
    commit_first: bool, steps_before: int
) -> None:
    steps = Interleaving()
    fs = MemFs()
    one = writer(FaultyFs(fs, lambda _: steps.stop_here()))
    one._make_lock = steps.lock()  # type: ignore[assignment]
    data = b"acknowledged"
    commit = steps.begin(lambda: one.write_batch(batch_of(1, 64, data)))
    upkeep = steps.begin(lambda: one.prepare(1))
    ahead, behind = (commit, upkeep) if commit_first else (upkeep, commit)
    for _ in range(steps_before):
        if not ahead.is_done:
            ahead.step()
    for _ in range(4):
        if not behind.is_done:
            behind.step()
    while not (ahead.is_done and behind.is_done):
        for one_of_them in (ahead, behind):
            if not one_of_them.is_done:
                one_of_them.step()
    assert commit.error is upkeep.error is None
    assert fs.crash_clone().open(f"/d/{segment_name(1)}").read_at(64, len(data)) == data


def test_a_commit_waits_for_the_small_segment_that_the_upkeep_makes() -> None:
    steps = Interleaving()

    class StoppedAdd(set[int]):
        def add(self, segment: int) -> None:
            super().add(segment)
            steps.stop_here()

    fs = MemFs()
    one = writer(fs)
    one._make_lock = steps.lock()  # type: ignore[assignment]
    one._small = StoppedAdd()
    upkeep = steps.begin(lambda: one.prepare_small(1))
    upkeep.step()
    assert one.is_small(1)
    assert not one.has(1)
    commit = steps.begin(lambda: one.write_batch(batch_of(1, 64, b"acknowledged")))
    commit.step()
    upkeep.finish()
    commit.finish()
    assert fs.crash_clone().open(f"/d/{segment_name(1)}").read_at(64, 12) == b"acknowledged"


def test_an_open_segment_is_never_emptied() -> None:
    """Without the lock, a second creation ends the log and keeps what is stored."""
    fs = MemFs()
    one = writer(fs)
    one.write_batch(batch_of(1, 64, b"acknowledged"))
    with pytest.raises(LogFailedError, match="file exists"):
        one._create(1, 4096)
    assert fs.crash_clone().open(f"/d/{segment_name(1)}").read_at(64, 12) == b"acknowledged"


def test_a_segment_is_made_again_after_a_removal_that_failed() -> None:
    refused = {"write", "remove"}

    def plan(operation: Operation) -> None:
        if operation.kind in refused:
            raise OSError(errno.ENOSPC, "full")

    one = writer(FaultyFs(MemFs(), plan))
    with pytest.raises(LogFullError):
        one.prepare(1)
    refused.clear()
    one.prepare(1)
    assert one.is_whole(1)


def test_a_segment_with_a_refused_chunk_is_not_sealed() -> None:
    fs = FaultyFs(MemFs())
    one = writer(fs)
    one.prepare(1)

    def plan(operation: Operation) -> None:
        if operation.kind == "write":
            raise OSError(errno.ENOSPC, "full")

    fs.plan = plan
    with pytest.raises(LogFullError):
        one.write_batch(batch_of(1, 64, b"acknowledged"))
    assert one.refused_segments() == [1]
    with pytest.raises(InvariantError):
        one.seal(1, 64, [b"footer"])
    fs.plan = lambda _: None
    one.wipe_refused()
    one.seal(1, 64, [b"footer"])


def reused(fs: MemFs) -> LogWriter:
    """A writer whose segment 2 is in the file of the deleted segment 1, full of its bytes."""
    one = writer(fs)
    one.prepare(1)
    one.write_batch(batch_of(1, 64, b"x" * (4096 - 64)))
    one.seal(1, 4000, [b"footer" * 10])
    one.delete(1)
    assert one.old_files.count == 1
    one.prepare(2)
    assert one.old_files.count == 0
    return one


def of_segment(fs: MemFs, segment: int) -> bytes:
    return fs.open(f"/d/{segment_name(segment)}").read_at(0, 1 << 20)


def test_a_batch_in_an_old_file_ends_with_zeros() -> None:
    fs = MemFs()
    one = reused(fs)
    one.write_batch(batch_of(2, 64, b"x" * 1_000))
    data = of_segment(fs.crash_clone(), 2)
    end = 64 + 1_000
    assert data[end : end + 16] == bytes(16)
    assert b"x" * 2_000 in data[end:]


def test_a_cut_of_an_old_file_leaves_zeros_at_its_end() -> None:
    fs = MemFs()
    one = reused(fs)
    one.write_batch(batch_of(2, 64, b"x" * 1_000))
    one.cut(2)
    data = of_segment(fs.crash_clone(), 2)
    assert data[64:1_064] == b"x" * 1_000
    assert data[-64:] == bytes(64)


def test_a_footer_is_durable_before_its_file_ends_behind_it() -> None:
    """Otherwise a power cut in between would leave old bytes where a footer is looked for."""
    fs = MemFs()
    one = reused(fs)
    one.write_batch(batch_of(2, 64, b"x" * 1_000))
    faulty = FaultyFs(fs)
    again = LogWriter(faulty, "/d", 4096, 5)
    kinds: list[str] = []
    faulty.plan = lambda operation: kinds.append(operation.kind)
    again.seal(2, 1_064, [b"footer"])
    assert kinds[kinds.index("write") : kinds.index("truncate")] == ["write", "sync"]


def test_old_files_go_when_the_disk_is_full() -> None:
    fs = MemFs()
    one = writer(fs)
    one.old_files.count_max = 2
    one.prepare(1)
    one.prepare(2)
    for segment in (1, 2):
        one.seal(segment, 4000, [b"footer" * 10])
        one.delete(segment)
    assert one.old_files.count == 2
    fs.capacity_bytes = fs.used_bytes() + 1_000
    one.prepare_small(3)
    one.prepare(4)  # of an old file: it has its room
    assert (one.is_whole(4), one.old_files.count) == (True, 1)
    fs.capacity_bytes = fs.used_bytes()
    with pytest.raises(LogFullError):
        one.write_batch(batch_of(3, 64, b"x" * 3_000))
    assert one.old_files.count == 0
    assert fs.list_directory("/d") == [segment_name(3), segment_name(4)]


def test_an_old_file_takes_no_name_that_is_in_use() -> None:
    fs = MemFs()
    one = writer(fs)
    one.prepare(1)
    one.seal(1, 4000, [b"footer" * 10])
    one.delete(1)
    fs.create(f"/d/{segment_name(2)}")
    with pytest.raises(LogFailedError, match="exists"):
        one.prepare(2)


def test_a_name_that_cannot_be_looked_at_leaves_the_old_file_alone() -> None:
    """The segment gets a new file, which is only made where there is none."""
    fs = MemFs()
    one = writer(faulty := FaultyFs(fs))
    one.prepare(1)
    one.seal(1, 4000, [b"footer" * 10])
    one.delete(1)

    def plan(operation: Operation) -> None:
        if operation.kind == "open":
            raise OSError(errno.EIO, "this part of the disk is not readable")

    faulty.plan = plan
    one.prepare(2)
    assert one.is_whole(2)
    assert one.old_files.count == 1
    one.write_batch(batch_of(2, 64, b"x"))
