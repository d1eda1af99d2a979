"""Reads the segments of a log into its state: footers before the checkpoint, records after it."""

from __future__ import annotations

from typing import NamedTuple

from headgate.base.errors import CorruptionError
from headgate.fs.api import File, Fs
from headgate.ledger.format.directory import READ_BYTES_MAX
from headgate.ledger.format.flush_position import FLUSH_POSITION_NAME, FlushPosition
from headgate.ledger.format.records import (
    SEGMENT_HEADER_BYTES,
    has_bytes,
    segment_name,
)
from headgate.ledger.index.footer import read_directory, read_footer
from headgate.ledger.index.state import LogState, SegmentInfo
from headgate.ledger.recovery.batch_head import BatchHead, first_head, read_beginning
from headgate.ledger.recovery.index_rows import IndexRow, PackedRows, place_rows
from headgate.ledger.recovery.replay import Replay

PLACES_NAMED_MAX = 3
"""Files that one sentence about a loss names."""


class TornTail(NamedTuple):
    """Bytes behind the last sound record of a segment without a footer."""

    segment: int
    offset: int
    size_bytes: int
    batch: BatchHead | None
    """The batch that was being written; None if its head is damaged."""


def read_first_head(fs: Fs, directory: str, segment: int) -> BatchHead | None:
    """The head of the first batch of a segment file; None if it has none that is readable."""
    return first_head(read_beginning(fs, directory, segment_name(segment)), segment)


