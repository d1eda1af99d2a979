"""The demo from its first line to its exit status, on a fake stage."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import TracebackType

import pytest
from rich.console import Console

from headgate.app.ports import Urls
from headgate.base.errors import InputError
from headgate.demo import adaptive, run
from headgate.demo.admin import HttpCall
from headgate.demo.children import ChildFailedError
from headgate.demo.credentials import UNSECURED, Credentials
from headgate.demo.findings import Finding
from headgate.demo.follow import Snapshot
from headgate.demo.rule import Sample
from headgate.demo.run import EXIT_WRONG, DemoOptions, run_demo, tables_folder
from headgate.demo.scenes import Subject
from headgate.demo.spark import SparkSpec
from tests.unit.demo.made import (
    MOVING,
    PAIR,
    SUBJECTS,
    adaptive_snapshots,
    all_findings,
    snapshots,
    subject,
)


class _Time:
    """Time that passes when somebody waits."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.interrupted_at_s = math.inf
        """When somebody presses Ctrl-C."""

    def monotonic(self) -> float:
        return self.now_s

    def time_ns(self) -> int:
        return int(self.now_s * 1e9)

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        if self.now_s > self.interrupted_at_s:
            raise KeyboardInterrupt


class _Play:
    """What the brokers of a run say, and what they were asked to change."""

    def __init__(self, time: _Time) -> None:
        self.time = time
        self.found = all_findings()
        self.growth_per_s = 0
        self.drains = True
        self.snapshots = iter(snapshots(20))
        self.adaptive_snapshots = iter(adaptive_snapshots(20))
        self.change: Callable[[Snapshot], Snapshot] = lambda snapshot: snapshot
        self.change_both: Callable[[adaptive.Snapshot], adaptive.Snapshot] = lambda snapshot: (
            snapshot
        )
        self.calls: list[HttpCall] = []
        self.steps: list[str] = []
        self.kept_s = 0.0
        self.failed_at_s = math.inf
        """When a client process ends by itself."""
        self.ended_at_s = math.inf
        """When the demo ends its clients."""
        self.credentials = UNSECURED

    def explain(self) -> dict[Subject, Finding]:
        if not self.calls or not self.drains:
            more = int(self.time.now_s * self.growth_per_s)
            return {s: replace(one, backlog=one.backlog + more) for s, one in self.found.items()}
        return {each: replace(one, backlog=0) for each, one in self.found.items()}


class _Admin:
    web_url = "http://127.0.0.1:8080"

    def __init__(self, play: _Play) -> None:
        self._play = play

    def call(self, call: HttpCall) -> None:
        self._play.calls.append(call)

    def explain(self, topic: str) -> list[Finding]:
        found = self._play.explain().values()
        return [one for one in found if one.subject.topic == topic]


class _Stage:
    """Stands for brokers and clients."""

    def __init__(self, play: _Play) -> None:
        self._play = play
        self.urls = {
            "demo": Urls("pulsar://a", "http://a"),
            "demo-wide": Urls("pulsar://b", "http://b"),
            "demo-adaptive": Urls("pulsar://c", "http://c"),
        }

    def __call__(
        self, folder: Path, _scenes: object, seconds: float, kept_s: float, given: Credentials
    ) -> _Stage:
        assert folder.is_dir()
        self._play.credentials = given
        self._play.kept_s = kept_s
        self._play.snapshots = iter(snapshots(seconds))
        self._play.adaptive_snapshots = iter(adaptive_snapshots(seconds))
        return self

    def start_brokers(self) -> None:
        self._play.steps.append("brokers")

    def connect_clients(self) -> None:
        self._play.steps.append("clients")

    def start_publishing(self) -> None:
        self._play.steps.append("go")

    def explain(self) -> dict[Subject, Finding]:
        return self._play.explain()

    def check_clients(self) -> None:
        if self._play.time.now_s > self._play.failed_at_s:
            raise ChildFailedError("consumers: it ended with status 1")

    def end_clients(self) -> None:
        self._play.steps.append("end of clients")
        self._play.ended_at_s = self._play.time.now_s

    def limit_snapshot(self, what: Subject) -> Snapshot:
        assert what == MOVING
        return self._play.change(next(self._play.snapshots))

    def adaptive_snapshot(self, pair: adaptive.Neighbours) -> adaptive.Snapshot:
        assert pair == PAIR
        return self._play.change_both(next(self._play.adaptive_snapshots))

    def explain_text(self, what: Subject, width: int) -> str:
        assert (what, width) == (PAIR.slowed[0], 96)
        return "The topic is at 56 % of its quota.\nAdaptive throttling: slowed."

    def scrape(self) -> dict[Subject, Sample]:
        return {each: Sample() for each in SUBJECTS}

    def admin(self, _cluster: str) -> _Admin:
        return _Admin(self._play)

    def __enter__(self) -> _Stage:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._play.steps.append("end")


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> _Play:
    time = _Time()
    played = _Play(time)
    monkeypatch.setattr(run, "time", time)
    monkeypatch.setattr(run, "Stage", _Stage(played))
    return played


