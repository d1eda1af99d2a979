"""Loads the newest readable checkpoint into the state that a start replays into."""

from __future__ import annotations

import logging
import struct
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from headgate.base.errors import CorruptionError
from headgate.fs.api import Fs
from headgate.ledger.format.records import checkpoint_names, segment_of_checkpoint
from headgate.ledger.index.checkpoint import Checkpoint, TopicState, read_checkpoint
from headgate.ledger.index.state import LogState

logger = logging.getLogger("headgate.ledger")


@dataclass(slots=True)
class Chosen:
    """What is known from before the log that is replayed."""

    topics: dict[int, TopicState] = field(default_factory=dict)
    """What the checkpoint says of the known topics."""
    bad: list[str] = field(default_factory=list)
    """What is wrong with files that could not be used."""
    is_found: bool = False
    is_older: bool = False
    """A newer one cannot be read: segments that only the one found needs may be deleted."""
    next_segment: int = 1
    """No checkpoint, not even a bad one, is of this segment or a later one."""


def load_checkpoint(
    fs: Fs, directory: str, names: Sequence[str], known: Collection[int], state: LogState
) -> Chosen:
    """Take over the newest checkpoint of which the file or its copy can be read."""
    chosen = Chosen()
    segments = sorted({s for s in map(segment_of_checkpoint, names) if s is not None})
    if segments:
        chosen.next_segment = segments[-1] + 1
    for segment in reversed(segments):
        for name in checkpoint_names(segment):
            if name not in names:
                if name == checkpoint_names(segment)[0]:
                    chosen.bad.append(f"{name} is missing")
                continue
            try:
                checkpoint = read_checkpoint(fs, directory, name)
            except (CorruptionError, struct.error, UnicodeDecodeError, KeyError) as error:
                chosen.bad.append(str(error))
                continue
            _take_over(checkpoint, known, state)
            chosen.is_found = True
            chosen.is_older = segment < segments[-1]
            chosen.topics = {n: s for n, s in checkpoint.topics.items() if n in known}
            if chosen.bad:
                logger.warning(
                    "%s in %s: made anew from %s", "; ".join(chosen.bad), directory, name
                )
            return chosen
    return chosen


def _take_over(checkpoint: Checkpoint, known: Collection[int], state: LogState) -> None:
    state.checkpoint_segment = checkpoint.segment
    state.last_batch = state.checkpoint_last_batch = checkpoint.last_batch
    state.next_ledger_id = checkpoint.counters.next_ledger_id
    state.next_cursor_id = checkpoint.counters.next_cursor_id
    state.next_batch = checkpoint.counters.next_batch
    state.next_segment = checkpoint.counters.next_segment
    for number, saved in checkpoint.topics.items():
        state.orphans.see(number)
        if number not in known:
            continue
        topic = state.topic(number)
        topic.restart_at(saved.end, saved.totals)
        topic.first = saved.first
        topic.damage = saved.damage
        topic.lost = list(saved.lost)
        for ledger_id, first, created in saved.ledgers:
            topic.open_ledger(ledger_id, first, created)
    for cursor in checkpoint.cursors.values():
        state.orphans.see(cursor.topic_number)
        if cursor.topic_number in known:
            state.put_cursor(cursor)
