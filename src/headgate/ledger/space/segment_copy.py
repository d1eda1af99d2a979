"""Copies what is retained of neighbouring segments into one new file.

The event loop collects what to copy; then a thread, or another process, advances
:meth:`SegmentCopy.steps`. Entries are copied byte for byte with their checksums, in the order of
the old files, many at once, so a damaged entry stays a damaged entry. Before them stand RUN
records, behind them a footer. The new file has the name of the last of the segments with ``.tmp``
behind it, and is durable when the steps are over; then it takes the place of that segment in one
rename, and the others hold nothing any more. Each step syncs what it wrote: commits beside it wait
for that much, and with one sync at the end they would wait for the whole file.
"""

from __future__ import annotations

import contextlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Final, NamedTuple, Protocol

from headgate.base.errors import CorruptionError
from headgate.base.units import KIB
from headgate.fs.api import File, Fs
from headgate.ledger.format.directory import TEMPORARY_SUFFIX
from headgate.ledger.format.records import (
    BATCH,
    BATCH_MAGIC,
    BATCH_RECORD_BYTES,
    ENTRY_HEAD_BYTES,
    KIND_BATCH,
    KIND_RUN,
    RUN,
    RUN_RECORD_BYTES,
    SEGMENT_HEADER_BYTES,
    U32_MASK,
    has_bytes,
    record,
    segment_header,
    segment_name,
    segment_of_name,
)
from headgate.ledger.index.block_cache import BlockCache, BlockPart
from headgate.ledger.index.columns import Columns, TopicTotals, extend_columns
from headgate.ledger.index.footer import FooterBuilder
from headgate.ledger.index.stored_run import StoredRun
from headgate.ledger.index.topic_log import TopicLog
from headgate.ledger.recovery.batch_head import first_head, read_beginning

WINDOW_BYTES: Final = 64 * KIB
"""Bytes of an old file that one step reads at most, but for the rest of a longer entry. As many are
written to the new file at once, and synced: a commit waits for that, and not for all that the
kernel would collect."""
_STEP_BLOCKS: Final = 16
"""Blocks of the index that one step reads or writes at most."""
_STEP_ITEMS: Final = 128
"""Topics, or parts of them, that one step looks at."""
_TOPIC_BITS: Final = 24
_TOPIC_MASK = (1 << _TOPIC_BITS) - 1


@dataclass(slots=True)
class TopicPart:
    """What one topic retains in the segments."""

    number: int
    first: int
    """The first retained ordinal."""
    entries: int
    size_bytes: int
    """Bytes of their bodies."""
    index: list[Columns | BlockPart]
    """The index of its entries, as far as it is in memory."""
    pieces: list[tuple[int, int, int]]
    """``(segment, begin, end)``: positions in the columns of what lies in each segment."""
    runs: dict[int, bytes]
    """RUN records, which stand before the entry at a position, but for their batch."""
    offsets: array[int] = field(default_factory=lambda: array("I"))
    """The offsets in the new file."""
    columns: Columns = field(default_factory=lambda: Columns(*(array(code) for code in "IqIqq")))
    """The index of its entries, once it is loaded; the new offsets take the place of the old ones
    in ``offsets``."""


class _Pieces(NamedTuple):
    """Which entries a topic retains in neighbouring segments."""

    first: int
    """The first one's ordinal."""
    stop: int
    """One past the last."""
    segments: list[tuple[int, int, int]]
    """``(segment, first, stop)``."""
    ledgers: list[tuple[int, tuple[int, int, int]]]
    """The ordinals before which a RUN record stands, each with the row of its ledger."""


def _pieces(topic: TopicLog, segments: tuple[int, ...]) -> _Pieces | None:
    runs = [(segment, topic.run_in(segment)) for segment in segments]
    found = [
        (segment, max(run[0], topic.first), run[1])
        for segment, run in runs
        if run is not None and run[1] > topic.first
    ]
    if not found:
        return None
    first, stop = found[0][1], found[-1][2]
    rows = topic.ledger_rows()
    # The ledger of the first entry may have begun before it.
    begin = max(bisect_right(rows, first, key=itemgetter(1)) - 1, 0)
    end = bisect_left(rows, stop, key=itemgetter(1))
    ledgers = [(max(row[1], first), row) for row in rows[begin:end]]
    return _Pieces(first, stop, found, ledgers)


