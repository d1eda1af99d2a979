"""Whether too many published bytes wait to be durable (maxMessagePublishBufferSizeInMB)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from headgate.base.units import KIB, MIB
from headgate.ledger import CommitLog

SMALL_SEND_BYTES: Final = 64 * KIB
"""SENDs up to this size are taken up to :data:`FAR_PARTS` of the limit: a few large ones of one
client must not keep the small ones of others out."""

FAR_PARTS: Final = 2
"""At so many times the limit, and a mebibyte, no SEND is taken."""

RECORD_MEMORY_BYTES: Final = 400
"""What a staged entry takes in memory beside its bytes, which may be 48 in the log."""


class PublishBuffer:
    """The bytes of one log that are staged or in flight, and their limit.

    Once full, it stays full until half of the limit is free, as in Pulsar. Otherwise each commit
    would let every paused connection read a few bytes.
    """

    def __init__(self, log: CommitLog, limit_bytes: Callable[[], int]) -> None:
        """``limit_bytes`` returns the present limit, which is a dynamic setting."""
        self._log = log
        self._limit_bytes = limit_bytes
        self._was_full = False

    @property
    def is_full(self) -> bool:
        """Whether connections with unanswered SENDs pause reading."""
        limit_bytes = self._limit_bytes()
        if self._was_full:
            limit_bytes //= 2
        self._was_full = self._held_bytes > limit_bytes
        return self._was_full

    @property
    def _held_bytes(self) -> int:
        """What is staged or in flight or, if it is small entries, the memory of what is staged."""
        log = self._log
        return max(log.unstored_bytes, RECORD_MEMORY_BYTES * log.staged_records)

    def holds(self, send_bytes: int) -> bool:
        """Whether a SEND of so many bytes is not carried out now, although its connection has no
        unanswered ones. Else each connection that comes, sends and leaves would add one."""
        if not self.is_full:
            return False
        far_bytes = FAR_PARTS * self._limit_bytes() + MIB
        return send_bytes > SMALL_SEND_BYTES or self._held_bytes > far_bytes
