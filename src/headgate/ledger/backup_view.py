"""What of an open log a backup has, and the small files that describe it.

The state is that of the last complete batch: everything with a receipt. Segments are read by
another process; the files that change are copied here, under names that begin with a prefix.
"""

from __future__ import annotations

from typing import NamedTuple

from headgate.base.errors import StorageError
from headgate.fs.api import Fs
from headgate.ledger.format.directory import FORMAT_NAME, read_file, write_file
from headgate.ledger.format.flush_position import (
    FLUSH_POSITION_NAME,
    FlushPosition,
    flush_position_content,
)
from headgate.ledger.format.identity import IDENTITY_NAME, Identity
from headgate.ledger.format.records import (
    CRC,
    CRC_BYTES,
    SEGMENT_HEADER_BYTES,
    checkpoint_names,
    crc32c,
    segment_of_checkpoint,
)
from headgate.ledger.index.state import LogState
from headgate.ledger.recovery.sealing import end_of


class BackupView(NamedTuple):
    """The durable content of a log at one moment."""

    segments: tuple[tuple[int, int], ...]
    """Number of each segment and its bytes, from the beginning of its file on."""
    end: FlushPosition
    """Where the log ends."""


def backup_view(state: LogState, checkpoint_segment: int) -> BackupView:
    """The content of a log as of its last complete batch, for a start from the checkpoint at
    ``checkpoint_segment``. For the event loop.

    Dead segments before that checkpoint are left out, as if maintenance had deleted them.
    """
    segments = tuple(
        (info.segment, info.file_bytes if info.sealed else info.data_end)
        for info in state.segments.values()
        if info.data_end > SEGMENT_HEADER_BYTES
        and not (info.is_dead and info.segment < checkpoint_segment)
    )
    return BackupView(segments, end_of(state))


def copy_checkpoint(fs: Fs, directory: str, target: str, prefix: str) -> int:
    """Copy the newest sound checkpoint of a log into the folder ``target``. Returns the segment
    that a start replays from; 1 without a checkpoint. For the upkeep thread, which writes them.

    Raises :class:`StorageError`.
    """
    try:
        names = fs.list_directory(directory)
        segments = {s for s in map(segment_of_checkpoint, names) if s is not None}
        for segment in sorted(segments, reverse=True):
            for name in checkpoint_names(segment):
                data = read_file(fs, f"{directory}/{name}") if name in names else b""
                if _is_sound(data):
                    for copy in checkpoint_names(segment):
                        write_file(fs, target, f"{prefix}{copy}", [data])
                    return segment
    except OSError as error:
        raise StorageError(f"copying {directory} failed: {error}", retryable=True) from error
    return 1


def write_description(
    fs: Fs, directory: str, target: str, prefix: str, view: BackupView, identity: Identity | None
) -> None:
    """Write the log's format, its end and its identity into the folder ``target``.

    Raises :class:`StorageError`.
    """
    try:
        data = read_file(fs, f"{directory}/{FORMAT_NAME}")
        write_file(fs, target, f"{prefix}{FORMAT_NAME}", [data])
        end = flush_position_content(view.end)
        write_file(fs, target, f"{prefix}{FLUSH_POSITION_NAME}", [end])
        if identity is not None:
            write_file(fs, target, f"{prefix}{IDENTITY_NAME}", [identity.text()])
    except OSError as error:
        raise StorageError(f"describing {directory} failed: {error}", retryable=True) from error


def _is_sound(checkpoint: bytes) -> bool:
    """Whether the checksum of a checkpoint file is right."""
    end = len(checkpoint) - CRC_BYTES
    return end > 0 and bool(CRC.unpack_from(checkpoint, end)[0] == crc32c(checkpoint[:end]))
