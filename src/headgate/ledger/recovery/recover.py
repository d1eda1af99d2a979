"""Recovers a log at its start: checkpoint, footers, replay, a sealed tail.

Nothing is served before everything that was read is durable: after a ``kill -9`` the tail may be
in the page cache only, so each segment that was still open is sealed here. A segment is never
written again after a start; the next record goes to a new one.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Collection
from typing import NamedTuple

from headgate.base.errors import CorruptionError
from headgate.fs.api import Fs
from headgate.ledger.errors import LogFullError, UnknownTopicsError
from headgate.ledger.format.directory import TEMPORARY_SUFFIX, is_adopted
from headgate.ledger.format.flush_position import (
    FLUSH_POSITION_NAME,
    FlushPosition,
    read_flush_position,
)
from headgate.ledger.format.records import (
    BATCH_RECORD_BYTES,
    SEGMENT_HEADER_BYTES,
    segment_name,
    segment_of_name,
)
from headgate.ledger.index.checkpoint import CheckpointBuilder, Counters, TopicState
from headgate.ledger.index.footer import FooterBuilder, FooterRun, read_footer
from headgate.ledger.index.receive_time_bound import ReceiveTimeBound, bound_times
from headgate.ledger.index.state import LogState, SegmentInfo
from headgate.ledger.recovery.checkpoint_load import Chosen, load_checkpoint
from headgate.ledger.recovery.loss_assessment import Loss
from headgate.ledger.recovery.replay import BatchHead, Replay, first_head
from headgate.ledger.write.writer import LogWriter

logger = logging.getLogger("headgate.ledger")

_ID_JUMP = 1 << 20
"""Ids skipped after an unclean end: more than a lost tail can have used."""
_BLIND_ID_JUMP = 1 << 32
"""Ids skipped when nothing says how many were used."""
_PLACES_MAX = 5
"""So many places are named in one line."""


class _Cut(NamedTuple):
    """What lies behind the good records of a segment without a footer."""

    segment: int
    offset: int
    size_bytes: int
    torn: BatchHead | None
    """The batch that it is the rest of, if its head is whole."""


def recover(
    fs: Fs,
    directory: str,
    topic_numbers: Collection[int],
    writer: LogWriter,
    receive_time_bound: ReceiveTimeBound | None = None,
    topic_number_last: int | None = None,
    ids_min: int = 1,
) -> LogState:
    """The state of the log in ``directory``. Topics and cursors that lost something say so.

    ``topic_number_last`` is the highest number that was ever given to a topic; None when that is
    not known. Ids of ledgers and cursors below ``ids_min`` are not used. Raises
    :class:`UnknownTopicsError`, before anything is changed, when a record has a higher number, and
    :class:`CorruptionError` naming the file when one is missing that was durable.
    """
    names = fs.list_directory(directory)
    recorded = read_flush_position(fs, directory)
    segments = sorted(s for s in map(segment_of_name, names) if s is not None)
    state = LogState()
    chosen = load_checkpoint(fs, directory, names, frozenset(topic_numbers), state)
    blind = not chosen.is_found and _needs_checkpoint(fs, directory, segments, recorded, chosen)
    replay = Replay(
        state,
        topic_numbers,
        flush_position=(0, 0) if recorded is None else recorded[1:],
        without_checkpoint=blind,
    )
    for segment in segments:
        if segment < state.checkpoint_segment:
            _load_sealed(fs, directory, segment, state, replay, recorded)
    later = [segment for segment in segments if segment >= state.checkpoint_segment]
    _check_last_file(fs, directory, later, recorded, state)
    cuts = _replay_segments(
        fs, directory, later, state, replay, refuse_gaps=not (blind or chosen.is_older)
    )
    _check_numbers(state, topic_number_last)
    _say_what_was_found(directory, cuts, replay, state)
    if recorded is None and state.last_batch and is_adopted(fs, directory):
        logger.warning(
            "%s/%s is missing or damaged and made anew: until now the end of the log was known "
            "by later batches only",
            directory,
            FLUSH_POSITION_NAME,
        )
    if blind and not later:
        replay.assessment.hidden(f"{directory} has neither checkpoint nor segments")
    is_worse = _settle_topics(state, replay, chosen.topics)
    if receive_time_bound is not None:
        state.topics_bounded = bound_times(state.topics.values(), receive_time_bound)
    jump = _BLIND_ID_JUMP if blind else _ID_JUMP if later else 0
    state.next_ledger_id += jump
    state.next_cursor_id += jump
    state.next_batch += jump
    is_raised = _raise_ids(state, ids_min)
    _roll_trimmed(state)
    if recorded is not None:
        state.last_batch = max(state.last_batch, recorded.batch)
        state.next_batch = max(state.next_batch, recorded.batch + 1)
    after = 1 if recorded is None else recorded.segment + 1
    state.next_segment = max(
        [state.next_segment, chosen.next_segment, after, *(s + 1 for s in segments)]
    )
    if is_worse or chosen.bad or blind or is_raised:
        _write_checkpoint(fs, directory, state, writer)
    _seal_tail(names, segments, state, writer)
    writer.flush_position.begin(_end_of(state))
    return state


def _raise_ids(state: LogState, ids_min: int) -> bool:
    """Use no id below this. Returns whether one would have been used: then that is to be stored at
    once, for nothing else in the log tells it."""
    is_raised = ids_min > min(state.next_ledger_id, state.next_cursor_id)
    state.next_ledger_id = max(state.next_ledger_id, ids_min)
    state.next_cursor_id = max(state.next_cursor_id, ids_min)
    return is_raised


def _needs_checkpoint(
    fs: Fs,
    directory: str,
    segments: list[int],
    recorded: FlushPosition | None,
    chosen: Chosen,
) -> bool:
    """Whether a log without a usable checkpoint must have had one. Says so."""
    head = None
    if segments:
        head = first_head(_beginning(fs, directory, segments[0]), segments[0])
    needed = bool(chosen.bad)
    if head is not None:
        needed |= head.previous > 0
    elif recorded is not None:
        needed |= recorded.batch > 0 and not segments
    if needed:
        logger.warning(
            "%s in %s: everything is made anew from the segments that there are",
            "; ".join(chosen.bad) or "the checkpoint is missing",
            directory,
        )
    return needed


def _beginning(fs: Fs, directory: str, segment: int) -> bytes:
    file = fs.open(f"{directory}/{segment_name(segment)}")
    try:
        return file.read_at(0, SEGMENT_HEADER_BYTES + BATCH_RECORD_BYTES)
    finally:
        file.close()


def _load_sealed(
    fs: Fs,
    directory: str,
    segment: int,
    state: LogState,
    replay: Replay,
    recorded: FlushPosition | None,
) -> None:
    """Index a segment before the checkpoint from its footer; from its records when that fails."""
    file = fs.open(f"{directory}/{segment_name(segment)}")
    size = file.size()
    info = state.segments[segment] = SegmentInfo(segment, sealed=True)
    try:
        footer = read_footer(file, segment, size)
    except CorruptionError:
        footer = None
    if footer is None:
        # The last one may have been cut, and not sealed since.
        limit = size
        if recorded is not None and recorded.segment == segment:
            limit = recorded.offset
        info.data_end = replay.index_only(file.read_at(0, limit), segment)
    else:
        info.data_end = footer.data_end
        for run in footer.runs:
            _load_run(segment, run, state, replay)
    file.close()


def _load_run(segment: int, run: FooterRun, state: LogState, replay: Replay) -> None:
    state.orphans.see(run.topic_number)
    topic = state.topics.get(run.topic_number)
    columns = run.columns
    if topic is None:
        size_bytes = columns.sizes[-1] - columns.sizes[0]
        state.orphans.add(segment, run.topic_number, len(columns.offsets), size_bytes)
        return
    if run.first_ordinal + len(columns.offsets) <= topic.first:
        return
    totals = columns.totals_before()
    if topic.base < topic.staged_end < run.first_ordinal:
        place = f"before {segment_name(segment)}"
        replay.assessment.losses.append(
            Loss(topic.number, topic.staged_end, run.first_ordinal, place)
        )
        topic.lose(run.first_ordinal, totals)
    elif topic.base == topic.staged_end or run.first_ordinal != topic.staged_end:
        topic.restart_at(run.first_ordinal, totals)
    topic.extend(segment, columns)


def _check_last_file(
    fs: Fs,
    directory: str,
    segments: list[int],
    recorded: FlushPosition | None,
    state: LogState,
) -> None:
    """Raise when the file in which the log ended is missing or empty: it can be put back, and what
    is not there cannot be judged."""
    if recorded is None or recorded.segment < state.checkpoint_segment:
        return
    if recorded.offset <= SEGMENT_HEADER_BYTES:
        return
    name = segment_name(recorded.segment)
    what = "is missing"
    if recorded.segment in segments:
        file = fs.open(f"{directory}/{name}")
        data = file.read_at(SEGMENT_HEADER_BYTES, recorded.offset)
        file.close()
        if data.strip(b"\0"):
            return
        what = "is empty"
    raise CorruptionError(
        f"{directory}/{name} {what}, and batch {recorded.batch}, which ends at its offset "
        f"{recorded.offset}, was durable: put the file back, or give up what is lost by removing "
        f"{FLUSH_POSITION_NAME} beside it"
    )


def _replay_segments(
    fs: Fs,
    directory: str,
    segments: list[int],
    state: LogState,
    replay: Replay,
    *,
    refuse_gaps: bool,
) -> list[_Cut | None]:
    heads = [first_head(_beginning(fs, directory, segment), segment) for segment in segments]
    cuts: list[_Cut | None] = []
    before = state.checkpoint_segment - 1
    for at, segment in enumerate(segments):
        head = heads[at]
        if refuse_gaps and head is not None and segment > before + 1:
            _check_gap(directory, before + 1, segment, head, state)
        follows = None
        if any(other is not None for other in heads[at + 1 :]):
            following = heads[at + 1]
            is_next = following is not None and segments[at + 1] == segment + 1
            follows = following.previous if following is not None and is_next else 0
        cuts.append(_replay_segment(fs, directory, segment, state, replay, follows))
        before = segment
    return cuts


def _check_gap(
    directory: str, missing: int, segment: int, head: BatchHead, state: LogState
) -> None:
    if head.previous > state.last_batch:
        raise CorruptionError(
            f"{directory}/{segment_name(missing)} is missing: batch {state.last_batch} is "
            f"followed by batch {head.number} of {segment_name(segment)}. Put the file back from "
            "where it went, or give up what is lost by making an empty file of that name"
        )


def _replay_segment(
    fs: Fs, directory: str, segment: int, state: LogState, replay: Replay, follows: int | None
) -> _Cut | None:
    file = fs.open(f"{directory}/{segment_name(segment)}")
    size = file.size()
    try:
        footer = read_footer(file, segment, size)
    except CorruptionError:
        footer = None
    info = state.enter_segment(segment)
    info.sealed = footer is not None
    limit = size if footer is None else footer.data_end
    data = file.read_at(0, limit)
    file.close()
    info.data_end = replay.segment(data, segment, limit, footer, follows=follows)
    info.last_batch = state.last_batch
    state.replayed_bytes += info.data_end - SEGMENT_HEADER_BYTES
    rest_bytes = len(data[info.data_end :].rstrip(b"\0"))
    if footer is not None or not rest_bytes:
        return None
    return _Cut(segment, info.data_end, rest_bytes, replay.torn)


def _say_what_was_found(
    directory: str, cuts: list[_Cut | None], replay: Replay, state: LogState
) -> None:
    """A line for what was cut, one for what was set right and one for what is lost."""
    _say_what_was_cut(directory, cuts, state)
    if replay.corrected:
        logger.warning(
            "%s: one wrong bit was set right in each of %d places: %s",
            directory,
            len(replay.corrected),
            _some(replay.corrected),
        )
    if replay.damaged_places:
        logger.error(
            "%s is damaged in %d places: %s. Topics that lost something, or may have, refuse "
            "until that is accepted; all others go on",
            directory,
            len(replay.damaged_places),
            _some(replay.damaged_places),
        )


def _some(places: list[str]) -> str:
    more = len(places) - _PLACES_MAX
    return ", ".join(places[:_PLACES_MAX]) + (f" and {more} more" if more > 0 else "")


def _say_what_was_cut(directory: str, cuts: list[_Cut | None], state: LogState) -> None:
    """One line for a torn tail. Behind the records of a segment that others follow lies an index
    that was not finished, and nothing is lost with that."""
    cut = next((cut for cut in reversed(cuts) if cut is not None), None)
    if cut is None or any(
        info.segment > cut.segment and info.data_end > SEGMENT_HEADER_BYTES
        for info in state.segments.values()
    ):
        return
    torn = cut.torn
    whose = "a batch" if torn is None else f"batch {torn.number} with {torn.records} records"
    logger.warning(
        "%s/%s: cut %d bytes behind offset %d, left over from %s that was being written when the "
        "broker or the machine went down: it may have held messages without a receipt, and "
        "acknowledgements and subscriptions that were not confirmed",
        directory,
        segment_name(cut.segment),
        cut.size_bytes,
        cut.offset,
        whose,
    )


def _end_of(state: LogState) -> FlushPosition:
    """Where everything that was found ends; it is durable by now."""
    for info in reversed(state.segments.values()):
        if info.data_end > SEGMENT_HEADER_BYTES:
            return FlushPosition(state.last_batch, info.segment, info.data_end)
    return FlushPosition(state.last_batch, 0, 0)


def _check_numbers(state: LogState, topic_number_last: int | None) -> None:
    seen = state.orphans.number_seen
    if topic_number_last is not None and seen > topic_number_last:
        raise UnknownTopicsError(seen, topic_number_last)


def _settle_topics(state: LogState, replay: Replay, ends: dict[int, TopicState]) -> bool:
    """Apply trims, note which retained entries are missing, count what pins each segment. Returns
    whether anybody is found damaged now."""
    losses = replay.assessment.losses
    for topic in state.topics.values():
        first = max(topic.first, replay.trims.get(topic.number, 0))
        saved = ends.get(topic.number)
        if saved is not None and topic.end < saved.end:
            if first < saved.end and topic.base < topic.end:
                losses.append(Loss(topic.number, topic.end, saved.end, "a segment file"))
                topic.lose(saved.end, saved.totals)
            else:
                topic.restart_at(saved.end, saved.totals)
        if topic.base > first:
            replay.assessment.doubts.setdefault(
                topic.number,
                f"entries {first} to {topic.base - 1} are missing: a segment file is gone",
            )
            first = topic.first = topic.base
        topic.trim(first)
        topic.rewind()
    _drop_doubled_cursors(state)
    is_worse = replay.assessment.settle()
    for topic in state.topics.values():
        for segment in topic.segments():
            info = state.segments[segment]
            info.live_runs += 1
            info.topics[topic.number] = None
            state.worn[segment] = None
    return is_worse


def _roll_trimmed(state: LogState) -> None:
    """A ledger whose entries are all trimmed is closed: what is shown of one that is open is that
    it holds all of its entries."""
    for topic in state.topics.values():
        if 0 < topic.first == topic.end:
            topic.roll_ledger(state.next_ledger_id, topic.totals(topic.end).received_ms)
            state.next_ledger_id += 1


def _drop_doubled_cursors(state: LogState) -> None:
    """Of two cursors with one name the younger holds: the other's creation was given up."""
    names: dict[tuple[int, str], int] = {}
    for cursor_id in sorted(state.cursors):
        cursor = state.cursors[cursor_id]
        older = names.get((cursor.topic_number, cursor.name))
        if older is not None:
            state.drop_cursor(older)
        names[cursor.topic_number, cursor.name] = cursor_id


