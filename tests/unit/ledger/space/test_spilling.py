"""The index of sealed segments leaves the memory, oldest first, in slices."""

from __future__ import annotations

from headgate.fs import MemFs
from headgate.ledger import CommitLog
from headgate.ledger.space.spilling import Spilling
from tests.unit.ledger.support import append, open_log


def filled(topics: int = 3, rounds: int = 60) -> CommitLog:
    """A log of several sealed segments, with all maintenance done."""
    log = open_log(MemFs(), range(1, topics + 1))
    for at in range(rounds):
        for number in range(1, topics + 1):
            append(log, number, b"x" * 150, received_ms=1_000 + at)
        log.run_maintenance()
    return log


def test_all_but_the_newest_sealed_segment_is_left_to_the_disk() -> None:
    log = filled()
    state = log._state
    sealed = [info.segment for info in state.segments.values() if info.sealed]
    assert len(sealed) > 3
    assert [*state.stored] == sealed[-1:]
    for topic in state.topics.values():
        first, _ = topic.run_in(sealed[-1])
        assert topic.memory_first == first
    assert not log.maintenance_due()


def test_it_goes_in_slices_and_ends() -> None:
    log = filled()
    state = log._state
    (last,) = state.stored
    state.stored[last + 1] = []
    spilling = Spilling(state, 1)
    steps = 0
    while spilling.is_due():
        assert spilling.step()
        steps += 1
    assert steps == 3  # one for each topic
    assert not spilling.step()
    assert [*state.stored] == [last + 1]


def test_a_segment_waits_for_an_older_one_without_a_footer() -> None:
    log = filled()
    state = log._state
    (last,) = state.stored
    state.stored[last + 1] = []
    state.unsealed = {last - 1: None, **state.unsealed}
    assert not Spilling(state, 64).is_due()


def test_a_deleted_topic_is_passed() -> None:
    log = filled()
    state = log._state
    (last,) = state.stored
    state.stored[last + 1] = []
    del state.topics[2]
    spilling = Spilling(state, 64)
    assert spilling.step()
    assert not spilling.is_due()
