"""The identity of a log: the metadata that it belongs to.

The file ``identity`` holds one line of text twice, so that one flipped bit does no harm. It is
replaced as a whole::

    headgate-identity 2 data_id=<32 hex digits> starts=<n> topic_number=<n> revision=<n> batch=<n>
    crc32c=<8>

but for the line break. Version 1, which this release reads too, and writes while the log has no
batch, lacks ``batch``.

``data_id`` is the id of the data directory, the same in its metadata and all its logs. ``starts``
counts how often a broker opened this log. ``topic_number`` and ``revision`` are the highest number
of a topic and the last change of the metadata that were durable when the line was written. Metadata
may be ahead of them; metadata that is behind is older than the log. ``batch`` is the last batch
that was durable then; a log that ends before it is older than this file, or its end is gone.

Nothing here decides whether log and metadata belong together: see headgate.storage.store_binding.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from headgate.base.errors import CorruptionError, StorageError
from headgate.fs.api import Fs
from headgate.ledger.errors import UnknownFormatError
from headgate.ledger.format.directory import read_file, write_file
from headgate.ledger.format.records import crc32c, segment_of_checkpoint, segment_of_name

IDENTITY_NAME: Final = "identity"
IDENTITY_VERSION: Final = 2
_VERSION_WITHOUT_BATCH: Final = 1
_PROGRAM = "headgate-identity"
_HEAD = re.compile(rf"{_PROGRAM} (\d+) ")
_LINE = re.compile(
    rf"({_PROGRAM} (\d+) data_id=([0-9a-f]{{32}}) starts=(\d+) topic_number=(\d+) revision=(\d+)"
    r"(?: batch=(\d+))?) crc32c=([0-9a-f]{8})"
)


@dataclass(frozen=True, slots=True)
class Identity:
    """The metadata that a log belongs to, as recorded in its directory."""

    data_id: str
    """The id of the data directory: 32 hexadecimal digits."""
    starts: int
    """How often a broker opened the log, this time included."""
    topic_number: int
    """The highest topic number ever assigned, as recorded last."""
    revision: int
    """The metadata's revision, as recorded last."""
    batch: int = 0
    """A batch of the log that was durable when this was recorded; 0 if none is known."""

    def text(self) -> bytes:
        """The content of the file."""
        version = IDENTITY_VERSION if self.batch else _VERSION_WITHOUT_BATCH
        line = (
            f"{_PROGRAM} {version} data_id={self.data_id} starts={self.starts} "
            f"topic_number={self.topic_number} revision={self.revision}"
        )
        if self.batch:
            line += f" batch={self.batch}"
        return f"{line} crc32c={crc32c(line.encode()):08x}\n".encode() * 2


@dataclass(frozen=True, slots=True)
class LogFound:
    """The content of a log's directory before a start changes anything."""

    identity: Identity | None
    holds_records: bool
    """Whether the directory has a segment or a checkpoint."""
    damage: str = ""
    """Why the identity is unreadable; empty if it is readable or absent."""


def look_at_log(fs: Fs, directory: str) -> LogFound:
    """Look into a log's directory, which need not exist. Blocks; changes nothing.

    Raises :class:`UnknownFormatError` for an identity of a later release and
    :class:`StorageError` if the directory cannot be read.
    """
    try:
        names = fs.list_directory(directory)
        holds = any(
            segment_of_name(name) is not None or segment_of_checkpoint(name) is not None
            for name in names
        )
        if IDENTITY_NAME not in names:
            return LogFound(None, holds)
        return LogFound(_parse(read_file(fs, f"{directory}/{IDENTITY_NAME}"), directory), holds)
    except FileNotFoundError:
        return LogFound(None, holds_records=False)
    except CorruptionError as error:
        return LogFound(None, holds, str(error))
    except OSError as error:
        raise StorageError(f"reading {directory} failed: {error}", retryable=True) from error


def write_identity(fs: Fs, directory: str, identity: Identity) -> None:
    """Write the file durably. Raises :class:`StorageError`; a later try may succeed."""
    try:
        write_file(fs, directory, IDENTITY_NAME, [identity.text()])
    except OSError as error:
        doing = f"writing {directory}/{IDENTITY_NAME}"
        raise StorageError(f"{doing} failed: {error}", retryable=True) from error


def _parse(data: bytes, directory: str) -> Identity:
    text = data.decode("ascii", "replace")
    for line in _LINE.finditer(text):
        if int(line[8], 16) == crc32c(line[1].encode()) and int(line[2]) <= IDENTITY_VERSION:
            return Identity(line[3], int(line[4]), int(line[5]), int(line[6]), int(line[7] or 0))
    version = _HEAD.match(text)
    if version is not None and int(version[1]) > IDENTITY_VERSION:
        raise UnknownFormatError(
            f"{directory}/{IDENTITY_NAME} has format {version[1]}; "
            f"this release reads {_PROGRAM} {IDENTITY_VERSION}"
        )
    raise CorruptionError(f"{directory}/{IDENTITY_NAME} is damaged: neither of its lines is whole")
