"""Places the index rows of all files before the checkpoint into their topics.

A *row* is the index of a range of one topic's entries in one file. The rows of a topic may come
from files in any order, so they are gathered first, and each topic is then extended in the order of
its ordinals. If two files have a row for an entry, the row of the file with the higher id counts.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from headgate.ledger.format.records import segment_name
from headgate.ledger.index.block_cache import BlockCache
from headgate.ledger.index.columns import Columns, TopicTotals
from headgate.ledger.index.sparse_index import stored_totals
from headgate.ledger.index.state import LogState
from headgate.ledger.index.stored_run import StoredRun
from headgate.ledger.index.topic_log import TopicLog
from headgate.ledger.recovery.loss_assessment import Loss


class IndexRow(NamedTuple):
    """The index of a range of a topic's entries in one file."""

    topic_number: int
    first: int
    """The first ordinal."""
    segment: int
    """The id of the file."""
    columns: Columns | StoredRun
    """The columns of the range, or the stored run that it is in."""
    knows_totals: bool = True
    """Whether the totals before the range are known. Without the RUN record they are not."""
    stop_within: int = -1
    """One past the last ordinal of a range that ends within its stored run; else -1."""

    @property
    def stop(self) -> int:
        """One past the last ordinal."""
        if self.stop_within >= 0:
            return self.stop_within
        if isinstance(self.columns, StoredRun):
            return self.columns.stop
        return self.first + len(self.columns.offsets)

    def size_bytes(self) -> int:
        """Bytes of the entries, if it is not cut."""
        if isinstance(self.columns, StoredRun):
            run = self.columns
            return run.after.size_bytes - run.sparse.sizes[run.row]
        return self.columns.sizes[-1] - self.columns.sizes[0]

    def cut(self, first: int, stop: int) -> IndexRow:
        """The part of it within a range of ordinals."""
        if isinstance(self.columns, StoredRun):
            return self._replace(first=max(first, self.first), stop_within=min(stop, self.stop))
        low, high = max(first - self.first, 0), min(stop - self.first, len(self.columns.offsets))
        if (low, high) == (0, len(self.columns.offsets)):
            return self
        offsets, *sums = self.columns
        some: list[array[int]] = [column[low : high + 1] for column in sums]
        return self._replace(first=self.first + low, columns=Columns(offsets[low:high], *some))


class _File(NamedTuple):
    """What the packed rows of one file share."""

    segment: int
    file: int
    sparse: Columns
    block_entries: int


_ROW_VALUES: Final = 10
_PLAIN: Final = (0,) * (_ROW_VALUES - 2)


class PackedRows:
    """Rows of very many topics and files: 80 bytes each, where the objects of one take 550. With
    these a start would take several times the memory that the broker needs afterwards."""

    def __init__(self, rows: Iterable[IndexRow] = ()) -> None:
        self._values = array("q")
        """For each row its file, topic number, first ordinal, entries, place, row and totals; for
        another than that of a whole stored run -1 and its place in ``_plain``."""
        self._files: list[_File] = []
        self._plain: list[IndexRow] = []
        self.add(rows)

    def __len__(self) -> int:
        return len(self._values) // _ROW_VALUES

    def add(self, rows: Iterable[IndexRow]) -> None:
        """Add rows behind the others."""
        for row in rows:
            run = row.columns
            if not isinstance(run, StoredRun) or row != _row_of(row.segment, run):
                self._values.extend((-1, len(self._plain), *_PLAIN))
                self._plain.append(row)
                continue
            number, first, entries, file, place, sparse, block, after, block_entries = run
            shared = _File(row.segment, file, sparse, block_entries)
            known = self._files[-1] if self._files else None
            if known is None or known.sparse is not sparse or known != shared:
                self._files.append(shared)
            values = (len(self._files) - 1, number, first, entries, place, block, *after)
            self._values.extend(values)

    def topic_and_stop(self, at: int) -> tuple[int, int]:
        """The topic number of a row, and one past its last ordinal."""
        file, number, first, entries = self._values[at * _ROW_VALUES : at * _ROW_VALUES + 4]
        if file >= 0:
            return number, first + entries
        return self._plain[number].topic_number, self._plain[number].stop

    def row(self, at: int) -> IndexRow:
        """A row as it was added."""
        values = self._values[at * _ROW_VALUES : (at + 1) * _ROW_VALUES]
        file, number, first, entries, place, block, *after = values
        if file < 0:
            return self._plain[number]
        shared = self._files[file]
        return _row_of(
            shared.segment,
            StoredRun(
                number, first, entries, shared.file, place, shared.sparse, block,
                TopicTotals(*after), shared.block_entries,
            ),
        )  # fmt: skip


