"""Assesses which topics and cursors may have lost something in unreadable ranges of the log.

Records of any topic and cursor may have been in an unreadable range, so from there on each of them
is suspected. Later records clear a topic if its next entry or run has the very ordinal that
continues it, and a cursor if they restate its whole state. The ids in the next batch's head tell
whether a cursor was created in the range. A topic or cursor that is still suspected at the end of
the log is damaged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from headgate.ledger.index.state import LogState
from headgate.ledger.index.topic_log import TopicLog


@dataclass(frozen=True, slots=True)
class Loss:
    """Entries of a topic that are missing or damaged."""

    topic: int
    first: int
    stop: int
    place: str
    knows_ledgers: bool = False
    """Whether the ledgers of the entries are known, and so their message ids."""
    segment: int = 0
    """The segment of an entry whose stored bytes are damaged; 0 for entries that are missing."""


class Doubt(NamedTuple):
    """A topic that lost records other than entries, or may have."""

    what: str
    """What is lost, and where."""
    before: int = -1
    """What is lost belonged before the entry with this ordinal; -1 if that is unknown."""
    is_repeated: bool = False
    """Whether each start finds it again, because its segment is before the checkpoint."""


class LossAssessment:
    """What is lost for certain, and what may be, while a log is replayed."""

    def __init__(self, state: LogState, known: Collection[int]) -> None:
        """``known`` are the numbers of the topics that exist."""
        self._state = state
        self._known = known
        self.topics: dict[int, str] = {}
        """Suspected topics by number: the place where each may have lost entries."""
        self.cursors: dict[int, str] = {}
        """Suspected cursors by id: the place where each may have lost acknowledgements."""
        self.losses: list[Loss] = []
        self.doubts: dict[int, list[Doubt]] = {}
        """Topics that lost records other than entries, by number: what they lost."""
        self._unreadable = ""
        self._created_at = ""
        self._next_cursor_id = max(state.cursors, default=0) + 1

    def note_unreadable(self, place: str, *, entries: bool = True) -> None:
        """Suspect every cursor and, unless ``entries`` is False because a footer lists the entries
        there, every topic."""
        if entries:
            for number in self._known:
                self.topics.setdefault(number, place)
        for cursor_id in self._state.cursors:
            self.cursors.setdefault(cursor_id, place)
        self._unreadable = self._unreadable or place

    def note_doubt(self, number: int, doubt: Doubt) -> None:
        """Note that a topic lost a record other than an entry. Of those whose ordinal is unknown,
        the first counts."""
        known = self.doubts.setdefault(number, [])
        if all(doubt.before != other.before for other in known):
            known.append(doubt)

    def batch_ended(self, next_cursor_id: int, made: int) -> None:
        """Note the next cursor id in a batch's head, and that ``made`` cursors were created in the
        batch: more ids used than that were used in the unreadable range before it."""
        if self._unreadable and next_cursor_id > self._next_cursor_id + made:
            self._created_at = self._created_at or self._unreadable
        self._unreadable = ""
        self._next_cursor_id = max(self._next_cursor_id, next_cursor_id)

    def topic_is_complete(self, number: int) -> None:
        """Clear a topic: its next entry has the ordinal that continues it."""
        self.topics.pop(number, None)

    def cursor_is_complete(self, cursor_id: int) -> None:
        """Clear a cursor: a record restated its whole state, or deleted it."""
        self.cursors.pop(cursor_id, None)

    def loss_accepted(self, number: int, accepted: Collection[tuple[int, int]]) -> None:
        """Clear a topic and its cursors: an operator accepted their losses up to here.

        ``accepted`` are the ranges of lost entries that were known then. Entries outside of them
        were lost later, and nobody accepted that.
        """
        self.topics.pop(number, None)
        self.doubts.pop(number, None)
        self.losses = [
            left
            for loss in self.losses
            for left in ([loss] if loss.topic != number else _outside(loss, accepted))
        ]
        for cursor_id in self._state.topic_cursors.get(number, {}):
            self.cursors.pop(cursor_id, None)

    def mark_damaged(self) -> bool:
        """Mark topics and cursors with losses, or still suspected, as damaged. Call it when the log
        is read and its topics are trimmed. Returns whether that changed anything."""
        state = self._state
        before = _damaged(state)
        for loss in self.losses:
            topic = state.topics[loss.topic]
            if loss.segment and _is_rewritten(topic, loss):
                continue
            # Each start finds a loss in an older segment again. What checkpoint or ACCEPT records
            # know of is accepted, or the topic is still damaged.
            for new in _outside(loss, topic.lost):
                _mark_lost(topic, new)
        for number, doubts in self.doubts.items():
            if number in self._known:
                _mark_doubts(state.enter_topic(number), doubts)
        for number, place in self.topics.items():
            topic = state.enter_topic(number)
            topic.damage = topic.damage or (
                f"{place}: messages of this topic may have been there, and nothing that was stored "
                "later proves that none were"
            )
        created_at = self._created_at or self._unreadable
        for number in self._known if created_at else ():
            topic = state.enter_topic(number)
            topic.damage = topic.damage or (
                f"{created_at}: a subscription of this topic may have been made there"
            )
        for cursor_id, place in self.cursors.items():
            cursor = state.cursors.get(cursor_id)
            if cursor is not None and not cursor.damage:
                cursor.damage = (
                    f"{place}: acknowledgements of this subscription may have been there"
                )
        return _damaged(state) != before


def _is_rewritten(topic: TopicLog, loss: Loss) -> bool:
    """Whether a damaged entry is read from a later segment, into which rewriting has copied it."""
    is_there = topic.first <= loss.first < topic.end
    return is_there and topic.run_of(loss.first)[0] > loss.segment


def _mark_lost(topic: TopicLog, loss: Loss) -> None:
    """Mark a topic as damaged by a loss, unless the lost entries are trimmed."""
    if loss.stop <= topic.first:
        return
    first = max(loss.first, topic.first)
    topic.note_lost(first, loss.stop)
    what = f"entry {first} is lost"
    if loss.stop > first + 1:
        what = f"entries {first} to {loss.stop - 1} are lost"
    if loss.knows_ledgers:
        ids = [f"{ledger}:{entry}" for ledger, entry in map(topic.position, (first, loss.stop - 1))]
        is_one = loss.stop == first + 1
        what += f" (message id {ids[0]})" if is_one else f" (message ids {ids[0]} to {ids[1]})"
    topic.damage = topic.damage or f"{loss.place}: {what}"


def _mark_doubts(topic: TopicLog, doubts: Iterable[Doubt]) -> None:
    """Mark a topic as damaged by these, but not by a repeated one that is known, or about what is
    released.

    A segment before the checkpoint whose footer is lost is read by its records in each start, so
    each finds them again. As an empty range of lost entries, a doubt is in what an operator
    accepts.
    """
    for what, before, is_repeated in doubts:
        if is_repeated and (before <= topic.first or topic.is_known_lost(before)):
            continue
        if before > topic.first:
            topic.note_lost(before, before)
        topic.damage = topic.damage or what


def _outside(loss: Loss, ranges: Collection[tuple[int, int]]) -> Iterator[Loss]:
    """The parts of a loss that are in none of the ranges."""
    at = loss.first
    for first, stop in sorted(ranges):
        if at < min(first, loss.stop):
            yield replace(loss, first=at, stop=min(first, loss.stop))
        at = max(at, stop)
    if at < loss.stop:
        yield replace(loss, first=at)


def _damaged(state: LogState) -> tuple[set[int], set[int], int]:
    topics = {number for number, topic in state.topics.items() if topic.damage}
    cursors = {cursor_id for cursor_id, cursor in state.cursors.items() if cursor.damage}
    return topics, cursors, sum(len(topic.lost) for topic in state.topics.values())
