"""The files of the page, in memory, as they are sent."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final

INDEX: Final = "index.html"
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}


@dataclass(frozen=True, slots=True)
class PageFile:
    """One file."""

    body: bytes
    compressed: bytes
    """By gzip."""
    content_type: str
    etag: str
    """With its quotes: it changes with the content alone."""


def page_files() -> dict[str, PageFile]:
    """All files of the page by their path below ``static/``."""
    return dict(_below(resources.files("headgate.page") / "static", ""))


def _below(folder: Traversable, prefix: str) -> list[tuple[str, PageFile]]:
    found = []
    for entry in sorted(folder.iterdir(), key=lambda each: each.name):
        if entry.is_dir():
            found += _below(entry, f"{prefix}{entry.name}/")
        elif kind := _TYPES.get("." + entry.name.rpartition(".")[2]):
            body = entry.read_bytes()
            digest = hashlib.sha256(body).hexdigest()[:32]
            compressed = gzip.compress(body, mtime=0)
            found.append((f"{prefix}{entry.name}", PageFile(body, compressed, kind, f'"{digest}"')))
    return found
