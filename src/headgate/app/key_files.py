"""Reads keys from where Pulsar's settings and tools name them (``AuthTokenUtils.readKeyFromUrl``).

A source is ``file:///path``, a path, ``data:;base64,...``, or the key itself as base64.

Most paths are base64, too. Pulsar takes the path of a missing file for the key, with which whoever
knows the path could make tokens. Here a text that looks like a path is none.
"""

from __future__ import annotations

import os
import stat
from typing import Final

from headgate.app.private_files import OTHERS
from headgate.security.errors import InvalidKeyError
from headgate.security.key_sources import decoded, key_of_data_url, path_of_file_url

FILE_BYTES_MAX: Final = 1 << 20
"""More than this is no key."""


def read_key(source: str, what: str, *, is_secret: bool) -> bytes:
    """The bytes of a key. ``what`` names the setting or option in errors.

    A file with a secret must be readable by its owner alone. One with a public key decides who is
    trusted, so not everybody may write it.

    Raises:
        InvalidKeyError: there is no such file, others have rights that they must not have, or the
            text is no key.
    """
    if source.startswith("data:"):
        return key_of_data_url(source, what)
    if source.startswith("file:"):
        return _of_file(path_of_file_url(source, what), what, is_secret=is_secret)
    if os.path.exists(source):
        return _of_file(source, what, is_secret=is_secret)
    if _is_path(source):
        # The text may be a key nevertheless, so it is not repeated.
        raise InvalidKeyError(
            f"{what} is the path of no file that exists, or its folder may not be read; a key in "
            "base64 that looks like a path needs data:;base64, before it"
        )
    try:
        return decoded(source)
    except ValueError:
        raise InvalidKeyError(
            f"{what} is neither a file that exists nor a key in base64: file:///path, a path, "
            "data:;base64,... and base64 are allowed"
        ) from None


def _is_path(source: str) -> bool:
    """Whether a text is the path of a file, also of one that is missing, rather than base64."""
    folder, slash, _ = source.partition("/")
    return bool(slash) and not source.endswith("=") and (not folder or os.path.isdir(folder))


def is_literal(source: str) -> bool:
    """Whether ``source`` is the key itself, as ``data:`` or base64, and not the name of a file that
    has it."""
    if source.startswith("data:"):
        return True
    if not source or source.startswith("file:") or os.path.exists(source) or _is_path(source):
        return False
    try:
        return bool(decoded(source))
    except ValueError:
        return False  # the name of a file that is not there


def read_file(path: str, what: str, *, is_secret: bool = False) -> bytes:
    """The bytes of a file that a setting names; ``what`` is that setting.

    Raises:
        InvalidKeyError: it cannot be read, is empty or too long, everybody may write it, or it is
            a secret that others than its owner may read.
    """
    return _of_file(path, what, is_secret=is_secret)


def write_secret(path: str, data: bytes) -> None:
    """Write a new file that only its owner may read.

    Raises:
        InvalidKeyError: a file of that name exists, or it cannot be written.
    """
    write_new(path, data, mode=0o600)


def write_new(path: str, data: bytes, *, mode: int = 0o644) -> None:
    """Write a new file.

    Raises:
        InvalidKeyError: a file of that name exists, or it cannot be written.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with open(descriptor, "wb") as file:
            file.write(data)
    except FileExistsError:
        raise InvalidKeyError(f"{path} exists already: no key is overwritten") from None
    except OSError as error:
        raise InvalidKeyError(f"{path} cannot be written: {error.strerror}") from error


def _without_waiting(path: str, flags: int) -> int:
    """Opens a file. A pipe in its place is opened, too, and does not wait for its writer: whoever
    looks for changed keys would look no more."""
    return os.open(path, flags | os.O_NONBLOCK)


def _of_file(path: str, what: str, *, is_secret: bool) -> bytes:
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):
                raise InvalidKeyError(f"{what}: {path} is no file")
            if is_secret and mode & OTHERS:
                raise InvalidKeyError(
                    f"{what}: {path} may be read or written by others "
                    f"(mode {stat.S_IMODE(mode):04o}): chmod 600 {path}"
                )
            if mode & stat.S_IWOTH:
                raise InvalidKeyError(
                    f"{what}: {path} may be written by everybody on this machine, who could so "
                    f"become any role (mode {stat.S_IMODE(mode):04o}): chmod 644 {path}"
                )
            found = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise InvalidKeyError(f"{what}: {path} cannot be read: {error.strerror}") from error
    if not found or len(found) > FILE_BYTES_MAX:
        raise InvalidKeyError(
            f"{what}: {path} has {len(found):,} bytes, which is no key or certificate"
        )
    return found
