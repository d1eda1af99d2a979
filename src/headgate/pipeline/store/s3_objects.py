"""The S3 requests that pyarrow's file system lacks: conditional puts, and plain deletion.

Loaded only for a folder in S3; needs ``headgate[s3]``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import S3Store

from headgate.pipeline.failures import joined_causes
from headgate.pipeline.location import bucket_and_prefix
from headgate.pipeline.store.lease import LEASES, LOCK, Lease, LockState
from headgate.pipeline.store.table_store import CONNECT_TIMEOUT_S, s3_access

_TIMEOUT_S: Final = 10
_ATTEMPTS_MAX: Final = 2
"""Short bounds: objects are small, and a holder must learn in time that it cannot renew."""


def _store(root: str) -> Any:
    bucket, prefix = bucket_and_prefix(root)
    access = s3_access(os.environ)
    location: dict[str, Any] = {}
    if access.endpoint is not None:
        location["endpoint"] = access.endpoint
    if access.region is not None:
        location["region"] = access.region
    return S3Store(
        bucket,
        prefix=prefix or None,
        client_options={
            "allow_http": access.allows_http,
            "connect_timeout": f"{CONNECT_TIMEOUT_S}s",
            "timeout": f"{_TIMEOUT_S}s",
        },
        retry_config={"max_retries": _ATTEMPTS_MAX},
        **location,
    )


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Raise the library's long errors as :class:`OSError` of one line."""
    try:
        yield
    except (BaseError, FileNotFoundError) as error:
        raise OSError(joined_causes(str(error)).partition("\n")[0]) from None


def delete(root: str, paths: Sequence[str]) -> None:
    """Delete objects, by their paths below the root; absent ones are ignored.

    Raises:
        OSError: S3 refused.
    """
    with _plain_errors():
        obstore.delete(_store(root), list(paths))


def lock_object(root: str) -> StoredLock:
    """The object ``.lock`` of a folder in S3, the lock of earlier releases.

    Raises:
        OSError: a part of the key is missing.
    """
    with _plain_errors():
        return StoredLock(_store(root), LOCK)


def lease_object(root: str, name: str) -> StoredLock:
    """The object of one lease of a folder in S3.

    Raises:
        OSError: a part of the key is missing.
    """
    with _plain_errors():
        return StoredLock(_store(root), f"{LEASES}/{name}")


class StoredLock:
    """One object of a store, as :mod:`headgate.pipeline.store.lease` needs it.

    Every method raises :class:`OSError` where the store does not answer or refuses.
    """

    def __init__(self, store: Any, key: str) -> None:
        """``store`` is one of obstore's."""
        self._store, self._key = store, key

    def read(self) -> LockState | None:
        """The lock object; None: it does not exist."""
        with _plain_errors():
            try:
                response = obstore.get(self._store, self._key)
            except FileNotFoundError:
                return None
            return LockState(Lease.from_bytes(bytes(response.bytes())), str(response.meta["e_tag"]))

    def create(self, lease: Lease) -> str | None:
        """Create it; returns its tag, or None if it exists."""
        return self._put(lease, "create")

    def swap(self, lease: Lease, tag: str) -> str | None:
        """Replace it if it has this tag; returns the new tag, or None if it has another."""
        return self._put(lease, {"e_tag": tag})

    def _put(self, lease: Lease, mode: Any) -> str | None:
        with _plain_errors():
            try:
                response = obstore.put(self._store, self._key, lease.to_bytes(), mode=mode)
            except (AlreadyExistsError, PreconditionError):
                return None
            return str(response["e_tag"])
