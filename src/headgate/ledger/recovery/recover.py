"""Recovers a log at its start: loads the checkpoint, replays the rest, seals the tail."""

from __future__ import annotations

import logging
from collections.abc import Collection

from headgate.fs.api import Fs
from headgate.ledger.errors import OlderLogError, UnknownTopicsError
from headgate.ledger.format.directory import is_adopted
from headgate.ledger.format.flush_position import (
    FLUSH_POSITION_NAME,
    FlushPosition,
    read_flush_position,
)
from headgate.ledger.format.records import segment_name, segment_of_name
from headgate.ledger.index.block_cache import BlockCache
from headgate.ledger.index.checkpoint import TopicState
from headgate.ledger.index.receive_time_bound import ReceiveTimeBound, bound_times
from headgate.ledger.index.state import LogState
from headgate.ledger.recovery.checkpoint_load import LoadedCheckpoint, load_checkpoint
from headgate.ledger.recovery.file_names import refuse_misnamed
from headgate.ledger.recovery.loss_assessment import Doubt, Loss
from headgate.ledger.recovery.replay import Replay, SequenceOf, no_sequence
from headgate.ledger.recovery.sealing import end_of, seal_segments, store_checkpoint
from headgate.ledger.recovery.segment_load import SegmentLoader, read_first_head
from headgate.ledger.recovery.start_report import log_findings
from headgate.ledger.write.writer import LogWriter

logger = logging.getLogger("headgate.ledger")

_ID_JUMP = 1 << 20
"""Ids skipped after an unclean end: more than a lost tail can have used."""
_REBUILT_ID_JUMP = 1 << 32
"""Ids skipped after a rebuild without a checkpoint: then nothing tells how many were used."""


def recover(
    fs: Fs,
    directory: str,
    topic_numbers: Collection[int],
    writer: LogWriter,
    receive_time_bound: ReceiveTimeBound | None = None,
    topic_number_last: int | None = None,
    ids_min: int = 1,
    batch_min: int = 0,
    blocks: BlockCache | None = None,
    sequence_of: SequenceOf = no_sequence,
) -> LogState:
    """Recover the log in ``directory``. Topics and cursors that lost something have ``damage``.

    ``topic_number_last`` is the highest number ever given to a topic; None if that is unknown.
    Ids of ledgers and cursors below ``ids_min`` are not used. ``blocks`` reads blocks of footers.
    Raises :class:`UnknownTopicsError`, before anything is changed, if a record has a higher topic
    number, :class:`OlderLogError`, as early, if the log ends before batch ``batch_min`` and has
    nothing that says so, and :class:`CorruptionError` with the file's name if one is missing that
    was durable, or has the name of another segment.
    """
    names = fs.list_directory(directory)
    refuse_misnamed(fs, directory, names)
    recorded = read_flush_position(fs, directory)
    segments = sorted(s for s in map(segment_of_name, names) if s is not None)
    state = LogState() if blocks is None else LogState(blocks=blocks)
    loaded = load_checkpoint(fs, directory, names, frozenset(topic_numbers), state)
    is_rebuilt = not loaded.is_found and _lacks_checkpoint(
        fs, directory, segments, recorded, loaded
    )
    replay = Replay(
        state,
        topic_numbers,
        flush_position=(0, 0) if recorded is None else recorded[1:],
        without_checkpoint=is_rebuilt,
        sequence_of=sequence_of,
    )
    loader = SegmentLoader(fs, directory, state, replay)
    for segment in segments:
        if segment < state.checkpoint_segment:
            loader.load_sealed(segment, recorded)
    loader.place_rows()
    later = [segment for segment in segments if segment >= state.checkpoint_segment]
    loader.check_last_file(later, recorded)
    tails = loader.replay_all(later, refuse_gaps=not (is_rebuilt or loaded.is_older))
    _check_numbers(state, topic_number_last)
    _check_end(state, recorded, 0 if is_rebuilt else batch_min)
    log_findings(directory, tails, replay, state)
    if recorded is None and state.last_batch and is_adopted(fs, directory):
        _log_lost_flush_position(directory)
    if is_rebuilt and not later:
        replay.assessment.note_unreadable(f"{directory} has neither checkpoint nor segments")
    is_worse = _finish_topics(state, replay, loader, loaded.topics)
    for number in topic_numbers:
        state.enter_topic(number)
    if receive_time_bound is not None:
        state.topics_bounded = bound_times(state.topics.values(), receive_time_bound)
    jump = _REBUILT_ID_JUMP if is_rebuilt else _ID_JUMP if later else 0
    is_raised = _advance_ids(state, jump, ids_min)
    _roll_trimmed(state)
    if recorded is not None:
        state.last_batch = max(state.last_batch, recorded.batch)
        state.next_batch = max(state.next_batch, recorded.batch + 1)
    after = (1 if recorded is None else recorded.segment + 1, *(s + 1 for s in segments))
    state.next_segment = max(state.next_segment, loaded.next_segment, *after)
    if is_worse or loaded.unreadable or is_rebuilt or is_raised:
        store_checkpoint(fs, directory, state, writer)
    seal_segments(names, segments, state, writer)
    writer.flush_position.begin(end_of(state))
    return state


