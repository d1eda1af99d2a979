"""The lock of a folder in S3: a thread renews the lease of :mod:`lease`."""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

from headgate.base.clock import SystemClock
from headgate.base.errors import InputError
from headgate.base.units import NS_PER_S
from headgate.pipeline.store.lease import (
    LEASE_S,
    RENEW_S,
    Lease,
    LeaseRenewal,
    LockHeldError,
    LockObject,
    NoConditionalPutError,
    take,
)
from headgate.pipeline.store.lock_tokens import with_lock_token
from headgate.pipeline.store.table_store import os_error_text, s3_objects, store_of


@contextmanager
def s3_folder_lock(
    root: str, check_names: Callable[[list[str]], None], say: Callable[[str], None]
) -> Iterator[None]:
    """Hold the lock of a folder in S3. ``check_names`` gets the names in it and may refuse them.

    Raises:
        InputError: another job holds it, or it cannot be used.
    """
    try:
        check_names(store_of(root).names(or_none=True))
        lock = s3_objects().lock_object(root)
    except OSError as error:
        raise InputError(f"folder {root} cannot be used: {os_error_text(error)}") from error
    with s3_lock(root, lock, say):
        yield


@contextmanager
def s3_lock(
    root: str,
    lock: LockObject,
    say: Callable[[str], None] = lambda _: None,
    *,
    monotonic: Callable[[], float] = time.monotonic,
    wait: Callable[[float], None] = time.sleep,
) -> Iterator[None]:
    """Hold the lock of a folder in S3: one writer at a time. ``say`` gets a line about a wait.

    Raises:
        InputError: another job holds it, or it cannot be used for that.
    """

    def on_wait(holder: Lease) -> None:
        say(
            f"Folder {root} is held by {holder}. Waiting to see whether that job is alive: "
            f"{RENEW_S:.0f} s if it is, {LEASE_S:.0f} s if not."
        )

    now = datetime.fromtimestamp(SystemClock.wall_ns() // NS_PER_S, UTC)
    since = now.isoformat().replace("+00:00", "Z")
    mine = Lease(secrets.token_hex(16), socket.gethostname(), os.getpid(), since)
    try:
        tag = take(lock, mine, monotonic=monotonic, wait=wait, on_wait=on_wait)
    except LockHeldError as error:
        raise InputError(
            f"folder {root} is being written by another job ({error.holder}); one at a time is "
            "allowed"
        ) from error
    except NoConditionalPutError as error:
        raise InputError(
            f"folder {root} cannot be used: its S3 does not know conditional writes (If-None-Match "
            "and If-Match of PutObject), and without them two jobs could write at once"
        ) from error
    except OSError as error:
        raise InputError(f"folder {root} cannot be used: {os_error_text(error)}") from error
    with _renewed(LeaseRenewal(lock, mine, tag)), with_lock_token(root, mine.token):
        yield


@contextmanager
def _renewed(lease: LeaseRenewal) -> Iterator[None]:
    """Renew the lease in a thread while the body runs, and release it afterwards."""
    over = threading.Event()

    def renew() -> None:
        while not over.wait(RENEW_S):
            # If the lease expires, the next commit notices.
            with suppress(OSError):
                lease.renew()

    thread = threading.Thread(target=renew, name="lock of the tables", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        with suppress(OSError):
            lease.release()
