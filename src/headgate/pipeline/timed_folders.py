"""Folders of files that are named after an instant, such as ``1763719200000.prom``.

``FOLDER/<epoch ms>SUFFIX`` is a file of the only member, which has the folder's name.
``FOLDER/MEMBER/<epoch ms>SUFFIX`` is a file of one of several. Names that begin with a dot are
ignored: a writer renames a file when it is complete.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headgate.base.errors import InputError

TASK_COLUMN: Final = "work"
"""The column of a DataFrame whose rows are tasks of a folder, as JSON."""

PARTS_PER_CORE: Final = 2
"""Tasks for each core: more of them balance, but each has a cost of its own."""

_MS: Final = r"(?P<ms>[1-3]\d{12})"
"""A time from 2001 to 2096."""


@dataclass(frozen=True, slots=True)
class TimedFolder:
    """The files of one member."""

    label: str
    path: str
    times_ms: tuple[int, ...]
    """Sorted times of the files with a valid name."""
    wrong_names: tuple[str, ...]
    """Names of the other files."""


def time_of(name: str, suffix: str) -> int | None:
    """The instant in a file's name, in milliseconds since the epoch; None if it has none."""
    found = re.fullmatch(_MS + re.escape(suffix), name)
    return None if found is None else int(found["ms"])


def timed_folders(folder: str, suffix: str, what: str, member: str) -> list[TimedFolder]:
    """The members whose files a folder holds; ``what`` names the files and ``member`` what they
    are of, in errors.

    Raises:
        InputError: it is no folder, cannot be read or holds no such file, or two members in it have
            the same name.
    """
    root = Path(folder)
    try:
        inside = sorted(entry for entry in root.iterdir() if not entry.name.startswith("."))
        names = [entry.name for entry in inside if entry.is_file()]
        own = _timed_folder(root.resolve().name, root, names, suffix)
        found = [
            _timed_folder(
                entry.name, entry, [e.name for e in entry.iterdir() if e.is_file()], suffix
            )
            for entry in inside
            if entry.is_dir()
        ]
    except OSError as error:
        raise InputError(f"folder {folder} of {what} cannot be read: {error.strerror}") from error
    members = [member for member in (own, *found) if member.times_ms]
    if not members:
        raise InputError(
            f"folder {folder} holds no {what}: store them as <milliseconds since 1970>{suffix}, "
            f"in this folder or in one folder for each {member}"
        )
    labels = [member.label for member in members]
    if len(set(labels)) < len(labels):
        raise InputError(f"folder {folder} and one in it are both called {own.label!r}: rename one")
    return members


def _timed_folder(label: str, path: Path, names: Sequence[str], suffix: str) -> TimedFolder:
    visible = sorted(name for name in names if not name.startswith("."))
    times = {name: time_of(name, suffix) for name in visible}
    return TimedFolder(
        label,
        os.fspath(path.resolve()),
        tuple(ms for ms in times.values() if ms is not None),
        tuple(name for name, ms in times.items() if ms is None),
    )
