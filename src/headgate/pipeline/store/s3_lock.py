"""Leases in S3: one thread renews all that a job holds, as :mod:`lease` says."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

from headgate.base.errors import InputError
from headgate.pipeline.store.lease import (
    FREE,
    LEASE_S,
    RENEW_S,
    Lease,
    LeaseRenewal,
    LockHeldError,
    LockObject,
    NoConditionalPutError,
    TableHeldError,
    Watched,
    my_lease,
    take,
)
from headgate.pipeline.store.lock_tokens import with_lease_tokens
from headgate.pipeline.store.table_store import os_error_text, s3_objects, store_of


@contextmanager
def s3_table_leases(
    root: str,
    names: Iterable[str],
    check_names: Callable[[list[str]], None],
    say: Callable[[str], None],
    is_patient: bool = True,
) -> Iterator[None]:
    """Hold leases of a folder in S3. ``check_names`` gets the names in it and may refuse them.

    Without ``is_patient`` a held lease is refused at once, also that of a dead job.

    Raises:
        TableHeldError: another job holds one.
        InputError: the folder cannot be used.
    """
    try:
        check_names(store_of(root).names(or_none=True))
        old = s3_objects().lock_object(root).read()
        locks = {name: s3_objects().lease_object(root, name) for name in names}
    except OSError as error:
        raise InputError(f"folder {root} cannot be used: {os_error_text(error)}") from error
    if old is not None and old.lease.token != FREE.token:
        raise InputError(
            f"folder {root} has the lock of an earlier release ({old.lease}): stop that job; if it "
            "is dead, delete the object .lock"
        )
    if not is_patient:
        for name, lock in locks.items():
            with _plain_refusals(root, name):
                state = lock.read()
            if state is not None and state.lease.token != FREE.token:
                raise TableHeldError(root, name, state.lease)
    with s3_leases(root, locks, say):
        yield


@contextmanager
def s3_leases(
    root: str,
    locks: Mapping[str, LockObject],
    say: Callable[[str], None] = lambda _: None,
    *,
    monotonic: Callable[[], float] = time.monotonic,
    wait: Callable[[float], None] = time.sleep,
) -> Iterator[None]:
    """Hold several leases, by their names. ``say`` gets a line about a wait.

    They are taken in the order of their names, and a job that finds one held gives the others back:
    no two jobs wait for each other. All objects are watched from the beginning, so the leases of
    one dead job expire together.

    Raises:
        TableHeldError: another job holds one.
        InputError: the store cannot hold leases.
    """
    mine, held = my_lease(), _HeldLeases()
    waits: list[str] = []

    def on_wait(name: str, holder: Lease) -> None:
        if not waits:
            say(
                f"Table {name} in {root} is held by {holder}. Waiting to see whether that job is "
                f"alive: {RENEW_S:.0f} s if it is, {LEASE_S:.0f} s if not."
            )
        waits.append(name)

    with held.renewed(), with_lease_tokens(root, dict.fromkeys(locks, mine.token)):
        try:
            watched = {name: Watched(lock.read(), monotonic()) for name, lock in locks.items()}
        except OSError as error:
            raise InputError(f"folder {root} cannot be used: {os_error_text(error)}") from error
        for name, lock in sorted(locks.items()):
            with _plain_refusals(root, name):
                tag = take(
                    lock,
                    mine,
                    monotonic=monotonic,
                    wait=wait,
                    on_wait=lambda holder, name=name: on_wait(name, holder),  # type: ignore[misc]
                    watched=watched[name],
                )
            held.add(LeaseRenewal(lock, mine, tag))
        yield


@contextmanager
def _plain_refusals(root: str, name: str) -> Iterator[None]:
    """Turn a refusal of one lease into one sentence."""
    try:
        yield
    except LockHeldError as error:
        raise TableHeldError(root, name, error.holder) from error
    except NoConditionalPutError as error:
        raise InputError(
            f"folder {root} cannot be used: its S3 does not know conditional writes (If-None-Match "
            "and If-Match of PutObject), and without them two jobs could write at once"
        ) from error
    except OSError as error:
        raise InputError(f"folder {root} cannot be used: {os_error_text(error)}") from error


class _HeldLeases:
    """The leases of one job. A thread renews them, also those taken while it waits for others."""

    def __init__(self) -> None:
        self._leases: list[LeaseRenewal] = []
        self._lock = threading.Lock()

    def add(self, lease: LeaseRenewal) -> None:
        """Renew this one, too, from now on."""
        with self._lock:
            self._leases.append(lease)

    @contextmanager
    def renewed(self) -> Iterator[None]:
        """Renew the leases while the body runs, and release them afterwards."""
        over = threading.Event()

        def renew() -> None:
            while not over.wait(RENEW_S):
                for lease in self._now():
                    # If the lease expires, the next commit notices.
                    with suppress(OSError):
                        lease.renew()

        thread = threading.Thread(target=renew, name="leases of the tables", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            for lease in self._now():
                with suppress(OSError):
                    lease.release()

    def _now(self) -> list[LeaseRenewal]:
        with self._lock:
            return list(self._leases)
