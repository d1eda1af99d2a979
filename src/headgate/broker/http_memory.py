"""Bounds what requests at the web port make the broker hold together.

It counts the bytes of bodies that arrived, of answers that are being made, and of answers that
their clients have not read. Above the bound the connection that holds most ends, of those of the
addresses that hold most, and a request with a large answer waits for its turn, or is refused. A
client that holds little is not refused because of others that hold much, nor are all because of one
address with very many requests.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final, Protocol

from headgate.base.sparse_counter import SparseCounter
from headgate.base.units import KIB, MIB
from headgate.broker.connection.address_counts import (
    AddressCounts,
    CountBounds,
    NetworkShares,
    owner_network_of,
    peer_network_of,
)
from headgate.broker.process_room import ProcessRoom
from headgate.metadata.errors import RefusalError
from headgate.policy.settings import Settings

logger = logging.getLogger("headgate.web")

REQUEST_BYTES: Final = 4 * KIB
"""What a request takes beside its body: its head as parsed, its task."""

ADDRESS_PART: Final = 2
"""One address may have this part of all requests at the same time, and of all connections to the
web ports, and no more than are free: behind it may be a proxy of many clients."""

ANSWER_WAIT_S: Final = 10.0
"""How long a request with a large answer waits for memory before it is refused."""

ANSWERS_SHARE_MAX: Final = 1 / 2
"""With at most this part of the bound answers in the making count where connections are ended: one
that is larger than the bound would end them all."""

SMALL_ANSWER_SHARE: Final = 1 / 64
"""An answer of at most this part of the bound waits for no large one."""

OWNER_SHARE_MAX: Final = 1 / 2
OWNERS_SHARE: Final = 3 / 2
"""For a tenant without an answer in the making, those of each other tenant count as this part of
the bound at most, and all together may have that many bounds: so nobody who reads a very large
answer slowly keeps the large ones of all others out."""

ENDED_LINES_MAX: Final = 8
"""Ended connections that are logged, so that clients cannot fill the log."""


class HttpHolder(Protocol):
    """A connection to the web port."""

    def end_for_memory(self, reason: str, /) -> None:
        """Answer with ``reason`` if that is still possible, and end the connection at once."""


class HttpMemory:
    """What all requests of one broker hold, and its bounds."""

    def __init__(
        self,
        bytes_max: Callable[[], int],
        requests_max: Callable[[], int],
        *,
        bytes_key: str = "headgateHttpMemoryMB",
        requests_key: str = "maxConcurrentHttpRequests",
    ) -> None:
        """The keys are what sets the bounds, as refusals name it."""
        self._bytes_key = bytes_key
        self._requests_key = requests_key
        self._bytes_max = bytes_max
        self._requests_max = requests_max
        self._by_holder: dict[HttpHolder, tuple[int, str, str]] = {}
        """What each connection holds, its wide network and its network."""
        self._shares = NetworkShares()
        """What those of each network hold, and of wide ones: a machine may have thousands of /64.
        """
        self._answers: list[int] = []
        """Bytes of each answer that is being made."""
        self._answers_bytes = 0
        self._by_owner: SparseCounter[str] = SparseCounter()
        """Their bytes by owner."""
        self._waiting: OrderedDict[str, deque[tuple[int, asyncio.Future[None]]]] = OrderedDict()
        """Those that wait, by owner; the first one's turn is next."""
        self.held_bytes = 0
        self._running = AddressCounts(by_network=True, leaves_room=True)
        self.ended_count = 0
        """Connections ended because all together held too much."""
        self.refused_count = 0
        """Requests refused because there were too many, or no memory for their answers."""

    @classmethod
    def of(cls, settings: Settings, room: ProcessRoom) -> HttpMemory:
        """With the bounds of these settings, which may change, and what the process leaves of
        them."""
        return cls(
            lambda: room.of(settings.headgateHttpMemoryMB * MIB),
            lambda: settings.maxConcurrentHttpRequests,
        )

    # -- requests ----------------------------------------------------------------------------

    @property
    def running(self) -> int:
        """Connections with a request that is not answered."""
        return self._running.total

    def begin(self, address: str) -> str:
        """Count a connection from ``address`` that begins to have requests; returns why this one is
        refused, or nothing. :meth:`end` follows in either case."""
        requests_max = self._requests_max()
        bounds = CountBounds(requests_max, max(1, requests_max // ADDRESS_PART))
        exceeded = self._running.exceeded(address, bounds)
        self._running.add(address)
        if not exceeded:
            return ""
        self.refused_count += 1
        return (
            f"Too many requests at the same time: {self._requests_key} allows {exceeded}."
            " Try again later"
        )

    def end(self, address: str) -> None:
        """A connection from ``address`` has no requests any more."""
        self._running.remove(address)

    # -- what connections hold ---------------------------------------------------------------

    def hold(self, holder: HttpHolder, size_bytes: int, address: str) -> None:
        """A connection from ``address``, which is ``/host:port``, holds so many bytes of requests
        and unread answers now; 0: none."""
        before = self._forget(holder)
        if size_bytes:
            network = peer_network_of(address)
            wide = owner_network_of(network)
            self._by_holder[holder] = size_bytes, wide, network
            self._shares.count(network, size_bytes)
        self.held_bytes += size_bytes
        while size_bytes > before and self._connections_hold_too_much() and self._by_holder:
            self._end_largest()
        if size_bytes < before:
            self._admit_waiting()

    def _forget(self, holder: HttpHolder) -> int:
        size_bytes, _, network = self._by_holder.pop(holder, (0, "", ""))
        self._shares.count(network, -size_bytes)
        self.held_bytes -= size_bytes
        return size_bytes

    def _connections_hold_too_much(self) -> bool:
        bytes_max = self._bytes_max()
        uncounted_bytes = max(0, self._answers_bytes - int(ANSWERS_SHARE_MAX * bytes_max))
        return self.held_bytes - uncounted_bytes > bytes_max

    def _end_largest(self) -> None:
        # Many that hold little each end before the larger one of an address that holds less,
        # however many addresses hold next to nothing. First wide networks, then those in them.
        wides = {wide for _, wide, _ in self._by_holder.values()}
        wides = {wide for wide in wides if self._shares.by_wide.makes_room(wide)}
        narrow, holders = self._shares.by_network.makes_room, self._by_holder.items()
        found = {
            each: held
            for each, (held, wide, network) in holders
            if wide in wides and narrow(network)
        } or {each: held for each, (held, wide, _) in holders if wide in wides}
        largest = max(found, key=found.__getitem__)
        held_bytes = self._forget(largest)
        self.ended_count += 1
        reason = (
            f"This connection holds {held_bytes} bytes of requests and unread answers, more than"
            f" others, and all together more than {self._bytes_max()} ({self._bytes_key})"
        )
        if self.ended_count <= ENDED_LINES_MAX:
            logger.warning("a connection to the web port ends: %s", reason)
        largest.end_for_memory(reason)

    # -- answers that are being made -----------------------------------------------------------

    async def reserve(self, size_bytes: int, owner: str = "") -> None:
        """Return when there is memory for an answer; :meth:`release` gives it back. One answer
        alone may be larger than the bound. A small one waits only for others that are small, so
        that a client which reads a large one slowly keeps nobody out. ``owner`` is the tenant that
        it is about: those that wait take turns by owner.

        Raises:
            RefusalError: 503, there is none within :data:`ANSWER_WAIT_S`.
        """
        may_go = owner not in self._waiting and self._has_room(size_bytes, owner)
        has_turn = not self._waiting or not self._by_owner[owner]
        if (may_go and has_turn) or self._is_small_with_room(size_bytes):
            self._take(size_bytes, owner)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = size_bytes, turn
        self._waiting.setdefault(owner, deque()).append(entry)
        try:
            await asyncio.wait_for(turn, ANSWER_WAIT_S)
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                self.release(size_bytes, owner)
            else:
                self._leave(owner, entry)
                self._admit_waiting()
            if isinstance(error, TimeoutError):
                self.refused_count += 1
                raise RefusalError(
                    503,
                    f"The answer needs about {size_bytes} bytes, and other requests take the"
                    f" {self._bytes_max()} that there are ({self._bytes_key}): try again later",
                ) from error
            raise

    def release(self, size_bytes: int, owner: str = "") -> None:
        """An answer is sent or given up."""
        self._answers.remove(size_bytes)
        self._answers_bytes -= size_bytes
        self.held_bytes -= size_bytes
        self._by_owner[owner] -= size_bytes
        self._admit_waiting()

    def _take(self, size_bytes: int, owner: str) -> None:
        self._answers.append(size_bytes)
        self._answers_bytes += size_bytes
        self.held_bytes += size_bytes
        self._by_owner[owner] += size_bytes

    def _has_room(self, size_bytes: int, owner: str) -> bool:
        bytes_max = self._bytes_max()
        if not self._answers_bytes or self.held_bytes + size_bytes <= bytes_max:
            return True
        if self._by_owner[owner]:
            return False
        each_max = OWNER_SHARE_MAX * bytes_max
        taken = sum(min(of_owner, each_max) for of_owner in self._by_owner.values())
        others_bytes = self.held_bytes - self._answers_bytes
        return others_bytes + taken + min(size_bytes, each_max) <= OWNERS_SHARE * bytes_max

    def _is_small_with_room(self, size_bytes: int) -> bool:
        """Whether an answer is small, and fits into the bound beside all but the largest."""
        bytes_max = self._bytes_max()
        others_bytes = self.held_bytes - max(self._answers, default=0)
        is_small = size_bytes <= SMALL_ANSWER_SHARE * bytes_max
        return is_small and others_bytes + size_bytes <= bytes_max

    def _admit_waiting(self) -> None:
        """Let those go on for which there is room, one of each owner in turn."""
        is_any_admitted = True
        while is_any_admitted:
            is_any_admitted = False
            for owner in list(self._waiting):
                size_bytes, turn = self._waiting[owner][0]
                if turn.done() or self._has_room(size_bytes, owner):
                    self._leave(owner, (size_bytes, turn))
                    if owner in self._waiting:
                        self._waiting.move_to_end(owner)
                    is_any_admitted = True
                    if not turn.done():
                        self._take(size_bytes, owner)
                        turn.set_result(None)

    def _leave(self, owner: str, entry: tuple[int, asyncio.Future[None]]) -> None:
        """One waits no more."""
        line = self._waiting.get(owner)
        if line is not None and entry in line:
            line.remove(entry)
            if not line:
                del self._waiting[owner]