def _log_lost_flush_position(directory: str) -> None:
    logger.warning(
        "%s/%s was missing or damaged and is made anew: this start found the end of the log "
        "by its batches alone",
        directory,
        FLUSH_POSITION_NAME,
    )


def _advance_ids(state: LogState, jump: int, ids_min: int) -> bool:
    """Skip ids that may have been used. Returns whether ``ids_min`` skipped some: then a checkpoint
    must store that at once, as no record tells it."""
    state.next_batch += jump
    state.next_ledger_id += jump
    state.next_cursor_id += jump
    is_raised = ids_min > min(state.next_ledger_id, state.next_cursor_id)
    state.next_ledger_id = max(state.next_ledger_id, ids_min)
    state.next_cursor_id = max(state.next_cursor_id, ids_min)
    return is_raised


def _lacks_checkpoint(
    fs: Fs,
    directory: str,
    segments: list[int],
    recorded: FlushPosition | None,
    loaded: LoadedCheckpoint,
) -> bool:
    """Whether a log without a readable checkpoint must have had one. Logs a warning if so."""
    head = read_first_head(fs, directory, segments[0]) if segments else None
    lacks = bool(loaded.unreadable)
    if head is not None:
        lacks |= head.previous > 0
    elif recorded is not None:
        lacks |= recorded.batch > 0 and not segments
    if lacks:
        logger.warning(
            "%s in %s: the state is rebuilt from the segments alone",
            "; ".join(loaded.unreadable) or "the checkpoint is missing",
            directory,
        )
    return lacks


def _check_numbers(state: LogState, topic_number_last: int | None) -> None:
    seen = state.orphans.number_seen
    if topic_number_last is not None and seen > topic_number_last:
        raise UnknownTopicsError(seen, topic_number_last)


def _check_end(state: LogState, recorded: FlushPosition | None, batch_min: int) -> None:
    batch = max(state.last_batch, 0 if recorded is None else recorded.batch)
    if batch < batch_min:
        raise OlderLogError(batch, batch_min)


def _finish_topics(
    state: LogState, replay: Replay, loader: SegmentLoader, saved: dict[int, TopicState]
) -> bool:
    """Apply trims, note retained entries that are missing, count the live runs of each segment.

    ``saved`` are the topics of the checkpoint. Returns whether more is damaged than the checkpoint
    says.
    """
    losses = replay.assessment.losses
    for topic in state.topics.values():
        first = max(topic.first, replay.trims.get(topic.number, 0))
        before = saved.get(topic.number)
        if before is not None and topic.end < before.end:
            if first < before.end and topic.base < topic.end:
                place = (
                    loader.place_behind(topic.segment) or f"behind {segment_name(topic.segment)}"
                )
                losses.append(Loss(topic.number, topic.end, before.end, place, knows_ledgers=True))
                topic.append_lost(before.end, before.totals)
            else:
                topic.restart_at(before.end, before.totals)
        if topic.base > first:
            what = f"entries {first} to {topic.base - 1} are missing"
            where = _place_of_first(loader.place_behind(0))
            replay.assessment.note_doubt(topic.number, Doubt(f"{what}: {where}"))
            first = topic.first = topic.base
        topic.trim(first)
        topic.rewind()
    _drop_replaced_cursors(state)
    is_worse = replay.assessment.mark_damaged()
    for topic in state.topics.values():
        state.count_live(topic)
        topic.learn_last_ledger()
    return is_worse


def _place_of_first(place: str) -> str:
    gone = "a segment file is gone"
    return f"they were in {place}, or {gone}" if place else gone


def _roll_trimmed(state: LogState) -> None:
    """Close ledgers whose entries are all trimmed: tools take an open ledger for complete."""
    for topic in state.topics.values():
        if 0 < topic.first == topic.end:
            topic.roll_ledger(state.next_ledger_id, topic.totals(topic.end).received_ms)
            state.next_ledger_id += 1


def _drop_replaced_cursors(state: LogState) -> None:
    """Of two cursors with one name keep the younger: the creation of the older was abandoned."""
    names: dict[tuple[int, str], int] = {}
    for cursor_id in sorted(state.cursors):
        cursor = state.cursors[cursor_id]
        older = names.get((cursor.topic_number, cursor.name))
        if older is not None:
            state.drop_cursor(older)
        names[cursor.topic_number, cursor.name] = cursor_id
