"""Progress of ``./dev``: stages with their time, and one live line.

On a terminal the live line is rewritten in place. Elsewhere (a log, CI) a line appears when a
stage begins or ends, and at least every ten seconds between, so no output always means
trouble. Everything goes to stderr: stdout belongs to the command that runs.
"""

from __future__ import annotations

import shutil
import sys
import time

HEARTBEAT_S = 10.0
REFRESH_S = 0.2


class Stage:
    """One step of a longer piece of work, with its own clock."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._started_s = time.monotonic()
        self._shown_s = self._started_s
        self._live = sys.stderr.isatty()
        self._width = 0
        self._write(f"{title} ...")

    def update(self, detail: str) -> None:
        """Say what the step is at; call as often as you like."""
        now_s = time.monotonic()
        if now_s - self._shown_s < (REFRESH_S if self._live else HEARTBEAT_S):
            return
        self._shown_s = now_s
        self._write(f"{self._title}: {detail} ({now_s - self._started_s:.0f} s)")

    def done(self, note: str = "") -> None:
        """End the step with its time and, if given, what came of it."""
        elapsed_s = time.monotonic() - self._started_s
        extra = f": {note}" if note else ""
        self._write(f"{self._title}{extra}, {elapsed_s:.1f} s")
        self.leave()

    def leave(self) -> None:
        """Give up the live line, so that what follows starts on a line of its own."""
        if self._live and self._width:
            sys.stderr.write("\n")
            self._width = 0

    def _write(self, text: str) -> None:
        if not self._live:
            sys.stderr.write(f"  {text}\n")
            sys.stderr.flush()
            return
        line = f"  {text}"[: shutil.get_terminal_size().columns - 1]
        sys.stderr.write("\r" + line + " " * max(0, self._width - len(line)))
        sys.stderr.flush()
        self._width = len(line)


class DevError(Exception):
    """Something that the person at the keyboard has to know; its text is all they need."""


class LeftOutError(DevError):
    """A part of the work needs what is not here, which the text names. That is no failure."""


def say(text: str) -> None:
    """Print one line for people."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
