"""A watch of one cluster: looks, minutes, failures and the stop."""

from __future__ import annotations

import io
import logging
import threading
from collections import Counter
from dataclasses import dataclass, field

import pytest

from headgate.agent.cluster_states import Requests
from headgate.agent.cluster_watch import PAUSE_S, ClusterWatch
from headgate.agent.metrics import SinkCounts
from headgate.agent.record_files import RecordFiles
from headgate.agent.records import Instants, Record, RecordWindows
from headgate.agent.shared_history import SharedHistory
from headgate.agent.standing import Standing
from headgate.base.errors import HeadgateError, InvariantError
from headgate.fs import FaultyFs, MemFs, Operation
from headgate.record.codec import decode
from headgate.record.fields import Kind
from headgate.record.frames import frames
from headgate.testing import ManualClock
from tests.unit.agent.fake_history import FakeHistory
from tests.unit.agent.looks import S, backlog, look

WALL_S = 1_763_719_200


@dataclass
class Figures:
    requests: int = 0
    errors: Counter[object] = field(default_factory=Counter)


class FakeScout:
    """Looks at one topic at each step."""

    def __init__(self, history: SharedHistory, clock: ManualClock) -> None:
        self.figures = Figures()
        self.error: BaseException | None = None
        self.is_refused = False
        self.closed = False
        self._history, self._clock = history, clock

    def step(self) -> float:
        if self.error is not None:
            raise self.error
        self.figures.requests += 1
        if self.is_refused:
            return 5.0
        at_s = self._clock.monotonic_ns() / S
        self._history.note_look(look(at_s, backlog(backlog=7), published=round(at_s) * 10))
        return 5.0

    def not_seen(self) -> list[str]:
        return ["the token lapsed"] if self.is_refused else ["what needs superuser"]

    def standing(self) -> Standing:
        return Standing(is_reachable=True, since_ns=100 * S, brokers=3)

    def close(self) -> None:
        self.closed = True


@dataclass
class Budget:
    per_s: int = 25
    per_s_max: int = 50
    halved: int = 1


class FakeSink:
    """Keeps the windows that it gets."""

    name = "topic"

    def __init__(self) -> None:
        self.counts = SinkCounts()
        self.windows: list[list[Record]] = []
        self.closed = False

    def write(self, records: object) -> None:
        self.windows.append(list(records))  # type: ignore[call-overload]

    def close(self) -> None:
        self.closed = True


class World:
    """A watch on a clock that the test moves."""

    def __init__(self, files: RecordFiles | None = None) -> None:
        self.clock = ManualClock(now_ns=100 * S, wall_ns=WALL_S * S)
        self.history = SharedHistory(FakeHistory())
        self.scout = FakeScout(self.history, self.clock)
        self.sink = FakeSink()
        start = Instants(self.clock.wall_ns(), self.clock.monotonic_ns())
        windows, file_windows = (
            RecordWindows("agent:prod", "prod", "boot", start) for _ in range(2)
        )
        self.watch = ClusterWatch(
            "prod", self.scout, self.history, windows, self.clock,
            budget=Budget(), files=files, sinks=[self.sink], file_windows=file_windows,
        )  # fmt: skip

    def play(self, seconds: int) -> None:
        for _ in range(0, seconds, 5):
            self.watch.step()
            self.clock.advance(5 * S)


def test_each_minute_is_a_window() -> None:
    fs = MemFs()
    world = World(RecordFiles(fs, "/records"))
    world.play(190)
    assert len(world.sink.windows) == 3
    ends = [decode(window[0].data).header.window_end_ns for window in world.sink.windows]
    assert ends == [(WALL_S + 60 * n) * S for n in (1, 2, 3)]
    row = decode(world.sink.windows[2][0].data)
    assert row.columns[Kind.SUBSCRIPTION]["state_no_consumer_ns"] == [120 * S]
    names = [name for name in fs.list_directory("/records") if name[0] != "."]
    assert names == [f"{(WALL_S + 60 * n) * 1_000}.records" for n in (1, 2, 3)]
    counts = world.watch.counts()
    assert counts.sinks["files"].records == 3
    assert (counts.files, counts.looks, counts.requests) == (3, 38, 38)
    assert world.watch.not_seen() == ["what needs superuser"]


