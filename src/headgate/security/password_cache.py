"""Passwords that were right a moment ago, so that many connections of a client cost one check.

A password is kept as a keyed digest, whose key exists in memory only.
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b
from typing import Final

from headgate.security.provider import Principal

FRESH_S: Final = 60.0
"""For so long a right password is not checked again."""

ENTRIES_MAX: Final = 10_000

_DIGEST_BYTES: Final = 32


class PasswordCache:
    """The last right passwords, at most :data:`ENTRIES_MAX`."""

    def __init__(self, key: bytes, entries_max: int = ENTRIES_MAX) -> None:
        """``key`` is random, 16 to 64 bytes."""
        self._key = key
        self._entries_max = entries_max
        self._entries: OrderedDict[bytes, tuple[Principal, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def digest(self, credentials: bytes) -> bytes:
        """What stands for ``credentials``."""
        return blake2b(credentials, key=self._key, digest_size=_DIGEST_BYTES).digest()

    def fresh(self, digest: bytes, now_s: float) -> Principal | None:
        """Who presents credentials that were right within :data:`FRESH_S`; None if they were not.
        A clock that was set back makes no entry fresh."""
        found = self._entries.get(digest)
        if found is None or not 0 <= now_s - found[1] < FRESH_S:
            return None
        self._entries.move_to_end(digest)
        return found[0]

    def last_known(self, digest: bytes) -> Principal | None:
        """Who presented credentials that were right at any time; for when none can be checked."""
        found = self._entries.get(digest)
        return None if found is None else found[0]

    def was_right(self, digest: bytes, principal: Principal, now_s: float) -> None:
        """Credentials were checked and are right."""
        self._entries[digest] = principal, now_s
        self._entries.move_to_end(digest)
        if len(self._entries) > self._entries_max:
            self._entries.popitem(last=False)

    def was_wrong(self, digest: bytes) -> None:
        """Credentials were checked and are not right, or no longer."""
        self._entries.pop(digest, None)
