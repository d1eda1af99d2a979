"""A topic whose index is on the disk answers like one whose index is in memory."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.base.errors import StorageError
from headgate.ledger.index import footer
from headgate.ledger.index.block_cache import BlockCache
from headgate.ledger.index.footer import FooterBuilder
from headgate.ledger.index.sparse_index import SparseIndex, stored_totals
from headgate.ledger.index.stored_run import StoredRun, segment_of_file
from headgate.ledger.index.topic_log import TopicLog

NUMBER = 6
DATA_END = 1 << 20


@pytest.fixture(autouse=True, scope="module")
def small_blocks() -> Iterator[None]:
    """Blocks of 4 entries, so that short runs have several."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(footer, "BLOCK_ENTRIES", 4)
        yield


class Files:
    """Footers in memory, by segment. The records are zeros, as in a punched hole."""

    def __init__(self) -> None:
        self.footers: dict[int, bytes] = {}
        self.reads = 0

    def seal(self, topic: TopicLog, segment: int) -> list[StoredRun]:
        """Store what a topic has in a segment."""
        builder = FooterBuilder(segment, DATA_END)
        builder.add(topic)
        self.footers[segment] = b"".join(builder.finish())
        return builder.directory.runs

    def read(self, file: int, offset: int, size: int) -> bytes:
        self.reads += 1
        file = segment_of_file(file)
        if file not in self.footers:
            raise StorageError("the file is gone", retryable=True)
        if offset < DATA_END:
            return bytes(size)
        return self.footers[file][offset - DATA_END : offset - DATA_END + size]


