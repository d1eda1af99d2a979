"""Which files a backup copies, which it has already, and which it may remove.

Pure. A stored file is named ``KEY.SHA256``. The key of a sealed segment identifies its content
(log, number and what its footer says), because rewriting gives another content the same file name.
A key is used again only for a file of the same size. All other files have the key of their path and
are always copied; the same content gets the same name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from headgate.app.backup.manifest import Manifest

SHA256_DIGITS: Final = 64
INCOMING: Final = "incoming.tmp"
"""The name of a stored file while it is written."""
_OWN_NAME: Final = re.compile(rf".+\.[0-9a-f]{{{SHA256_DIGITS}}}|{re.escape(INCOMING)}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file of a data directory that a backup covers."""

    path: str
    """Relative to the data directory."""
    place: str
    """Where it is read."""
    size_bytes: int
    """The bytes that belong to the backup, from the beginning of the file on."""
    segment: int | None = None
    """The number in the name of a segment file that may be sealed; None for any other file."""


def segment_key(log: str, segment: int, content: str) -> str:
    """The key of a sealed segment whose content has this identity."""
    return f"{log}.{segment:016x}.{content}"


def path_key(path: str) -> str:
    """The key of any other file."""
    return path.replace("/", ".")


def stored_name(key: str, sha256: str) -> str:
    """The name of a stored file."""
    return f"{key}.{sha256}"


def stored_by_key(names: Iterable[str]) -> dict[str, str]:
    """The SHA-256 of the stored files by key; of two with one key the last in order."""
    found = {}
    for name in sorted(names):
        key, _, sha256 = name.rpartition(".")
        if key and len(sha256) == SHA256_DIGITS:
            found[key] = sha256
    return found


def expired(generations: Collection[int], keep: int) -> list[int]:
    """The generations to remove so that the ``keep`` newest stay, oldest first."""
    return sorted(generations)[: max(len(generations) - keep, 0)]


def unused(names: Iterable[str], kept: Mapping[int, Manifest]) -> list[str]:
    """The stored files that no kept generation has. What has no name of a backup's stays: a
    folder from elsewhere may lead to files that no backup made."""
    used = {file.stored for manifest in kept.values() for file in manifest.files}
    return [name for name in names if name not in used and _OWN_NAME.fullmatch(name)]
