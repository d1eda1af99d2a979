"""Copies segments in another process, so that the event loop need not share its interpreter.

A thread that copies takes the interpreter's lock some hundred times a second, and receipts wait for
it. The process begins with the first copy and ends when there was none for a minute. Where it
cannot be started, the copy goes on in this one.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, Final

from headgate.app.segment_copying.messages import (
    BEGIN,
    PARTS_MAX,
    READY,
    Failed,
    Finished,
    Moved,
    Step,
    receive,
    send,
)
from headgate.ledger.space.segment_copy import SegmentCopy

logger = logging.getLogger("headgate.app")

IDLE_S_MAX: Final = 60.0
"""The process ends when it had nothing to do for so long."""
COMMAND: Final = (sys.executable, "-P", "-m", "headgate.app.segment_copying.copy_worker")


def code_digest() -> str:
    """A digest of names, sizes and times of Headgate's source files, as they are on the disk."""
    digest = hashlib.sha256()
    root = Path(__file__).parents[2]
    for name in ("app/segment_copying", "base", "fs", "ledger"):
        for path in sorted((root / name).rglob("*.py")):
            found = path.stat()
            digest.update(f"{path} {found.st_size} {found.st_mtime_ns}".encode())
    return digest.hexdigest()


class CopyProcess:
    """The process and the pipes to it. All methods but :meth:`rest` block."""

    def __init__(
        self,
        command: Sequence[str] = COMMAND,
        clock_s: Callable[[], float] = time.monotonic,
        digest: Callable[[], str] = code_digest,
    ) -> None:
        self._command = command
        self._clock_s = clock_s
        self._digest = digest
        self._own_digest = digest()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_copying = False
        self._used_s = 0.0
        self._warned = ""

    @property
    def process_id(self) -> int | None:
        """The id of the process; None while there is none."""
        return None if self._process is None else self._process.pid

    def steps(self, copy: SegmentCopy, bytes_per_s: Callable[[], int]) -> Generator[int]:
        """As :meth:`headgate.ledger.space.segment_copy.Copier.steps`.

        Raises :class:`OSError` also if the process ends meanwhile.
        """
        problem = self._start()
        if problem:
            if problem != self._warned:
                logger.warning(
                    "segments are rewritten in the broker's own process, where receipts wait for "
                    "it: %s",
                    problem,
                )
            self._warned = problem
            yield from copy.steps()
            return
        self._warned = ""
        self._is_copying = True
        try:
            yield from self._copy(copy, bytes_per_s)
        except (EOFError, BrokenPipeError) as error:
            ended = "the process that copies segments has ended"
            raise OSError(errno.EPIPE, ended) from error
        finally:
            if self._is_copying:  # in the middle of an exchange
                self.close()
            self._used_s = self._clock_s()

    def rest(self) -> None:
        """Nothing is to be copied at present: after a minute the process ends."""
        is_idle = self._process is not None and not self._is_copying
        if is_idle and self._clock_s() - self._used_s > IDLE_S_MAX:
            self.close()

    def close(self) -> None:
        """End the process. A second call does nothing."""
        process, self._process = self._process, None
        self._is_copying = False
        if process is not None:
            process.kill()
            process.communicate()

    # Inside ---------------------------------------------------------------------------------

    def _start(self) -> str:
        """Start the process unless it runs. Returns what keeps it from it."""
        if self._process is not None and self._process.poll() is not None:
            self.close()
        if self._process is not None:
            return ""
        if self._digest() != self._own_digest:
            return "Headgate's files have changed since the broker started (a restart helps)"
        try:
            self._process = subprocess.Popen(
                self._command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            answer = self._receive()
        except (OSError, EOFError) as error:
            self.close()
            return f"no process for it can be started ({error})"
        if answer != READY:
            self.close()
            return f"the process for it says {answer!r}"
        return ""

    def _copy(self, copy: SegmentCopy, bytes_per_s: Callable[[], int]) -> Generator[int]:
        self._send(copy.task)
        lists = [copy.parts[at : at + PARTS_MAX] for at in range(0, len(copy.parts), PARTS_MAX)]
        for parts in lists:
            self._send(parts)
            yield 0
        self._send(BEGIN)
        while True:
            self._send(Step.at(bytes_per_s()))
            answer = self._receive()
            if not isinstance(answer, Moved):
                break
            copy.note_written(answer.written_bytes)
            yield answer.moved_bytes
        if isinstance(answer, Failed):
            self._is_copying = False
            raise answer.error()
        finished: Finished = answer
        for parts in lists:
            for part, found in zip(parts, self._receive(), strict=True):
                part.offsets = found.offsets
                if found.stored is not None:
                    copy.stored[part.number] = found.stored
            yield 0
        copy.note_finished(finished.data_end, finished.file_bytes)
        self._is_copying = False

    def _send(self, message: object) -> None:
        process = self._process
        if process is None or process.stdin is None:
            raise BrokenPipeError(errno.EPIPE, "there is no process")
        send(process.stdin.fileno(), message)

    def _receive(self) -> Any:
        process = self._process
        if process is None or process.stdout is None:
            raise EOFError("there is no process")
        return receive(process.stdout.fileno())
