"""Costly steps of handshakes are taken on threads, and networks take turns."""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop

from headgate.app.tls import handshake_steps
from headgate.app.tls.handshake_steps import (
    COSTLY_S,
    LOST_MIN,
    NICENESS,
    REGION_NETWORKS_MAX,
    STEP_BYTES,
    HandshakeSteps,
    end_amid_steps,
    new_thread,
    put_off,
)
from headgate.app.tls.hello import HARMLESS_BYTES
from headgate.app.tls.record_reading import RecordReads, RecordTurns
from headgate.storage.lanes import run_on
from tests.trial_certificates import Trial
from tests.unit.app.tls.test_entry import Whole
from tests.unit.app.tls.test_hello import client_hello
from tests.unit.app.tls.test_record_reading import Tls, Wire, play, record


class Lane:
    """Notes what it is given."""

    def __init__(self) -> None:
        self.is_abandoned = False
        self.jobs: list[tuple[Callable[[], Any], Callable[[Any, Any], None]]] = []

    def submit(self, work: Callable[[], Any], done: Callable[[Any, Any], None]) -> None:
        self.jobs.append((work, done))

    def finish(self) -> None:
        work, done = self.jobs.pop(0)
        done(work(), None)

    def abandon(self) -> None:
        self.is_abandoned = True


class One:
    """A connection with a step."""

    def __init__(self, name: str, notes: list[str]) -> None:
        self.name, self.notes, self.is_lost = name, notes, False

    def step(self) -> Callable[[], bool] | None:
        return None if self.is_lost else self._take

    def _take(self) -> bool:
        self.notes.append(self.name)
        return self.name.startswith("good")

    def step_is_done(self) -> None:
        self.notes.append(f"{self.name} done")


class Lanes:
    """All lanes of some steps."""

    def __init__(self) -> None:
        self.made: list[Any] = []
        self.giving_way: list[bool] = []

    def make(self, gives_way: bool) -> Any:
        self.made.append(Lane())
        self.giving_way.append(gives_way)
        return self.made[-1]

    @property
    def busy(self) -> int:
        assert all(len(lane.jobs) <= 1 for lane in self.made)
        return sum(len(lane.jobs) for lane in self.made)

    def finish(self) -> None:
        while self.busy:
            for lane in self.made:
                if lane.jobs:
                    lane.finish()


class CostlyClock:
    """By which each step takes so long."""

    def __init__(self, step_s: float = 2 * COSTLY_S) -> None:
        self.step_s, self._now_s = step_s, 0.0

    def __call__(self) -> float:
        self._now_s += self.step_s
        return self._now_s


def taken(notes: list[str]) -> list[str]:
    return [note for note in notes if not note.endswith("done")]


def test_a_network_has_one_step_at_a_time() -> None:
    lanes, notes = Lanes(), list[str]()
    steps = HandshakeSteps(lanes.make)
    crowd = [One(f"a{number}", notes) for number in range(4)]
    for one in crowd:
        steps.add("a", 9, one)
    steps.add("b", 9, One("b", notes))
    steps.add("c", 9, One("c", notes))
    assert lanes.busy == 1
    crowd[1].is_lost = True
    lanes.finish()
    assert notes == [
        "a0", "a0 done", "a1 done", "b", "b done", "c", "c done", "a2", "a2 done", "a3", "a3 done",
    ]  # fmt: skip


@pytest.mark.parametrize("prefix", ["2001:db8:7:%d::/64", "10.1.2.%d"])
def test_the_networks_of_a_wide_one_have_one_turn_together(prefix: str) -> None:
    """Two networks of 65,536 that one attacker has held all threads, again and again."""
    lanes, notes = Lanes(), list[str]()
    steps = HandshakeSteps(lanes.make)
    for number in range(5):
        for _ in range(2):
            steps.add(prefix % number, 9, One(f"a{number}", notes))
    steps.add("192.0.2.1", 9, One("other", notes))
    lanes.finish()
    order = ["a0", "a0", "other", "a1", "a2", "a3", "a4", "a1", "a2", "a3", "a4"]
    assert taken(notes) == order


