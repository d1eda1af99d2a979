"""The files of a data directory that a backup copies: of a stopped broker, or of a running one.

A running broker deletes and changes none of its log's files while it holds them for a backup. It
copies what changes (metadata, checkpoints, identity, ends of the logs) into the folder
``backup-source``, with the list of the segments (headgate.app.backup.holding).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from headgate.app.backup.manifest import BackupError, LogEnd
from headgate.app.backup.plan import SourceFile
from headgate.app.data_directory import METADATA_NAME, RESTORE_MARKER
from headgate.app.names_key import KEY_FILE_NAME
from headgate.base.errors import InputError
from headgate.fs import Fs
from headgate.ledger.errors import DirectoryInUseError
from headgate.ledger.format.directory import file_size, read_file
from headgate.ledger.format.flush_position import FLUSH_POSITION_NAME, read_flush_position
from headgate.ledger.format.identity import IDENTITY_NAME, look_at_log
from headgate.ledger.format.records import (
    segment_name,
    segment_of_checkpoint,
    segment_of_name,
)
from headgate.storage.managed_logs import LOGS
from headgate.storage.store_binding import MAIN_LOG

FILES_NAME: Final = "files.json"
"""The list of segments in the folder of a running broker."""
_OWN_FILES: Final = (METADATA_NAME, f"{METADATA_NAME}-wal", KEY_FILE_NAME, "format")
_LOG_FILES: Final = ("format", IDENTITY_NAME, FLUSH_POSITION_NAME)


@dataclass(frozen=True, slots=True)
class Source:
    """A consistent state of a data directory."""

    files: list[SourceFile]
    data_id: str
    running: bool
    ends: dict[str, LogEnd]
    confirm: Callable[[], None]
    """Returns if the state was held until now. Raises :class:`BackupError` if it was not."""


class HeldBackup(Protocol):
    """A running broker that holds its files for a backup."""

    data_path: str
    """Its data directory, on this host."""
    source_path: str
    """The folder with what it copied."""

    def confirm(self) -> None:
        """End the backup. Raises :class:`BackupError` if the files were not held until now."""


class LogList(msgspec.Struct, frozen=True, rename="camel"):
    """What ``backup-source/files.json`` says of one log."""

    segments: tuple[tuple[int, int], ...]
    """Number and bytes of each segment."""
    end: LogEnd


class SourceList(msgspec.Struct, frozen=True, rename="camel"):
    """The content of ``backup-source/files.json``."""

    data_id: str
    logs: dict[str, LogList]


@contextmanager
def stopped_source(fs: Fs, path: str) -> Iterator[Source]:
    """The files of a data directory that no broker has open; it is locked meanwhile. Blocks.

    Raises:
        InputError: it is no data directory, or an unfinished restore.
        DirectoryInUseError: a broker runs on it.
        OSError: it cannot be read.
    """
    try:
        names = fs.list_directory(path)
    except (FileNotFoundError, NotADirectoryError):
        names = []
    if MAIN_LOG not in names and METADATA_NAME not in names:
        raise InputError(f"--data-dir {path} is no data directory: it has no log")
    if RESTORE_MARKER in names:
        raise InputError(f"--data-dir {path} is an unfinished restore: finish it first")
    try:
        lock = fs.lock(f"{path}/lock")
    except BlockingIOError as error:
        raise DirectoryInUseError(
            f"a broker runs on data directory {path}: to back up a running broker, leave out "
            "--data-dir and give its admin API as --admin-url"
        ) from error
    try:
        yield _stopped(fs, path, names)
    finally:
        lock.release()


def _stopped(fs: Fs, path: str, names: list[str]) -> Source:
    files = [
        SourceFile(name, f"{path}/{name}", file_size(fs, f"{path}/{name}"))
        for name in names
        if name in _OWN_FILES
    ]
    ends, data_id = {}, ""
    for log in LOGS:
        try:
            inside = fs.list_directory(f"{path}/{log}")
        except FileNotFoundError:
            continue
        for name in inside:
            segment = segment_of_name(name)
            if segment is None and segment_of_checkpoint(name) is None and name not in _LOG_FILES:
                continue
            place = f"{path}/{log}/{name}"
            files.append(SourceFile(f"{log}/{name}", place, file_size(fs, place), segment))
        end = read_flush_position(fs, f"{path}/{log}")
        if end is not None:
            ends[log] = LogEnd(end.batch, end.segment, end.offset)
        identity = look_at_log(fs, f"{path}/{log}").identity
        data_id = identity.data_id if identity is not None and not data_id else data_id
    return Source(files, data_id, False, ends, lambda: None)


def running_source(fs: Fs, held: HeldBackup) -> Source:
    """The files of a running broker's data directory, as it holds them. Blocks.

    Raises:
        BackupError: the broker's files cannot be read here.
    """
    data, own = held.data_path, held.source_path
    try:
        content = read_file(fs, f"{own}/{FILES_NAME}")
        listed = msgspec.json.decode(content, type=SourceList)
        names = fs.list_directory(own)
        files = [
            SourceFile(name.replace("~", "/"), f"{own}/{name}", file_size(fs, f"{own}/{name}"))
            for name in names
            if name != FILES_NAME
        ]
        files += [
            SourceFile(name, f"{data}/{name}", file_size(fs, f"{data}/{name}"))
            for name in ("format", KEY_FILE_NAME)
            if name in fs.list_directory(data)
        ]
    except (OSError, msgspec.MsgspecError) as error:
        raise BackupError(
            f"the broker's data directory {data} cannot be read: run the command on the broker's "
            f"host, as its user ({error})"
        ) from error
    ends = {}
    for log, part in listed.logs.items():
        ends[log] = part.end
        for segment, size_bytes in part.segments:
            path = f"{log}/{segment_name(segment)}"
            files.append(SourceFile(path, f"{data}/{path}", size_bytes, segment))
    return Source(files, listed.data_id, True, ends, held.confirm)
