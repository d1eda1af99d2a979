"""The process in which the client reads, from the side of Spark's worker.

``pulsar-client`` may end its process (:mod:`pyspark_pulsar.recovery`), which must not be Spark's
worker. So a worker starts another one at its first task, and keeps it, with its connections, for
the next. It ends with the worker. Requests and answers are pickled, rows are Arrow's format for
streams: both sides are one program.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import IO, Final, cast

import pyarrow as pa

from pyspark_pulsar.attempts import Attempt, AttemptEnd
from pyspark_pulsar.errors import ReaderProcessError
from pyspark_pulsar.range_reader import Step
from pyspark_pulsar.reader_pipe import read_frame, write_frame

COMMAND: Final = (sys.executable, "-P", "-m", "pyspark_pulsar.reader_worker")

_BY_CLIENT: Final = frozenset(
    {signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV, signal.SIGTRAP}
)
"""The signals of a fault in a library."""

_OWN_ENVIRONMENT: Final = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_PERTURB_": "90",
    "MALLOC_MMAP_THRESHOLD_": str(32 * 1024 * 1024),
    "MALLOC_TRIM_THRESHOLD_": str(128 * 1024 * 1024),
}
"""Arrow's own pool would take a GiB of the process's memory bound at once. The C library shall keep
the pages of a record batch for the next one, which is a third of the cost of the pipe, and write
over what is freed: a batch with wrong sizes gives a message that ends with what lies behind it, and
that shall be no message of another topic."""

_END_S: Final = 10.0
"""How long a process may take to end that has closed its pipe."""

_PIPE_BYTES: Final = 1024 * 1024
"""Size of the pipe to Spark's worker, where the system lets it be set: one record batch."""


class ReaderProcess:
    """A process, and the pipes to it."""

    def __init__(self, command: Sequence[str] = COMMAND) -> None:
        """Start it. Raises :class:`ReaderProcessError` if that is not possible."""
        try:
            self._process = subprocess.Popen(
                command,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={
                    **os.environ,
                    **_OWN_ENVIRONMENT,
                    "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                },
            )
        except OSError as error:
            raise ReaderProcessError(f"before it began ({error})", is_by_client=False) from error
        self._requests = cast("IO[bytes]", self._process.stdin)
        self._answers = cast("IO[bytes]", self._process.stdout)
        if hasattr(fcntl, "F_SETPIPE_SZ"):
            with suppress(OSError):
                fcntl.fcntl(self._answers, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)

    def read(self, attempt: Attempt) -> Iterator[Step | AttemptEnd]:
        """Make an attempt, as :func:`pyspark_pulsar.attempts.read`. Read it to its end, or close
        the process."""
        try:
            write_frame(self._requests.fileno(), attempt)
            while True:
                part, rows = read_frame(self._answers.fileno())
                if isinstance(part, BaseException):
                    raise part
                if rows is not None:
                    part = replace(part, batch=pa.ipc.read_record_batch(rows, attempt.schema))
                yield part
                if isinstance(part, AttemptEnd):
                    return
        except (BrokenPipeError, EOFError) as error:
            raise self._ending() from error

    def close(self) -> None:
        """End the process."""
        self._requests.close()
        self._answers.close()
        self._process.kill()
        self._process.wait()

    def _ending(self) -> ReaderProcessError:
        """How it ended."""
        try:
            status = self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        if status >= 0:
            return ReaderProcessError(f"with status {status}", is_by_client=False)
        name = signal.Signals(-status).name if -status in set(signal.Signals) else str(-status)
        return ReaderProcessError(f"with signal {name}", is_by_client=-status in _BY_CLIENT)


_idle: dict[int, ReaderProcess] = {}


def read_in_process(attempt: Attempt) -> Iterator[Step | AttemptEnd]:
    """Make an attempt in this worker's process for it, which is started on first use.

    The process id is part of the key because a fork does not have its parent's process.
    """
    process = _idle.pop(os.getpid(), None) or ReaderProcess()
    is_done = False
    try:
        yield from process.read(attempt)
        is_done = True
    finally:
        if is_done:
            _idle[os.getpid()] = process
        else:
            process.close()