class Pair:
    """The same topic twice: its index in memory, and left to the disk."""

    def __init__(self, cache_bytes: int = 4_000) -> None:
        self.files = Files()
        self.cache = BlockCache(self.files, cache_bytes)
        self.plain, self.spilled = TopicLog(NUMBER), TopicLog(NUMBER)
        self.segment = 1
        self.has_lost = False
        self.open_run()

    def both(self, do: Callable[[TopicLog], object]) -> None:
        one, other = do(self.plain), do(self.spilled)
        assert one == other

    def open_run(self) -> None:
        self.both(lambda topic: topic.open_run(self.segment))

    def append(self, count: int, size: int, step_ms: int, lag_ms: int, ledger: bool) -> None:
        self.open_run()
        for at in range(count):
            if ledger and at == count // 2:
                self.both(lambda topic: topic.open_ledger(topic.end + 1, topic.end, 5))
            log_ms = self.plain.newest_received_ms + step_ms * (at % 2)
            times = self.plain.times_of_next(log_ms, log_ms - lag_ms)
            offset = 64 + 50 * at + 1_000 * (self.plain.staged_end % 100)
            for topic in (self.plain, self.spilled):
                topic.append(1 + at % 3, size + at, *times, offset)
                topic.end = topic.staged_end

    def seal(self) -> None:
        """Seal the segment; the topic continues in the next one."""
        runs = self.files.seal(self.spilled, self.segment)
        for run in runs:
            kept = max(run.first, self.spilled.first)
            assert self.spilled.spill(run, self.cache) or kept >= run.stop
        self.segment += 1
        self.open_run()

    def trim(self, part: int) -> None:
        first = self.plain.first + (self.plain.end - self.plain.first) * part // 4
        self.both(lambda topic: topic.trim(first))

    def check(self) -> None:
        """Compare everything that both answer."""
        plain, spilled = self.plain, self.spilled
        first, end = plain.first, plain.end
        assert (spilled.first, spilled.end, spilled.staged_end) == (first, end, plain.staged_end)
        for ordinal in range(first, end):
            for name in ("message_count", "size_bytes", "received_ms", "published_ms", "position"):
                assert getattr(spilled, name)(ordinal) == getattr(plain, name)(ordinal), name
            assert spilled.run_of(ordinal) == plain.run_of(ordinal)
        for ordinal in range(first, end + 1):
            for name in ("messages_before", "bytes_before", "totals"):
                assert getattr(spilled, name)(ordinal) == getattr(plain, name)(ordinal), name
            near, is_exact = spilled.totals_near(ordinal)
            assert near <= plain.totals(ordinal)
            assert near == plain.totals(ordinal) or not is_exact
            if ordinal < end:
                self.check_running_totals(ordinal, end)
                assert spilled.received_latest_ms(ordinal) >= plain.received_ms(ordinal)
            size_bytes = plain.bytes_before(ordinal) + ordinal % 3
            for low, high in ((first, end), (first, end + 1), (ordinal, end)):
                found = spilled.ordinal_with_bytes_before(size_bytes, low, high)
                assert found == plain.ordinal_with_bytes_before(size_bytes, low, high)
                before = [plain.bytes_before(each) for each in range(low, high)]
                assert found == low + bisect_left(before, size_bytes)
        for received_ms in range(plain.newest_received_ms + 2):
            for name in ("ordinal_received_at_or_after", "ordinal_published_at_or_after"):
                assert getattr(spilled, name)(received_ms) == getattr(plain, name)(received_ms)
        for low in range(first, end, 3):
            for high in (low, low + 1, (low + end) // 2, end):
                # A lost entry has an offset of another record: which one does not matter.
                part = 1 if self.has_lost else 0
                assert spilled.columns(low, high)[part:] == plain.columns(low, high)[part:]
                assert spilled.live_bytes(low, high) == plain.live_bytes(low, high)
            if not self.has_lost:
                assert spilled.offset_end(low, end, 999) == plain.offset_end(low, end, 999)
        assert spilled.live_runs() == plain.live_runs()
        assert spilled.ledgers() == plain.ledgers()
        starts = [ledger.first_ordinal for ledger in plain.ledgers()]
        assert spilled.ledger_starts() == plain.ledger_starts() == starts
        assert spilled.current_ledger_bytes == plain.current_ledger_bytes
        for segment in range(1, self.segment + 1):
            assert spilled.live_bytes_in(segment) == plain.live_bytes_in(segment)
            run = plain.run_in(segment)
            assert (run is None) == (spilled.run_in(segment) is None) or plain.base < first

    def check_running_totals(self, first: int, end: int) -> None:
        """Running totals lead from one entry to the next, and are there if the index is."""
        topic = self.spilled
        at, rows = first, 0
        while at < end:
            found = topic.running_totals(at, end)
            assert (found is not None) == topic.is_indexed(at)
            if found is None:
                topic.columns(at, at + 1)  # reads it
                continue
            messages, sizes, base, stop = found
            for ordinal in range(at, stop):
                count = messages[ordinal + 1 - base] - messages[ordinal - base]
                assert count == self.plain.message_count(ordinal)
                size_bytes = sizes[ordinal + 1 - base] - sizes[ordinal - base]
                assert size_bytes == self.plain.size_bytes(ordinal)
            assert at < stop <= end
            at, rows = stop, rows + 1
            if rows > 2:
                return


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("append"), st.integers(1, 23), st.integers(0, 90), st.integers(0, 3),
            st.integers(0, 4), st.booleans(),
        ),
        st.tuples(st.just("seal")),
        st.tuples(st.just("trim"), st.integers(0, 4)),
        st.tuples(st.just("lose"), st.integers(1, 5)),
    ),
    max_size=12,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(STEPS, st.sampled_from([0, 4_000, 1 << 20]), st.booleans())
def test_the_same_answers(
    steps: list[tuple[object, ...]], cache_bytes: int, has_totals: bool
) -> None:
    pair = Pair(cache_bytes)
    if has_totals:
        pair.cache.started()
    pair.both(lambda topic: topic.open_ledger(1, 0, 0))
    for name, *arguments in steps:
        if name == "lose":
            lost = arguments[0]
            assert isinstance(lost, int)
            pair.open_run()
            pair.has_lost = True
            totals = pair.plain.totals(pair.plain.end)._replace(messages=10_000)
            stop = pair.plain.staged_end + lost
            pair.both(lambda topic, stop=stop, totals=totals: topic.append_lost(stop, totals))
        else:
            getattr(pair, str(name))(*arguments)
        pair.check()


