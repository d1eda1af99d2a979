"""The manifest of one generation: the files of a data directory at one moment.

A file ``generations/%08d.json`` with two lines: the manifest as JSON, and the SHA-256 of that line
in hexadecimal digits. It is written last, in one piece: a generation without a manifest is none.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

import msgspec

from headgate.base.errors import CorruptionError, HeadgateError
from headgate.storage.managed_logs import LOGS

MANIFEST_VERSION: Final = 1

_NAME = r"[A-Za-z0-9_-][A-Za-z0-9._-]*"
_PATH = re.compile(rf"(?:(?:{'|'.join(LOGS)})/)?{_NAME}")
_STORED = re.compile(_NAME)


class BackupError(HeadgateError):
    """A backup or a restore could not be done; the text says why and what is left."""


class StoredFile(msgspec.Struct, frozen=True, rename="camel"):
    """One file of a generation."""

    path: str
    """Relative to the data directory."""
    size_bytes: int
    sha256: str
    """Of the content, in hexadecimal digits."""
    stored: str
    """Its name in the folder ``files`` of the backup."""


class LogEnd(msgspec.Struct, frozen=True, rename="camel"):
    """Where a log ends in a generation: nothing behind it is in the backup."""

    batch: int
    segment: int
    offset: int


class Manifest(msgspec.Struct, frozen=True, rename="camel"):
    """One generation."""

    version: int
    generation: int
    created: str
    """When the state was taken, in UTC."""
    release: str
    """The release of Headgate that took it."""
    data_id: str
    """The id of the data directory; empty if it had none yet."""
    running: bool
    """Whether a broker ran."""
    ends: dict[str, LogEnd]
    """The end of each log by its name; logs without a recorded end are absent."""
    files: tuple[StoredFile, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes of all files."""
        return sum(file.size_bytes for file in self.files)


def encode_manifest(manifest: Manifest) -> bytes:
    """The content of the file."""
    line = msgspec.json.encode(manifest)
    return line + b"\n" + hashlib.sha256(line).hexdigest().encode() + b"\n"


def decode_manifest(data: bytes, name: str) -> Manifest:
    """The manifest in a file ``name``.

    Raises:
        CorruptionError: it is damaged, or names a file outside of its folder.
        BackupError: it is of a later release.
    """
    line, _, rest = data.partition(b"\n")
    if hashlib.sha256(line).hexdigest().encode() != rest.strip():
        raise CorruptionError(f"manifest {name} is damaged: its checksum is wrong")
    try:
        manifest = msgspec.json.decode(line, type=Manifest)
    except msgspec.MsgspecError as error:
        raise CorruptionError(f"manifest {name} cannot be read: {error}") from error
    if manifest.version != MANIFEST_VERSION:
        raise BackupError(
            f"manifest {name} has version {manifest.version}: this release knows {MANIFEST_VERSION}"
        )
    for file in manifest.files:
        if not _PATH.fullmatch(file.path) or not _STORED.fullmatch(file.stored):
            raise CorruptionError(f"manifest {name} names the file {file.path[:80]!r}")
    return manifest
