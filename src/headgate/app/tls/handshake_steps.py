"""Takes the costly steps of handshakes on threads, beside the event loop.

OpenSSL decodes the keys of a client's certificates when they have come, whoever signed them. A key
on a curve of the client's own choice takes up to 0.2 s for 500 bytes, and nothing can stop OpenSSL
amid it. The loop only waits for its end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final, Protocol

from headgate.base.errors import broken
from headgate.storage.lanes import Lane

LANES: Final = 2
"""Threads, each with one step at a time. A network has one step at a time."""

put_off: ContextVar[list[Callable[[], None]] | None] = ContextVar("put_off", default=None)
"""Where the step of a handshake goes that is to be taken later; None to take it at once."""


class Stepping(Protocol):
    """A connection with a step to take."""

    def step(self) -> Callable[[], None] | None:
        """What a thread does; None if the connection has ended."""

    def step_is_done(self) -> None:
        """The thread has done it, or had nothing to do."""


class HandshakeSteps:
    """The steps of one loop. Networks take turns, and an ended connection is passed over."""

    def __init__(self, make_lane: Callable[[], Lane]) -> None:
        """``make_lane`` is called when the first steps come."""
        self._make_lane = make_lane
        self._lanes: list[Lane] = []
        self._idle: list[Lane] = []
        self._ready: deque[tuple[str, Stepping]] = deque()
        self._behind: dict[str, deque[Stepping]] = {}
        """By network with a step that is ready or under way: those that wait for it."""

    def add(self, network: str, one: Stepping) -> None:
        """Take its step in its turn."""
        behind = self._behind.get(network)
        if behind is None:
            self._behind[network] = deque()
            self._ready.append((network, one))
            self._fill()
        else:
            behind.append(one)

    def close(self) -> None:
        """Begin no further step."""
        self._ready.clear()
        self._idle.clear()
        for lane in self._lanes:
            lane.abandon()

    def _fill(self) -> None:
        while self._ready and (lane := self._idle_lane()) is not None:
            network, one = self._ready.popleft()
            step = one.step()
            if step is None:
                self._idle.append(lane)
                self._go_on(network)
                one.step_is_done()
            else:
                self._submit(lane, network, one, step)

    def _submit(self, lane: Lane, network: str, one: Stepping, step: Callable[[], None]) -> None:
        def done(_: Any, error: BaseException | None) -> None:
            self._idle.append(lane)
            self._go_on(network)
            try:
                one.step_is_done()
            finally:
                self._fill()
            if error is not None:
                raise broken("a step of a handshake", error)

        lane.submit(step, done)

    def _go_on(self, network: str) -> None:
        behind = self._behind[network]
        if behind:
            self._ready.append((network, behind.popleft()))
        else:
            del self._behind[network]

    def _idle_lane(self) -> Lane | None:
        if not self._idle and len(self._lanes) < LANES:
            self._lanes.append(self._make_lane())
            return self._lanes[-1]
        return self._idle.pop() if self._idle else None
