"""What all topics of one owner, such as a tenant, store.

The log counts: an entry when it is staged, and less when it is trimmed, when its batch fails and
when its topic is deleted. A topic counts for itself until :meth:`StoredTotal.take_over`.
"""

from __future__ import annotations

from typing import Final

STORED_BYTES_MAX: Final = (1 << 63) - 1
"""Stands for no limit."""


class StoredTotal:
    """The bytes of one owner. :attr:`bytes` and :attr:`body_end` are plain attributes, because each
    message reads them."""

    __slots__ = ("__weakref__", "body_end", "bytes", "entry_head_bytes", "owner")

    def __init__(self, entry_head_bytes: int = 0, owner: str = "") -> None:
        self.entry_head_bytes: Final = entry_head_bytes
        """What each entry takes beside its body."""
        self.owner: Final = owner
        """Its name; empty for a topic that counts for itself."""
        self.bytes = 0
        """Bytes of all retained and staged entries, with their heads."""
        self.body_end = STORED_BYTES_MAX
        """An entry has room while ``bytes`` and its body are no more than this together."""

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit."""
        return self.body_end < STORED_BYTES_MAX

    @property
    def bytes_max(self) -> int:
        """The most that may be stored; :data:`STORED_BYTES_MAX` without a limit."""
        return self.body_end + self.entry_head_bytes if self.is_limited else STORED_BYTES_MAX

    def set_max(self, bytes_max: int) -> None:
        """Allow so many bytes from now on. What is stored beyond them stays."""
        is_limited = bytes_max < STORED_BYTES_MAX
        self.body_end = bytes_max - self.entry_head_bytes if is_limited else STORED_BYTES_MAX

    def take_over(self, own: StoredTotal) -> None:
        """Count what a topic has counted for itself so far."""
        self.bytes += own.bytes