def test_networks_with_costly_steps_leave_a_thread_to_others() -> None:
    """Two networks kept new connections of all others waiting for 9 s."""
    lanes, notes, costly = Lanes(), list[str](), CostlyClock()
    steps = HandshakeSteps(lanes.make, costly)
    for name in ("10.1.1.1", "10.1.1.2", "10.1.2.1", "10.1.1.1", "10.1.2.2"):
        steps.add(name, 9, One(name, notes))
    lanes.made[0].finish()
    lanes.made[0].finish()
    assert taken(notes) == ["10.1.1.1", "10.1.2.1"]
    assert (lanes.busy, len(lanes.made)) == (2, 3), "costly ones, and new ones beside them"
    costly.step_s = 0.0
    steps.add("10.1.3.1", 9, One("other", notes))
    lanes.made[0].finish()
    assert taken(notes)[-1] == "other"
    lanes.finish()
    assert len(taken(notes)) == 6


def test_who_has_shown_a_good_certificate_does_not_wait_for_those_who_have_not() -> None:
    """An attacker with ever new wide networks, each with a costly first step."""
    lanes, notes, costly = Lanes(), list[str](), CostlyClock(0.0)
    steps = HandshakeSteps(lanes.make, costly)
    steps.add("10.1.1.1", 9, One("good", notes))
    steps.add("10.1.1.2", 9, One("other", notes))
    lanes.finish()
    for number in range(9):
        steps.add(f"10.2.{number}.1", 9, One(f"new {number}", notes))
    steps.add("10.1.1.2", 9, One("other again", notes))
    assert lanes.busy == 1, "it has shown nothing"
    steps.add("10.1.1.1", 9, One("good again", notes))
    lanes.made[1].finish()
    assert taken(notes) == ["good", "other", "good again"]
    lanes.finish()
    costly.step_s = 2 * COSTLY_S
    for name in ("good", "good, behind a costly one"):
        steps.add("10.1.1.1", 9, One(name, notes))
    lanes.made[1].finish()
    assert lanes.giving_way == [True, False, True], "it waits with costly ones from then on"
    lanes.finish()
    assert taken(notes)[-1] == "good, behind a costly one"


def test_who_has_shown_a_good_certificate_does_not_wait_for_strangers_beside_it() -> None:
    """One machine with four addresses of a local network locked the others of it out: each new
    connection with a certificate ended at 10 s."""
    lanes, notes, clock = Lanes(), list[str](), CostlyClock(0.0)
    steps = HandshakeSteps(lanes.make, clock)
    steps.add("10.1.1.1", 9, One("good", notes))
    lanes.finish()
    clock.step_s = 2 * COSTLY_S
    strangers = [f"10.1.1.{number}" for number in range(60, 64)]
    for network in strangers:
        steps.add(network, 9, One("costly", notes))
    lanes.finish()
    clock.step_s = 0.0
    for network in strangers:
        steps.add(network, 9, One("costly again", notes))
    assert (lanes.busy, len(lanes.made)) == (1, 3)
    notes.clear()
    steps.add("10.1.1.1", 9, One("good again", notes))
    steps.add("10.1.1.2", 9, One("new", notes))
    lanes.made[3].finish()
    lanes.made[1].finish()
    assert taken(notes) == ["good again", "new"]
    assert lanes.giving_way == [True, True, True, True, True][: len(lanes.made)]
    lanes.finish()


