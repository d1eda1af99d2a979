"""The lease on a table in S3: the protocol over one object, changed by conditional puts.

A job that creates the object, or swaps it from the free state, holds the lease. It renews the lease
every :data:`RENEW_S` seconds by another swap, which changes the object's tag. A job that finds the
lease held watches the tag. If the tag changes, the holder is alive, and the job is refused. If the
tag does not change for :data:`LEASE_S` seconds of the job's own clock, the lease has expired, and
the job swaps in its own. The clocks of two machines are never compared.

A put may take effect although its response is lost. A retry then fails on its own condition, so the
job reads the object to see whose it is. S3 has no conditional delete, so the object is never
deleted: a holder releases the lease by a swap to the free state.

A lease does not prove that the holder is running: a job that was suspended for longer than the
lease may continue without noticing. So each commit first reads the lock
(``lock_tokens.check_lease``), and fails if another job has written the table's next version.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Final, Protocol

from headgate.base.clock import SystemClock
from headgate.base.errors import InputError
from headgate.base.units import NS_PER_S

LOCK: Final = ".lock"
"""Name of the lock that earlier releases took of a whole folder; also the folder's mark."""

LEASES: Final = ".leases"
"""The folder of the leases in a folder of tables, in S3 and on a file system."""


def housekeeping_name(table: str) -> str:
    """Name of the lease of the job that merges, drops or deletes files of a table; that of the job
    that fills it has the table's name."""
    return f"{table}.housekeeping"


RENEW_S: Final = 10.0
LEASE_S: Final = 60.0
POLL_S: Final = 2.0
"""Time between two reads by a job that waits for the lock."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The content of the lock object: the current holder."""

    token: str
    """Random, new for each acquisition; empty: free. Not a secret."""
    host: str = ""
    process: int = 0
    since: str = ""
    """Since when, for messages."""
    renewals: int = 0
    """A counter, so that each renewal changes the content and with it the tag."""

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}, since {self.since}"

    def to_bytes(self) -> bytes:
        """The object's content."""
        return (json.dumps(asdict(self)) + "\n").encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> Lease:
        """The holder in a content; a content that this version does not know counts as held."""
        try:
            document = json.loads(content)
            return cls(
                str(document["token"]),
                str(document["host"]),
                int(document["process"]),
                str(document["since"]),
                int(document["renewals"]),
            )
        except (ValueError, KeyError, TypeError):
            return _UNKNOWN


