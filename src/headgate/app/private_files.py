"""Keeps the files of a data directory from other users of the machine."""

from __future__ import annotations

import logging
import os
import stat
from typing import Final

logger = logging.getLogger("headgate.app")

OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
"""What group and others may do."""


def make_private(path: str) -> int:
    """Take the rights of group and others from ``path`` and everything in it; returns how many
    files and directories had some. Blocks.

    A file system without rights, or files of another user, do not keep the broker from its start: a
    warning names the first of them.
    """
    changed, refused, why = 0, "", ""
    for name, mode in _walk(path):
        if not mode & OTHERS:
            continue
        try:
            os.chmod(name, stat.S_IMODE(mode) & ~OTHERS)
            changed += 1
        except OSError as error:
            refused, why = refused or name, why or str(error.strerror)
    if refused:
        logger.warning(
            "other users of this machine may read %s, and that cannot be changed: %s", refused, why
        )
    return changed


def tighten(path: str) -> None:
    """:func:`make_private` for a directory of an earlier release, with one log line."""
    if changed := make_private(path):
        logger.warning(
            "data directory %s: other users of this machine could read %s; now only its owner can",
            path,
            "one file" if changed == 1 else f"{changed:,} files and directories",
        )


def _walk(path: str) -> list[tuple[str, int]]:
    """Files and directories with their modes, ``path`` first. Links are left out."""
    found = [(path, os.stat(path).st_mode)]
    directories = [path]
    while directories:
        try:
            entries = os.scandir(directories.pop())
        except PermissionError:
            continue  # of another user, as the directory lost+found of a file system
        with entries:
            for entry in entries:
                try:
                    mode = entry.stat(follow_symlinks=False).st_mode
                except FileNotFoundError:
                    continue
                if stat.S_ISDIR(mode):
                    directories.append(entry.path)
                elif not stat.S_ISREG(mode):
                    continue
                found.append((entry.path, mode))
    return found