def test_who_ends_amid_its_wait_does_not_stay_in_its_line() -> None:
    """A client filled the memory with ended connections, 23 KB each: those of one network wait for
    as many steps of another, 4 s each."""
    lanes, notes = Lanes(), list[str]()
    steps = HandshakeSteps(lanes.make)
    steps.add("10.1.1.1", 9, One("long", notes))
    steps.add("10.1.2.1", 9, One("other", notes))
    ended = [One("ended", notes) for _ in range(3 * LOST_MIN)]
    refs = [weakref.ref(one) for one in ended]
    for one in ended:
        steps.add("10.1.3.1", 9, one)
    steps.add("10.1.3.1", 9, One("last", notes))
    for one in ended:
        one.is_lost = True
        steps.lost()
    del one, ended
    assert sum(ref() is not None for ref in refs) <= LOST_MIN
    lanes.finish()
    assert taken(notes) == ["long", "other", "last"]


def test_new_networks_that_sent_little_do_not_wait_for_those_that_sent_more() -> None:
    lanes, notes = Lanes(), list[str]()
    steps = HandshakeSteps(lanes.make)
    for size_bytes in (STEP_BYTES[1] + 1, STEP_BYTES[0] + 1, 1):
        for number in range(9):
            steps.add(f"10.2.{number}.1", size_bytes, One("more", notes))
        steps.add("10.1.1.1", size_bytes, One(f"{size_bytes}", notes))
    assert lanes.busy == len(STEP_BYTES)
    lanes.finish()
    steps.add("10.2.1.1", STEP_BYTES[2], One("much", notes))
    steps.add("10.1.1.1", STEP_BYTES[0], One("little", notes))
    lanes.made[2].finish()
    assert taken(notes)[-1] == "little"
    lanes.finish()


@pytest.mark.parametrize("prefix", ["2001:db8:%x:7::/64", "10.1.%d.1"])
def test_a_region_with_many_costly_networks_keeps_no_others_waiting(
    monkeypatch: pytest.MonkeyPatch, prefix: str
) -> None:
    """One with 65,536 networks of /48 could take each of them once."""
    monkeypatch.setattr(handshake_steps, "NETWORKS_MAX", REGION_NETWORKS_MAX)
    lanes, notes, clock = Lanes(), list[str](), CostlyClock(0.0)
    steps = HandshakeSteps(lanes.make, clock)
    steps.add(prefix % 99, 9, One("good", notes))
    lanes.finish()

    def costly(network: str) -> None:
        clock.step_s = 2 * COSTLY_S
        steps.add(network, 9, One("costly", notes))
        lanes.finish()
        clock.step_s = 0.0

    for number in range(REGION_NETWORKS_MAX):
        assert len(lanes.made) == 1
        costly(prefix % number)
    steps.add(prefix % 100, 9, One("new", notes))
    assert (len(lanes.made), lanes.busy) == (2, 1), "behind costly ones"
    steps.add(prefix % 99, 9, One("good again", notes))
    assert (len(lanes.made), lanes.busy) == (3, 2), "not so"
    lanes.finish()
    costly("192.0.2.1")  # for which another is forgotten
    steps.add(prefix % 100, 9, One("new", notes))
    assert (len(lanes.made[0].jobs), lanes.busy) == (1, 1)
    lanes.finish()


def test_few_networks_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake_steps, "NETWORKS_MAX", 3)
    lanes, notes = Lanes(), list[str]()
    steps = HandshakeSteps(lanes.make)
    for number in range(5):
        steps.add(f"10.1.{number}.1", 9, One("good", notes))
        lanes.finish()
    steps.add("10.1.1.1", 9, One("the second", notes))
    assert len(lanes.made) == 1, "it is new"
    steps.add("10.1.2.1", 9, One("the third", notes))
    assert len(lanes.made) == 2, "it is known"
    lanes.finish()


