"""Costly steps of handshakes are taken on threads, and networks take turns."""

from __future__ import annotations

import asyncio
import itertools
import ssl
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop

from headgate.app.tls.handshake_steps import COSTLY_S, LANES, HandshakeSteps, put_off
from headgate.app.tls.record_reading import RecordReads, RecordTurns
from tests.trial_certificates import Trial
from tests.unit.app.tls.test_entry import Whole
from tests.unit.app.tls.test_record_reading import Tls, Wire, play, record


class Lane:
    """Notes what it is given."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Callable[[], Any], Callable[[Any, Any], None]]] = []

    def submit(self, work: Callable[[], Any], done: Callable[[Any, Any], None]) -> None:
        self.jobs.append((work, done))

    def finish(self) -> None:
        work, done = self.jobs.pop(0)
        done(work(), None)


class One:
    """A connection with a step."""

    def __init__(self, name: str, notes: list[str]) -> None:
        self.name, self.notes, self.is_lost = name, notes, False

    def step(self) -> Callable[[], None] | None:
        return None if self.is_lost else lambda: self.notes.append(self.name)

    def step_is_done(self) -> None:
        self.notes.append(f"{self.name} done")


def test_a_network_has_one_step_at_a_time() -> None:
    lanes: list[Any] = []

    def make() -> Any:
        lanes.append(Lane())
        return lanes[-1]

    notes: list[str] = []
    steps = HandshakeSteps(make)
    crowd = [One(f"a{number}", notes) for number in range(5)]
    for one in crowd:
        steps.add("a", one)
    assert [len(lane.jobs) for lane in lanes] == [1], "the others of this network wait"
    steps.add("b", One("b", notes))
    steps.add("c", One("c", notes))
    assert [len(lane.jobs) for lane in lanes] == [1] * LANES
    crowd[1].is_lost = True
    lanes[1].finish()
    lanes[1].finish()
    assert notes == ["b", "b done", "c", "c done"]
    while any(lane.jobs for lane in lanes):
        for lane in lanes:
            if lane.jobs:
                lane.finish()
    assert notes[4:] == [
        "a0", "a0 done", "a1 done", "a2", "a2 done", "a3", "a3 done", "a4", "a4 done",
    ]  # fmt: skip


def test_networks_with_costly_steps_leave_a_thread_to_others() -> None:
    """Two networks kept new connections of all others waiting for 9 s."""
    lanes: list[Any] = []

    def make() -> Any:
        lanes.append(Lane())
        return lanes[-1]

    notes: list[str] = []
    looks = itertools.count()
    steps = HandshakeSteps(make, lambda: next(looks) * 2 * COSTLY_S)
    for name in "abab":
        steps.add(name, One(name, notes))
    for lane in list(lanes):
        lane.finish()
    assert sum(len(lane.jobs) for lane in lanes) == 1, "of two costly ones"
    steps.add("c", One("c", notes))
    assert [len(lane.jobs) for lane in lanes] == [1] * LANES
    while any(lane.jobs for lane in lanes):
        for lane in lanes:
            if lane.jobs:
                lane.finish()
    assert sorted(note for note in notes if "done" not in note) == ["a", "a", "b", "b", "c"]


class Slow(Tls):
    """Puts each step off."""

    def buffer_updated(self, nbytes: int) -> None:
        super().buffer_updated(nbytes)
        later = put_off.get()
        if nbytes and later is not None:
            later.append(lambda: None)


def test_amid_a_step_tls_is_told_nothing() -> None:
    """Its buffers are the thread's then: OpenSSL writes to them without a lock."""

    async def story(turns: RecordTurns) -> None:
        lane: Any = Lane()
        turns.steps = HandshakeSteps(lambda: lane)
        tls, wire = Slow(), Wire()
        reads = RecordReads(tls, wire, turns, "10.0.0.1")

        def read(data: bytes) -> None:
            reads.get_buffer(-1)[: len(data)] = data
            reads.buffer_updated(len(data))

        read(record(50))
        await asyncio.sleep(0)
        assert (tls.data, len(lane.jobs), wire.is_paused) == (record(50), 1, True)
        read(record(60))
        await asyncio.sleep(0)
        assert tls.data == record(50)
        lane.finish()
        await asyncio.sleep(0)
        assert tls.data == record(50) + record(60)
        reads.connection_lost(None)
        assert not tls.lost
        lane.finish()
        assert tls.lost

    play(story, 0.0)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_certificates_of_clients_are_decoded_beside_the_loop(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    new_loop: Callable[[], asyncio.AbstractEventLoop],
    version: ssl.TLSVersion,
) -> None:
    """Those of 22 KiB, with keys on curves of the client's own choice, held the loop for 9 s."""
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
    beginning, hello, *others = threads
    assert beginning == hello == threading.main_thread().name, "nothing, and a hello alone"
    assert set(others) == {"headgate-handshakes"}
