"""Checks that the live bytes and runs counted for each segment are those that the index shows."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterable
from typing import Final, NamedTuple

from headgate.ledger.format.records import SEGMENT_HEADER_BYTES
from headgate.ledger.index.state import LogState, SegmentInfo
from headgate.ledger.statistics import SpaceUse

logger = logging.getLogger("headgate.ledger")

STEP_TOPICS: Final = 64
"""Topics that one step of a check looks at."""


class Live(NamedTuple):
    """What the topics retain in one segment."""

    live_bytes: int
    live_runs: int


def check_segments(state: LogState) -> Generator[None, None, int]:
    """Compare each sealed segment's counts with the index, log differences, and raise counts that
    are too low; returns how many segments differed. For the event loop, which may do other work
    between two steps.

    Counts that are too high stay until a start counts again: they only keep a file, and a check
    that lowered them by mistake would delete messages.

    The live bytes of a sealed segment only fall. So if they did not change during the steps of a
    segment, the index did not change either; otherwise the next check compares the segment.
    """
    wrong = 0
    for info in list(state.segments.values()):
        if not info.sealed:
            continue
        counted = Live(info.live_bytes, info.live_runs)
        found = yield from _live_of(state, info)
        is_unchanged = counted == Live(info.live_bytes, info.live_runs)
        if state.segments.get(info.segment) is info and is_unchanged and found != counted:
            wrong += 1
            logger.error(
                "segment %016x: %d bytes in %d runs were counted as live, and the index has %d "
                "bytes in %d runs: the higher counts hold until the next start",
                info.segment, *counted, *found,
            )  # fmt: skip
            state.raise_counts(info, *found)
    return wrong


def space_use(
    state: LogState, segment_bytes: int, spare_segments: int, deleted_bytes: int
) -> SpaceUse:
    """How the log uses the disk. ``spare_segments`` are the prepared ones without records and the
    old files; they and the segments that are not sealed have the size ``segment_bytes``.
    ``deleted_bytes`` are what is left of deleted segments.

    Walks the dead and the open segments, of which there are few.
    """
    totals = state.space
    unsealed = [state.segments[segment] for segment in state.unsealed]
    dead = [state.segments[segment] for segment in state.dead]
    live_unsealed = sum(info.live_bytes for info in unsealed)
    written_unsealed = sum(info.data_end for info in unsealed)
    open_bytes = sum(max(info.data_end, segment_bytes) for info in unsealed) - live_unsealed
    spare_bytes = spare_segments * segment_bytes
    dead_bytes = sum(info.file_bytes - info.punched_bytes for info in dead)
    index_bytes = totals.index_bytes - sum(info.file_bytes - info.data_end for info in dead)
    live_sealed = totals.live_bytes - live_unsealed
    sealed_bytes = totals.sealed_bytes - totals.punched_bytes
    return SpaceUse(
        live_bytes=totals.live_bytes,
        # A file system that compresses seems to have more holes than were punched.
        pinned_bytes=max(sealed_bytes - dead_bytes - index_bytes - live_sealed, 0),
        dead_bytes=dead_bytes + deleted_bytes,
        index_bytes=index_bytes,
        open_bytes=open_bytes + spare_bytes,
        checkpoint_bytes=totals.checkpoint_bytes,
        segments=len(state.segments) + spare_segments,
        segments_dead=len(dead),
        unused_bytes=open_bytes + live_unsealed - written_unsealed + spare_bytes,
    )


def space_errors(state: LogState) -> list[str]:
    """Every law of the accounting that does not hold now, each as a text. For tests: it walks all
    topics at once."""
    live: dict[int, int] = {}
    runs: dict[int, int] = {}
    held_bytes = staged_bytes = 0
    for topic in state.topics.values():
        held_bytes += topic.live_bytes(topic.first, topic.end)
        staged_bytes += topic.live_bytes(topic.end, topic.staged_end)
        for segment, live_bytes in topic.live_runs():
            live[segment] = live.get(segment, 0) + live_bytes
            runs[segment] = runs.get(segment, 0) + 1
    has_lost = any(topic.lost for topic in state.topics.values())
    errors = [
        error
        for info in state.segments.values()
        for error in _errors_of(
            state,
            info,
            Live(live.get(info.segment, 0), runs.get(info.segment, 0)),
            has_lost=has_lost,
        )
    ]
    errors += _sum_errors(state, held_bytes)
    owners = {topic.stored_total for topic in state.topics.values()}
    counted = sum(total.bytes for total in owners)
    if (counted_runs := sum(total.runs for total in owners)) != sum(runs.values()):
        errors.append(f"runs of all owners: counted {counted_runs}, found {sum(runs.values())}")
    if counted != held_bytes + staged_bytes:
        errors.append(f"stored by all owners: counted {counted}, found {held_bytes + staged_bytes}")
    errors += [f"dead segment {s} is gone" for s in state.dead if s not in state.segments]
    return errors


def _errors_of(state: LogState, info: SegmentInfo, found: Live, *, has_lost: bool) -> Iterable[str]:
    name = f"segment {info.segment}"
    counted = Live(info.live_bytes, info.live_runs)
    if counted != found:
        yield f"{name}: counted {counted}, found {found}"
    if info.is_dead != (info.segment in state.dead):
        yield f"{name}: counted {counted}, and dead is {info.segment in state.dead}"
    if info.sealed and bool(info.live_runs) != bool(info.live_bytes):
        yield f"{name}: {info.live_runs} runs with {info.live_bytes} bytes"
    size = info.file_bytes if info.sealed else info.data_end
    kept_bytes = info.live_bytes + SEGMENT_HEADER_BYTES
    if size - info.punched_bytes < kept_bytes and not has_lost:
        # Lost entries are indexed with their size, and have no bytes.
        yield f"{name}: {kept_bytes} bytes are kept in {size} without {info.punched_bytes}"


def _sum_errors(state: LogState, held_bytes: int) -> Iterable[str]:
    segments, totals = state.segments.values(), state.space
    sealed = [info for info in segments if info.sealed]
    expected = (
        ("live bytes", totals.live_bytes, sum(info.live_bytes for info in segments)),
        ("bytes held by topics", totals.live_bytes, held_bytes),
        ("bytes of files", totals.sealed_bytes, sum(info.file_bytes for info in sealed)),
        ("punched bytes", totals.punched_bytes, sum(info.punched_bytes for info in sealed)),
        (
            "bytes of footers",
            totals.index_bytes,
            sum(info.file_bytes - info.data_end for info in sealed),
        ),
    )
    for what, counted, found in expected:
        if counted != found:
            yield f"{what}: counted {counted}, found {found}"


def _live_of(state: LogState, info: SegmentInfo) -> Generator[None, None, Live]:
    live_bytes = live_runs = 0
    for at, number in enumerate([*info.topics]):
        if at % STEP_TOPICS == 0:
            yield
        topic = state.topics.get(number)
        in_run = None if topic is None else topic.live_bytes_in(info.segment)
        if in_run is not None:  # an empty run counts, too: its release takes it from the count
            live_bytes += in_run
            live_runs += 1
    return Live(live_bytes, live_runs)
