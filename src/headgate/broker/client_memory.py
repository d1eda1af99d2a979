"""Bounds the memory that all connections together make the broker hold.

What each connection holds is measured, not counted up and down: a measurement has no drift, and
messages pay nothing for it. Beyond the bound the broker slows the connections that hold most, and
closes them if that does not help.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, NamedTuple, Protocol

from headgate.base.identity import Identity
from headgate.base.largest import Largest
from headgate.base.owner_shares import SMALL_BOUNDS, OwnerShares
from headgate.base.units import KIB, MIB, NS_PER_S
from headgate.base.work_units import (
    CONNECTION_ENDED,
    CONNECTION_MEASURED,
    CONNECTION_RESUMED,
    CONNECTION_SLOWED,
    OBJECTS_PER_MEASURED,
    WOKEN_PER_UNIT,
)
from headgate.broker.held_memory import (
    CONNECTION_BYTES,
    DESCRIPTION_FACTOR,
    OBJECT_BYTES,
    HeldMemory,
    share_text,
)
from headgate.broker.left_memory import LeftMemory
from headgate.broker.process_room import ProcessRoom
from headgate.broker.work.scheduler import Steps
from headgate.engine.errors import NotAllowedError
from headgate.metadata.errors import RefusalError

logger = logging.getLogger("headgate.connection")

CLIENT_MEMORY_BYTES_MIN: Final = 128 * MIB
"""The least bound, unless the settings have another."""

CLIENT_SHARE: Final = 4
"""Clients may take a fourth of the memory."""

GRACE_NS: Final = 5 * NS_PER_S
"""How long a slowed connection may hold what it holds while all hold too much."""
GRACE_FAR_NS: Final = NS_PER_S
"""The same while all hold far too much, or newcomers of roles that hold little are refused. A
burst of large messages is over before: as those that hold most are not read, the others finish
their frames."""

CONNECTIONS_SHARE: Final = 0.75
RESUME_SHARE: Final = 0.75
WARN_SHARE: Final = 0.9
FAR_SHARE: Final = 1.1
"""Shares of the bound. Connections alone may take the first. Up to the second everybody is read.
Above the third the broker logs who holds most, and refuses large newcomers, so that they alone
never pass the bound. Above the fourth it is far too much."""

OTHERS_SHARE: Final = 1.05
"""Up to this share of the bound the broker takes newcomers of roles that are not the largest,
however much these hold: connections of the largest are closed for them."""

FEW_OBJECTS: Final = 16
SMALL_DESCRIPTION_BYTES: Final = KIB
"""A producer or consumer with a small description on a connection with few is a small newcomer: the
broker takes it until the bound is reached, so that nobody who fills nine tenths shuts out all
others."""

SMALL_HOLDER_BYTES: Final = 16 * KIB
"""A connection that holds no more, beyond what an idle one takes, is not slowed for its growth: it
is not the cause."""

SMALL_COMMAND_BYTES: Final = 8 * KIB
PARSED_FACTOR: Final = 16
"""A command that is carried out in slices takes so many times its bytes, unless it is small: a word
of a set of messages has one byte, and 8 in memory, twice while the set is read."""

SMALL_ANSWER_BYTES: Final = 16 * KIB
"""An answer up to this size is always given: there is room for it in the buffer of a socket."""

ACTIONS_MAX: Final = 1_000
"""Most connections that one measurement slows or closes."""

LINES_MAX: Final = 3
"""Most connections that one measurement closes with a line each in the log."""

SCARCE_SHARE: Final = 0.5
HURRY_PERIOD_S: Final = 0.25
PERIOD_S: Final = 1.0
"""Seconds between two measurements, and between two while more than that share is held."""

STEP_UNITS: Final = 32
SLOWED_PER_STEP: Final = 128
"""Slowed or closing connections that are looked at in so many units."""


def client_memory_bytes(setting_mb: int, limit_bytes: int) -> int:
    """``headgateClientMemoryMB`` if it is set, else the share of ``limit_bytes`` that clients may
    take, at least :data:`CLIENT_MEMORY_BYTES_MIN`."""
    if setting_mb > 0:
        return setting_mb * MIB
    return max(limit_bytes // CLIENT_SHARE, CLIENT_MEMORY_BYTES_MIN)


class Worker(Protocol):
    """A connection whose commands are carried out."""

    working_bytes: int
    """What they take until they are done: :meth:`ClientMemory.working` counts it."""


class Holder(Worker, Protocol):
    """A connection, as the bound on memory uses it."""

    address: str
    identity: Identity
    is_open: bool
    memory_units: int
    """How much an idle connection takes, in :data:`CONNECTION_BYTES`."""

    @property
    def objects_count(self) -> int:
        """Its producers, consumers and watchers, also those that are being created."""

    def held_memory(self, *, is_scarce: bool) -> HeldMemory:
        """What the broker holds for it now; if memory is scarce, it first gives back what it does
        not need."""

    def unsent_bytes(self) -> int:
        """Bytes that its peer has not read."""

    def pause_for_memory(self) -> None:
        """Read no more until :meth:`resume_for_memory`."""

    def resume_for_memory(self) -> None:
        """Read again."""

    def close_for_memory(self, reason: str, /) -> None:
        """Tell the peer why, if it reads, and end the connection."""

    def abort(self) -> None:
        """End the connection at once, also one that is closing."""


class DeliveryPort(Protocol):
    """The consumers of a connection, as the bound on memory uses them."""

    @property
    def identity(self) -> Identity:
        """Who their client is."""

    def deliver_again(self) -> int:
        """There is room for messages; returns how many consumers were told."""


class _Slowed(NamedTuple):
    held_bytes: int
    since_ns: int
    is_paused: bool


class _Holding(NamedTuple):
    beyond_idle: int
    held: HeldMemory
    holder: Holder


class _Measurement:
    """What a walk over all connections found."""

    def __init__(self, rank: Callable[[Identity, int], int]) -> None:
        """``rank`` of a connection's role and what it holds tells whose connections are slowed and
        closed first: those of the highest."""
        self._rank = rank
        self.shares = OwnerShares()
        """By role."""
        self._sums = [0] * len(HeldMemory._fields)
        self.held_by: dict[Holder, HeldMemory] = {}
        """What those hold that hold more than an idle connection."""
        self._most = Largest[_Holding](ACTIONS_MAX)
        self.unsent_of_closing = 0
        self.working_bytes = 0

    def add(self, holder: Holder, *, is_scarce: bool) -> None:
        """Measure one connection."""
        held = holder.held_memory(is_scarce=is_scarce)
        self._sums = [a + b for a, b in zip(self._sums, held, strict=True)]
        self.working_bytes += holder.working_bytes
        beyond_idle = held.beyond_idle
        if beyond_idle <= 0:
            return
        self.held_by[holder] = held
        self.shares.count(holder.identity.text, beyond_idle)
        # Kept in order with each one, since sorting thousands at the end would be a long turn.
        key = self._rank(holder.identity, beyond_idle), beyond_idle, holder.address
        self._most.add(key, _Holding(beyond_idle, held, holder))

    def add_closing(self, holder: Holder) -> None:
        """Measure a connection that ends once its peer has read the last frames."""
        self._sums[0] += CONNECTION_BYTES * holder.memory_units
        unsent_bytes = holder.unsent_bytes()
        self._sums[HeldMemory._fields.index("unsent")] += unsent_bytes
        self.unsent_of_closing += unsent_bytes

    def held(self) -> HeldMemory:
        """All together."""
        return HeldMemory(*self._sums)

    def most_first(self) -> list[_Holding]:
        """Those that hold most: first of the roles that do."""
        return self._most.items()


class ClientMemory:
    """What all connections of one broker hold, and its bound."""

    def __init__(
        self,
        bytes_max: int,
        now_ns: Callable[[], int],
        bounded_elsewhere: Callable[[], Mapping[str, int]] = dict,
        room: ProcessRoom | None = None,
    ) -> None:
        """``bounded_elsewhere`` gives the bytes of clients, by kind, that have bounds of their
        own. ``room`` is what the process leaves of ``bytes_max``."""
        self._room, self.bytes_max_set = room or ProcessRoom(), bytes_max
        self.bytes_max = bytes_max
        """The bound in force: less than the one that is set while the process nears its limit."""
        self._now_ns = now_ns
        self._bounded_elsewhere = bounded_elsewhere
        self.held = HeldMemory()
        """As of the last measurement, without what commands take while they are carried out."""
        self.closed_count = 0
        """Connections closed because all together held too much."""
        self._grown_bytes = 0
        """What was admitted and what buffers grew by since the last measurement."""
        self.left = LeftMemory(lambda: self.bytes_max)
        self._working_bytes = 0
        """What commands take now while they are carried out in slices."""
        self.is_crowded = False
        """:attr:`is_over`, as of the last change. Deliveries look at it for each entry."""
        self._undelivered: dict[DeliveryPort, None] = {}
        """Connections that get no messages until there is room."""
        self._is_measuring = False
        self._others_refused = False
        """Whether a newcomer of a role that holds little was refused since there was no room."""
        self._slowed: dict[Holder, _Slowed] = {}
        self._has_warned = False
        self._shares = OwnerShares()
        """What the connections of each role hold, as of the last measurement."""

    @property
    def period_s(self) -> float:
        """Seconds until the next measurement."""
        return HURRY_PERIOD_S if self._is_scarce or self._room.is_near else PERIOD_S

    @property
    def _is_scarce(self) -> bool:
        return self._room.is_short or self._held_now > SCARCE_SHARE * self.bytes_max

    def has_room_to_spare(self) -> bool:
        """Whether buffers may grow only to be faster."""
        return not self._is_scarce

    def connections_max(self, *, of_few: bool = False) -> int:
        """As many idle connections fit into their share of what the process leaves of the bound;
        for addresses that have few, of the whole bound."""
        bytes_max = self.bytes_max_set if of_few else self._room.of(self.bytes_max_set)
        return int(CONNECTIONS_SHARE * bytes_max) // CONNECTION_BYTES

    def figures(self) -> tuple[int, int, int]:
        """The bound in bytes, connections that are slowed, and connections closed so far."""
        return self.bytes_max, len(self._slowed), self.closed_count

    def by_kind(self) -> dict[str, int]:
        """Bytes held by kind, also of kinds that have bounds of their own."""
        beside = self.left.total + self._working_bytes
        held = self.held._replace(commands=self.held.commands + beside)
        return {**held._asdict(), **self._bounded_elsewhere()}

    # -- commands and answers --------------------------------------------------------------

    def while_held(
        self, worker: Worker, slices: Iterator[int], command_bytes: int
    ) -> Iterator[int]:
        """``slices`` of a command of so many bytes, which is charged until they end or are dropped:
        in memory its ids take many times as much."""
        if command_bytes <= SMALL_COMMAND_BYTES:
            return slices
        held = self._held(worker, slices, PARSED_FACTOR * command_bytes)
        next(held)
        return held

    def _held(self, worker: Worker, slices: Iterator[int], size_bytes: int) -> Iterator[int]:
        with self.working(worker, size_bytes):
            yield 0
            yield from slices

    @contextmanager
    def working(self, worker: Worker, size_bytes: int) -> Iterator[None]:
        """What is made for a command takes so much until it is done. Its connection holds that: a
        command whose peer reads nothing may never be done."""
        worker.working_bytes += size_bytes
        self._working_bytes += size_bytes
        self.is_crowded = self.is_over
        try:
            yield
        finally:
            worker.working_bytes -= size_bytes
            self._working_bytes -= size_bytes
            self.is_crowded = self.is_over

    def check_answer(self, identity: Identity, size_bytes: int) -> None:
        """Check that a client may get an answer of so many bytes, which may be very many times its
        command: what arrived is carried out also while all hold too much.

        Raises:
            RefusalError: 429, all connections together would hold too much.
        """
        if not self.has_room_for(identity, size_bytes):
            raise RefusalError(
                429,
                f"Clients hold {self._held_now:,} of {self.bytes_max:,} bytes "
                "(headgateClientMemoryMB): try again later",
            )

    def has_room_for(self, identity: Identity, size_bytes: int) -> bool:
        """Whether a client may get an answer of so many bytes now; small ones always."""
        share = 1 if self._makes_room(identity) else OTHERS_SHARE
        is_small = size_bytes <= SMALL_ANSWER_BYTES
        return is_small or self._held_now + size_bytes <= share * self.bytes_max

    def may_deliver(self, port: DeliveryPort, identity: Identity) -> bool:
        """Whether a connection may get messages although all hold too much: one of a role that
        holds little always. If not, it is told when there is room."""
        if not self._makes_room(identity) or not self.is_over:
            return True
        self._undelivered[port] = None
        return False

    def deliver_no_more(self, port: DeliveryPort) -> None:
        """A connection has ended."""
        self._undelivered.pop(port, None)

    def _deliver_again(self) -> Steps:
        """Tell the connections that there is room, or, while there is none, those of roles that are
        not among the largest any more."""
        for number, port in enumerate(list(self._undelivered), 1):
            is_open = port in self._undelivered
            if is_open and self.may_deliver(port, port.identity):
                del self._undelivered[port]
                yield CONNECTION_RESUMED + port.deliver_again() // WOKEN_PER_UNIT
            elif number % SLOWED_PER_STEP == 0:
                yield STEP_UNITS

    # -- newcomers and growth --------------------------------------------------------------

    def admit(
        self, identity: Identity, size_bytes: int, objects_count: int, more_bytes: int = 0
    ) -> int:
        """Admit a producer or consumer with a description of ``size_bytes`` on a connection of
        ``identity`` with ``objects_count`` others; returns what it takes, with ``more_bytes``
        beside the description.

        Raises:
            NotAllowedError: all connections together would hold too much.
        """
        takes = OBJECT_BYTES + DESCRIPTION_FACTOR * size_bytes + more_bytes
        held = self._held_now
        is_small = objects_count < FEW_OBJECTS and size_bytes <= SMALL_DESCRIPTION_BYTES
        share = 1 if is_small else WARN_SHARE
        is_other = not self._makes_room(identity)
        bytes_max = self.bytes_max
        if is_other:
            share = OTHERS_SHARE
            if is_small and self._room.is_short and not self._room.is_least:
                # The bound in force falls faster than connections of the largest can be closed. But
                # thousands of small ones come as fast as that, and the process must have room.
                share, bytes_max = SMALL_BOUNDS, self.bytes_max_set
        if held + takes > share * bytes_max:
            self._others_refused |= is_other
            raise NotAllowedError(
                f"Clients hold {held:,} of {self.bytes_max:,} bytes (headgateClientMemoryMB): "
                "the rest is not for new producers and consumers"
            )
        self.charge(takes)
        return takes

    def charge(self, size_bytes: int) -> None:
        """A connection takes so much more, or gives back so much if it is negative; the next
        measurement, which may be a second away, finds it."""
        # A walk may have measured already what is given back.
        if size_bytes > 0 or not self._is_measuring:
            self._grown_bytes += size_bytes
        self.is_crowded = self.is_over

    def may_grow(self, holder: Holder, size_bytes: int) -> bool:
        """Whether a receive buffer may grow by ``size_bytes``, which the holder then charges. If
        not, the holder is slowed.

        The broker asks before it reads the bytes that need the room. So however little time it has
        to measure and to close, buffers pass the bound by one growth at most, by :data:`FAR_SHARE`
        that of a small holder, of one whose acknowledgements free most, or of one whose role is not
        one of the largest.
        """
        if not self.is_over:
            return True
        held = holder.held_memory(is_scarce=True)
        is_small = held.beyond_idle + size_bytes <= SMALL_HOLDER_BYTES
        may_pass = is_small or held.is_mostly_pending or not self._makes_room(holder.identity)
        if may_pass and not self.is_far_over:
            return True
        if holder not in self._slowed:
            self._slow(holder, held.beyond_idle, is_paused=True)
        elif not self._slowed[holder].is_paused:
            self._slowed[holder] = self._slowed[holder]._replace(is_paused=True)
            holder.pause_for_memory()
        return False

    def _makes_room(self, identity: Identity) -> bool:
        """Whether the connections of a role make room for those of others. Those without a role
        have nobody in common that answers for them: each counts alone, by what it holds."""
        return not identity.role or self._shares.makes_room(identity.text)

    def _rank(self, identity: Identity, beyond_idle: int) -> int:
        """The higher, the earlier a connection makes room: what its role holds, of the largest."""
        if not identity.role:
            return beyond_idle
        return self._shares.of(identity.text) if self._makes_room(identity) else 0

    @property
    def is_over(self) -> bool:
        """Whether all hold too much."""
        return self._held_now > self.bytes_max

    @property
    def is_far_over(self) -> bool:
        """Whether all hold far too much: then nothing grows."""
        return self._held_now > FAR_SHARE * self.bytes_max

    @property
    def _held_now(self) -> int:
        return self.held.total + self._grown_bytes + self._working_bytes

    def slow(self, holder: Holder) -> None:
        """A connection has grown, or wants to grow. If all hold too much, it is slowed at once,
        unless it holds little once it has given back what it does not need."""
        if self.is_over and holder.is_open and holder not in self._slowed:
            held = holder.held_memory(is_scarce=True)
            may_pass = not self.is_far_over and not self._makes_room(holder.identity)
            if held.beyond_idle > SMALL_HOLDER_BYTES and not may_pass:
                self._slow(holder, held.beyond_idle, is_paused=not held.is_mostly_pending)

    def _slow(self, holder: Holder, held_bytes: int, *, is_paused: bool) -> None:
        self._slowed[holder] = _Slowed(held_bytes, self._now_ns(), is_paused)
        if is_paused:
            holder.pause_for_memory()

    # -- measuring -------------------------------------------------------------------------

    def measure(self, holders: Collection[Holder], closing: Collection[Holder]) -> Steps:
        """Measure all connections once, and act on it: slow, close and release. ``closing`` have
        ended, but their sockets still hold what the peers have not read."""
        self._room.measure()
        found, units, is_scarce = _Measurement(self._rank), 0, self._is_scarce
        grown_before = self._grown_bytes
        self._is_measuring = True
        for holder in list(holders):
            if holder.is_open:
                found.add(holder, is_scarce=is_scarce)
                units += CONNECTION_MEASURED + holder.objects_count // OBJECTS_PER_MEASURED
            if units >= STEP_UNITS:
                yield units
                units = 0
        for number, holder in enumerate(list(closing), 1):
            found.add_closing(holder)
            if number % SLOWED_PER_STEP == 0:
                yield STEP_UNITS
        held = found.held()
        self.held = held._replace(commands=held.commands - found.working_bytes)
        self.bytes_max = self._room.of(self.bytes_max_set, held.connections)
        self._others_refused &= held.total > self.bytes_max
        self._is_measuring, self._shares = False, found.shares
        # What grew meanwhile may have been measured before it did.
        self.charge(-grown_before)
        self.is_crowded = self.is_over
        yield from self._release(found)
        yield from self._deliver_again()
        if held.total <= WARN_SHARE * self.bytes_max:
            self._has_warned = False
            return
        most_first = found.most_first()
        yield STEP_UNITS
        self._warn(most_first)
        if held.total > self.bytes_max:
            yield from self._slow_most(held.total, most_first, found)
            yield from self._close_most(held.total, most_first, list(closing), found)

    def _warn(self, most_first: list[_Holding]) -> None:
        if self._has_warned:
            return
        self._has_warned = True
        most = ""
        if most_first:
            most = f"; {most_first[0].holder.address} holds most: {most_first[0].held.described()}"
        logger.warning("clients hold %s%s", share_text(self.held.total, self.bytes_max), most)

    def _release(self, found: _Measurement) -> Steps:
        """Read connections again that hold half of what they held; all if there is room; and those
        that have waited for long once all are within the bound. What they take at once counts, so
        that thousands do not fill together what is free for a few."""
        now_ns = self._now_ns()
        for number, holder in enumerate(list(self._slowed), 1):
            if number % SLOWED_PER_STEP == 0:
                yield STEP_UNITS
            slowed, held = self._slowed.get(holder), found.held_by.get(holder)
            if slowed is None:
                continue
            if not holder.is_open:
                del self._slowed[holder]
                continue
            held_bytes = 0 if held is None else held.beyond_idle
            has_room = self._held_now <= RESUME_SHARE * self.bytes_max
            has_waited = not self.is_over and now_ns - slowed.since_ns >= GRACE_NS
            if has_room or has_waited or 2 * held_bytes <= slowed.held_bytes:
                del self._slowed[holder]
                if slowed.is_paused:
                    holder.resume_for_memory()
                    yield CONNECTION_RESUMED
            elif held_bytes > slowed.held_bytes:
                self._slowed[holder] = slowed._replace(held_bytes=held_bytes)

    def _slow_most(self, total: int, most_first: list[_Holding], found: _Measurement) -> Steps:
        """Read no more those that hold most, until the others together have room. One whose
        acknowledgements would free most is read on."""
        rest = total - found.unsent_of_closing
        for number, holder in enumerate(list(self._slowed), 1):
            if number % SLOWED_PER_STEP == 0:
                yield STEP_UNITS
            held = found.held_by.get(holder)
            rest -= 0 if held is None else held.total
        for one in most_first:
            if rest <= RESUME_SHARE * self.bytes_max:
                return
            if one.holder not in self._slowed and one.holder.is_open:
                rest -= one.held.total
                is_paused = not one.held.is_mostly_pending
                self._slow(one.holder, one.beyond_idle, is_paused=is_paused)
                yield CONNECTION_SLOWED

    def _close_most(
        self,
        total: int,
        most_first: list[_Holding],
        closing: list[Holder],
        found: _Measurement,
    ) -> Steps:
        """End those that are closing; then close those that hold most and have been slowed for
        long, until the rest is within the bound. One that holds most and was slowed later is closed
        later: nobody is closed in its stead."""
        is_urgent = self._others_refused or total > FAR_SHARE * self.bytes_max
        grace_ns = GRACE_FAR_NS if is_urgent else GRACE_NS
        for holder in closing:
            holder.abort()
            yield CONNECTION_SLOWED
        rest, closed_before = total - found.unsent_of_closing, self.closed_count
        for one in most_first:
            if rest <= self.bytes_max:
                break
            rest -= one.held.total
            slowed = self._slowed.get(one.holder)
            if not one.holder.is_open:
                continue
            if slowed is None:
                # Those that are slowed leave room for it, and yet all hold too much.
                self._slow(one.holder, one.beyond_idle, is_paused=not one.held.is_mostly_pending)
                yield CONNECTION_SLOWED
            elif self._now_ns() - slowed.since_ns >= grace_ns:
                is_logged = self.closed_count < closed_before + LINES_MAX
                self._close(one, total, is_logged=is_logged)
                yield CONNECTION_ENDED
        others = self.closed_count - closed_before - LINES_MAX
        if others > 0:
            logger.warning("%d more are disconnected, for the same reason", others)

    def _close(self, one: _Holding, total: int, *, is_logged: bool) -> None:
        self.closed_count += 1
        del self._slowed[one.holder]
        reason = (
            f"this connection holds {one.held.total:,} bytes ({one.held.described()}), and all "
            f"together {share_text(total, self.bytes_max)}"
        )
        if is_logged:
            logger.warning("%s is disconnected: %s", one.holder.address, reason)
        one.holder.close_for_memory(reason)
