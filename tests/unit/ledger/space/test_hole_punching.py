"""What nobody holds of a segment goes back to the file system; what is held stays readable."""

from __future__ import annotations

import errno
import random
from array import array
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.errors import StorageError
from headgate.fs import FaultyFs, MemFs, Operation
from headgate.ledger import CommitLog, LedgerSettings
from headgate.ledger.format.records import ENTRY_HEAD_BYTES, SEGMENT_HEADER_BYTES
from headgate.ledger.index.block_cache import BlockCache, NoFiles
from headgate.ledger.index.columns import Columns
from headgate.ledger.index.state import SegmentInfo
from headgate.ledger.index.topic_log import TopicLog
from headgate.ledger.space import maintenance
from headgate.ledger.space.hole_punching import PAGE_BYTES, HoleFinder, holes
from tests.unit.ledger.space.test_maintenance import drain
from tests.unit.ledger.support import append, bodies_of, commit, open_log

SEGMENT = 128 * 1024
SETTINGS = LedgerSettings(
    segment_bytes=SEGMENT, extent_bytes=4096, checkpoint_bytes=1 << 30, hole_bytes_min=4096,
    slice_items=2,
)  # fmt: skip


def filled(fs: MemFs | FaultyFs, count: int = 400) -> CommitLog:
    """A large topic 1 beside small topics 2 and 3."""
    log = open_log(fs, topics=[1, 2, 3], settings=SETTINGS)
    for at in range(count):
        append(log, 1, bytes([at % 256]) * 4_000)
        if at % 20 == 0:
            append(log, 2 + at // 20 % 2, b"small %d" % at)
        log.run_maintenance()
    return log


def give_up(log: CommitLog, number: int = 1) -> None:
    """All of a topic is acknowledged, and not retained."""
    topic = log.topic(number)
    log.roll_ledger(topic, 5_000)
    log.stage_trim(topic, topic.end)
    commit(log)


def columns_of(finder: HoleFinder) -> list[Columns]:
    cache = BlockCache(NoFiles(), 0)
    while finder.collect(1):
        pass
    return [cache.resolve(part) for part in finder.parts]


# -- where holes are -----------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(0, 60_000), st.integers(0, 9_000)), max_size=30),
    st.sampled_from([1, PAGE_BYTES, 5 * PAGE_BYTES]),
)
def test_holes_are_whole_pages_that_nobody_holds(
    gaps_and_sizes: list[tuple[int, int]], smallest: int
) -> None:
    at = SEGMENT_HEADER_BYTES
    held: list[Columns] = []
    taken: list[tuple[int, int]] = []
    for gap, size in gaps_and_sizes:
        at += gap
        none = array("q")
        held.append(Columns(array("I", (at,)), none, none, none, array("q", (70, 70 + size))))
        taken.append((at, at + ENTRY_HEAD_BYTES + size))
        at = taken[-1][1]
    end = at + 50_000
    random.Random(at).shuffle(held)
    found = holes(held, end, smallest)
    for offset, size in found:
        assert offset % PAGE_BYTES == size % PAGE_BYTES == 0
        assert size >= smallest
        assert offset > 0
        assert offset + size <= end
        assert all(stop <= offset or start >= offset + size for start, stop in taken)
    given_back = sum(size for _, size in found)
    dead = end - SEGMENT_HEADER_BYTES - sum(stop - start for start, stop in taken)
    assert given_back >= dead - (len(taken) + 1) * max(smallest, PAGE_BYTES) - 2 * PAGE_BYTES * (
        len(taken) + 1
    )