def _row_of(segment: int, run: StoredRun) -> IndexRow:
    return IndexRow(run.topic_number, run.first, segment, run)


def place_rows(rows: Iterable[IndexRow] | PackedRows, state: LogState) -> list[Loss]:
    """Extend the topics of a state by these rows; returns the entries missing between them."""
    packed = rows if isinstance(rows, PackedRows) else PackedRows(rows)
    by_topic: dict[int, array[int]] = {}
    for at in range(len(packed)):
        number, stop = packed.topic_and_stop(at)
        state.orphans.note_number(number)
        topic = state.topics.get(number)
        if topic is None:
            row = packed.row(at)
            entries = row.stop - row.first
            state.orphans.add(row.segment, number, entries, row.size_bytes())
        elif stop > topic.first:
            by_topic.setdefault(number, array("q")).append(at)
    losses: list[Loss] = []
    for number, found in by_topic.items():
        for row in without_overlaps(map(packed.row, found)):
            losses += _extend(state.topics[number], row, state.blocks)
    return losses


def without_overlaps(rows: Iterable[IndexRow]) -> Iterator[IndexRow]:
    """The rows of one topic in the order of ordinals, cut so that each entry is in one of them."""
    group: list[IndexRow] = []
    stop = 0
    for row in sorted(rows, key=lambda row: (row.first, row.segment)):
        if group and row.first >= stop:
            yield from _resolved(group)
            group = []
        group.append(row)
        stop = max(stop, row.stop)
    yield from _resolved(group)


def _resolved(group: list[IndexRow]) -> Iterator[IndexRow]:
    """The same for rows of which each overlaps one before it: of two, the higher file wins."""
    if len(group) == 1:
        yield group[0]
        return
    at = stop = 0
    for at in sorted({edge for row in group for edge in (row.first, row.stop)}):
        if at < stop:
            continue
        best = max((r for r in group if r.first <= at < r.stop), key=_segment, default=None)
        if best is None:
            return
        higher = [r.first for r in group if r.segment > best.segment and r.first > at]
        stop = min([best.stop, *higher])
        yield best.cut(at, stop)


def _segment(row: IndexRow) -> int:
    return row.segment


def _extend(topic: TopicLog, row: IndexRow, blocks: BlockCache) -> list[Loss]:
    """Append a row to its topic; returns the entries missing before it."""
    totals = _totals_before(row, blocks) if row.knows_totals else None
    losses: list[Loss] = []
    if topic.base < topic.staged_end < row.first:
        place = f"before {segment_name(row.segment)}"
        losses.append(Loss(topic.number, topic.staged_end, row.first, place, knows_ledgers=True))
        topic.append_lost(row.first, totals)
    elif topic.base == topic.staged_end:
        topic.restart_at(row.first, totals or topic.totals(topic.staged_end))
    if isinstance(row.columns, StoredRun):
        topic.extend_stored(row.columns, row.first, row.stop, blocks)
    else:
        topic.extend(row.segment, row.columns)
    return losses


def _totals_before(row: IndexRow, blocks: BlockCache) -> TopicTotals:
    if isinstance(row.columns, StoredRun):
        run = row.columns
        if row.first > run.first:
            return stored_totals(run, row.first, blocks)
        _, received, lags, messages, sizes = run.sparse
        return TopicTotals(messages[run.row], sizes[run.row], received[run.row], lags[run.row])
    return row.columns.totals_before()
