"""Takes the costly steps of handshakes on threads, beside the event loop.

OpenSSL decodes the keys of a client's certificates when they have come, whoever signed them. A key
on a curve of the client's own choice takes up to 0.3 s for each KiB, and nothing can stop OpenSSL
amid it. The loop only waits for its end.

Nobody knows beforehand which step is costly. So networks are told apart by what their earlier steps
were, and new ones by how much they have sent. Each kind has its own line and thread. Who has shown
a good certificate waits behind nobody who has not.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from functools import partial
from typing import Final, NamedTuple, Protocol

from headgate.base.errors import broken
from headgate.base.fair_queue import NestedFairQueue
from headgate.base.sparse_counter import SparseCounter
from headgate.base.units import KIB
from headgate.broker.connection.address_counts import region_of, wide_network_of
from headgate.storage.lanes import Lane, ThreadLane

COSTLY_S: Final = 0.05
"""A step that took longer is costly; that of an honest client takes a few milliseconds."""

NETWORKS_MAX: Final = 10_000
"""Networks of a kind that are remembered, the last ones."""

NICENESS: Final = 10
"""Of threads that anybody can keep busy: the loop gets ten times as much time as one of them."""

REGION_NETWORKS_MAX: Final = 16
"""In a region (:func:`~headgate.broker.connection.address_counts.region_of`) with so many wide
networks with costly steps, all new networks are neighbours of those: a provider has 65,536."""

LOST_MIN: Final = 100
"""As many ended connections may stay in the lines; with more the lines are looked through when half
of those that wait have ended."""

THREAD_NAME: Final = "headgate-handshakes"

STEP_BYTES: Final = (3 * KIB // 2, 3 * KIB, 12 * KIB)
"""What TLS gets of a client in its handshake, behind its first bytes, until the first, second and
third of the lines for new networks: who sends little waits for none that has sent more. The first
has room for a certificate of RSA-2048, or two with keys on curves, and the second for twice as
many. The last is a bound for all networks."""

put_off: ContextVar[list[Callable[[], bool]] | None] = ContextVar("put_off", default=None)
"""Where the step of a handshake goes that is to be taken later; None to take it at once. It returns
whether the handshake is done, and its client has shown a good certificate."""


class Stepping(Protocol):
    """A connection with a step to take."""

    @property
    def is_lost(self) -> bool:
        """Whether the connection has ended."""

    def step(self) -> Callable[[], bool] | None:
        """What a thread does from now on, as in :data:`put_off`; None if the connection has
        ended."""

    def step_is_done(self) -> None:
        """The thread has done it, or had nothing to do."""


class _Waiting(NamedTuple):
    network: str
    wide: str
    size_bytes: int
    one: Stepping


class _Line:
    """Steps that wait for one thread, which is begun with the first. Wide networks take turns, and
    so do the networks in one."""

    def __init__(self) -> None:
        self.waiting: NestedFairQueue[_Waiting] = NestedFairQueue()
        self.lane: Lane | None = None
        self.is_busy = False


def new_thread(loop: asyncio.AbstractEventLoop, gives_way: bool) -> Lane:
    """A lane of its own thread. With ``gives_way`` it gets little time while others of the machine
    work, where threads have priorities of their own (Linux)."""
    lane = ThreadLane(loop, THREAD_NAME)
    if gives_way and sys.platform == "linux":
        lane.submit(_give_way, lambda *_: None)
    return lane


def end_amid_steps(threads: Iterable[threading.Thread], end: Callable[[int], object]) -> None:
    """Call ``end`` with the exit status 0 if one of the process's ``threads`` may be amid a step.
    The caller has closed all else: an ordinary exit would free what OpenSSL uses there, and could
    end with SIGSEGV."""
    if any(thread.name == THREAD_NAME for thread in threads):
        end(0)


def _give_way() -> None:
    own = threading.get_native_id()
    niceness = max(NICENESS, os.getpriority(os.PRIO_PROCESS, own))
    os.setpriority(os.PRIO_PROCESS, own, niceness)


class HandshakeSteps:
    """The steps of one loop. An ended connection is passed over.

    A costly step makes all new networks of its wide one
    (:func:`~headgate.broker.connection.address_counts.wide_network_of`) neighbours of a costly one,
    because an attacker has many networks in one. They wait behind each other, and not behind the
    costly one, who may be a stranger beside them. A good certificate counts for the network that
    has shown it: such a neighbour waits only behind others that have shown theirs.
    """

    def __init__(
        self, make_lane: Callable[[bool], Lane], cpu_s: Callable[[], float] = time.thread_time
    ) -> None:
        """``make_lane`` is called when a line has its first step, with whether the lane gives way,
        as all do but that of good networks. ``cpu_s`` is the time that the calling thread has
        worked."""
        self._make_lane = make_lane
        self._cpu_s = cpu_s
        self._good_networks = _LastOnes()
        self._costly_networks = _LastOnes()
        self._costly_wide_networks = _LastOnes()
        self._regions: SparseCounter[str] = SparseCounter()
        """How many costly wide networks each has."""
        self._good, self._good_neighbours = _Line(), _Line()
        self._new, self._new_neighbours = [_Line() for _ in STEP_BYTES], _Line()
        self._costly = _Line()
        self._ended = EndedCount()
        self._is_closed = False

    def add(self, network: str, size_bytes: int, one: Stepping) -> None:
        """Take its step in its turn. ``size_bytes`` is what the client has sent in its
        handshake."""
        self._put(_Waiting(network, wide_network_of(network), size_bytes, one))

    def lost(self) -> None:
        """A connection has ended while it waited. Its turn may be far away, and a client makes
        thousands of them."""
        lines = self._lines
        if self._ended.add(sum(len(line.waiting) for line in lines)):
            for line in lines:
                line.waiting.drop(lambda waiting: waiting.one.is_lost)

    def close(self) -> None:
        """Begin no further step."""
        self._is_closed = True
        for line in self._lines:
            line.waiting.clear()
            if line.lane is not None:
                line.lane.abandon()

    @property
    def _lines(self) -> tuple[_Line, ...]:
        neighbours = (self._good_neighbours, self._new_neighbours)
        return (self._good, *neighbours, *self._new, self._costly)

    def _put(self, waiting: _Waiting) -> None:
        line = self._line_of(waiting)
        line.waiting.add(waiting.wide, waiting.network, waiting)
        self._fill(line)

    def _line_of(self, waiting: _Waiting) -> _Line:
        if waiting.network in self._costly_networks:
            return self._costly
        is_neighbour = waiting.wide in self._costly_wide_networks
        if waiting.network in self._good_networks:
            return self._good_neighbours if is_neighbour else self._good
        if is_neighbour or self._regions[region_of(waiting.wide)] >= REGION_NETWORKS_MAX:
            return self._new_neighbours
        return self._new[bisect_left(STEP_BYTES, waiting.size_bytes)]

    def _fill(self, line: _Line) -> None:
        while line.waiting and not (line.is_busy or self._is_closed):
            waiting = line.waiting.take()
            if self._line_of(waiting) is not line:  # another step has told more of its network
                self._put(waiting)
            elif (step := waiting.one.step()) is None:
                waiting.one.step_is_done()
            else:
                line.is_busy = True
                if line.lane is None:
                    line.lane = self._make_lane(line is not self._good)
                line.lane.submit(partial(self._take, step), partial(self._done, line, waiting))

    def _take(self, step: Callable[[], bool]) -> tuple[bool, bool]:
        """Take a step, on a thread. Returns whether it was costly and what it returned."""
        begun_s = self._cpu_s()
        has_shown = step()
        return self._cpu_s() - begun_s > COSTLY_S, has_shown

    def _done(
        self,
        line: _Line,
        waiting: _Waiting,
        result: tuple[bool, bool] | None,
        error: BaseException | None,
    ) -> None:
        line.is_busy = False
        is_costly, has_shown = result or (False, False)
        if is_costly:
            self._note_costly(waiting)
        elif has_shown:
            self._good_networks.add(waiting.network)
        try:
            waiting.one.step_is_done()
        finally:
            self._fill(line)
        if error is not None:
            raise broken("a step of a handshake", error)

    def _note_costly(self, waiting: _Waiting) -> None:
        self._costly_networks.add(waiting.network)
        if waiting.wide not in self._costly_wide_networks:
            self._regions[region_of(waiting.wide)] += 1
        forgotten = self._costly_wide_networks.add(waiting.wide)
        if forgotten is not None:
            self._regions[region_of(forgotten)] -= 1


class EndedCount:
    """Connections that have ended while they waited, since their lines were looked through."""

    def __init__(self) -> None:
        self._count = 0

    def add(self, waiting_count: int) -> bool:
        """One more has ended, of so many that wait, ended ones included. Returns whether the lines
        are to be looked through now: :data:`LOST_MIN`."""
        self._count += 1
        if self._count <= LOST_MIN or 2 * self._count <= waiting_count:
            return False
        self._count = 0
        return True


class _LastOnes:
    """The last networks of a kind."""

    def __init__(self) -> None:
        self._networks: OrderedDict[str, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._networks)

    def __contains__(self, network: str) -> bool:
        return network in self._networks

    def add(self, network: str) -> str | None:
        """Add one, or keep it for longer. Returns the one that is forgotten for it."""
        self._networks[network] = None
        self._networks.move_to_end(network)
        return self._networks.popitem(last=False)[0] if len(self) > NETWORKS_MAX else None
