"""The program in which the client reads, which :mod:`pyspark_pulsar.reader_process` starts."""

from __future__ import annotations

import math
import os
import pickle
import queue
import resource
import signal
import sys
import threading
import traceback
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from pyspark_pulsar.admin import AdminClient
from pyspark_pulsar.attempts import Attempt, read
from pyspark_pulsar.errors import PulsarSourceError, ReaderProcessError
from pyspark_pulsar.options import Connection
from pyspark_pulsar.range_reader import Step
from pyspark_pulsar.reader_pipe import read_frame, write_frame

RESERVE_BYTES: Final = 16 * 1024 * 1024
"""A stepwise attempt ends where less of its memory is left. The client drops a message whose
listener has none, and only its log tells."""

_DATA_FIELD: Final = 5
_STACK_BYTES: Final = 1024 * 1024
"""Of the threads that ask the admin API: they count as memory."""


def serve(attempt: Attempt, stored: AdminClient, answers: int) -> None:
    """Make an attempt, and send its steps and its end, or its error.

    Chunks of a hundred bytes may claim messages of 2 GiB, which the client makes room for.

    Raises:
        BrokenPipeError: Spark's worker has ended.
    """
    limit_memory(attempt.settings.reader_memory_mb * 1024 * 1024)
    try:
        for part in read(attempt, stored):
            if attempt.is_stepwise and left_bytes() < RESERVE_BYTES:
                raise MemoryError
            if isinstance(part, Step):
                write_frame(answers, replace(part, batch=None), part.batch)
            else:
                write_frame(answers, part)
    except BrokenPipeError:
        raise
    except Exception as error:
        if _is_want_of_memory(error):  # where the client has none, it ends this process
            error = ReaderProcessError("for want of memory", is_by_client=True)
        write_frame(answers, portable(error))


def limit_memory(bytes_max: int) -> None:
    """Bound this process's memory."""
    with suppress(OSError, ValueError):  # a system may lack it, or have a lower bound
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (bytes_max, hard))


def left_bytes(statm_path: str = "/proc/self/statm") -> float:
    """How much memory this process may still take; without an end where the system sets none."""
    bytes_max = resource.getrlimit(resource.RLIMIT_DATA)[0]
    try:
        pages = int(Path(statm_path).read_text().split()[_DATA_FIELD])
    except (OSError, IndexError):  # not Linux, where the bound is none of all memory
        return math.inf
    return math.inf if bytes_max < 0 else bytes_max - pages * resource.getpagesize()


def _is_want_of_memory(error: Exception) -> bool:
    # The second is what the client raises for a message whose batch gives it a size below 0.
    texts = ("start new thread", "std::bad_alloc")
    is_told = isinstance(error, RuntimeError) and any(text in str(error) for text in texts)
    return is_told or isinstance(error, MemoryError)


def portable(error: Exception) -> Exception:
    """``error`` in a form that can be sent, with its traceback unless it is the source's own."""
    text = "".join(traceback.format_exception(error))
    if not isinstance(error, PulsarSourceError):
        error.add_note(f"In the process that reads from the broker:\n{text}")
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # an error of any library may refuse it
        return PulsarSourceError(text)
    return error


def _receive(requests: int, attempts: queue.SimpleQueue[Attempt]) -> None:
    """Pass requests on. When Spark's worker ends, this process does, whatever it is doing."""
    with suppress(EOFError):
        while True:
            attempts.put(read_frame(requests)[0])
    _end()


def _end() -> None:
    """End this process at once, without waiting for the threads of the client."""
    signal.raise_signal(signal.SIGKILL)


def main() -> None:
    """Serve the pipes of this process."""
    # A crash leaves no file with credentials. Who ends Spark's worker ends this process by its
    # pipe, so that an interrupt from the keyboard is for the worker alone.
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests, answers = os.dup(sys.stdin.fileno()), os.dup(sys.stdout.fileno())
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), sys.stdin.fileno())
    # The library writes to the standard output.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    attempts: queue.SimpleQueue[Attempt] = queue.SimpleQueue()
    threading.stack_size(_STACK_BYTES)
    threading.Thread(target=_receive, args=(requests, attempts), daemon=True).start()
    admin_clients: dict[Connection, AdminClient] = {}
    with suppress(BrokenPipeError):
        while True:
            attempt = attempts.get()
            connection = attempt.settings.connection
            if connection not in admin_clients:
                admin_clients[connection] = AdminClient(connection)
            serve(attempt, admin_clients[connection], answers)
    _end()


if __name__ == "__main__":
    main()
