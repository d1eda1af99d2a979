"""What all topics of one owner, such as a tenant, store.

The log counts: an entry when it is staged, and less when it is trimmed, when its batch fails and
when its topic is deleted. A topic counts for itself until :meth:`StoredTotal.take_over`.
"""

from __future__ import annotations

from typing import Final

STORED_BYTES_MAX: Final = (1 << 63) - 1
"""Stands for no limit."""

RUN_BYTES: Final = 128
"""What a run takes in memory, about: its row in the index, and its place in its segment and in its
topic. Measured: 115 to 126."""


class StoredTotal:
    """The bytes of one owner. :attr:`bytes` and :attr:`body_end` are plain attributes, because each
    message reads them."""

    __slots__ = (
        "__weakref__", "_bytes_max", "body_end", "bytes", "entry_head_bytes", "is_held", "owner",
        "runs",
    )  # fmt: skip

    def __init__(self, entry_head_bytes: int = 0, owner: str = "") -> None:
        self.entry_head_bytes: Final = entry_head_bytes
        """What each entry takes beside its body."""
        self.owner: Final = owner
        """Its name; empty for a topic that counts for itself."""
        self.bytes = 0
        """Bytes of all retained and staged entries, with their heads."""
        self.runs = 0
        """Runs of its topics, each of one topic in one segment: :data:`RUN_BYTES` of memory for
        each, as long as something of it is retained."""
        self.is_held = False
        """Whether it may store nothing more, whatever the limit is."""
        self._bytes_max = STORED_BYTES_MAX
        self.body_end = STORED_BYTES_MAX
        """An entry has room while ``bytes`` and its body are no more than this together."""

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit."""
        return self._bytes_max < STORED_BYTES_MAX

    @property
    def bytes_max(self) -> int:
        """The most that may be stored; :data:`STORED_BYTES_MAX` without a limit."""
        return self._bytes_max

    def set_max(self, bytes_max: int) -> None:
        """Allow so many bytes from now on. What is stored beyond them stays."""
        self._bytes_max = bytes_max
        self._find_end()

    def hold(self, *, is_held: bool) -> None:
        """Let it store nothing more, or as much as the limit allows again."""
        self.is_held = is_held
        self._find_end()

    def _find_end(self) -> None:
        end = self._bytes_max - self.entry_head_bytes if self.is_limited else STORED_BYTES_MAX
        self.body_end = -1 if self.is_held else end

    def take_over(self, own: StoredTotal) -> None:
        """Count what a topic has counted for itself so far."""
        self.bytes += own.bytes
        self.runs += own.runs