class SegmentLoader:
    """Reads the segment files of one log directory."""

    def __init__(self, fs: Fs, directory: str, state: LogState, replay: Replay) -> None:
        self._fs = fs
        self._directory = directory
        self._state = state
        self._replay = replay
        self._rows = PackedRows()
        """The index of the segments before the checkpoint."""
        self._without_footer: list[tuple[int, int]] = []
        """Segments before the checkpoint without a sound footer, each with the end of its records.
        """

    def load_sealed(self, segment: int, recorded: FlushPosition | None) -> None:
        """Gather the index of a segment before the checkpoint from its footer; from its records if
        the footer is missing, or damaged at its end or directory."""
        file = self._fs.open(f"{self._directory}/{segment_name(segment)}")
        size = file.size()
        info = self._state.segments[segment] = SegmentInfo(segment)
        found = self._indexed(file, segment, size)
        if found is None:
            # A segment whose torn tail was cut may have had no time to be sealed.
            limit = size
            if recorded is not None and recorded.segment == segment:
                limit = recorded.offset
            info.data_end, rows = self._replay.index_only(file.read_at(0, limit), segment)
            self._rows.add(rows)
            self._without_footer.append((segment, info.data_end))
        else:
            info.data_end, rows = found
            self._rows.add(rows)
        self._seal(info, file)
        file.close()

    def _indexed(self, file: File, segment: int, size: int) -> tuple[int, list[IndexRow]] | None:
        """What a sound footer tells: the end of the records, and the index. Its blocks are left on
        the disk, so one that is damaged is not noticed here."""
        try:
            directory = read_directory(file, segment, size)
            if directory is not None:
                rows = [IndexRow(r.topic_number, r.first, segment, r) for r in directory.runs]
                return directory.data_end, rows
            footer = read_footer(file, segment, size)
        except CorruptionError:
            return None
        if footer is None:
            return None
        return footer.data_end, [
            IndexRow(r.topic_number, r.first_ordinal, segment, r.columns) for r in footer.runs
        ]

    def place_rows(self) -> None:
        """Place what :meth:`load_sealed` gathered into the topics."""
        self._replay.assessment.losses += place_rows(self._rows, self._state)
        self._rows = PackedRows()

    def place_behind(self, segment: int) -> str:
        """Where entries lay that followed those in ``segment``; empty if no file shows it."""
        places = [
            f"{segment_name(other)} from offset {end} on"
            for other, end in self._without_footer
            if other >= segment
        ]
        return " or ".join(places[:PLACES_NAMED_MAX])

    def _seal(self, info: SegmentInfo, file: File) -> None:
        """Note that a segment is sealed, and how much of its file are holes."""
        self._state.seal(info, file.size())
        missing_bytes = file.size() - file.allocated_bytes()
        self._state.note_punched(info, max(missing_bytes, 0))

    def check_last_file(self, segments: list[int], recorded: FlushPosition | None) -> None:
        """Raise :class:`CorruptionError` if the file in which the log ended is missing or empty:
        the operator may be able to put it back."""
        if recorded is None or recorded.segment < self._state.checkpoint_segment:
            return
        if recorded.offset <= SEGMENT_HEADER_BYTES:
            return
        name = segment_name(recorded.segment)
        what = "is missing"
        if recorded.segment in segments:
            file = self._fs.open(f"{self._directory}/{name}")
            data = file.read_at(0, SEGMENT_HEADER_BYTES + recorded.offset)
            file.close()
            if has_bytes(data, SEGMENT_HEADER_BYTES):
                return
            what = "is empty"
        raise CorruptionError(
            f"{self._directory}/{name} {what}, and batch {recorded.batch}, which ends at its "
            f"offset {recorded.offset}, was durable: put the file back, or give up what is lost by "
            f"removing {FLUSH_POSITION_NAME} beside it"
        )

    def replay_all(self, segments: list[int], *, refuse_gaps: bool) -> list[TornTail]:
        """Replay these segments in order; returns the torn tails.

        Raises :class:`CorruptionError` if ``refuse_gaps`` and a segment between them is missing.
        """
        heads = [read_first_head(self._fs, self._directory, segment) for segment in segments]
        tails: list[TornTail] = []
        before = self._state.checkpoint_segment - 1
        for at, segment in enumerate(segments):
            head = heads[at]
            if refuse_gaps and head is not None and segment > before + 1:
                self._check_gap(before + 1, segment, head)
            follows = None
            if any(other is not None for other in heads[at + 1 :]):
                following = heads[at + 1]
                is_next = following is not None and segments[at + 1] == segment + 1
                follows = following.previous if following is not None and is_next else 0
            tail = self._replay_segment(segment, follows)
            if tail is not None:
                tails.append(tail)
            before = segment
        return tails

    def _check_gap(self, missing: int, segment: int, head: BatchHead) -> None:
        last_batch = self._state.last_batch
        if head.previous > last_batch:
            raise CorruptionError(
                f"{self._directory}/{segment_name(missing)} is missing: batch {last_batch} is "
                f"followed by batch {head.number} of {segment_name(segment)}. Put the file back "
                "from where it went, or give up what is lost by making an empty file of that name"
            )

    def _replay_segment(self, segment: int, follows: int | None) -> TornTail | None:
        state = self._state
        file = self._fs.open(f"{self._directory}/{segment_name(segment)}")
        size = file.size()
        try:
            footer = read_footer(file, segment, size)
        except CorruptionError:
            footer = None
        info = state.enter_segment(segment)
        limit = size if footer is None else footer.data_end
        if limit > READ_BYTES_MAX:  # holes, which take no room
            raise CorruptionError(
                f"{self._directory}/{segment_name(segment)} has {limit:,} bytes of records, where "
                f"{READ_BYTES_MAX:,} are the most"
            )
        data = file.read_at(0, limit)
        info.data_end = self._replay.segment(data, segment, limit, footer, follows=follows)
        if footer is not None:
            self._seal(info, file)
            directory = read_directory(file, segment, size)
            if directory is not None:
                state.stored[segment] = directory.runs
        file.close()
        info.last_batch = state.last_batch
        state.replayed_bytes += info.data_end - SEGMENT_HEADER_BYTES
        if footer is not None or not has_bytes(data, info.data_end):
            return None
        rest_bytes = len(data[info.data_end :].rstrip(b"\0"))
        return TornTail(segment, info.data_end, rest_bytes, self._replay.torn)