def _run(seconds: float = 20.0) -> tuple[int, str]:
    console = Console(file=io.StringIO(), width=100, record=True)
    status = run_demo(DemoOptions(seconds, spark=False), console)
    return status, console.export_text()


def test_a_successful_demo_exits_with_zero(play: _Play) -> None:
    status, text = _run()
    assert status == 0
    assert play.steps == ["brokers", "clients", "go", "end"]
    titles = [line[0] for line in text.splitlines() if line[:1].isdigit() and line[1:3] == "  "]
    assert titles == ["1", "2", "3", "4", "5", "6", "7"]
    assert "parcels / tracking: 4,500 messages were there before its broker's restart" in text
    assert "left out: --no-spark was given" in text
    assert "published 300/s -> limit 350/s -> delivered 350/s -> backlog -50/s" in text
    assert re.search(
        r"quota \d\d % -> limit \d+/s -> videos \d+/s waits \d\.\d s; chats 100/s", text
    )
    assert "  headgate explain videos:\n    The topic is at 56 % of its quota.\n" in text
    assert re.search(r"The quota was never reached \(at most \d\d % of it\)", text)
    assert run.SPARK_HINT in text
    assert "drained: that limit was the cause" in text
    assert text.endswith(
        f"Every verdict matches the situation that was built; 20 s.\n{run.NEXT}\n{run.KEEP_HINT}\n"
    )
    assert play.kept_s == 0


def test_the_limit_named_by_explain_is_raised(play: _Play) -> None:
    what = subject("payments / audit")
    play.found[what] = replace(play.found[what], backlog=2_000)
    _, text = _run()
    (call,) = play.calls
    assert call.path.endswith("/payments/subscriptionDispatchRate")
    assert call.curl(_Admin.web_url) in text
    assert "explain names for payments / audit: subscription limit 50 msg/s (topic policy)" in text


def _kept(*, secured: bool = False) -> tuple[int, str]:
    console = Console(file=io.StringIO(), width=100, record=True)
    status = run_demo(DemoOptions(20.0, spark=False, keep=True, secured=secured), console)
    return status, console.export_text()


def test_what_is_kept_has_all_situations_again_until_ctrl_c(play: _Play) -> None:
    what = subject("payments / audit")
    play.found[what] = replace(play.found[what], backlog=2_000)
    play.time.interrupted_at_s = 300.0
    status, text = _kept()
    assert status == 0
    assert play.kept_s == run.KEPT_S
    raised, set_back = play.calls
    assert raised.path == set_back.path
    rates = [call.body["dispatchThrottlingRateInMsg"] for call in (raised, set_back)]
    assert rates[0] > rates[1] == 50
    for url in ("http://a/", "http://b/", "http://c/"):
        assert f"\n  {url}\n" in text
    for each in SUBJECTS:
        assert each.text in text.partition("Open the page")[2]
    assert run.KEEP_HINT not in text
    assert "clients have ended" not in text
    assert play.steps == ["brokers", "clients", "go", "end"]
    assert 300 < play.time.now_s < 310


