"""A terminal is taken and given back; here it is a pseudo-terminal."""

from __future__ import annotations

import io
import os
import pty
import signal
import termios
from collections.abc import Iterator

import pytest
from rich.console import Console
from rich.text import Text

from headgate.cli.live.terminal import LiveTerminal


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The other end of the standard input."""
    master, slave = pty.openpty()
    with os.fdopen(slave) as stream:
        monkeypatch.setattr("sys.stdin", stream)
        yield master
    os.close(master)


def modes() -> int:
    """The local modes of the standard input, of which echo is one."""
    import sys

    found: int = termios.tcgetattr(sys.stdin.fileno())[3]
    return found


def console(out: io.StringIO) -> Console:
    return Console(file=out, force_terminal=True, width=30, height=4)


def test_it_takes_the_screen_and_gives_it_back(keyboard: int) -> None:
    out = io.StringIO()
    before = modes()
    handlers = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGTSTP)]
    with LiveTerminal(console(out)) as terminal:
        assert modes() & termios.ECHO == 0
        assert terminal.size() == (30, 4)
        terminal.draw([Text("first"), Text("second")])
        os.write(keyboard, b"\x1b[Bq")
        assert terminal.keys(1) == ["down", "q"]
        assert terminal.keys(0) == ()
    assert modes() == before
    assert [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGTSTP)] == handlers
    text = out.getvalue()
    assert "\x1b[?1049h" in text
    assert text.index("first") < text.index("second") < text.index("\x1b[?1049l")
    assert text.index("\x1b[?25l") < text.index("\x1b[?25h")


def test_a_signal_that_ends_it_gives_it_back_first(keyboard: int) -> None:
    before = modes()
    with pytest.raises(SystemExit) as ended, LiveTerminal(console(io.StringIO())):
        os.kill(os.getpid(), signal.SIGTERM)
    assert ended.value.code == 128 + signal.SIGTERM
    assert modes() == before


def test_while_it_is_stopped_the_terminal_is_the_shells(
    keyboard: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = modes()
    stopped: list[int] = []
    out = io.StringIO()
    with LiveTerminal(console(out)) as terminal:
        terminal.draw([Text("shown")])
        real = os.kill
        real(os.getpid(), signal.SIGTSTP)

        def stop(_pid: int, number: int) -> None:
            assert number == signal.SIGSTOP
            stopped.append(modes())

        monkeypatch.setattr(os, "kill", stop)
        terminal.keys(0)
        assert modes() != before
    assert stopped == [before]
    assert out.getvalue().count("\x1b[?1049h") == 2
    assert out.getvalue().rindex("shown") > out.getvalue().rindex("\x1b[?1049h")


def test_without_a_keyboard_it_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    with open(os.devnull) as stream:
        monkeypatch.setattr("sys.stdin", stream)
        with LiveTerminal(console(io.StringIO())) as terminal:
            assert terminal.keys(0) == ()
