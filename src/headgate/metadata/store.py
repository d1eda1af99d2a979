"""The protocol of a metadata store: small rows, changed in transactions.

The store is blocking and knows nothing of what the rows mean. The broker calls it from one thread
of its own; a test calls it directly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Write:
    """One row's new value; ``None`` removes the row."""

    kind: str
    key: str
    value: bytes | None


class MetadataStore(Protocol):
    """Rows by (kind, key), changed in transactions."""

    def load(self) -> dict[tuple[str, str], bytes]:
        """All rows, as of the last transaction that was committed.

        Raises:
            CorruptionError: the file is not a metadata store, or of an unknown format.
            StorageError: it cannot be read.
        """

    def commit(self, writes: Sequence[Write]) -> None:
        """Make all ``writes`` durable in one transaction, in order (the last one of a key wins).

        When it returns, they survive a power cut. When it raises a retryable error, none of them
        is visible to a later :meth:`load`. After any other error, and after a crash in the middle
        of the call, all or none are: only a new start on the file knows.

        Raises:
            StorageError: the disk refused; ``retryable`` says whether a later call can succeed.
        """

    def close(self) -> None:
        """Let go of the file. Safe to call twice."""