_LONG_S = 100_000.0


def test_clients_end_before_a_disk_is_full_and_the_pages_stay(play: _Play) -> None:
    play.time.interrupted_at_s = _LONG_S
    status, text = _kept()
    assert status == 0
    assert play.steps == ["brokers", "clients", "go", "end of clients", "end"]
    assert run.KEPT_S < play.ended_at_s < run.KEPT_S + 60
    assert play.time.now_s >= _LONG_S
    said = " ".join(text.split())
    assert said.count("the clients have ended after 15 min, before backlogs fill the disk;") == 1


def test_pages_stay_where_a_client_fails(play: _Play) -> None:
    play.failed_at_s, play.time.interrupted_at_s = 200.0, _LONG_S
    status, text = _kept()
    assert status == 0
    assert 200 < play.ended_at_s < 210
    assert play.time.now_s >= _LONG_S
    said = " ".join(text.split())
    assert said.count("clients have ended, so nothing moves any more (consumers: it ended") == 1


def test_a_secured_demo_says_where_the_administrators_token_is(
    play: _Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    play.time.interrupted_at_s = 300.0
    status, text = _kept(secured=True)
    assert status == 0
    made = play.credentials
    path = made.token_path("admin")
    assert path.startswith(f"{tmp_path}/")
    assert f"\n  Sign in with the token in {path}\n" in text
    assert f" -H @{made.header_path}\n" in text
    assert made.headers["Authorization"].removeprefix("Bearer ") not in text
    assert list(tmp_path.iterdir()) == []


def test_a_plain_demo_has_no_credentials(play: _Play) -> None:
    _, text = _run()
    assert play.credentials == UNSECURED
    assert "--secured" not in text
    assert "admin.header" not in text


class _Job:
    """Stands for Spark, which takes its time."""

    def __init__(self, play: _Play) -> None:
        self._play = play
        self.said = play.found
        self.shown: list[str] = []

    def __call__(self, spec: SparkSpec, _folder: Path) -> _Job:
        assert spec.broker_urls == ("pulsar://a", "pulsar://b", "pulsar://c")
        assert spec.web_urls == ("http://a", "http://b", "http://c")
        return self

    def poll(self) -> str:
        return "Spark: 5 samples"

    def judge(
        self, since_ns: int, until_ns: int, tick: Callable[[str, str], None]
    ) -> list[Finding]:
        assert since_ns < until_ns
        self._play.time.sleep(100)
        tick("again", "Spark tries again")
        tick("read", "bronze_samples: all read")
        return list(self.said.values())

    def end(self) -> None:
        self._play.steps.append("end of Spark")

    def __enter__(self) -> _Job:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass


class _Spinner:
    """Stands for what turns while one waits."""

    def __init__(self, text: str, shown: list[str]) -> None:
        self._shown = shown
        shown.append(text)

    def update(self, text: str) -> None:
        self._shown.append(text)

    def __enter__(self) -> _Spinner:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture
def job(play: _Play, monkeypatch: pytest.MonkeyPatch) -> _Job:
    played = _Job(play)
    monkeypatch.setattr(run, "missing_requirement", lambda: "")
    monkeypatch.setattr(run, "SparkJob", played)
    monkeypatch.setattr(Console, "status", lambda _, text: _Spinner(text, played.shown))
    return played


def _run_with_spark(tables_path: Path) -> tuple[int, str]:
    console = Console(file=io.StringIO(), width=100, record=True)
    status = run_demo(DemoOptions(20.0, out=str(tables_path)), console)
    return status, console.export_text()


def test_the_tables_give_verdicts_too(play: _Play, job: _Job, tmp_path: Path) -> None:
    what = subject("orders / billing")
    job.said = {**play.found, what: replace(play.found[what], sentence="CONSUMER: so the tables.")}
    status, text = _run_with_spark(tmp_path)
    assert status == 0
    assert play.steps == ["brokers", "clients", "go", "end of Spark", "end"]
    assert "    so the tables.\n" in text
    assert text.endswith(f"The tables (Delta) stay in {tmp_path}\n{run.NEXT}\n{run.KEEP_HINT}\n")
    assert job.shown == ["reading the last records", "computing intervals"]
    job.said[what] = replace(play.found[what], verdict="NONE")
    play.calls.clear()
    status, text = _run_with_spark(tmp_path)
    assert status == EXIT_WRONG
    assert "orders / billing: the pipeline finds NONE, the situation was built as CONSUMER" in text


@pytest.mark.usefixtures("job")
def test_the_repair_uses_the_current_backlog(play: _Play, tmp_path: Path) -> None:
    what = subject("payments / audit")
    play.found[what] = replace(play.found[what], backlog=2_000)
    play.growth_per_s = 50
    status, _ = _run_with_spark(tmp_path)
    assert status == 0
    (call,) = play.calls
    # After 121.6 s 8,080 wait, to be gone in 8 s, and 100/s are published: 1,110/s.
    assert call.body["dispatchThrottlingRateInMsg"] == 1_200


def test_a_wrong_verdict_sets_the_exit_status(play: _Play) -> None:
    what = subject("logins / alerts")
    play.found[what] = replace(play.found[what], verdict="CONSUMER")
    status, text = _run()
    assert status == EXIT_WRONG
    assert "WRONG: logins / alerts: explain finds CONSUMER, the situation was built as NONE" in text
    assert "Some results differ from what was built" in text
    assert play.calls  # the repair is shown all the same


def test_a_limit_that_does_not_follow_sets_the_exit_status(play: _Play) -> None:
    play.change = lambda snapshot: replace(snapshot, limit_per_s=150)
    status, text = _run()
    assert status == EXIT_WRONG
    said = " ".join(text.split())
    assert re.search(r"WRONG: parcels / tracking: at 8\.\d s the limit in force was 150/s", said)


def test_a_reached_quota_sets_the_exit_status(play: _Play) -> None:
    play.change_both = lambda snapshot: replace(snapshot, use=1.0)
    status, text = _run()
    assert status == EXIT_WRONG
    assert "WRONG: videos / encoding: the quota was reached, after 0.0 s" in text
    assert "The quota was never reached" not in text


def test_a_backlog_that_does_not_drain_sets_the_exit_status(play: _Play) -> None:
    play.drains = False
    status, text = _run()
    assert status == EXIT_WRONG
    assert "WRONG: the backlog did not drain within 60 s" in text


def test_a_repair_without_a_limit_sets_the_exit_status(play: _Play) -> None:
    play.found = {
        each: replace(one, verdict="CONSUMER", limit_level="") for each, one in play.found.items()
    }
    status, text = _run()
    assert status == EXIT_WRONG
    assert "there is none to raise" in text
    assert not play.calls


@pytest.mark.parametrize("seconds", [9, math.nan, math.inf])
def test_a_short_or_endless_run_is_refused(play: _Play, seconds: float) -> None:
    with pytest.raises(InputError, match=f"seconds is {seconds:g}; a number of at least 10"):
        _run(seconds)
    assert not play.steps


def test_tables_are_kept_in_the_given_folder(tmp_path: Path) -> None:
    with tables_folder(str(tmp_path / "tables")) as path:
        assert path == str(tmp_path / "tables")


def test_a_new_tables_folder_is_kept_unless_the_demo_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with tables_folder(None) as kept:
        Path(kept, "attribution").mkdir()
    assert Path(kept, "attribution").is_dir()
    with pytest.raises(KeyboardInterrupt):
        _break_off()
    assert list(tmp_path.iterdir()) == [Path(kept)]


def _break_off() -> None:
    with tables_folder(None) as path:
        Path(path, "attribution").mkdir()
        raise KeyboardInterrupt