@pytest.mark.parametrize("gives_way", [True, False])
def test_threads_of_new_networks_give_way_to_the_loop(gives_way: bool) -> None:
    async def story() -> int:
        lane = new_thread(asyncio.get_running_loop(), gives_way)
        try:
            return await run_on(
                lane, lambda: os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
            )
        finally:
            lane.close()

    own = os.getpriority(os.PRIO_PROCESS, 0)
    has_own = sys.platform == "linux"  # elsewhere no thread has
    niceness = max(own, NICENESS) if gives_way and has_own else own
    assert asyncio.run(story()) == niceness
    assert os.getpriority(os.PRIO_PROCESS, 0) == own


def test_the_process_ends_at_once_while_a_thread_takes_a_step() -> None:
    """Its exit freed what OpenSSL used: one in forty ends of a broker amid steps was a SIGSEGV."""
    statuses, may_end, others = list[int](), threading.Event(), set(threading.enumerate())

    async def story() -> None:
        lane = new_thread(asyncio.get_running_loop(), gives_way=True)
        step = asyncio.ensure_future(run_on(lane, may_end.wait))
        await asyncio.sleep(0)
        lane.abandon()
        end_amid_steps(set(threading.enumerate()) - others, statuses.append)
        may_end.set()
        assert await step
        lane.close()
        end_amid_steps(set(threading.enumerate()) - others, statuses.append)

    asyncio.run(story())
    assert statuses == [0]


def test_none_begins_behind_the_end() -> None:
    lanes, notes = Lanes(), list[str]()
    steps = HandshakeSteps(lanes.make)
    for _ in range(3):
        steps.add("a", 9, One("a", notes))
    steps.close()
    steps.add("b", 9, One("b", notes))
    lanes.finish()
    assert taken(notes) == ["a"]
    assert lanes.made[0].is_abandoned


class Slow(Tls):
    """Puts each step off."""

    def buffer_updated(self, nbytes: int) -> None:
        super().buffer_updated(nbytes)
        later = put_off.get()
        if nbytes and later is not None:
            later.append(lambda: False)


def test_amid_a_step_tls_is_told_nothing() -> None:
    """Its buffers are the thread's then: OpenSSL writes to them without a lock."""

    async def story(turns: RecordTurns) -> None:
        lane: Any = Lane()
        turns.steps = HandshakeSteps(lambda _: lane)
        tls, wire = Slow(), Wire()
        reads = RecordReads(tls, wire, turns, "10.0.0.1")

        def read(data: bytes) -> None:
            reads.get_buffer(-1)[: len(data)] = data
            reads.buffer_updated(len(data))

        read(record(500))
        await asyncio.sleep(0)
        assert [len(part) for part in tls.parts] == [HARMLESS_BYTES, 505 - HARMLESS_BYTES]
        assert (tls.data, len(lane.jobs), wire.is_paused) == (record(500), 1, True)
        read(record(60))
        await asyncio.sleep(0)
        assert tls.data == record(500)
        lane.finish()
        await asyncio.sleep(0)
        assert tls.data == record(500) + record(60)
        reads.connection_lost(None)
        assert not tls.lost
        lane.finish()
        assert tls.lost

    play(story, 0.0)