def test_a_failure_is_counted_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "headgate.agent")
    world = World()
    world.scout.error = HeadgateError("the cluster is away")
    assert world.watch.step() == PAUSE_S
    world.scout.error = ZeroDivisionError()
    world.watch.step()
    world.scout.error = None
    assert world.watch.step() == 5.0
    assert world.watch.counts().failures == 2
    assert [record.getMessage() for record in caplog.records] == [
        "prod: looking failed: the cluster is away",
        "prod: looking works again",
    ]
    world.scout.error = InvariantError("a bug")
    with pytest.raises(InvariantError):
        world.watch.step()


def test_the_log_says_once_why_nothing_is_seen(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "headgate.agent")
    world = World()
    world.play(300)
    assert caplog.records == []
    world.scout.is_refused = True
    world.play(300)
    world.scout.is_refused = False
    world.play(10)
    assert [record.getMessage() for record in caplog.records] == [
        "prod: nothing was seen for 120 s: the token lapsed",
        "prod: it is seen again",
    ]


def test_a_disk_that_fails_costs_windows_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    fs = MemFs()
    disk = FaultyFs(fs)
    world = World(RecordFiles(disk, "/records"))

    def fail(operation: Operation) -> int | None:
        return 0 if operation.kind == "write" else None

    world.play(70)
    disk.plan = fail
    world.play(60)
    assert world.watch.counts().sinks["files"].dropped == 1
    assert len(world.sink.windows) == 2
    disk.plan = lambda _: None
    world.play(70)
    counts = world.watch.counts()
    assert (counts.sinks["files"].records, counts.failures) == (2, 1)
    assert "could not be written" in caplog.text
    # The time of the window that was not written is in the next one; the topic had it at once.
    *_, name = sorted(name for name in fs.list_directory("/records") if name[0] != ".")
    file = fs.open(f"/records/{name}")
    data = io.BytesIO(file.read_at(0, file.size()))
    (late,), (prompt,) = list(frames(data.read)), world.sink.windows[2]
    spans = []
    for message in (late, prompt.data):
        columns = decode(message).columns[Kind.SUBSCRIPTION]
        spans.append((columns["covered_to_ns"][0] or 0) - (columns["covered_from_ns"][0] or 0))  # type: ignore[operator]
    assert spans == [120 * S, 60 * S]
    assert decode(late).seq == 1


def test_a_stop_writes_the_last_window_and_closes_everything() -> None:
    fs = MemFs()
    world = World(RecordFiles(fs, "/records"))
    world.play(30)
    stop = threading.Event()
    stop.set()
    world.watch.run(stop)
    assert len(world.sink.windows) == 1
    assert (world.scout.closed, world.sink.closed) == (True, True)
    RecordFiles(fs, "/records")  # the lock is free


def test_age_of_the_last_look_and_a_thread_that_hangs() -> None:
    world = World()
    world.clock.advance(7 * S)
    assert world.watch.last_look_age_s() == 7.0
    world.watch.step()
    world.clock.advance(3 * S)
    assert (world.watch.last_look_age_s(), world.watch.is_stalled) == (3.0, False)
    world.clock.advance(200 * S)
    assert world.watch.is_stalled


def test_what_is_known_of_the_cluster_as_a_whole_and_what_it_is_asked() -> None:
    world = World()
    assert world.watch.standing.is_reachable is None
    assert world.watch.requests() == Requests(None, 25, 50, 1)
    world.play(60)
    assert (world.watch.standing.is_reachable, world.watch.standing.brokers) == (True, 3)
    assert world.watch.requests().per_s == 0.2
