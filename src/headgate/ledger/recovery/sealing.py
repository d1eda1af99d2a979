"""Makes a recovered log durable: a checkpoint, sealed segments, the next segment.

The broker serves nothing before everything that recovery read is durable. After a ``kill -9`` the
tail may be in the page cache only, so this seals each segment that was still open. No segment is
written again after a start; the next record goes to a new one.
"""

from __future__ import annotations

import contextlib
import logging
from typing import Final

from headgate.fs.api import Fs
from headgate.ledger.errors import LogFullError
from headgate.ledger.format.flush_position import FlushPosition
from headgate.ledger.format.own_names import is_unfinished
from headgate.ledger.format.records import SEGMENT_HEADER_BYTES, segment_name
from headgate.ledger.index.checkpoint import CheckpointBuilder, Counters
from headgate.ledger.index.checkpoint_sequences import add_sequences
from headgate.ledger.index.footer import FooterBuilder
from headgate.ledger.index.state import LogState
from headgate.ledger.write.writer import LogWriter

logger = logging.getLogger("headgate.ledger")

_PRODUCERS_PER_ITEM: Final = 1_000
"""Producers of a topic in one item of the checkpoint."""


def end_of(state: LogState) -> FlushPosition:
    """The end of the last segment with records."""
    for info in reversed(state.segments.values()):
        if info.data_end > SEGMENT_HEADER_BYTES:
            return FlushPosition(state.last_batch, info.segment, info.data_end)
    return FlushPosition(state.last_batch, 0, 0)


def store_checkpoint(fs: Fs, directory: str, state: LogState, writer: LogWriter) -> None:
    """Store what this start found, so that the next one need not assess the damage again.

    Call it before :func:`seal_segments`: the footer of a segment knows nothing of what is lost in
    it. If the checkpoint cannot be written, this logs a warning.
    """
    for segment in state.unsealed:
        if state.segments[segment].data_end > SEGMENT_HEADER_BYTES:
            writer.sync(segment)
    writer.flush_position.begin(end_of(state))
    builder = CheckpointBuilder(state.next_segment, state.last_batch)
    for topic in state.topics.values():
        builder.add_topic(topic)
    for cursor in state.cursors.values():
        builder.add_cursor(cursor)
    for _ in add_sequences(builder, state, _PRODUCERS_PER_ITEM):
        pass  # a start has the loop for itself
    builder.add_counters(
        Counters(state.next_ledger_id, state.next_cursor_id, state.next_batch, state.next_segment)
    )
    try:
        builder.write(fs, directory)
    except OSError as error:
        logger.warning("%s: the checkpoint could not be written: %s", directory, error)
        return
    state.space.checkpoint_bytes = 2 * builder.size_bytes
    state.checkpoint_segment = state.next_segment
    state.checkpoint_last_batch = state.last_batch


def seal_segments(
    names: list[str], segments: list[int], state: LogState, writer: LogWriter
) -> None:
    """Seal the segments that are open and note which files are empty.

    ``names`` are the files of the log's directory, ``segments`` the segments among them.
    """
    state.leftovers = [name for name in names if is_unfinished(name)]
    for segment in segments:
        info = state.segments[segment]
        if info.sealed:
            state.unsealed.pop(segment, None)
            continue
        if info.data_end == SEGMENT_HEADER_BYTES:
            del state.segments[segment], state.unsealed[segment]
            state.leftovers.append(segment_name(segment))
            continue
        state.orphans.log(segment, segment_name(segment), "is sealed without their index")
        builder = FooterBuilder(segment, info.data_end)
        for number in info.topics:
            builder.add(state.topics[number])
        with contextlib.suppress(LogFullError):
            footer = builder.finish()
            writer.seal(segment, info.data_end, footer)
            state.seal(info, info.data_end + sum(map(len, footer)))
            state.stored[segment] = builder.directory.runs
        if not info.sealed:
            writer.sync(segment)


def prepare_first(fs: Fs, directory: str, state: LogState, writer: LogWriter) -> bool:
    """Create the segment for the next record. False if the disk is full: then the segment is
    missing, or small and for acknowledgements only.

    From here on the next start finds a segment that no checkpoint covers, and so skips ids that
    may have been used. Therefore empty files are removed only now.
    """
    ready = True
    writer.removal.add_leftovers(fs.list_directory(directory))
    try:
        writer.prepare(state.next_segment)
    except LogFullError:
        ready = False
        with contextlib.suppress(LogFullError):
            writer.prepare_small(state.next_segment)
    for name in state.leftovers:
        # A temporary file has lost its name if this start wrote the file anew.
        with contextlib.suppress(FileNotFoundError):
            fs.remove(f"{directory}/{name}")
    if state.leftovers:
        fs.sync_directory(directory)
        state.leftovers = []
    return ready
