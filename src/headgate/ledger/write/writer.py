"""Writes sealed batches and makes them durable, on the commit thread, and does a log's upkeep.

Two threads may call it. The commit thread writes batches, and enlarges, cuts and discards prepared
segments. The thread of the upkeep creates segments before they are needed, seals and deletes them,
punches holes and writes checkpoints. A segment's file has one writer at a time: the thread that
creates it until it is prepared, then the commit thread until no batch can go to it any more, then
the thread of the upkeep.

The writer knows nothing of the meaning of records. A segment file is created and preallocated
before the first byte of a batch goes to it; maintenance normally does that long before. So a full
disk shows while the log is still whole, and acknowledgements go on in the segment prepared in
advance while publishing waits.
"""

from __future__ import annotations

import contextlib
import errno
import threading
from typing import Final

from headgate.base.errors import StorageError, invariant
from headgate.base.units import MIB
from headgate.fs.api import NO_FILES, File, Fs
from headgate.ledger.errors import LogFailedError, LogFullError
from headgate.ledger.format.flush_position import FlushPosition, FlushPositionFile
from headgate.ledger.format.records import (
    BATCH_RECORD_BYTES,
    SEGMENT_HEADER_BYTES,
    checkpoint_names,
    segment_header,
    segment_name,
)
from headgate.ledger.index.checkpoint import CheckpointBuilder
from headgate.ledger.write.batch import Batch
from headgate.ledger.write.file_removal import FileRemoval
from headgate.ledger.write.old_files import OldFiles

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""No room on the disk, in the user's quota, or under the process's limit of file sizes. An operator
can change each while the broker runs."""
_TRY_AGAIN = NO_FILES | {errno.ENOMEM}


SMALL_PART: Final = 64
"""If the disk has no room for a segment, a small one has this fraction of its size: enough for many
acknowledgements, which free room."""

SMALL_TRIMS_PART: Final = 4
"""This fraction of a small segment is kept for trims, which free room: other records may take all
that the disk has left."""


class LogWriter:
    """The open segment files of a log, and the only code that writes to them."""

    def __init__(
        self,
        fs: Fs,
        directory: str,
        segment_bytes: int,
        stamp: int,
        *,
        removed_piece_bytes: int = MIB,
    ) -> None:
        """``removed_piece_bytes`` are freed in one step when a file is removed."""
        self._fs = fs
        self._directory = directory
        self._segment_bytes = segment_bytes
        self.stamp = stamp
        """Secret random bits of this start, in each segment and batch that it writes."""
        self.flush_position = FlushPositionFile(fs, directory)
        self.old_files = OldFiles(fs, directory, segment_bytes)
        self.removal = FileRemoval(fs, directory, segment_bytes, removed_piece_bytes)
        self._files: dict[int, File] = {}
        self._small: set[int] = set()
        """Open segments that are smaller than ``segment_bytes``."""
        self._reused: set[int] = set()
        """Open segments whose file was another segment before."""
        self._written: dict[int, int] = {}
        """One past the last written byte, by open segment."""
        self._refused: list[tuple[int, int]] = []
        """Segment and start of each chunk of a refused batch that may be in the files."""
        self._failure: LogFailedError | None = None
        self._make_lock = threading.Lock()
        """For the creation of segments: the commit thread creates one that is not prepared yet,
        and a second creation would empty the file that the first one has made."""
        self._leftovers: set[int] = set()
        """Segments whose file this writer could not remove."""

    def has(self, segment: int) -> bool:
        """Whether a segment is prepared: it takes records without new room on the disk."""
        return segment in self._files

    def is_whole(self, segment: int) -> bool:
        """Whether a segment is prepared at its full size."""
        return segment in self._files and segment not in self._small

    def is_small(self, segment: int) -> bool:
        """Whether a segment is prepared, but smaller than its full size."""
        return segment in self._small

    def refused_segments(self) -> list[int]:
        """The segments with chunks that may have to be wiped before anything else is written."""
        return [segment for segment, _ in list(self._refused)]

    def write_batch(self, batch: Batch) -> None:
        """Write a batch and make it durable.

        Raises :class:`StorageError`: retryable if the disk is full (:class:`LogFullError`), final
        (:class:`LogFailedError`) if it failed. In both cases the batch counts as not written. One
        that was refused is wiped before this returns, because its clients then give up what it had:
        after a power cut a subscription would be back that nobody has.
        """
        self.wipe_refused()
        for chunk in batch.chunks:
            if chunk.segment not in self._files:
                # Not prepare: if the upkeep makes it small meanwhile, it need not be enlarged.
                self._make(chunk.segment, self._segment_bytes)
        last = batch.chunks[-1]
        if last.segment in self._small and not batch.has_only_trims:
            kept_bytes = self._segment_bytes // SMALL_PART // SMALL_TRIMS_PART
            self._allocate(last.segment, last.end + kept_bytes)
        for chunk in batch.chunks:
            file = self._files[chunk.segment]
            self._refused.append((chunk.segment, chunk.start))
            try:
                if chunk.segment in self._reused:
                    file.write_at(chunk.start, [*chunk.parts, self.old_files.filler(chunk.end)])
                else:
                    file.write_at(chunk.start, chunk.parts)
                self._written[chunk.segment] = chunk.end
            except OSError as error:
                refused = self._error_from(error, f"writing {segment_name(chunk.segment)}")
                self._wipe_now()
                raise refused from error
            self._sync(file, chunk.segment)
        self._refused.clear()
        self.flush_position.note(FlushPosition(last.number, last.segment, last.end))

    def _wipe_now(self) -> None:
        """Wipe what was just refused. If the disk refuses that, too, the next write tries again."""
        try:
            self.wipe_refused()
        except StorageError as error:
            if not error.retryable:
                raise

    def wipe_refused(self) -> None:
        """Wipe the heads of a refused batch, before any other write. Commit thread only.

        Its first chunks may be whole and durable, and the next batch need not overwrite them. A
        start would replay them, or take a later head for proof that records before it were lost.
        The last head is wiped first: after a power cut in between, a beginning of the batch is
        left.
        """
        if self._failure is not None:
            raise self._failure
        while self._refused:
            segment, start = self._refused[-1]
            file = self._files[segment]
            try:
                file.write_at(start, [bytes(BATCH_RECORD_BYTES)])
            except OSError as error:
                doing = f"taking back a batch in {segment_name(segment)}"
                raise self._error_from(error, doing) from error
            self._sync(file, segment)
            self._refused.pop()

    def prepare(self, segment: int) -> None:
        """Create and preallocate a segment file. Raises as :meth:`write_batch` does.

        Only the commit thread may enlarge one that is small: batches go to it.
        """
        if segment in self._small:
            self._enlarge(segment)
        else:
            self._make(segment, self._segment_bytes)

    def prepare_small(self, segment: int) -> None:
        """Create a small segment, for acknowledgements; :meth:`prepare` enlarges it later."""
        self._make(segment, self._segment_bytes // SMALL_PART)

    def _enlarge(self, segment: int) -> None:
        if self._failure is not None:
            raise self._failure
        self._allocate(segment, self._segment_bytes)
        self._sync(self._files[segment], segment)
        self._small.discard(segment)

    def _allocate(self, segment: int, size_bytes: int) -> None:
        """Have an open segment so large, unless it is. A sync must follow."""
        file = self._files[segment]
        size = file.size()
        if size >= size_bytes:
            return
        try:
            self._check_space(segment_name(segment), size_bytes - size)
            file.allocate(size_bytes)
        except OSError as error:
            with contextlib.suppress(OSError):
                file.truncate(size)
            raise self._error_from(error, f"enlarging {segment_name(segment)}") from error

    def _make(self, segment: int, size_bytes: int) -> None:
        with self._make_lock:
            if self._failure is not None:
                raise self._failure
            if segment not in self._files:
                self._create(segment, size_bytes)

    def _create(self, segment: int, size_bytes: int) -> None:
        name = segment_name(segment)
        path = f"{self._directory}/{name}"
        file = self._reuse(segment, path) if size_bytes == self._segment_bytes else None
        if file is not None:
            self._enter(segment, file, name)
            self._reused.add(segment)
            return
        try:
            self._check_space(name, size_bytes)
            # Should it exist although it is not open, an error is better than an empty file.
            file = self._fs.create(path, exclusive=segment not in self._leftovers)
            file.allocate(size_bytes)
            file.write_at(0, [segment_header(segment, self.stamp)])
        except OSError as error:
            if file is not None:
                file.close()
                self._leftovers.add(segment)
                with contextlib.suppress(OSError):
                    self._fs.remove(path)
                    self._leftovers.discard(segment)
            raise self._error_from(error, f"making {name}") from error
        self._sync(file, segment)
        if size_bytes < self._segment_bytes:
            self._small.add(segment)
        self._enter(segment, file, name)

    def _reuse(self, segment: int, path: str) -> File | None:
        """A kept file that has become this segment's; None if there is none, or no room for the
        rest of it."""
        if segment not in self._leftovers and self.old_files.count:
            try:
                self._fs.open(path).close()
            except FileNotFoundError:
                pass
            except OSError:
                return None  # it may be there: a new file is only made where there is none
            else:
                exists = FileExistsError(errno.EEXIST, "the file exists", path)
                # A renamed file would replace it.
                raise self._fail(exists, f"making {segment_name(segment)} of an old file")
        try:
            return self.old_files.become(segment, self.stamp)
        except OSError as error:
            if error.errno in _FULL or error.errno in _TRY_AGAIN:
                return None
            raise self._fail(error, f"making {segment_name(segment)} of an old file") from error

    def _enter(self, segment: int, file: File, name: str) -> None:
        """Make the name of a new segment durable. Then it is prepared."""
        try:
            self._fs.sync_directory(self._directory)
        except OSError as error:
            raise self._fail(error, f"syncing the directory for {name}") from error
        self._leftovers.discard(segment)
        self._files[segment] = file

    def _check_space(self, name: str, more_bytes: int) -> None:
        """Raise :class:`LogFullError` if the disk lacks this room. An attempt to reserve it would,
        for a moment, take all room from the metadata, the other log and other programs."""
        free_bytes = self._fs.space(self._directory).free_bytes
        if free_bytes < more_bytes and self.give_back():
            free_bytes = self._fs.space(self._directory).free_bytes
        if free_bytes < more_bytes:
            raise LogFullError(
                f"the disk is full: {name} needs {more_bytes:,} bytes, and {free_bytes:,} are free"
            )

    def seal(self, segment: int, data_end: int, footer: list[bytes]) -> None:
        """Write the footer behind the records, free the rest of the segment, close the file.

        No batch may go to the segment any more, and no chunk in it may have to be wiped.
        """
        if self._failure is not None:
            raise self._failure
        invariant(segment not in self.refused_segments(), "a refused chunk is in the segment")
        file = self._files.get(segment)
        if file is None:
            file = self._fs.open(f"{self._directory}/{segment_name(segment)}", writable=True)
        try:
            file.write_at(data_end, footer)
            # The file may be an old one, and old bytes must not be at its end, even for a moment.
            self._sync(file, segment)
            file.truncate(data_end + sum(map(len, footer)))
        except OSError as error:
            raise self._error_from(error, f"sealing {segment_name(segment)}") from error
        self._sync(file, segment)
        self.flush_position.sync()
        self._files.pop(segment, None)
        self._small.discard(segment)
        self._reused.discard(segment)
        self._written.pop(segment, None)
        file.close()

    def cut(self, segment: int) -> None:
        """Shorten an open segment to a small one: its records and a little room. Commit thread
        only."""
        self.wipe_refused()
        file = self._files.get(segment)
        if file is None or segment in self._small:
            return
        written = self._written.get(segment, SEGMENT_HEADER_BYTES)
        end = min(written + self._segment_bytes // SMALL_PART, file.size())
        try:
            if segment in self._reused:
                self.old_files.clear_end(file, written, end)
                self._sync(file, segment)
            file.truncate(end)
        except OSError as error:
            raise self._error_from(error, f"cutting {segment_name(segment)}") from error
        self._sync(file, segment)
        self._small.add(segment)

    def punch(self, segment: int, ranges: list[tuple[int, int]]) -> bool:
        """Punch holes into a sealed segment; False if the file system cannot.

        Raises :class:`StorageError`, which is never final: no retained record is touched.
        """
        name = segment_name(segment)
        try:
            file = self._fs.open(f"{self._directory}/{name}", writable=True)
            try:
                return all(file.punch(offset, size) for offset, size in ranges)
            finally:
                file.close()
        except OSError as error:
            doing = f"punching holes into {name}"
            raise StorageError(f"{doing} failed: {error}", retryable=True) from error

    def discard(self, segment: int) -> None:
        """Remove a prepared segment without records. Commit thread only."""
        self.wipe_refused()
        file = self._files.pop(segment, None)
        self._small.discard(segment)
        self._reused.discard(segment)
        if file is None:
            return
        file.close()
        self._leftovers.add(segment)
        try:
            self._fs.remove(f"{self._directory}/{segment_name(segment)}")
            self._leftovers.discard(segment)
            self._fs.sync_directory(self._directory)
        except OSError as error:
            raise self._error_from(error, f"removing {segment_name(segment)}") from error

    def delete(self, segment: int) -> None:
        """Keep the file of a sealed segment as an old file, or begin to remove it. Raises as
        :meth:`write_batch` does."""
        is_kept, aside = False, ""
        try:
            with contextlib.suppress(FileNotFoundError):
                is_kept = self.old_files.keep(segment)
                if not is_kept:
                    aside = self.removal.put_aside(segment)
            self._fs.sync_directory(self._directory)
        except OSError as error:
            path = f"{self._directory}/{segment_name(segment)}"
            raise self._error_from(error, f"deleting {path}") from error
        if is_kept:
            self.old_files.add(segment)
        if aside:
            self.removal.add(aside)

    def give_back(self) -> bool:
        """Remove at once what is left of deleted segments; returns whether there was anything."""
        removed, kept = self.removal.finish(), self.old_files.give_back()
        return removed or kept

    def store_checkpoint(self, builder: CheckpointBuilder, *, is_whole: bool) -> None:
        """Write a checkpoint durably, or what was collected of it. Raises as :meth:`write_batch`
        does."""
        try:
            if is_whole:
                builder.write(self._fs, self._directory)
            else:
                builder.store_part(self._fs, self._directory)
        except OSError as error:
            raise self._error_from(
                error, f"writing {checkpoint_names(builder.segment)[0]}"
            ) from error

    def sync(self, segment: int) -> None:
        """Make the present content of a segment file durable."""
        file = self._fs.open(f"{self._directory}/{segment_name(segment)}", writable=True)
        self._sync(file, segment)
        file.close()

    def sync_names(self, doing: str) -> None:
        """Make the names of files durable. Raises :class:`LogFailedError`."""
        try:
            self._fs.sync_directory(self._directory)
        except OSError as error:
            raise self._fail(error, f"syncing the directory for {doing}") from error

    def close(self) -> list[int]:
        """Close all files; returns their segments."""
        segments = list(self._files)
        for file in self._files.values():
            file.close()
        self._files.clear()
        self.flush_position.close()
        return segments

    def _sync(self, file: File, segment: int) -> None:
        try:
            file.sync_data()
        except OSError as error:
            raise self._fail(error, f"syncing {segment_name(segment)}") from error

    def _fail(self, error: OSError, doing: str) -> LogFailedError:
        self._failure = LogFailedError(
            f"{doing} failed: {error}. Nothing is stored until a restart: "
            "after a failed sync the content of the disk is unknown"
        )
        return self._failure

    def _error_from(self, error: OSError, doing: str) -> StorageError:
        """The error to raise for an error of the disk: full, busy, or final."""
        if error.errno in _FULL:
            self.give_back()
            return LogFullError(f"the disk is full: {doing} failed: {error}")
        if error.errno in _TRY_AGAIN:
            return StorageError(f"{doing} failed: {error}", retryable=True)
        return self._fail(error, doing)
