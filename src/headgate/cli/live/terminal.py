"""The terminal that a live view takes for itself, and gives back as it was."""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Sequence
from types import FrameType
from typing import Any, Final

from rich.console import Console
from rich.live import Live
from rich.text import Text

from headgate.cli.live.keys import decode_keys

_ENDING: Final = (signal.SIGTERM, signal.SIGHUP)
EXIT_SIGNALLED: Final = 128
"""Added to the number of the signal, as shells have it."""
_READ_BYTES: Final = 1024


class LiveTerminal:
    """A context in which the screen is the view's: the other screen of the terminal, no cursor,
    and keys without their echo.

    Ctrl-Z gives the terminal back while the command is stopped. A signal that ends the process
    gives it back first.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(
            console=console, screen=True, auto_refresh=False,
            redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip
        self._input = sys.stdin.fileno() if sys.stdin.isatty() else None
        self._modes: list[Any] = []
        self._handlers: dict[int, Any] = {}
        self._rest = b""
        self._is_stopping = False

    def __enter__(self) -> LiveTerminal:
        """Take the terminal."""
        for number in _ENDING:
            self._handlers[number] = signal.signal(number, _end)
        self._handlers[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, self._on_stop)
        self._take()
        return self

    def __exit__(self, *_: object) -> None:
        """Give it back."""
        self._give_back()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def size(self) -> tuple[int, int]:
        """Columns and lines of the terminal now."""
        return self._console.size.width, self._console.size.height

    def keys(self, wait_s: float) -> Sequence[str]:
        """The keys that were pressed; ``q`` when the terminal is gone."""
        if self._is_stopping:
            self._stop()
        sources = [] if self._input is None else [self._input]
        ready, _, _ = select.select(sources, [], [], wait_s)
        if not ready or self._input is None:
            return ()
        data = os.read(self._input, _READ_BYTES)
        if not data:
            return ("q",)
        found, self._rest = decode_keys(self._rest + data)
        return found

    def draw(self, lines: Sequence[Text]) -> None:
        """Show these lines."""
        self._live.update(Text("\n", no_wrap=True, end="").join(lines), refresh=True)

    def _take(self) -> None:
        if self._input is not None:
            self._modes = termios.tcgetattr(self._input)
            tty.setcbreak(self._input)
        self._live.start()

    def _give_back(self) -> None:
        self._live.stop()
        if self._input is not None:
            termios.tcsetattr(self._input, termios.TCSADRAIN, self._modes)

    def _on_stop(self, _number: int, _frame: FrameType | None) -> None:
        # Amid a drawing nothing else may be drawn.
        self._is_stopping = True

    def _stop(self) -> None:
        self._is_stopping = False
        self._give_back()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._take()
        self._live.refresh()


def _end(number: int, _frame: FrameType | None) -> None:
    sys.exit(EXIT_SIGNALLED + number)
