"""Who gets exclusive access, in which order, and with which topic epoch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.engine.errors import (
    EngineError,
    ProducerBusyError,
    ProducerFencedError,
    TopicFencedError,
)
from headgate.engine.exclusive_access import ExclusiveAccess
from headgate.engine.producer import Producer
from headgate.engine.types import AccessMode
from tests.unit.engine.harness import FakePort, Rig


def a_producer(name: str, mode: AccessMode) -> Producer:
    return Producer(1, name, FakePort(), access_mode=mode)


class Waiter:
    """Remembers what happened to a waiting producer."""

    def __init__(self, name: str) -> None:
        self.producer = a_producer(name, AccessMode.WAIT_FOR_EXCLUSIVE)
        self.is_wanted = True
        self.is_granted = False
        self.error: EngineError | None = None

    def granted(self) -> None:
        self.is_granted = True

    def refused(self, error: EngineError) -> None:
        self.error = error


def test_exclusive_access_is_free_or_refused() -> None:
    access = ExclusiveAccess()
    first = a_producer("first", AccessMode.EXCLUSIVE)
    with pytest.raises(ProducerFencedError, match="shared producers"):
        access.claim(first, ["a shared one"])
    access.check_shared()
    access.claim(first, [])
    with pytest.raises(ProducerBusyError, match="exclusive producer: first"):
        access.check_shared()
    with pytest.raises(ProducerFencedError, match="exclusive producer: first"):
        access.claim(a_producer("second", AccessMode.EXCLUSIVE), [first])
    access.left(first, [])
    assert access.is_idle


def test_those_that_wait_get_the_access_in_order() -> None:
    access = ExclusiveAccess()
    holder = a_producer("holder", AccessMode.EXCLUSIVE)
    access.claim(holder, [])
    waiters = [Waiter(f"w{index}") for index in range(3)]
    for waiter in waiters:
        assert access.must_wait(waiter.producer, [holder])
        access.wait(waiter)
    assert access.waiting_count == 3
    with pytest.raises(ProducerBusyError):
        access.check_shared()
    access.left(waiters[1].producer, [holder])  # it gave up
    access.left(holder, [])
    assert [waiter.is_granted for waiter in waiters] == [True, False, False]
    assert access.holder is waiters[0].producer
    assert not access.must_wait(waiters[0].producer, [])
    access.left(waiters[0].producer, [])
    assert waiters[2].is_granted


def test_those_whose_clients_have_left_have_no_turn() -> None:
    """Each of thousands began a command on a connection that had ended, when the one before it had
    given up."""
    access = ExclusiveAccess()
    holder = a_producer("holder", AccessMode.EXCLUSIVE)
    access.claim(holder, [])
    waiters = [Waiter(f"w{index}") for index in range(4)]
    for waiter in waiters:
        access.wait(waiter)
    waiters[0].is_wanted = waiters[1].is_wanted = False
    access.left(holder, [])
    assert [waiter.is_granted for waiter in waiters] == [False, False, True, False]
    access.left(waiters[0].producer, [])  # it gives up what it does not have
    assert access.holder is waiters[2].producer
    assert access.waiting_count == 1
    waiters[3].is_wanted = False
    access.left(waiters[2].producer, [])
    assert access.is_idle


def test_none_that_waits_gets_the_access_while_it_is_paused() -> None:
    access, waiters = ExclusiveAccess(), [Waiter("w0"), Waiter("w1")]
    holder = a_producer("holder", AccessMode.EXCLUSIVE)
    access.claim(holder, [])
    for waiter in waiters:
        access.wait(waiter)
    access.pause()
    access.left(holder, [])
    access.left(waiters[0].producer, [])  # it gave up
    assert not any(waiter.is_granted for waiter in waiters)
    access.resume([holder])
    assert not waiters[1].is_granted
    access.resume([])
    assert [waiter.is_granted for waiter in waiters] == [False, True]


def test_shared_producers_hold_up_those_that_wait() -> None:
    rig = Rig()
    other = Producer(2, "other", FakePort())
    rig.topic.add_producer(other)
    access, waiter = rig.topic.exclusive_access(), Waiter("w")
    assert access.must_wait(waiter.producer, rig.topic.producers)
    access.wait(waiter)
    rig.topic.remove_producer(other)
    assert not waiter.is_granted
    rig.topic.remove_producer(rig.producer)
    assert waiter.is_granted
    assert rig.topic.has_clients()
    rig.topic.add_producer(waiter.producer)
    assert rig.topic.access is access
    assert access.holder is waiter.producer


def test_fencing_takes_the_access_and_refuses_those_that_wait() -> None:
    access = ExclusiveAccess(3)
    holder, waiter = a_producer("holder", AccessMode.EXCLUSIVE), Waiter("w")
    access.claim(holder, [], 3)
    access.wait(waiter)
    fencing = a_producer("fencing", AccessMode.EXCLUSIVE_WITH_FENCING)
    assert access.claim(fencing, [holder]) == [waiter]
    assert access.next_epoch(None) == 4
    access.left(holder, [])
    assert access.holder is fencing
    with pytest.raises(ProducerFencedError):
        access.confirm(a_producer("late", AccessMode.EXCLUSIVE_WITH_FENCING), [])
    with pytest.raises(ProducerFencedError):
        access.confirm(fencing, [holder])  # which is still there
    access.confirm(fencing, [])


def test_an_epoch_that_is_over_is_fenced() -> None:
    access = ExclusiveAccess(5)
    producer = a_producer("p", AccessMode.EXCLUSIVE)
    with pytest.raises(ProducerFencedError, match="Current epoch: 5, Producer epoch: 4"):
        access.claim(producer, [], 4)
    assert access.is_idle
    access.claim(producer, [], 5)
    assert access.next_epoch(5) == 5
    access.stored(4)
    assert access.epoch == 5
    access.stored(6)
    with pytest.raises(ProducerFencedError):
        access.claim(producer, [], 5)  # also when it claimed before


def test_a_topic_that_closes_refuses_those_that_wait() -> None:
    rig = Rig()
    waiter = Waiter("w")
    rig.topic.exclusive_access().wait(waiter)
    rig.topic.fence()
    assert isinstance(waiter.error, TopicFencedError)
    assert not waiter.is_granted


@given(
    st.lists(
        st.tuples(st.sampled_from(["ask", "leave"]), st.integers(0, 5), st.sampled_from(AccessMode))
    )
)
def test_an_exclusive_producer_is_never_beside_another(
    moves: list[tuple[str, int, AccessMode]],
) -> None:
    access = ExclusiveAccess()
    connected: dict[int, Producer] = {}
    waiting: dict[int, Waiter] = {}
    epochs: list[int] = []

    def connect(number: int, producer: Producer) -> None:
        if producer.access_mode is not AccessMode.SHARED:
            access.confirm(producer, connected)
            epochs.append(access.next_epoch(None))
            access.stored(epochs[-1])
        connected[number] = producer

    for move, number, mode in moves:
        if move == "leave":
            gone = connected.pop(number, None)
            given_up = waiting.pop(number, None)
            if gone is not None:
                access.left(gone, connected)
            elif given_up is not None:
                access.left(given_up.producer, connected)
        elif number not in connected and number not in waiting:
            waiter = Waiter(f"p{number}")
            producer = waiter.producer = a_producer(f"p{number}", mode)
            try:
                if mode is AccessMode.SHARED:
                    access.check_shared()
                elif access.must_wait(producer, connected):
                    access.wait(waiter)
                    waiting[number] = waiter
                    continue
                else:
                    for fenced_out in access.claim(producer, connected):
                        fenced_out.refused(ProducerFencedError("Fenced out"))
                    for other in list(connected):
                        access.left(connected.pop(other), connected)
                connect(number, producer)
            except (ProducerBusyError, ProducerFencedError):
                pass
        for each, waiter in list(waiting.items()):
            if waiter.is_granted or waiter.error is not None:
                del waiting[each]
                if waiter.is_granted:
                    connect(each, waiter.producer)
        exclusive = [p for p in connected.values() if p.access_mode is not AccessMode.SHARED]
        assert not exclusive or len(connected) == 1
        assert bool(exclusive) == (access.holder is not None)
        assert not waiting or connected, "somebody waits though the topic is free"
    assert epochs == sorted(set(epochs))
