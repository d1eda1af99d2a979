"""Takes the costly steps of handshakes on threads, beside the event loop.

OpenSSL decodes the keys of a client's certificates when they have come, whoever signed them. A key
on a curve of the client's own choice takes up to 0.2 s for 500 bytes, and nothing can stop OpenSSL
amid it. The loop only waits for its end.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import Final, Protocol

from headgate.base.errors import broken
from headgate.storage.lanes import Lane

LANES: Final = 2
"""Threads, each with one step at a time. A network has one step at a time."""

COSTLY_S: Final = 0.05
"""A network with a step that took longer is served behind others, by all threads but one."""

COSTLY_NETWORKS_MAX: Final = 10_000
"""Such networks that are remembered, the last ones."""

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

    def __init__(
        self, make_lane: Callable[[], Lane], cpu_s: Callable[[], float] = time.thread_time
    ) -> None:
        """``make_lane`` is called when the first steps come. ``cpu_s`` is the time that the calling
        thread has worked."""
        self._make_lane = make_lane
        self._cpu_s = cpu_s
        self._costly: OrderedDict[str, None] = OrderedDict()
        self._ready_costly: deque[tuple[str, Stepping]] = deque()
        self._costly_count = 0
        """Steps of costly networks that are under way."""
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
            self._put(network, one)
            self._fill()
        else:
            behind.append(one)

    def close(self) -> None:
        """Begin no further step."""
        self._ready.clear()
        self._ready_costly.clear()
        self._idle.clear()
        for lane in self._lanes:
            lane.abandon()

    def _put(self, network: str, one: Stepping) -> None:
        (self._ready_costly if network in self._costly else self._ready).append((network, one))

    def _fill(self) -> None:
        while self._ready or (self._ready_costly and self._costly_count < LANES - 1):
            lane = self._idle_lane()
            if lane is None:
                return
            is_costly = not self._ready
            network, one = (self._ready_costly if is_costly else self._ready).popleft()
            step = one.step()
            if step is None:
                self._idle.append(lane)
                self._go_on(network)
                one.step_is_done()
            else:
                self._costly_count += is_costly
                self._submit(lane, network, partial(self._timed, step), one, is_costly)

    def _timed(self, step: Callable[[], None]) -> float:
        begun_s = self._cpu_s()
        step()
        return self._cpu_s() - begun_s

    def _submit(
        self,
        lane: Lane,
        network: str,
        step: Callable[[], float],
        one: Stepping,
        is_costly: bool,
    ) -> None:
        def done(used_s: float, error: BaseException | None) -> None:
            self._costly_count -= is_costly
            self._idle.append(lane)
            if error is None and used_s > COSTLY_S:
                self._remember(network)
            self._go_on(network)
            try:
                one.step_is_done()
            finally:
                self._fill()
            if error is not None:
                raise broken("a step of a handshake", error)

        lane.submit(step, done)

    def _remember(self, network: str) -> None:
        self._costly[network] = None
        self._costly.move_to_end(network)
        if len(self._costly) > COSTLY_NETWORKS_MAX:
            self._costly.popitem(last=False)

    def _go_on(self, network: str) -> None:
        behind = self._behind[network]
        if behind:
            self._put(network, behind.popleft())
        else:
            del self._behind[network]

    def _idle_lane(self) -> Lane | None:
        if not self._idle and len(self._lanes) < LANES:
            self._lanes.append(self._make_lane())
            return self._lanes[-1]
        return self._idle.pop() if self._idle else None
