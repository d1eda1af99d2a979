"""The key that hashes names in the telemetry.

It is the content of ``headgateTelemetryNamesKeyFile``, without the line's end; brokers that share
the file give a name the same hash. Without that setting the broker makes a key once, in the data
directory, readable by the owner alone.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from headgate.app.private_files import OTHERS
from headgate.base.errors import InputError, StorageError
from headgate.fs import OsFs
from headgate.ledger.format.directory import read_file
from headgate.policy.settings import Settings

KEY_FILE_NAME: Final = "telemetry-names.key"
"""In the data directory."""

KEY_BYTES_MIN: Final = 16
"""A shorter key could be guessed."""

_MADE_BYTES = 32
_KEY_MODE = 0o600


def names_key(settings: Settings, data_path: str) -> bytes | None:
    """The key, if names are to be hashed. Blocks; the data directory must be owned.

    Raises:
        InputError: the file that the settings name cannot be read, or holds no key.
        StorageError: the one in the data directory cannot be read or created.
    """
    if settings.headgateTelemetryNames != "hash":
        return None
    given = settings.headgateTelemetryNamesKeyFile
    path = Path(given or f"{data_path}/{KEY_FILE_NAME}")
    try:
        if not given and not path.exists():
            _make(path)
        if given and path.stat().st_mode & OTHERS:
            raise InputError(
                f"headgateTelemetryNamesKeyFile={given} may be read or written by others: "
                f"chmod 600 {given}"
            )
        # Also in a directory from elsewhere, which may have a pipe or an endless file there.
        key = read_file(OsFs(), str(path)).rstrip(b"\r\n")
        problem = f"it has {len(key)} bytes, and {KEY_BYTES_MIN} or more are needed"
        if len(key) >= KEY_BYTES_MIN:
            return key
    except OSError as error:
        problem = str(error.strerror)
    if given:
        raise InputError(f"headgateTelemetryNamesKeyFile={given} cannot be used: {problem}")
    raise StorageError(f"the telemetry's key {path} cannot be used: {problem}", retryable=False)


def _make(path: Path) -> None:
    """Put a new key in place: entirely or not at all, and durable before it is used."""
    temporary = path.with_suffix(".tmp")
    temporary.unlink(missing_ok=True)
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _KEY_MODE)
    try:
        os.write(file, os.urandom(_MADE_BYTES).hex().encode() + b"\n")
        os.fsync(file)
    finally:
        os.close(file)
    temporary.rename(path)
    OsFs().sync_directory(str(path.parent))
