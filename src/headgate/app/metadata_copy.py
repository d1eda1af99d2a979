"""The copy of the metadata in the directory of the main log: ``DIR/log/metadata.copy``.

The log refers to topics by numbers. With the copy beside it, the log's directory alone tells the
names, policies and schemas: ``headgate ledger repair`` rebuilds lost or damaged metadata from it.

The broker adds changes to the copy within a second, so the copy is never ahead of the metadata. A
start compares the two, and the first save after it writes a copy that differs anew. Until metadata
and log are known to belong together nothing is written: a refused start leaves the copy as it is.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from headgate.base.errors import CorruptionError, StorageError
from headgate.base.units import MIB
from headgate.fs import File, Fs
from headgate.ledger.format.directory import (
    METADATA_COPY_NAME,
    PIECE_BYTES,
    GrowingFile,
    size_to_read,
)
from headgate.metadata.copy_format import CopiedRows, CopyEncoder, decode_copy, encode_change
from headgate.metadata.store import MetadataStore, Write

logger = logging.getLogger("headgate.app")

_UNSAVED_BYTES_MAX: Final = 4 * MIB
UNSAVED_PART: Final = 2
"""Changes kept in memory until they are saved, or while the disk refuses them: so many bytes, or
the file's first rows divided by this. Beyond that the file is written anew, which a few large rows
that change all the time must not cause again and again."""
_GROWTH_BYTES: Final = MIB
"""The file is written anew when its changes take this and more than its first rows."""
_PIECE_ROWS: Final = 100
_PIECE_CHANGES: Final = 20
"""What a step reads or adds: some tenths of a millisecond."""
_FREE_BYTES_MIN: Final = 16 * MIB
"""Writing it anew leaves this much room to the messages."""


class CopiedStore:
    """A store that also keeps a copy of its rows. One thread at a time, like the store."""

    def __init__(self, store: MetadataStore, fs: Fs, directory: str) -> None:
        """``directory`` is that of the log; it may be missing until the first :meth:`save`."""
        self._store = store
        self._fs = fs
        self._directory = directory
        self._path = f"{directory}/{METADATA_COPY_NAME}"
        self._file: File | None = None
        """Open for adding changes; None until the first change."""
        self._end = self._snapshot_bytes = self._crc = 0
        self._unsaved: list[Sequence[Write]] = []
        self._unsaved_bytes = 0
        self._is_anew = True
        """The next save writes the whole file."""
        self._is_reading = False
        """A save reads the rows for it. What is committed meanwhile is added behind them."""
        self._growing: GrowingFile | None = None
        """The whole file that a save writes."""
        self._size_min_bytes = 0
        """What an attempt at it found that it takes, or more: on a full disk the next ones do not
        write most of it each time."""
        self._is_synced = True
        self._saves_count = 0

    @property
    def is_behind(self) -> bool:
        """Whether the copy lacks something. Any thread."""
        return self._is_anew or bool(self._unsaved) or not self._is_synced

    # The protocol of a store ----------------------------------------------------------------

    def load(self) -> dict[tuple[str, str], bytes]:
        """All rows; raises as the store. Compares the copy with them."""
        rows = self._store.load()
        found = self._read(rows)
        if found is not None and not found.rest_bytes and found.rows == rows:
            self._end, self._crc = found.end, found.crc
            self._snapshot_bytes = found.snapshot_bytes
            self._is_anew = False
        return rows

    def commit(self, writes: Sequence[Write]) -> None:
        """Commit; raises as the store, and then the copy does not get ``writes`` either."""
        try:
            self._store.commit(writes)
        except StorageError as error:
            if not error.retryable:
                self._begin_anew()  # only the store knows whether it has them
            raise
        if self._is_anew and not self._is_reading:
            return
        self._unsaved.append(writes)
        self._unsaved_bytes += _size_bytes(writes)
        if self._unsaved_bytes > max(_UNSAVED_BYTES_MAX, self._snapshot_bytes // UNSAVED_PART):
            self._begin_anew()

    def flush(self) -> None:
        """Flush the store."""
        self._store.flush()

    def rows_in_pieces(self, count: int) -> Iterator[list[tuple[str, str, bytes]]]:
        """As the store."""
        return self._store.rows_in_pieces(count)

    def copy_to(self, path: str) -> None:
        self._store.copy_to(path)

    def close(self) -> None:
        """Close both."""
        self._close_files()
        self._store.close()

    # The copy -------------------------------------------------------------------------------

    def save(self) -> None:
        """Make the copy durable with all that is committed. Blocks.

        Raises as :meth:`save_steps`.
        """
        for _ in self.save_steps():
            pass

    def save_steps(self) -> Iterator[None]:
        """Do the same in steps. Between them the store may be used, and what is committed then is
        saved, too, or left to the next save. A later save ends the steps of an earlier one.

        Raises :class:`StorageError`; a later call tries again.
        """
        if not self.is_behind:
            return
        self._saves_count += 1
        number = self._saves_count
        if self._is_reading or self._end > 2 * self._snapshot_bytes + _GROWTH_BYTES:
            self._begin_anew()
        steps = self._write_anew() if self._is_anew else self._add()
        while number == self._saves_count:
            try:
                next(steps)
            except StopIteration:
                return
            except OSError as error:
                self._begin_anew()
                text = f"writing {self._path} failed: {error}"
                raise StorageError(text, retryable=True) from error
            yield

    def _begin_anew(self) -> None:
        """Have the next save write the whole file."""
        self._is_anew = self._is_synced = True
        self._is_reading = False
        self._unsaved.clear()
        self._unsaved_bytes = 0
        self._close_files()

    def _close_files(self) -> None:
        if self._growing is not None:
            self._growing.discard()
            self._growing = None
        if self._file is not None:
            self._file.close()
            self._file = None

    def _add(self) -> Iterator[None]:
        """Add what is unsaved, with one sync at the end."""
        while self._unsaved:
            if self._file is None:
                self._file = self._fs.open(self._path, writable=True)
            parts, crc = [], self._crc
            for writes in self._taken_changes():
                part, crc = encode_change(writes, crc)
                parts.append(part)
            self._is_synced = False
            self._file.write_at(self._end, parts)
            self._end += sum(map(len, parts))
            self._crc = crc
            yield
        if self._file is not None and not self._is_synced:
            self._file.sync_data()
        self._is_synced = True

    def _taken_changes(self) -> list[Sequence[Write]]:
        """What a step adds. If that fails, the file is written anew."""
        some = self._unsaved[:_PIECE_CHANGES]
        del self._unsaved[: len(some)]
        self._unsaved_bytes -= sum(map(_size_bytes, some))
        return some

    def _write_anew(self) -> Iterator[None]:
        self._is_reading = True
        size_min_bytes = self._size_min_bytes
        self._size_min_bytes -= size_min_bytes // 1024  # rows may have been removed since
        self._check_space(size_min_bytes)
        encoder = CopyEncoder()
        self._growing = GrowingFile(self._fs, self._directory, METADATA_COPY_NAME)
        size_bytes = 0
        for rows in self._store.rows_in_pieces(_PIECE_ROWS):
            encoder.add(rows)
            if encoder.held_bytes >= PIECE_BYTES:
                size_bytes = self._grow(self._growing, encoder, size_bytes)
            yield
            if not self._is_reading:  # too much was committed meanwhile, or nobody knows what
                return
        encoder.end()
        snapshot_bytes = size_bytes = self._grow(self._growing, encoder, size_bytes)
        # Rows that were read at different times are a moment of the store only with these changes.
        # The last of them and the name come in one step: a change may come in each.
        while self._unsaved:
            for writes in self._taken_changes():
                encoder.add_change(writes)
            size_bytes = self._grow(self._growing, encoder, size_bytes)
            if self._unsaved:
                yield
                if not self._is_reading:
                    return
        self._growing.finish()
        self._fs.sync_directory(self._directory)
        self._growing = None
        self._snapshot_bytes, self._end = snapshot_bytes, size_bytes
        self._size_min_bytes = 0
        self._crc = encoder.crc
        self._is_anew = self._is_reading = False

    def _grow(self, file: GrowingFile, encoder: CopyEncoder, size_bytes: int) -> int:
        """Write what an encoder holds behind ``size_bytes``; returns the size then."""
        more_bytes = encoder.held_bytes
        self._size_min_bytes = max(self._size_min_bytes, size_bytes + more_bytes)
        self._check_space(more_bytes)
        file.append(encoder.take())
        return size_bytes + more_bytes

    def _check_space(self, more_bytes: int) -> None:
        free_bytes = self._fs.space(self._directory).free_bytes
        if free_bytes < more_bytes + _FREE_BYTES_MIN:
            self._begin_anew()
            text = f"writing {self._path} takes {more_bytes:,} bytes, which messages may need"
            raise StorageError(f"{text}: {free_bytes:,} are free", retryable=True)

    def _read(self, rows: Mapping[tuple[str, str], bytes]) -> CopiedRows | None:
        """The copy of before this start; None if it is missing or unusable."""
        try:
            return read_copy(self._fs, self._directory, rows)
        except CorruptionError as error:
            logger.warning("%s; it is written anew from the metadata, which are sound", error)
        except OSError as error:
            logger.warning("reading %s failed: %s; it is written anew", self._path, error)
        return None


def _size_bytes(writes: Sequence[Write]) -> int:
    return sum(len(write.key) + len(write.value or b"") for write in writes)


def read_copy(
    fs: Fs, directory: str, known: Mapping[tuple[str, str], bytes] | None = None
) -> CopiedRows | None:
    """The copy in a log's directory; None without one. Values that ``known`` has, too, are not in
    memory a second time.

    Raises :class:`CorruptionError` if it is unusable, and :class:`OSError`.
    """
    path = f"{directory}/{METADATA_COPY_NAME}"
    try:
        file = fs.open(path)
    except FileNotFoundError:
        return None
    try:
        return decode_copy(file.read_at, size_to_read(file, path), path, known or {})
    finally:
        file.close()
