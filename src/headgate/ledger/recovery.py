"""What a start does: checkpoint, footers before it, replay from it, and a sealed tail.

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
from headgate.ledger.checkpoint import TopicState, read_checkpoint, segment_of_checkpoint
from headgate.ledger.directory import TEMPORARY_SUFFIX, is_adopted
from headgate.ledger.durable_end import DURABLE_END_NAME, DurableEnd, read_durable_end
from headgate.ledger.errors import LogFullError, UnknownTopicsError
from headgate.ledger.footer import FooterBuilder, FooterRun, read_footer
from headgate.ledger.format import SEGMENT_HEADER_BYTES, segment_name, segment_of_name
from headgate.ledger.replay import BatchHead, Replay
from headgate.ledger.state import LogState, SegmentInfo
from headgate.ledger.times_bound import TimesBound, bound_times
from headgate.ledger.topic_log import TopicLog
from headgate.ledger.writer import LogWriter

logger = logging.getLogger("headgate.ledger")

_ID_JUMP = 1 << 20
"""Ids skipped after an unclean end: more than a lost tail can have used."""


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
    times_bound: TimesBound | None = None,
    topic_number_last: int | None = None,
) -> LogState:
    """The state of the log in ``directory``.

    ``topic_number_last`` is the highest number that was ever given to a topic; None when that is
    not known. Raises :class:`UnknownTopicsError`, before anything is changed, when a record has a
    higher one, and :class:`CorruptionError` naming the place when something that was durable is
    damaged.
    """
    names = fs.list_directory(directory)
    recorded = read_durable_end(fs, directory)
    segments = sorted(s for s in map(segment_of_name, names) if s is not None)
    state = LogState()
    ends = _load_checkpoint(fs, directory, names, frozenset(topic_numbers), state)
    replay = Replay(state, topic_numbers)
    for segment in segments:
        if segment < state.checkpoint_segment:
            _load_sealed(fs, directory, segment, state, replay)
    cuts = [
        _replay_segment(fs, directory, segment, state, replay)
        for segment in segments
        if segment >= state.checkpoint_segment
    ]
    _check_durable_end(recorded, state)
    _check_numbers(state, topic_number_last)
    _say_what_was_cut(cuts, state)
    if recorded is None and state.last_batch and is_adopted(fs, directory):
        logger.warning(
            "%s/%s is missing or damaged and made anew: until now the end of the log was known "
            "by later batches only",
            directory,
            DURABLE_END_NAME,
        )
    _settle_topics(state, replay, ends)
    if times_bound is not None:
        state.topics_bounded = bound_times(state.topics.values(), times_bound)
    if any(segment >= state.checkpoint_segment for segment in segments):
        state.next_ledger_id += _ID_JUMP
        state.next_cursor_id += _ID_JUMP
        state.next_batch += _ID_JUMP
    _roll_trimmed(state)
    state.next_segment = max([state.next_segment, *(s + 1 for s in segments)])
    _seal_tail(names, segments, state, writer)
    writer.durable_end.begin(_end_of(state))
    return state


def _load_checkpoint(
    fs: Fs, directory: str, names: list[str], known: frozenset[int], state: LogState
) -> dict[int, TopicState]:
    """Take over a checkpoint; returns what it says of the known topics."""
    found = [s for s in map(segment_of_checkpoint, names) if s is not None]
    if not found:
        return {}
    checkpoint = read_checkpoint(fs, directory, max(found))
    state.checkpoint_segment = checkpoint.segment
    state.last_batch = state.checkpoint_last_batch = checkpoint.last_batch
    state.next_ledger_id = checkpoint.counters.next_ledger_id
    state.next_cursor_id = checkpoint.counters.next_cursor_id
    state.next_batch = checkpoint.counters.next_batch
    state.next_segment = checkpoint.counters.next_segment
    for number, saved in checkpoint.topics.items():
        state.remains.see(number)
        if number not in known:
            continue
        topic = state.topics[number] = TopicLog(number)
        topic.restart_at(saved.end, saved.totals)
        topic.first = saved.first
        for ledger_id, first, created in saved.ledgers:
            topic.open_ledger(ledger_id, first, created)
    for cursor in checkpoint.cursors.values():
        state.remains.see(cursor.topic_number)
        if cursor.topic_number in known:
            state.put_cursor(cursor)
    return {number: saved for number, saved in checkpoint.topics.items() if number in known}


def _load_sealed(fs: Fs, directory: str, segment: int, state: LogState, replay: Replay) -> None:
    """Index a segment before the checkpoint from its footer; from its records when that fails."""
    file = fs.open(f"{directory}/{segment_name(segment)}")
    size = file.size()
    info = state.segments[segment] = SegmentInfo(segment, sealed=True)
    try:
        footer = read_footer(file, segment, size)
    except CorruptionError:
        footer = None
    if footer is None:
        info.data_end = replay.index_only(file.read_at(0, size), segment)
    else:
        info.data_end = footer.data_end
        for run in footer.runs:
            _load_run(segment, run, state)
    file.close()


def _load_run(segment: int, run: FooterRun, state: LogState) -> None:
    state.remains.see(run.topic_number)
    topic = state.topics.get(run.topic_number)
    columns = run.columns
    if topic is None:
        size_bytes = columns.sizes[-1] - columns.sizes[0]
        state.remains.add(segment, run.topic_number, len(columns.offsets), size_bytes)
        return
    if run.first_ordinal + len(columns.offsets) <= topic.first:
        return
    if topic.base == topic.staged_end or run.first_ordinal != topic.staged_end:
        topic.restart_at(run.first_ordinal, columns.totals_before())
    topic.extend(segment, columns)


def _replay_segment(
    fs: Fs, directory: str, segment: int, state: LogState, replay: Replay
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
    info.data_end = replay.segment(data, segment, limit)
    info.last_batch = state.last_batch
    state.replayed_bytes += info.data_end - SEGMENT_HEADER_BYTES
    if footer is not None and info.data_end < limit:
        raise CorruptionError(
            f"{segment_name(segment)} is damaged at offset {info.data_end}: "
            f"its footer says that records go on to offset {limit}"
        )
    rest_bytes = len(data[info.data_end :].rstrip(b"\0"))
    if footer is not None or not rest_bytes:
        return None
    return _Cut(segment, info.data_end, rest_bytes, replay.torn)


def _check_durable_end(recorded: DurableEnd | None, state: LogState) -> None:
    """Raise when the good records end before what was durable."""
    if recorded is None or recorded.segment < state.checkpoint_segment:
        return
    info = state.segments.get(recorded.segment)
    if info is not None and info.data_end >= recorded.offset:
        return
    name = segment_name(recorded.segment)
    if info is None:
        what = f"{name} is missing"
    elif info.data_end == SEGMENT_HEADER_BYTES:
        what = f"{name} is empty"
    else:
        what = f"{name} is damaged at offset {info.data_end}"
    raise CorruptionError(
        f"{what}, and batch {recorded.batch}, which ends at its offset {recorded.offset}, was "
        f"durable: put the file back from where it went, or give up what is lost by removing "
        f"{DURABLE_END_NAME} beside it"
    )


def _say_what_was_cut(cuts: list[_Cut | None], state: LogState) -> None:
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
        "%s: cut %d bytes behind offset %d, left over from %s that was being written when the "
        "broker or the machine went down: it may have held messages without a receipt, and "
        "acknowledgements and subscriptions that were not confirmed",
        segment_name(cut.segment),
        cut.size_bytes,
        cut.offset,
        whose,
    )


def _end_of(state: LogState) -> DurableEnd:
    """Where everything that was found ends; it is durable by now."""
    info = next(reversed(state.segments.values()), None)
    if info is None:
        return DurableEnd(state.last_batch, 0, 0)
    return DurableEnd(state.last_batch, info.segment, info.data_end)


def _check_numbers(state: LogState, topic_number_last: int | None) -> None:
    seen = state.remains.number_seen
    if topic_number_last is not None and seen > topic_number_last:
        raise UnknownTopicsError(seen, topic_number_last)


def _settle_topics(state: LogState, replay: Replay, ends: dict[int, TopicState]) -> None:
    """Apply trims, check that no retained entry is missing, count what pins each segment."""
    for topic in state.topics.values():
        first = max(topic.first, replay.trims.get(topic.number, 0))
        saved = ends.get(topic.number)
        if saved is not None and topic.end < saved.end:
            topic.restart_at(saved.end, saved.totals)
        if topic.base > first:
            raise CorruptionError(
                f"entries {first} to {topic.base - 1} of topic number {topic.number} are missing: "
                "a segment file is gone"
            )
        topic.trim(first)
        topic.rewind()
        for segment in topic.segments():
            info = state.segments[segment]
            info.live_runs += 1
            info.topics[topic.number] = None
    _drop_doubled_cursors(state)


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
        state.remains.say(segment, segment_name(segment), "is sealed without their index")
        builder = FooterBuilder(segment, info.data_end)
        for number in info.topics:
            builder.add(state.topics[number])
        with contextlib.suppress(LogFullError):
            writer.seal(segment, info.data_end, builder.finish())
            info.sealed = True
            del state.unsealed[segment]
        if not info.sealed:
            writer.sync(segment)


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
