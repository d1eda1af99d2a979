"""Loads the newest readable checkpoint into the state that a start replays into."""

from __future__ import annotations

import logging
import struct
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from headgate.base.errors import CorruptionError
from headgate.base.sequence_table import SequenceTable
from headgate.fs.api import Fs
from headgate.ledger.format.directory import file_size
from headgate.ledger.format.records import checkpoint_names, segment_of_checkpoint
from headgate.ledger.index.checkpoint import Checkpoint, TopicState, read_checkpoint
from headgate.ledger.index.state import LogState

logger = logging.getLogger("headgate.ledger")


@dataclass(slots=True)
class LoadedCheckpoint:
    """The checkpoint that replay starts from, if there is one, and the files beside it."""

    topics: dict[int, TopicState] = field(default_factory=dict)
    """The checkpoint's state of the topics that exist."""
    unreadable: list[str] = field(default_factory=list)
    """A text for each checkpoint file that is missing or damaged."""
    is_found: bool = False
    is_older: bool = False
    """A newer checkpoint is unreadable, so segments that this one needs may be deleted."""
    next_segment: int = 1
    """One past the newest segment in the name of any checkpoint file."""


def load_checkpoint(
    fs: Fs, directory: str, names: Sequence[str], known: Collection[int], state: LogState
) -> LoadedCheckpoint:
    """Load the newest checkpoint whose file or copy is readable into ``state``.

    ``names`` are the files of the directory, ``known`` the numbers of the topics that exist.
    """
    loaded = LoadedCheckpoint()
    segments = sorted({s for s in map(segment_of_checkpoint, names) if s is not None})
    if segments:
        loaded.next_segment = segments[-1] + 1
    for segment in reversed(segments):
        for name in checkpoint_names(segment):
            if name not in names:
                if name == checkpoint_names(segment)[0]:
                    loaded.unreadable.append(f"{name} is missing")
                continue
            try:
                checkpoint = read_checkpoint(fs, directory, name)
            except (CorruptionError, struct.error, UnicodeDecodeError, KeyError) as error:
                loaded.unreadable.append(str(error))
                continue
            _load_state(checkpoint, known, state)
            state.space.checkpoint_bytes = 2 * file_size(fs, f"{directory}/{name}")
            loaded.is_found = True
            loaded.is_older = segment < segments[-1]
            loaded.topics = {n: s for n, s in checkpoint.topics.items() if n in known}
            if loaded.unreadable:
                logger.warning(
                    "%s in %s: restored from %s", "; ".join(loaded.unreadable), directory, name
                )
            return loaded
    return loaded


def _load_state(checkpoint: Checkpoint, known: Collection[int], state: LogState) -> None:
    state.checkpoint_segment = checkpoint.segment
    state.last_batch = state.checkpoint_last_batch = checkpoint.last_batch
    state.next_ledger_id = checkpoint.counters.next_ledger_id
    state.next_cursor_id = checkpoint.counters.next_cursor_id
    state.next_batch = checkpoint.counters.next_batch
    state.next_segment = checkpoint.counters.next_segment
    for number, saved in checkpoint.topics.items():
        state.orphans.note_number(number)
        if number not in known:
            continue
        topic = state.enter_topic(number)
        topic.restart_at(saved.end, saved.totals)
        topic.first = saved.first
        topic.damage = saved.damage
        topic.lost = list(saved.lost)
        if saved.sequences is not None:
            topic.sequences = SequenceTable(saved.sequences)
        for ledger_id, first, created in saved.ledgers:
            topic.open_ledger(ledger_id, first, created)
    for cursor in checkpoint.cursors.values():
        state.orphans.note_number(cursor.topic_number)
        if cursor.topic_number in known:
            state.put_cursor(cursor)
