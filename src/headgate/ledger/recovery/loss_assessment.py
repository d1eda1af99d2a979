"""Assesses which topics and cursors may have lost something in a damaged place.

A hole is *hidden* when what lay in it cannot be told. From then on each topic and each cursor is a
suspect: its records may have been there. What follows proves a topic complete when its next entry
or run is the very ordinal that belongs there, and a cursor when all of its state is said again.
A cursor that was made in the hole shows itself by the ids that the next batch's head says are used.
Who is still a suspect at the end of the log counts as damaged.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from headgate.ledger.index.state import LogState


@dataclass(frozen=True, slots=True)
class Loss:
    """Entries of a topic that are not there, or not as they were stored."""

    topic: int
    first: int
    stop: int
    place: str


class LossAssessment:
    """What is not proven complete, and what is known to be lost, while a log is replayed."""

    def __init__(self, state: LogState, known: Collection[int]) -> None:
        """``known`` are the numbers of the topics that exist."""
        self._state = state
        self._known = known
        self.topics: dict[int, str] = {}
        """Where a topic may have lost entries, by number."""
        self.cursors: dict[int, str] = {}
        """Where a cursor may have lost acknowledgements, by id."""
        self.losses: list[Loss] = []
        self.doubts: dict[int, str] = {}
        """Topics about which something is known to be lost that is no entry, and what."""
        self._hole = ""
        self._made_at = ""
        self._next_cursor_id = max(state.cursors, default=0) + 1

    def hidden(self, place: str, *, entries: bool = True) -> None:
        """Nobody knows whose records lay here. Without ``entries``: an index says that of them."""
        if entries:
            for number in self._known:
                self.topics.setdefault(number, place)
        for cursor_id in self._state.cursors:
            self.cursors.setdefault(cursor_id, place)
        self._hole = self._hole or place

    def batch_ended(self, next_cursor_id: int, made: int) -> None:
        """A batch that says which cursor id is next was read, and ``made`` cursors seen in it."""
        if self._hole and next_cursor_id > self._next_cursor_id + made:
            self._made_at = self._made_at or self._hole
        self._hole = ""
        self._next_cursor_id = max(self._next_cursor_id, next_cursor_id)

    def is_complete(self, number: int) -> None:
        """The topic's next entry is the one that belongs there."""
        self.topics.pop(number, None)

    def is_whole(self, cursor_id: int) -> None:
        """All of the cursor's state was said anew, or it is gone."""
        self.cursors.pop(cursor_id, None)

    def accepted(self, number: int) -> None:
        """Whatever the topic and its cursors had lost until now was accepted."""
        self.topics.pop(number, None)
        self.doubts.pop(number, None)
        self.losses = [loss for loss in self.losses if loss.topic != number]
        for cursor_id in self._state.topic_cursors.get(number, {}):
            self.cursors.pop(cursor_id, None)

    def settle(self) -> bool:
        """The log is read and its topics are trimmed: whoever is still a suspect is damaged.
        Returns whether anybody is that was not before."""
        state = self._state
        before = _damaged(state)
        for loss in self.losses:
            topic = state.topics[loss.topic]
            if loss.stop > topic.first:
                first = max(loss.first, topic.first)
                topic.note_lost(first, loss.stop)
                what = f"entry {first} is lost"
                if loss.stop > first + 1:
                    what = f"entries {first} to {loss.stop - 1} are lost"
                topic.damage = topic.damage or f"{loss.place}: {what}"
        for number, what in self.doubts.items():
            if number not in self._known:
                continue
            topic = state.topic(number)
            topic.damage = topic.damage or what
        for number, place in self.topics.items():
            topic = state.topic(number)
            topic.damage = topic.damage or (
                f"{place}: messages of this topic may have been there, and nothing that was stored "
                "later proves that none were"
            )
        made_at = self._made_at or self._hole
        for number in self._known if made_at else ():
            topic = state.topic(number)
            topic.damage = topic.damage or (
                f"{made_at}: a subscription of this topic may have been made there"
            )
        for cursor_id, place in self.cursors.items():
            cursor = state.cursors.get(cursor_id)
            if cursor is not None and not cursor.damage:
                cursor.damage = (
                    f"{place}: acknowledgements of this subscription may have been there"
                )
        return _damaged(state) != before


def _damaged(state: LogState) -> tuple[set[int], set[int], int]:
    topics = {number for number, topic in state.topics.items() if topic.damage}
    cursors = {cursor_id for cursor_id, cursor in state.cursors.items() if cursor.damage}
    return topics, cursors, sum(len(topic.lost) for topic in state.topics.values())