def part_ordinals(topic: TopicLog, segments: tuple[int, ...]) -> list[int]:
    """The ordinals whose totals :func:`topic_part` needs."""
    pieces = _pieces(topic, segments)
    if pieces is None:
        return []
    return [pieces.first, *(ordinal for ordinal, _ in pieces.ledgers), pieces.stop]


def topic_part(
    topic: TopicLog, segments: tuple[int, ...], totals: Mapping[int, TopicTotals]
) -> TopicPart | None:
    """What a topic retains in neighbouring segments; None if it is nothing. ``totals`` has those
    before each of :func:`part_ordinals`, which may need the disk."""
    pieces = _pieces(topic, segments)
    if pieces is None:
        return None
    first, stop = pieces.first, pieces.stop
    heads: dict[int, bytes] = {}
    for ordinal, ledger in pieces.ledgers:
        messages, size, received_ms, lag_ms = totals[ordinal]
        fields = (topic.number, lag_ms, ordinal, messages, size, received_ms, *ledger)
        heads[ordinal - first] = RUN.pack(*fields)
    places = [(segment, low - first, high - first) for segment, low, high in pieces.segments]
    size_bytes = totals[stop].size_bytes - totals[first].size_bytes
    index = topic.parts(first, stop)
    return TopicPart(topic.number, first, stop - first, size_bytes, index, places, heads)


class CopyTask(NamedTuple):
    """What a copy is about, but for what the topics retain."""

    directory: str
    segments: tuple[int, ...]
    """Neighbours, ascending, before the segment of the last checkpoint."""
    last_batch: int
    """The number of the last batch before that one."""
    stamp: int