def test_a_finder_counts_what_is_dead() -> None:
    info = SegmentInfo(1, data_end=10_000)
    topic = TopicLog(1)
    topic.open_run(1)
    topic.open_ledger(1, 0, 0)
    for at in range(3):
        topic.append(1, 1_000, 0, 0, 64 + at * 1_100)
    topic.end = topic.staged_end
    other = TopicLog(2)
    finder = HoleFinder(info)
    for each in (topic, other):
        finder.add(each)
    live = 3 * (1_000 + ENTRY_HEAD_BYTES)
    assert finder.dead_bytes == 10_000 - SEGMENT_HEADER_BYTES - live
    assert [list(part.offsets) for part in columns_of(finder)] == [[64, 1_164, 2_264]]
    other.damage = "at some place"
    finder.add(other)
    assert finder.dead_bytes == 0


def test_a_topic_that_is_trimmed_after_it_was_added_keeps_the_rest() -> None:
    topic = TopicLog(1)
    topic.open_ledger(1, 0, 0)
    for segment in (1, 2):
        topic.open_run(segment)
        for at in range(5_000):
            topic.append(1, 100, 0, 0, 64 + at * 200)
    topic.end = topic.staged_end
    finder = HoleFinder(SegmentInfo(2, data_end=2_000_000))
    finder.add(topic)
    topic.trim(6_000)
    assert topic.base == 6_000  # the index of what was trimmed is gone
    (columns,) = columns_of(finder)
    assert list(columns.offsets) == [64 + at * 200 for at in range(1_000, 5_000)]
    assert len(columns.sizes) == len(columns.offsets) + 1
    later = HoleFinder(SegmentInfo(2, data_end=2_000_000))
    later.add(topic)
    topic.trim(10_000)
    assert columns_of(later) == []


def test_what_very_many_topics_retain_is_looked_up_in_slices() -> None:
    """100,000 topics in one segment held the loop for 97 ms."""
    finder = HoleFinder(SegmentInfo(1, data_end=2_000_000))
    for number in range(1_000):
        topic = TopicLog(number)
        topic.open_run(1)
        topic.open_ledger(1, 0, 0)
        topic.append(1, 1_000, 0, 0, 64 + number * 1_100)
        topic.end = topic.staged_end
        finder.add(topic)
    found = [0]
    while finder.collect(64):
        found.append(len(finder.parts))
    assert found[-1] == 1_000
    assert max(after - before for before, after in pairwise(found)) == 64


# -- in a log ------------------------------------------------------------------------------------


@pytest.mark.parametrize("restart", ["", "crash", "close"])
def test_small_topics_keep_little_of_what_was_published_beside_them(restart: str) -> None:
    fs = MemFs()
    log = filled(fs)
    before = fs.used_bytes()
    assert before > 12 * SEGMENT
    give_up(log)
    assert "punch" in drain(log)
    assert fs.used_bytes() < 4 * SEGMENT
    wanted = [bodies_of(log, number) for number in (1, 2, 3)]
    assert [len(found) for found in wanted] == [0, 10, 10]
    if restart == "close":
        log.close()
    if restart:
        log = open_log(fs.crash_clone(5), topics=[1, 2, 3], settings=SETTINGS)
        drain(log)
    assert [bodies_of(log, number) for number in (1, 2, 3)] == wanted
    append(log, 2, b"more")
    assert "punch" not in drain(log)


def test_a_crash_before_the_holes_makes_them_after_the_start() -> None:
    fs = MemFs()
    log = filled(fs)
    give_up(log)
    while (job := log.maintenance_step()) is None or job.name != "punch":
        if job is not None:
            job.run()
            log.finish_job(job)
        elif log.staged_records:
            commit(log)
    fs = fs.crash_clone()
    log = open_log(fs, topics=[1, 2, 3], settings=SETTINGS)
    assert "punch" in drain(log)
    assert fs.used_bytes() < 4 * SEGMENT
    assert len(bodies_of(log, 2)) == 10


def test_a_checkpoint_is_made_early_for_holes_that_are_worth_it() -> None:
    fs = MemFs()
    log = filled(fs, count=80)
    give_up(log)
    assert drain(log).count("checkpoint") == 1