def test_who_ends_before_its_step_leaves_nothing_behind() -> None:
    """TLS, and all that the client had sent, stayed until its turn came."""

    async def story(turns: RecordTurns) -> None:
        lane: Any = Lane()
        turns.steps = HandshakeSteps(lambda _: lane)
        both = [(Slow(), Wire()) for _ in range(2)]
        connections = [RecordReads(*each, turns, "10.0.0.1") for each in both]
        for reads in connections:
            reads.get_buffer(-1)[:505] = record(500)
            reads.buffer_updated(505)
        await asyncio.sleep(0)
        assert len(lane.jobs) == 1
        amid, waiting = both[0][0], both[1][0]
        for reads in connections:
            reads.resume_writing()
            reads.connection_lost(None)
        assert (amid.lost, waiting.lost) == (False, True)
        ref = weakref.ref(waiting)
        both.pop()
        del waiting
        assert ref() is None
        lane.finish()
        assert (amid.lost, lane.jobs) == (True, []), "the other has no turn"
        for reads in connections:
            assert reads.is_lost

    play(story, 0.0)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_certificates_of_clients_are_decoded_beside_the_loop(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    new_loop: Callable[[], asyncio.AbstractEventLoop],
    version: ssl.TLSVersion,
) -> None:
    """Those of 22 KiB, with keys on curves of the client's own choice, held the loop for 9 s. A
    handshake begins with nothing, goes on with the hello, and then with the first few bytes."""
    trial, threads = Trial(tmp_path), list[str]()
    original = ssl.SSLObject.do_handshake

    def noted(self: ssl.SSLObject) -> None:
        if self.server_side:
            threads.append(threading.current_thread().name)
        original(self)

    monkeypatch.setattr(ssl.SSLObject, "do_handshake", noted)

    async def story() -> None:
        whole = Whole(trial)
        context = trial.context("admin")
        context.maximum_version = version
        reader, writer = await asyncio.open_connection(
            sock=await whole.dial(), ssl=context, server_hostname="broker.example"
        )
        writer.write(b"request")
        assert await reader.readexactly(7) == b"request"
        writer.close()
        await whole.until(lambda: len(whole.notes) == 2)
        assert "admin" in whole.notes[0]
        whole.port.pace.records.steps.close()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(story())
    assert threads[:3] == [threading.main_thread().name] * 3, "without a whole certificate"
    assert set(threads[3:]) == {"headgate-handshakes"}


def test_what_ends_a_hello_in_a_second_record_is_taken_for_no_empty_certificate(
    tmp_path: Path,
) -> None:
    """So 250 bytes, and not 128, with a certificate of 60 ms, went to the loop: 20 connections in a
    second kept others waiting for a second."""
    trial = Trial(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    hello = client_hello("broker.example", context)
    end = b"\x0b\0\0\3\0\0\0"
    sent = bytearray(hello[5:]) + b"\xfa\xfa\0\7" + end  # one more extension
    sent[1:4] = (len(sent) - 4).to_bytes(3)
    at = 4 + 2 + 32
    at += 1 + sent[at]
    at += 2 + int.from_bytes(sent[at : at + 2])
    at += 1 + sent[at]
    sent[at : at + 2] = (len(sent) - at - 2).to_bytes(2)
    parts = [bytes(sent[: -len(end)]), end, b"\x0b\0\0\xd0\0\0\xcd\0\0\xca" + bytes(202)]

    async def story() -> None:
        whole = Whole(trial)
        lane = Lane()
        whole.port.pace.records.steps = HandshakeSteps(lambda _: lane)  # type: ignore[arg-type, return-value]
        client = await whole.dial()
        client.send(b"".join(b"\x16\3\3" + len(each).to_bytes(2) + each for each in parts))
        await whole.until(lambda: bool(lane.jobs))
        assert whole.status.half_open == 1
        lane.finish()
        await whole.until(lambda: whole.status.half_open == 0)
        client.close()

    asyncio.run(story())


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_client_without_a_certificate_waits_for_no_thread(
    tmp_path: Path,
    new_loop: Callable[[], asyncio.AbstractEventLoop],
    version: ssl.TLSVersion,
) -> None:
    """It waited for 9 s behind those with costly certificates. Its first bytes come right behind
    the handshake, in one read of the socket with it."""
    trial = Trial(tmp_path)

    async def story() -> None:
        whole = Whole(trial)
        whole.port.pace.records.steps = None  # type: ignore[assignment]
        context = trial.context()
        context.maximum_version = version
        reader, writer = await asyncio.open_connection(
            sock=await whole.dial(), ssl=context, server_hostname="broker.example"
        )
        writer.write(b"request" * 100)
        assert await reader.readexactly(700) == b"request" * 100
        writer.close()
        await whole.until(lambda: len(whole.notes) == 2)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(story())
