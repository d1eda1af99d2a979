"""What is owed, against counting every entry and every message one by one."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from headgate.base.ack_set import AckSet
from headgate.flow.quota import backlog
from headgate.flow.quota.backlog import Amounts

ENTRIES = 30
ROW = 7


class Topic(NamedTuple):
    """Entries as a list of their messages and bytes."""

    messages: list[int]
    sizes: list[int]

    def messages_before(self, ordinal: int) -> int:
        return sum(self.messages[:ordinal])

    def bytes_before(self, ordinal: int) -> int:
        return sum(self.sizes[:ordinal])

    def running_totals(self, first: int, stop: int) -> tuple[list[int], list[int], int, int] | None:
        """Rows of seven entries, some of which are on the disk, beginning with any total."""
        row = first // ROW
        if row % 3 == 1:
            return None
        ordinals = range(row * ROW, row * ROW + ROW + 1)
        counts = [self.messages_before(ordinal) + 5 for ordinal in ordinals]
        sizes = [self.bytes_before(ordinal) + 9 for ordinal in ordinals]
        return counts, sizes, ordinals.start, min(stop, ordinals.stop - 1)


class State(NamedTuple):
    """A topic, what is acknowledged of it, and the same message by message."""

    topic: Topic
    acks: AckSet
    acked: set[tuple[int, int]]
    """``(ordinal, index)`` of every acknowledged message."""

    def is_done(self, ordinal: int) -> bool:
        return all((ordinal, i) in self.acked for i in range(self.topic.messages[ordinal]))

    def count(self, ordinals: range) -> Amounts:
        """What is done of these entries, counted one by one."""
        done = [ordinal for ordinal in ordinals if self.is_done(ordinal)]
        return Amounts(
            len(done),
            sum(ordinal in ordinals for ordinal, _ in self.acked),
            sum(self.topic.sizes[ordinal] for ordinal in done),
        )


@st.composite
def states(draw: st.DrawFn) -> State:
    """Any topic, and a subscription that acknowledged some messages in some order."""
    messages = draw(st.lists(st.integers(1, 4), min_size=ENTRIES, max_size=ENTRIES))
    sizes = draw(st.lists(st.integers(0, 99), min_size=ENTRIES, max_size=ENTRIES))
    passed = draw(st.integers(0, ENTRIES))
    acks = AckSet(passed - 1)
    acked = {(o, index) for o in range(passed) for index in range(messages[o])}
    for ordinal, mask in draw(
        st.lists(st.tuples(st.integers(0, ENTRIES - 1), st.integers(0, 15)), max_size=50)
    ):
        mask &= (1 << messages[ordinal]) - 1
        acks.ack_messages(ordinal, mask, messages[ordinal])
        acked |= {(ordinal, index) for index in range(4) if mask >> index & 1}
    return State(Topic(messages, sizes), acks, acked)


ends = st.integers(0, ENTRIES)


@given(states(), ends, ends)
def test_what_is_done_of_a_range(state: State, one: int, two: int) -> None:
    topic, acks, _ = state
    first, stop = max(min(one, two), acks.mark_delete + 1), max(one, two, acks.mark_delete + 1)
    done = state.count(range(first, stop))
    stored = backlog.stored_within(topic, first, stop)
    assert stored == (stop - first, sum(topic.messages[first:stop]), sum(topic.sizes[first:stop]))
    assert backlog.acked_within(topic, acks, first, stop) == done
    left = tuple(s - d for s, d in zip(stored, done, strict=True))
    assert backlog.newly_done(topic, acks, first, stop) == left


@given(states(), ends)
def test_stored_less_done_is_what_nobody_acknowledged(state: State, first_kept: int) -> None:
    """Rule 4.1; whatever was given up with the oldest entries is owed no more."""
    topic, acks, acked = state
    done = backlog.done_before(topic, acks, first_kept, ENTRIES)
    kept = range(first_kept, ENTRIES)
    owed = [ordinal for ordinal in kept if not state.is_done(ordinal)]
    assert ENTRIES - done.entries == len(owed)
    assert sum(topic.messages) - done.messages == sum(
        (ordinal, index) not in acked
        for ordinal in owed
        for index in range(topic.messages[ordinal])
    )
    assert sum(topic.sizes) - done.bytes == sum(topic.sizes[ordinal] for ordinal in owed)


@given(states(), st.integers(0, ENTRIES - 1))
def test_what_becomes_done_is_what_was_missing(state: State, last: int) -> None:
    topic, acks, _ = state
    before = backlog.done_before(topic, acks, 0, ENTRIES)
    first = min(acks.mark_delete + 1, last + 1)
    new = backlog.newly_done(topic, acks, first, last + 1)
    acks.ack_through(last)
    after = backlog.done_before(topic, acks, 0, ENTRIES)
    assert after == tuple(b + n for b, n in zip(before, new, strict=True))


def test_a_partly_acknowledged_entry_owes_its_bytes_and_the_messages_that_are_left() -> None:
    topic = Topic([3, 5], [70, 90])
    acks = AckSet()
    acks.ack_messages(1, 0b01011, 5)
    assert backlog.done_before(topic, acks, 0, 2) == (0, 3, 0)
    acks.ack_messages(1, 0b10100, 5)
    assert backlog.done_before(topic, acks, 0, 2) == (1, 5, 90)


def test_entries_beyond_the_end_do_not_count() -> None:
    topic = Topic([3, 5], [70, 90])
    acks = AckSet()
    acks.ack_messages(1, 1, 5)
    assert backlog.done_before(topic, acks, 0, 1) == (0, 0, 0)
    acks.ack_through(1)
    assert backlog.done_before(topic, acks, 0, 1) == (1, 3, 70)