def _seal_tail(
    names: list[str],
    segments: list[int],
    state: LogState,
    writer: LogWriter,
) -> None:
    """Make what was read durable, and note which files hold nothing."""
    state.leftovers = [name for name in names if name.endswith(TEMPORARY_SUFFIX)]
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
            writer.seal(segment, info.data_end, builder.finish())
            info.sealed = True
            del state.unsealed[segment]
        if not info.sealed:
            writer.sync(segment)


def _write_checkpoint(fs: Fs, directory: str, state: LogState, writer: LogWriter) -> None:
    """What is damaged is judged once: from here on a start goes by what was found now.

    Before anything is sealed, for an index that is made now knows nothing of what is lost.
    """
    for segment in state.unsealed:
        if state.segments[segment].data_end > SEGMENT_HEADER_BYTES:
            writer.sync(segment)
    writer.flush_position.begin(_end_of(state))
    builder = CheckpointBuilder(state.next_segment, state.last_batch)
    for topic in state.topics.values():
        builder.add_topic(topic)
    for cursor in state.cursors.values():
        builder.add_cursor(cursor)
    builder.add_counters(
        Counters(state.next_ledger_id, state.next_cursor_id, state.next_batch, state.next_segment)
    )
    try:
        builder.write(fs, directory)
    except OSError as error:
        logger.warning("%s: no checkpoint could be written: %s", directory, error)
        return
    state.checkpoint_segment = state.next_segment
    state.checkpoint_last_batch = state.last_batch


def prepare_first(fs: Fs, directory: str, state: LogState, writer: LogWriter) -> bool:
    """Make the segment that the next record goes to; False when the disk is full, and there is
    room for acknowledgements at most.

    From here on a start finds a segment that no checkpoint covers, and knows by it that ids may
    have been used that it cannot see. So files that hold nothing go only now.
    """
    ready = True
    try:
        writer.prepare(state.next_segment)
    except LogFullError:
        ready = False
        with contextlib.suppress(LogFullError):
            writer.prepare_small(state.next_segment)
    for name in state.leftovers:
        # The temporary of a file that this start has put in place anew has no name any more.
        with contextlib.suppress(FileNotFoundError):
            fs.remove(f"{directory}/{name}")
    if state.leftovers:
        fs.sync_directory(directory)
        state.leftovers = []
    return ready
