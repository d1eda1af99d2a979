"""Time ranges in which telemetry messages of a source are missing, found by their sequence numbers.

Each boot of a source numbers its messages from 0. So a missing number is a lost message: it expired
before the pipeline read it, or was never stored. After the last message of a boot, the cause of a
gap is not known: the broker may have stopped, or further messages were lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Final

import pyarrow as pa

from headgate.pipeline.tables.intervals import INTERVALS_LOOK_BACK_NS
from headgate.pipeline.time_span import instant

COLUMNS: Final = ("source", "boot_id", "seq", "window_start_ns", "window_end_ns")
"""Columns of ``bronze_samples`` that are read in rows of kind ``batch``."""

RESTART_NS_MAX: Final = INTERVALS_LOOK_BACK_NS
"""Longest gap between two boots that counts as a restart and is not reported."""

SENTENCES_MAX: Final = 3
"""Most sentences about one source; further gaps are only counted."""


@dataclass(frozen=True, slots=True)
class LastSeen:
    """The newest message of one source."""

    boot_id: str
    seq: int
    until_ns: int
    """End of its window, ns since the epoch."""


@dataclass(frozen=True, slots=True)
class SequenceGap:
    """A time range without telemetry of a source, ns since the epoch."""

    source: str
    since_ns: int | None
    """None for the source's start, whose time is not known."""
    until_ns: int
    lost: int
    """Messages that were certainly lost; 0 if perhaps none was."""
    is_all: bool
    """Whether ``lost`` is exact; it leaves out messages at the end of a boot."""

    def sentence(self) -> str:
        """The gap in words."""
        since = "the start of its broker" if self.since_ns is None else instant(self.since_ns)
        when = f"{self.source} from {since} to {instant(self.until_ns)}"
        if not self.lost:
            return (
                f"There is no telemetry of {when}: its broker was down, or the messages expired "
                "before the pipeline read them."
            )
        least = "" if self.is_all else "at least "
        count = f"{self.lost:,} message" + "s" * (self.lost > 1)
        them = "it" if self.lost == 1 else "them"
        return (
            f"Telemetry of {when} is missing: {least}{count} expired before the pipeline read "
            f"{them}."
        )


@dataclass(frozen=True, slots=True)
class _Message:
    """One telemetry message. Within a boot, messages are in order of time."""

    source: str
    boot_id: str
    seq: int
    start_ns: int
    end_ns: int


def newest(rows: pa.Table) -> dict[str, LastSeen]:
    """The newest message of each source."""
    return {source: _last_seen(boots[-1][-1]) for source, boots in _by_source(rows)}


def find_gaps(
    before: Mapping[str, LastSeen], rows: pa.Table
) -> tuple[list[SequenceGap], dict[str, LastSeen]]:
    """Gaps before and between new messages, and the newest message of each of their sources.

    ``before`` has the newest message of earlier reads; older messages are late and ignored. Between
    two boots that are read together no message was lost, because a topic loses its oldest first.
    """
    found: list[SequenceGap] = []
    now: dict[str, LastSeen] = {}
    for source, boots in _by_source(rows):
        known = last = before.get(source)
        for boot in boots:
            for message in boot:
                if known is not None and _is_old(message, known):
                    continue
                gap = _gap(source, last, message, is_known=last is known)
                if gap is not None:
                    found.append(gap)
                last = _last_seen(message)
        if last is not None and last is not known:
            now[source] = last
    return found, now


def sentences(gaps: list[SequenceGap]) -> list[str]:
    """The gaps in words, a few of each source."""
    found: list[str] = []
    for source, own in groupby(gaps, lambda gap: gap.source):
        each = list(own)
        shown = each if len(each) <= SENTENCES_MAX else each[: SENTENCES_MAX - 1]
        found += [gap.sentence() for gap in shown]
        if rest := each[len(shown) :]:
            found.append(
                f"{source} has {len(rest):,} more such gaps, the last until "
                f"{instant(rest[-1].until_ns)}."
            )
    return found


def _gap(
    source: str, last: LastSeen | None, message: _Message, *, is_known: bool
) -> SequenceGap | None:
    """What is missing between two messages that follow each other."""
    same_boot = last is not None and last.boot_id == message.boot_id
    lost = message.seq - (last.seq + 1 if last is not None and same_boot else 0)
    if lost > 0:
        if last is None:
            return SequenceGap(source, None, message.start_ns, lost, True)
        # The times are reversed within a window of several messages, or after a clock is set back.
        since_ns, until_ns = sorted((last.until_ns, message.start_ns))
        return SequenceGap(source, since_ns, until_ns, lost, same_boot)
    if last is None or same_boot or not is_known:
        return None
    if message.start_ns - last.until_ns <= RESTART_NS_MAX:
        return None
    return SequenceGap(source, last.until_ns, message.start_ns, 0, False)


def _is_old(message: _Message, known: LastSeen) -> bool:
    if message.boot_id == known.boot_id:
        return message.seq <= known.seq
    return message.end_ns <= known.until_ns


def _last_seen(message: _Message) -> LastSeen:
    return LastSeen(message.boot_id, message.seq, message.end_ns)


def _by_source(rows: pa.Table) -> Iterator[tuple[str, list[list[_Message]]]]:
    """Each source and the messages of its boots, the boots in the order of their ends."""
    columns = [rows.column(name).to_pylist() for name in COLUMNS]
    # Duplicates come from messages that were read twice.
    messages = {(row[0], row[1], row[2]): _Message(*row) for row in zip(*columns, strict=True)}
    ordered = [messages[key] for key in sorted(messages)]
    for source, own in groupby(ordered, lambda message: message.source):
        boots = [list(boot) for _, boot in groupby(own, lambda message: message.boot_id)]
        yield source, sorted(boots, key=lambda boot: max(message.end_ns for message in boot))
