"""What commands, answers and messages may take when all connections together hold too much."""

from __future__ import annotations

from functools import partial

import pytest

from headgate.base.units import KIB, MIB, NS_PER_S
from headgate.base.work_units import WOKEN_PER_UNIT
from headgate.broker.client_memory import (
    GRACE_FAR_NS,
    GRACE_NS,
    OTHERS_SHARE,
    PARSED_FACTOR,
    SMALL_ANSWER_BYTES,
    SMALL_COMMAND_BYTES,
    ClientMemory,
)
from headgate.engine.errors import NotAllowedError
from headgate.metadata.errors import RefusalError
from tests.unit.broker.memory_rig import MAX, Clock, Peer, Port, Rig, held, measure


def test_a_command_in_slices_counts_until_it_ends_or_is_dropped() -> None:
    memory, peer = ClientMemory(MAX, Clock()), Peer("/a:1")
    steps = memory.while_held(peer, iter((1, 2)), 100 * KIB)
    assert memory.by_kind()["commands"] == PARSED_FACTOR * 100 * KIB
    assert list(steps) == [1, 2]
    assert memory.by_kind()["commands"] == 0
    steps = memory.while_held(peer, iter((1, 2)), MAX)
    assert next(steps) == 1
    assert memory.is_far_over
    del steps  # its connection has ended
    assert not memory.is_over
    small = iter((1,))
    assert memory.while_held(peer, small, SMALL_COMMAND_BYTES) is small
    assert peer.working_bytes == 0


def test_a_command_that_is_never_done_is_of_its_connection() -> None:
    """While it was nobody's, nobody was closed for it, and no newcomer was taken any more."""
    rig = Rig()
    rig.measure(1, 1, 1)
    large = rig.peers[1]
    steps = rig.memory.while_held(large, iter((1, 2)), MAX // PARSED_FACTOR)
    assert next(steps) == 1
    assert rig.memory.by_kind()["commands"] == large.working_bytes
    assert rig.measure(1, 1, 1) == [[], ["pause"], []]
    assert rig.memory.by_kind()["commands"] == large.working_bytes
    rig.measure(1, 1, 1, at_s=GRACE_NS / NS_PER_S)
    assert [peer.is_open for peer in rig.peers] == [True, False, True]
    del steps  # the connection drops them
    assert not rig.memory.is_over


def test_large_answers_are_for_those_that_hold_little_when_all_hold_much() -> None:
    memory = ClientMemory(MAX, Clock())
    peers = large, small = [Peer("/a:1", "large"), Peer("/b:1", "small")]
    large.held = held(unsent=MAX)
    measure(memory, peers)
    for peer in (large, small):
        memory.check_answer(peer.identity, SMALL_ANSWER_BYTES)
    memory.check_answer(small.identity, MIB)
    assert not memory.has_room_for(small.identity, 10 * MIB)
    told: list[str] = []
    ports = [Port(partial(told.append, name), "large") for name in "ab"]
    assert not memory.may_deliver(ports[0], large.identity)
    assert not memory.may_deliver(ports[1], large.identity)
    assert memory.may_deliver(ports[1], small.identity)
    memory.deliver_no_more(ports[1])
    measure(memory, peers)
    assert not told
    with pytest.raises(RefusalError, match="try again later") as refused:
        memory.check_answer(large.identity, MIB)
    assert refused.value.status == 429
    large.held = held()
    measure(memory, peers)
    memory.check_answer(large.identity, 10 * MIB)
    assert told == ["a"]


def test_who_is_found_to_hold_little_gets_messages_again_while_all_hold_too_much() -> None:
    memory, told = ClientMemory(MAX, Clock()), list[str]()
    peers = large, _ = [Peer("/a:1", "large"), Peer("/b:1", "small")]
    ports = [Port(partial(told.append, role), role) for role in ("large", "small", "small")]
    memory.charge(2 * MAX)  # nobody is known to hold it until the next measurement
    for port in ports:
        assert not memory.may_deliver(port, port.identity)
    memory.deliver_no_more(ports[2])
    large.held = held(unsent=2 * MAX)
    measure(memory, peers)
    assert memory.is_over
    assert told == ["small"]
    large.held = held()
    measure(memory, peers)
    assert told == ["small", "large"]


def test_the_largest_is_closed_although_others_were_slowed_before_it() -> None:
    """These left it room, so that it was never slowed, and nobody was closed in its stead: all held
    too much for ever."""
    rig = Rig()
    rig.measure(10, 30, 21)
    rig.memory.charge(MAX)
    for peer in rig.peers[1:]:
        rig.memory.slow(peer)
    assert rig.measure(51, 30, 21) == [["pause"], [], []]
    assert rig.memory.is_over
    rig.measure(51, 30, 21, at_s=GRACE_NS / NS_PER_S)
    assert [peer.is_open for peer in rig.peers] == [False, True, True]


def test_nobody_keeps_newcomers_of_small_roles_out_for_long() -> None:
    """A role that held 5 % too much, closed after 5 s, came back at once."""
    clock = Clock()
    memory = ClientMemory(MAX, clock)
    peers = large, small = [Peer("/a:1", "large"), Peer("/b:1", "small")]
    large.held = held(unsent=int((OTHERS_SHARE + 0.01) * MAX))
    measure(memory, peers)
    with pytest.raises(NotAllowedError):
        memory.admit(large.identity, KIB, 0)
    clock.now_ns = GRACE_FAR_NS
    measure(memory, peers)
    assert large.is_open
    with pytest.raises(NotAllowedError):
        memory.admit(small.identity, KIB, 0)
    measure(memory, peers)
    assert not large.is_open
    measure(memory, [small])
    assert memory.admit(small.identity, KIB, 0)


def test_connections_with_very_many_consumers_count_as_work_when_there_is_room_again() -> None:
    memory, told = ClientMemory(MAX, Clock()), list[str]()
    large = Peer("/a:1", "large")
    large.held = held(unsent=2 * MAX)
    measure(memory, [large])
    for number in range(3):
        port = Port(partial(told.append, str(number)), "large", 10_000)
        assert not memory.may_deliver(port, port.identity)
    large.held = held()
    steps = list(memory.measure([large], []))
    assert told == ["0", "1", "2"]
    assert sum(units > 10_000 // WOKEN_PER_UNIT for units in steps) == 3
