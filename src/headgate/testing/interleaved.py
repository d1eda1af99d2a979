"""Threads that run one disk operation at a time, in an order that the test decides.

The blocking work of two lanes meets on the disk only. Here each lane's work runs on a real thread,
which stops before each operation of a :class:`headgate.fs.FaultyFs` and goes on when the test
calls :meth:`Work.step`. So every interleaving can be played, and played again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType

STEP_SECONDS_MAX = 10.0
"""A step that takes longer hangs: it waits for something that no other thread can do."""


class Work:
    """Blocking work on a thread of its own that stops before each operation."""

    def __init__(self, interleaving: Interleaving, work: Callable[[], object]) -> None:
        """For :meth:`Interleaving.begin` only."""
        self.error: BaseException | None = None
        """What the work raised, once it is done."""
        self.is_done = False
        self._go = threading.Semaphore(0)
        self._stopped = threading.Semaphore(0)
        self._interleaving = interleaving
        self._work = work
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def step(self) -> None:
        """Run until before the next operation, or to the end of the work."""
        self._go.release()
        if not self._stopped.acquire(timeout=STEP_SECONDS_MAX):
            raise TimeoutError("the work of a step waits for another thread")
        if self.is_done:
            self._thread.join()

    def finish(self) -> None:
        """Run to the end of the work; raises what it raised."""
        while not self.is_done:
            self.step()
        if self.error is not None:
            raise self.error

    def stop_here(self) -> None:
        """Called on the work's thread: stop until the next step."""
        self._stopped.release()
        self._go.acquire()

    def _run(self) -> None:
        self._go.acquire()
        self._interleaving.threads[threading.get_ident()] = self
        try:
            self._work()
        except BaseException as error:  # for the test to judge
            self.error = error
        del self._interleaving.threads[threading.get_ident()]
        self.is_done = True
        self._stopped.release()


class Interleaving:
    """The work that runs interleaved. Operations call :meth:`stop_here`."""

    def __init__(self) -> None:
        self.threads: dict[int, Work] = {}
        """The work under way, by the thread that runs it."""

    def begin(self, work: Callable[[], object]) -> Work:
        """Work that stands before its first line."""
        return Work(self, work)

    def stop_here(self) -> None:
        """Stop the calling thread until its next step, if it runs work; else return at once."""
        work = self.threads.get(threading.get_ident())
        if work is not None:
            work.stop_here()

    def lock(self) -> StepLock:
        """A lock in place of a :class:`threading.Lock` that interleaved work takes."""
        return StepLock(self)


class StepLock:
    """A lock of interleaved work: who waits for it stops, so that another one can be stepped."""

    def __init__(self, interleaving: Interleaving) -> None:
        self._interleaving = interleaving
        self._is_held = False
        self.waits_count = 0
        """How often somebody found it held."""

    def __enter__(self) -> None:
        while self._is_held:
            self.waits_count += 1
            self._interleaving.stop_here()
        self._is_held = True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_held = False
