"""Child processes of the demo, controlled by lines on their standard input."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from headgate.base.errors import HeadgateError

_END_S: Final = 1.0
"""A process that has not ended within this time is killed."""
_TAIL_CHARACTERS: Final = 2_000


class ChildFailedError(HeadgateError):
    """A process of the demo ended, or did not answer in time."""


class Child:
    """A Python module in its own session, so that Ctrl-C reaches the demo alone.

    It ends when its input ends. Its standard error is written to a file; the end of that file is
    shown if it fails.
    """

    def __init__(
        self,
        name: str,
        arguments: list[str],
        folder: Path,
        *,
        nice: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start ``python -m ARGUMENTS``, with its error output in ``folder``.

        ``nice`` is its niceness; None, or a lower one than the demo's, means the demo's.
        ``environment`` is added to the demo's.
        """
        self.name = name
        self._has_ended = False
        self._errors_path = folder / f"{name}.log"
        self.lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        """Lines that it wrote; None when it closed its output."""
        source = str(Path(__file__).resolve().parents[2])
        paths = [source, *filter(None, [os.environ.get("PYTHONPATH")])]
        with self._errors_path.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", *arguments],  # nothing of the folder is imported
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)} | dict(environment or {}),
            )
        if nice is not None and nice > os.getpriority(os.PRIO_PROCESS, self._process.pid):
            os.setpriority(os.PRIO_PROCESS, self._process.pid, nice)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def _read(self) -> None:
        stream = self._process.stdout
        if stream is not None:
            for line in stream:
                self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def send(self, line: str) -> None:
        """Send it one line.

        Raises:
            ChildFailedError: it has ended.
        """
        stream = self._process.stdin
        try:
            if stream is not None:
                stream.write(f"{line}\n")
                stream.flush()
        except OSError as error:
            raise self.failure("it has ended") from error

    def next_line(self, timeout_s: float) -> str:
        """Its next line.

        Raises:
            ChildFailedError: there was none in time, or it has ended.
        """
        try:
            line = self.lines.get(timeout=timeout_s)
        except queue.Empty:
            raise self.failure(f"no answer within {timeout_s:.0f} s") from None
        if line is None:
            raise self.failure("it has ended")
        return line

    def check(self) -> None:
        """Return if it still runs.

        Raises:
            ChildFailedError: it has ended.
        """
        if self._process.poll() is not None:
            raise self.failure(f"it ended with status {self._process.returncode}")

    def failure(self, what: str) -> ChildFailedError:
        """An error that names the process and shows the end of its error output."""
        output = self._errors_path.read_text(errors="replace").strip()
        if len(output) > _TAIL_CHARACTERS:  # from the start of a line
            output = output[-_TAIL_CHARACTERS:].partition("\n")[2] or output[-_TAIL_CHARACTERS:]
        return ChildFailedError(f"{self.name}: {what}" + (f":\n{output}" if output else ""))

    def end(self) -> None:
        """End it: close its input, then kill it if it still runs. Idempotent."""
        if self._has_ended:
            return  # its number may be another process' by now
        stream = self._process.stdin
        if stream is not None and not stream.closed:
            # An error means that it ended before it read its last line.
            with contextlib.suppress(OSError):
                stream.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=_END_S)
        # Whatever it started is in its session's process group.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._has_ended = True
        self._process.wait()
        self._reader.join()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def __enter__(self) -> Child:
        """Nothing more: it has started."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self.end()
