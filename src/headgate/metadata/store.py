"""The protocol of a metadata store: small rows, changed in transactions.

A store blocks, and knows nothing of the meaning of rows. The broker calls it from a separate
thread; tests call it directly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from headgate.base.units import MIB

ROWS_BYTES: Final = MIB
"""A list of rows is in memory at once: its values take so much, and those of one row more. A
hundred rows of grants may take 200 MB."""

_R = TypeVar("_R", bound=tuple[object, ...])


def first_rows(rows: Iterable[_R]) -> list[_R]:
    """The first rows, each with its value in the third place, of which one list is made."""
    found: list[_R] = []
    size_bytes = 0
    for row in rows:
        found.append(row)
        size_bytes += len(row[2]) if isinstance(row[2], bytes) else 0
        if size_bytes >= ROWS_BYTES:
            break
    return found


@dataclass(frozen=True, slots=True)
class Write:
    """One row's new value; ``None`` removes the row."""

    kind: str
    key: str
    value: bytes | None


class MetadataStore(Protocol):
    """Rows by (kind, key), changed in transactions."""

    def load(self) -> dict[tuple[str, str], bytes]:
        """All rows, as of the last committed transaction.

        Raises:
            CorruptionError: the file is not a metadata store, or has an unknown format.
            StorageError: the file is unreadable.
        """

    def rows_in_pieces(self, count: int) -> Iterator[list[tuple[str, str, bytes]]]:
        """All rows in lists of ``count`` (kind, key, value), or fewer with :data:`ROWS_BYTES` of
        values, each row at most once. Between two lists others may commit: of a row that they
        change it is open which value comes, if any.

        Raises as :meth:`load`.
        """

    def commit(self, writes: Sequence[Write]) -> None:
        """Make all ``writes`` durable in one transaction, in order (the last one of a key wins).

        When it returns, they survive a power cut. If it raises a retryable error, a later
        :meth:`load` has none of them. After any other error, and after a crash during the call, the
        next start finds all or none of them.

        Raises:
            StorageError: the disk refused; ``retryable`` says whether a later call can succeed.
        """

    def flush(self) -> None:
        """Move what is committed from the write-ahead log into the file, as far as the disk allows.

        It then survives damage and loss of the write-ahead log.
        """

    def copy_to(self, path: str) -> None:
        """Write all rows, as of the last transaction, into the new SQLite file ``path``.

        Raises:
            StorageError: the disk refused; the store is unchanged.
        """

    def close(self) -> None:
        """Close the file. A second call does nothing."""