class SegmentCopy:
    """One new file in the making."""

    def __init__(self, fs: Fs, task: CopyTask, blocks: BlockCache) -> None:
        """``blocks`` read what of the index is not in memory."""
        self._fs = fs
        self.task = task
        self._directory = task.directory
        self.segments = task.segments
        self.target = task.segments[-1]
        self._last_batch = task.last_batch
        self._stamp = task.stamp
        self._blocks = blocks
        self.parts: list[TopicPart] = []
        self._file: File | None = None
        self._out: list[bytes] = []
        self._at = 0
        self._written = 0
        self._next: list[int] = []
        """The position of each part's next entry."""
        self._number = 0
        self.data_end = 0
        self.file_bytes = 0
        self.stored: dict[int, StoredRun] = {}
        """The index in the new file, by topic number."""
        self.is_in_place = False
        """The new file has the name of the last segment."""
        self.replaced_name = ""
        """The second name of the file in whose place it is; empty if it has none."""

    @property
    def temporary(self) -> str:
        """The name of the new file until it takes the place of the last segment."""
        return segment_name(self.target) + TEMPORARY_SUFFIX

    def expected_bytes(self) -> int:
        """The size of the records of the new file."""
        size = SEGMENT_HEADER_BYTES + BATCH_RECORD_BYTES
        for part in self.parts:
            size += part.size_bytes + ENTRY_HEAD_BYTES * part.entries
            size += RUN_RECORD_BYTES * len(part.runs)
        return size

    @property
    def written_bytes(self) -> int:
        """Bytes written so far."""
        return self._written

    def note_written(self, size_bytes: int) -> None:
        """Note how much another process has written."""
        self._written = size_bytes

    def note_finished(self, data_end: int, file_bytes: int) -> None:
        """Note that another process has completed the new file. ``stored`` and the offsets of
        the parts are set."""
        self.data_end, self.file_bytes = data_end, file_bytes

    def steps(self) -> Generator[int]:
        """Write the new file; yields the bytes moved since the last step. Blocks, and is for the
        thread of the rewriting. Each step holds the interpreter for about a millisecond.

        Raises :class:`OSError`, and :class:`CorruptionError` if a segment is not as its index says.
        """
        yield from self._load()
        yield from self._begin()
        for segment in self.segments:
            file = self._fs.open(self._path(segment_name(segment)))
            try:
                yield from self._copy(segment, file)
            finally:
                file.close()
        self._flush()
        if self._at != self.expected_bytes():
            raise CorruptionError(f"{self.temporary} has {self._at} bytes of records")
        self.data_end = self._at
        yield from self._finish()

    def abandon(self) -> None:
        """Remove the new file. The old ones are as they were."""
        self.close()
        if not self.is_in_place:
            with contextlib.suppress(OSError):
                self._fs.remove(self._path(self.temporary))

    def close(self) -> None:
        """Close the new file, whatever it holds."""
        if self._file is not None:
            self._file.close()
            self._file = None

    # Inside ---------------------------------------------------------------------------------

    def _path(self, name: str) -> str:
        return f"{self._directory}/{name}"

    def _load(self) -> Iterator[int]:
        """Read the blocks of the index that are not in memory."""
        items = 0
        for part in self.parts:
            for piece in part.index:
                extend_columns(part.columns, self._blocks.resolve(piece))
                items += 1
                if items % _STEP_BLOCKS == 0:
                    yield 0
            part.index.clear()

    def _begin(self) -> Iterator[int]:
        previous = self._previous_of(self.segments[0])
        if previous is None:
            name = segment_name(self.segments[0])
            raise CorruptionError(f"{name} has no batch")
        following = self._previous_of(self._following())
        self._number = self._last_batch if following is None else following
        if self._number <= previous:
            raise CorruptionError(f"batch {self._number} ends what begins behind {previous}")
        count = sum(len(part.runs) + part.entries for part in self.parts)
        fields = (
            BATCH_MAGIC, self._number, previous, 0, 0, self.target, self._stamp, count,
            self.expected_bytes() - SEGMENT_HEADER_BYTES,
        )  # fmt: skip
        self._file = self._fs.create(self._path(self.temporary))
        self._put(segment_header(self.target, self._stamp))
        self._put(record(KIND_BATCH, BATCH.pack(*fields), self._number))
        for at, part in enumerate(self.parts, 1):
            self._put_run(part.runs[0])
            self._next.append(0)
            if at % _STEP_ITEMS == 0:
                yield self._flush()

    def _following(self) -> int | None:
        """The next segment that exists."""
        found = map(segment_of_name, self._fs.list_directory(self._directory))
        return min((s for s in found if s is not None and s > self.target), default=None)

    def _previous_of(self, segment: int | None) -> int | None:
        """The number of the batch before the first one of a segment; None without a batch.

        Raises :class:`CorruptionError` if its head is damaged.
        """
        if segment is None:
            return None
        beginning = read_beginning(self._fs, self._directory, segment_name(segment))
        head = first_head(beginning, segment)
        if head is None and has_bytes(beginning, SEGMENT_HEADER_BYTES):
            name = segment_name(segment)
            raise CorruptionError(f"the head of the first batch of {name} is damaged")
        return None if head is None else head.previous

    def _copy(self, segment: int, file: File) -> Iterator[int]:
        """Copy the entries of one segment, window by window."""
        windows: dict[int, list[tuple[int, int, int]]] = {}
        items = 0
        for index, part in enumerate(self.parts):
            offsets = part.columns.offsets
            for piece_segment, begin, end in part.pieces:
                if piece_segment != segment:
                    continue
                while begin < end:
                    window = offsets[begin] // WINDOW_BYTES
                    stop = bisect_left(offsets, (window + 1) * WINDOW_BYTES, begin, end)
                    windows.setdefault(window, []).append((index, begin, stop))
                    begin = stop
                    items += 1
            if items >= _STEP_ITEMS:
                items = 0
                yield 0
        for window in sorted(windows):
            keys: list[int] = []
            for index, begin, stop in windows.pop(window):
                offsets = self.parts[index].columns.offsets
                keys += [offset << _TOPIC_BITS | index for offset in offsets[begin:stop]]
            keys.sort()
            self._copy_window(file, keys)
            yield self._flush()

    def _copy_window(self, file: File, keys: list[int]) -> None:
        """Copy entries, given by offset and topic, in the order of their offsets."""
        parts, positions, mask = self.parts, self._next, _TOPIC_MASK
        base = keys[0] >> _TOPIC_BITS
        last = parts[keys[-1] & mask]
        sizes, at = last.columns.sizes, positions[keys[-1] & mask]
        at += sum(1 for key in keys if key & mask == keys[-1] & mask) - 1
        stop = (keys[-1] >> _TOPIC_BITS) + ENTRY_HEAD_BYTES + sizes[at + 1] - sizes[at]
        data = file.read_at(base, stop - base)
        if len(data) != stop - base:
            raise CorruptionError(f"a segment ends before its entry at offset {stop}")
        begin = end = base
        """The entries from ``begin`` to ``end`` lie side by side, and go to the file together."""
        for key in keys:
            offset, index = key >> _TOPIC_BITS, key & mask
            part, at = parts[index], positions[index]
            sizes = part.columns.sizes
            if offset != end or (at and at in part.runs):
                self._put(data[begin - base : end - base])
                begin = end = offset
                if at and at in part.runs:
                    self._put_run(part.runs[at])
            part.offsets.append(self._at + end - begin)
            positions[index] = at + 1
            end += ENTRY_HEAD_BYTES + sizes[at + 1] - sizes[at]
        self._put(data[begin - base : end - base])

    def _finish(self) -> Iterator[int]:
        builder = FooterBuilder(self.target, self.data_end)
        for at, part in enumerate(self.parts, 1):
            columns = part.columns._replace(offsets=part.offsets)
            builder.add_columns(part.number, part.first, columns)
            if at % _STEP_ITEMS == 0:
                yield 0
        for at, block in enumerate(builder.parts(), 1):
            self._put(block)
            if at % _STEP_BLOCKS == 0 or self._at - self._written >= WINDOW_BYTES:
                yield self._flush()
        self.stored = {run.topic_number: run for run in builder.directory.runs}
        self._flush()
        self.file_bytes = self._at
        if self._file is not None:
            self._file.close()
        yield 0

    def _put(self, data: bytes) -> None:
        if data:
            self._out.append(data)
            self._at += len(data)

    def _put_run(self, payload: bytes) -> None:
        self._put(record(KIND_RUN, payload, self._number & U32_MASK))

    def _flush(self) -> int:
        """Write what is collected, and sync it; returns its bytes."""
        moved = self._at - self._written
        if moved and self._file is not None:
            data = b"".join(self._out)
            self._out = []
            for begin in range(0, moved, WINDOW_BYTES):
                self._file.write_at(self._written, [data[begin : begin + WINDOW_BYTES]])
                self._file.sync_data()
                self._written = min(self._written + WINDOW_BYTES, self._at)
        return moved


class Copier(Protocol):
    """Where segments are copied."""

    def steps(self, copy: SegmentCopy, bytes_per_s: Callable[[], int]) -> Generator[int]:
        """As :meth:`SegmentCopy.steps`, with the same result in ``copy``. A step may be several,
        with pauses between them, so that no more than ``bytes_per_s`` are moved; 0: no pauses.
        Closing it before its end leaves a part of the new file."""

    def rest(self) -> None:
        """Nothing is to be copied at present. Does not block."""


class OwnCopier:
    """Copies on the thread that advances the steps."""

    def steps(self, copy: SegmentCopy, bytes_per_s: Callable[[], int]) -> Generator[int]:  # noqa: ARG002
        return copy.steps()

    def rest(self) -> None:
        pass