@settings(max_examples=100, deadline=None)
@given(STEPS, st.integers(0, 9), st.integers(0, 40))
def test_times_can_be_bounded(steps: list[tuple[object, ...]], before: int, bound: int) -> None:
    pair = Pair()
    for name, *arguments in steps:
        if name != "lose":
            getattr(pair, str(name))(*arguments)
    before_segment = before if before < 9 else None
    pair.both(lambda topic: topic.bound_times(before_segment, bound))
    pair.check()
    pair.append(5, 10, 1, 0, ledger=False)
    pair.seal()
    pair.check()


@settings(max_examples=100, deadline=None)
@given(STEPS, st.integers(0, 200))
def test_the_end_can_be_taken_back(steps: list[tuple[object, ...]], back: int) -> None:
    """Recovery does this if the log has an entry twice."""
    pair = Pair()
    for name, *arguments in steps:
        if name != "lose":
            getattr(pair, str(name))(*arguments)
    end = max(pair.plain.end - back, pair.plain.first)
    pair.plain.end = pair.spilled.end = end
    pair.both(lambda topic: topic.rewind())
    pair.segment += 1
    pair.open_run()
    pair.check()
    pair.append(7, 10, 1, 0, ledger=True)
    pair.check()


def filled(runs: int = 3) -> Pair:
    pair = Pair(1 << 20)
    pair.both(lambda topic: topic.open_ledger(1, 0, 0))
    for _ in range(runs):
        pair.append(10, 50, 2, 1, ledger=False)
        pair.seal()
    return pair


def test_what_begins_a_block_needs_no_read() -> None:
    pair = filled()
    topic = pair.spilled
    for ordinal in (0, 4, 8, 10, 14, 20, 30):
        assert topic.totals(ordinal) == pair.plain.totals(ordinal)
        assert topic.bytes_before(ordinal) == pair.plain.bytes_before(ordinal)
    assert topic.live_runs() == pair.plain.live_runs()
    assert pair.files.reads == 0
    assert topic.bytes_before(5) == pair.plain.bytes_before(5)
    assert topic.message_count(7) == pair.plain.message_count(7)
    assert pair.files.reads == pair.cache.read_at_once == 1


def test_missing_blocks_can_be_fetched_before_they_are_needed() -> None:
    pair = filled()
    missing = pair.spilled.missing_blocks(6, 17)
    assert [(key.first, key.stop) for key in missing] == [(4, 8), (8, 10), (10, 14), (14, 18)]
    assert pair.spilled.indexed_stop(6, 17) == 6
    assert not pair.spilled.is_indexed(6)
    for each in pair.cache.fetch(missing[1:]):
        pair.cache.keep(each, pair.spilled.stored)
    assert pair.spilled.indexed_stop(6, 17) == 6
    assert pair.spilled.indexed_stop(9, 17) == 17
    assert pair.spilled.indexed_stop(9, 25) == 18
    pair.cache.keep(pair.cache.fetch(missing[:1])[0], pair.spilled.stored)
    assert pair.spilled.missing_blocks(6, 17) == []
    assert pair.spilled.columns(4, 18) == pair.plain.columns(4, 18)
    assert (pair.cache.read_at_once, pair.cache.misses) == (0, 4)
    assert pair.spilled.missing_blocks(30, 31) == []


def test_parts_can_be_resolved_by_another_thread() -> None:
    pair = filled()
    pair.append(3, 50, 2, 1, ledger=False)
    assert pair.spilled.message_count(5) == pair.plain.message_count(5)
    columns = [pair.cache.resolve(part) for part in pair.spilled.parts(2, 33)]
    offsets = [offset for part in columns for offset in part.offsets]
    assert offsets == list(pair.plain.columns(2, 33).offsets)
    sizes = [b - a for part in columns for a, b in zip(part.sizes, part.sizes[1:], strict=False)]
    assert sizes == [pair.plain.size_bytes(ordinal) for ordinal in range(2, 33)]