def test_little_waste_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    freed: list[int] = []

    class Watched(HoleFinder):
        def forget(self, topics_max: int) -> bool:
            freed.append(topics_max)
            return super().forget(topics_max)

    monkeypatch.setattr(maintenance, "HoleFinder", Watched)
    fs = MemFs()
    log = open_log(fs, topics=[1, 2], settings=SETTINGS)
    for _ in range(60):
        append(log, 2, bytes(4_000))
        append(log, 1, bytes(100))
        log.run_maintenance()
    give_up(log)
    assert "punch" not in drain(log)
    assert set(freed) == {SETTINGS.slice_items}  # not all topics at once


def test_segments_of_a_damaged_topic_stay_as_they_are() -> None:
    log = filled(MemFs())
    for number in (2, 3):
        log.topic(number).damage = "at some place"
    give_up(log)
    assert "punch" not in drain(log)


class NoHoles(MemFs):
    """A file system that cannot make holes."""

    def open(self, path: str, *, writable: bool = False):  # type: ignore[no-untyped-def]
        file = super().open(path, writable=writable)
        return Solid(file)


class Solid:
    """One of its files."""

    def __init__(self, file: object) -> None:
        self._file = file

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)

    def punch(self, offset: int, size: int) -> bool:
        return False


def test_where_there_are_no_holes_it_is_tried_once() -> None:
    log = filled(NoHoles())
    give_up(log)
    assert drain(log).count("punch") == 1
    assert len(bodies_of(log, 2)) == 10


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("kind", ["punch", "open"])
def test_a_disk_that_fails_harms_nothing(kind: str, code: int) -> None:
    armed: list[str] = []

    def plan(operation: Operation) -> None:
        if operation.kind in armed:
            raise OSError(code, "not now")

    log = filled(FaultyFs(MemFs(), plan))
    give_up(log)
    while (job := log.maintenance_step()) is None or job.name != "punch":
        if job is not None:
            job.run()
            log.finish_job(job)
        elif log.staged_records:
            commit(log)
    armed.append(kind)
    with pytest.raises(StorageError, match=r"punching holes into|reading 0") as caught:
        job.run()
    log.finish_job(job, caught.value)
    assert log.failed is None
    armed.clear()
    assert len(bodies_of(log, 2)) == 10
    assert log.maintenance_step() is None  # the pause is over: it is tried again
    assert "punch" in drain(log)


def test_what_is_not_worth_it_is_freed_in_slices() -> None:
    """70,000 topics in a segment that was not worth a hole held the loop for 10 to 25 ms."""
    finder = HoleFinder(SegmentInfo(1, data_end=2_000_000))
    topic = TopicLog(1)
    topic.open_run(1)
    topic.open_ledger(1, 0, 0)
    topic.append(1, 1_000, 0, 0, 64)
    topic.end = topic.staged_end
    for _ in range(1_000):
        finder.add(topic)
    dead_bytes = finder.dead_bytes
    slices = 0
    while finder.forget(64):
        slices += 1
    assert slices == 16
    assert not finder.collect(64)
    assert finder.dead_bytes == dead_bytes


def steps_done(log: CommitLog, count: int) -> int:
    """Do so many steps of maintenance, or fewer if no more are due, with their jobs."""
    for done in range(count):
        if not log.maintenance_due():
            return done
        job = log.maintenance_step()
        if job is not None:
            job.run()
            log.finish_job(job)
    return count


def test_a_checkpoint_between_two_steps_makes_no_hole_of_what_is_held() -> None:
    """Steps that had begun to forget a segment, which was to wait for a checkpoint, went on to
    punch it when that came between them: what they had forgotten was lost."""
    for count in range(1_000):
        log = filled(MemFs(), 120)
        kept = bodies_of(log, 2), bodies_of(log, 3)
        give_up(log)
        done = steps_done(log, count)
        log.checkpoint()
        drain(log)
        assert (bodies_of(log, 2), bodies_of(log, 3)) == kept
        if done < count:
            break
    assert count > 10
