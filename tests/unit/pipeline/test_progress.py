"""A stage is printed when it begins, and with its time when it ends."""

from __future__ import annotations

import io

import pytest

from headgate.pipeline.progress import Progress


class Clock:
    """Half a second goes by between two looks."""

    now_s = 0.0

    def __call__(self) -> float:
        self.now_s += 0.5
        return self.now_s


def test_a_stage_is_shown_while_it_runs() -> None:
    err = io.StringIO()
    progress = Progress(err, monotonic=Clock())
    with progress.stage("Reading") as stage:
        assert err.getvalue() == "Reading ... "
        stage.result = "7 messages"
    with progress.stage("Judging"):
        pass
    progress.say("Done.")
    assert err.getvalue() == "Reading ... 7 messages (0.5 s)\nJudging ... (0.5 s)\nDone.\n"


def test_a_stage_that_fails_ends_its_line() -> None:
    err = io.StringIO()
    with pytest.raises(KeyError), Progress(err).stage("Reading"):
        raise KeyError
    assert err.getvalue() == "Reading ... \n"


class Terminal(io.StringIO):
    """What looks like a terminal."""

    def isatty(self) -> bool:
        return True


def test_on_a_terminal_a_bar_moves_and_the_line_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    err = Terminal()
    progress = Progress(err, monotonic=Clock())
    with progress.stage("Reading") as stage:
        stage.on_progress(1, 4)
        stage.result = "7 messages"
    assert "1/4" in err.getvalue()
    assert err.getvalue().endswith("Reading ... 7 messages (0.5 s)\n")


def test_without_a_terminal_there_is_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    for err in (io.StringIO(), Terminal()):
        with Progress(err, monotonic=Clock()).stage("Reading") as stage:
            stage.on_progress(1, 4)
        assert err.getvalue() == "Reading ... (0.5 s)\n"


def test_a_stage_that_fails_on_a_terminal_stays_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    err = Terminal()
    with pytest.raises(KeyError), Progress(err).stage("Reading"):
        raise KeyError
    assert err.getvalue().endswith("Reading ... \n")
