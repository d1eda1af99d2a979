"""Whether too many published bytes wait to be durable (maxMessagePublishBufferSizeInMB)."""

from __future__ import annotations

from collections.abc import Callable

from headgate.ledger import CommitLog


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
        self._was_full = self._log.unstored_bytes > limit_bytes
        return self._was_full