def my_lease() -> Lease:
    """A lease of this process, from now on."""
    now = datetime.fromtimestamp(SystemClock.wall_ns() // NS_PER_S, UTC)
    since = now.isoformat().replace("+00:00", "Z")
    return Lease(secrets.token_hex(16), socket.gethostname(), os.getpid(), since)


FREE: Final = Lease("")
_UNKNOWN: Final = Lease("unknown", "an unknown host", 0, "an unknown time")
_NO_TAG: Final = '"00000000000000000000000000000000"'


@dataclass(frozen=True, slots=True)
class LockState:
    """The lock object as read: its lease and its tag."""

    lease: Lease
    tag: str


class LockObject(Protocol):
    """The requests that the lease needs. All may raise :class:`OSError`."""

    def read(self) -> LockState | None:
        """The lock object; None: it does not exist."""

    def create(self, lease: Lease) -> str | None:
        """Create it; returns its tag, or None if it exists."""

    def swap(self, lease: Lease, tag: str) -> str | None:
        """Replace it if it has this tag; returns the new tag, or None if it has another."""


class NoConditionalPutError(Exception):
    """The store ignores conditions of puts, so it cannot hold a lock."""


class LockHeldError(Exception):
    """Another job holds the lock."""

    def __init__(self, holder: Lease) -> None:
        super().__init__(str(holder))
        self.holder = holder


@dataclass(frozen=True, slots=True)
class Watched:
    """A lock object as it was some time ago, which shortens the wait for a dead holder."""

    state: LockState | None
    since_s: float
    """When it was read, by the job's clock."""


class TableHeldError(InputError):
    """Another job writes a table of this folder."""

    def __init__(self, root: str, name: str, holder: Lease) -> None:
        table, _, is_housekeeping = name.partition(".")
        doing = "its files are being merged or deleted" if is_housekeeping else "it is filled"
        super().__init__(
            f"table {table} in {root} is being written by another job ({holder}): {doing}, and one "
            "job at a time may do that"
        )


def take(
    lock: LockObject,
    mine: Lease,
    *,
    monotonic: Callable[[], float],
    wait: Callable[[float], None],
    on_wait: Callable[[Lease], None] = lambda _: None,
    watched: Watched | None = None,
) -> str:
    """Acquire the lock; returns the object's tag.

    ``monotonic`` and ``wait`` are in seconds. ``on_wait`` gets the holder before the job
    waits to see whether it is alive, up to :data:`LEASE_S` since ``watched``; None: since now.

    Raises:
        LockHeldError: another job holds the lease, or acquired it first.
        NoConditionalPutError: the store ignores conditions.
        OSError: the store does not answer.
    """
    tag = _acquired_tag(lock, mine, monotonic, wait, on_wait, watched)
    # Both must fail. A store that ignores conditions would admit every job.
    if lock.create(mine) is not None or lock.swap(mine, _NO_TAG) is not None:
        raise NoConditionalPutError
    return tag


def _acquired_tag(
    lock: LockObject,
    mine: Lease,
    monotonic: Callable[[], float],
    wait: Callable[[float], None],
    on_wait: Callable[[Lease], None],
    watched: Watched | None,
) -> str:
    found = lock.read()
    if found is None:
        tag = lock.create(mine)
        if tag is not None:
            return tag
        found = lock.read()
    if found is None:
        raise LockHeldError(_UNKNOWN)
    if found.lease.token == mine.token:
        return found.tag
    if found.lease.token != FREE.token:
        on_wait(found.lease)
        begun_s = monotonic()
        if watched is not None and watched.state is not None:
            if watched.state.tag != found.tag:
                raise LockHeldError(found.lease)
            begun_s = watched.since_s
        found = _expired(lock, found, begun_s, monotonic, wait)
    tag = _swapped(lock, mine, found.tag)
    if tag is None:
        winner = lock.read()
        raise LockHeldError(winner.lease if winner is not None else _UNKNOWN)
    return tag


def _expired(
    lock: LockObject,
    found: LockState,
    begun_s: float,
    monotonic: Callable[[], float],
    wait: Callable[[float], None],
) -> LockState:
    """The object that may be replaced: unchanged for a lease's time, or released meanwhile."""
    while monotonic() - begun_s < LEASE_S:
        wait(POLL_S)
        current = lock.read()
        if current is None:
            raise LockHeldError(found.lease)
        if current.lease.token == FREE.token:
            return current
        if current.tag != found.tag:
            raise LockHeldError(current.lease)
    return found


def _swapped(lock: LockObject, mine: Lease, tag: str) -> str | None:
    """Replace the object; if an earlier try of ours already did, return that one's tag."""
    new = lock.swap(mine, tag)
    if new is not None:
        return new
    found = lock.read()
    return found.tag if found is not None and found.lease.token == mine.token else None


class LeaseRenewal:
    """Renews one lease. Not thread-safe."""

    def __init__(self, lock: LockObject, mine: Lease, tag: str) -> None:
        self._lock, self._mine, self._tag = lock, mine, tag
        self.is_lost = False
        """Whether another job has replaced the object."""

    def renew(self) -> None:
        """Renew the lease; do nothing once it is lost.

        Raises:
            OSError: the store does not answer; the next renewal may still be in time.
        """
        if self.is_lost:
            return
        self._mine = replace(self._mine, renewals=self._mine.renewals + 1)
        tag = _swapped(self._lock, self._mine, self._tag)
        if tag is None:
            self.is_lost = True
        else:
            self._tag = tag

    def release(self) -> None:
        """Release the lock, unless another job has it.

        Raises:
            OSError: the store does not answer; the lease then expires.
        """
        if not self.is_lost:
            self.is_lost = True
            self._lock.swap(FREE, self._tag)
