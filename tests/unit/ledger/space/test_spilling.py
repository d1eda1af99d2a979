"""The index of sealed segments leaves the memory, oldest first, in slices."""

from __future__ import annotations

from array import array

from headgate.base.units import KIB
from headgate.fs import MemFs
from headgate.ledger import CommitLog, LedgerSettings
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


def test_an_entry_on_the_disk_takes_less_than_a_byte_of_memory() -> None:
    """100 million retained entries are to fit into 500 MiB with all else."""
    settings = LedgerSettings(segment_bytes=256 * KIB, extent_bytes=4 * KIB)
    log = open_log(MemFs(), (1,), settings=settings)
    for _ in range(60):
        append(log, 1, *[b"x"] * 500)
        log.run_maintenance()
    topic = log.topic(1)
    stored = topic.stored
    rows = [getattr(stored, name) for name in stored.__slots__]
    size_bytes = sum(each.__sizeof__() for each in rows if isinstance(each, array))
    entries = topic.memory_first - topic.first
    assert entries > 20_000
    assert 0 < size_bytes < entries
    assert topic.end - topic.memory_first < 8_000  # the rest is that of two segments