def test_a_run_that_is_not_what_memory_has_stays_in_memory() -> None:
    pair = Pair()
    pair.append(10, 50, 2, 1, ledger=False)
    (run,) = pair.files.seal(pair.spilled, 1)
    run.sparse.messages[1] += 1
    assert not pair.spilled.spill(run, pair.cache)
    run.sparse.messages[1] -= 1
    assert pair.spilled.spill(run, pair.cache)
    assert not pair.spilled.spill(run, pair.cache)
    pair.check()


def test_a_damaged_block_without_records_is_lost_alone() -> None:
    pair = filled()
    damaged = bytearray(pair.files.footers[2])
    damaged[40] ^= 1
    pair.files.footers[2] = bytes(damaged)
    topic, plain = pair.spilled, pair.plain
    total = sum(topic.size_bytes(ordinal) for ordinal in range(10, 14))
    assert total == plain.bytes_before(14) - plain.bytes_before(10)
    for ordinal in [*range(10), *range(14, 30)]:
        assert topic.size_bytes(ordinal) == plain.size_bytes(ordinal)
    assert pair.cache.lost == 1
    assert topic.totals(30) == plain.totals(30)


def test_a_block_that_the_disk_does_not_read_once_is_not_lost() -> None:
    pair = filled()
    topic, plain, read = pair.spilled, pair.plain, pair.files.read

    def refused(file: int, offset: int, size: int) -> bytes:
        raise StorageError("this part of the disk is not readable", retryable=True)

    pair.files.read = refused  # type: ignore[method-assign]
    assert topic.size_bytes(11) != plain.size_bytes(11)  # nothing better is known now
    pair.files.read = read  # type: ignore[method-assign]
    assert pair.cache.lost == 0
    assert topic.size_bytes(11) == plain.size_bytes(11)


def test_a_part_of_a_stored_run() -> None:
    pair = filled(1)
    (run,) = pair.files.seal(pair.plain, 1)
    index = SparseIndex(NUMBER, pair.cache)
    index.add_stored(run, 3, 9, pair.plain.totals(3))
    assert (index.first, index.stop, index.rows) == (3, 9, 3)
    assert index.columns(3, 9) == pair.plain.columns(3, 9)
    assert index.after == pair.plain.totals(9)
    assert stored_totals(run, 6, pair.cache) == pair.plain.totals(6)


@pytest.mark.parametrize("segment", [1, 2, 3])
@pytest.mark.parametrize("trimmed", [0, 3])
def test_a_segment_is_rewritten_whose_index_is_in_memory_with_that_of_others(
    segment: int, trimmed: int
) -> None:
    """A start indexes segments of an earlier release, whose footers have no blocks, in memory."""
    pair = Pair(1 << 20)
    for _ in range(3):
        pair.append(10, 50, 2, 1, ledger=False)
        pair.segment += 1
    pair.append(10, 50, 2, 1, ledger=False)
    pair.seal()
    pair.append(3, 50, 2, 1, ledger=False)
    pair.both(lambda topic: topic.trim(trimmed))
    run = pair.plain.run_in(segment)
    assert run is not None
    first, stop = max(run[0], trimmed), run[1]
    columns = pair.plain.columns(first, stop)
    offsets = array("I", [offset - 7 for offset in columns.offsets])
    builder = FooterBuilder(segment, DATA_END)
    builder.add_columns(NUMBER, first, columns._replace(offsets=offsets))
    pair.files.footers[segment] = b"".join(builder.finish())
    (stored,) = builder.directory.runs
    pair.plain.move_runs(segment, segment, first, offsets, None, pair.cache)
    pair.spilled.move_runs(segment, segment, first, offsets, stored, pair.cache)
    pair.check()
    assert pair.spilled.columns(first, stop).offsets == offsets
