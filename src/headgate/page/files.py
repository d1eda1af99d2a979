"""The files of the page, in memory, as they are sent."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final

INDEX: Final = "index.html"
SERVER: Final = "server.json"
"""What the server answers: ``live``, explain and stats of a broker; ``history``, the tables of the
pipeline; ``views``, the views of the present that it can fill. The page shows those alone.
``signIn`` is the issuer at which readers may sign in; absent without one."""
_HISTORY: Final = b'{"live": false, "history": true}\n'
_AGENT: Final = (
    b'{"live": true, "history": false, "views": ["now", "limits", "storage", "cluster"]}\n'
)
"""An agent knows clusters, and not what goes on inside of a broker."""
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_NOT_SENT: Final = {
    ".js": re.compile(rb"^[ \t]*(?://.*$)?", re.MULTILINE),
    ".css": re.compile(rb"/\*.*?\*/|(?<=[{};,])\s+|\s+(?=[{}])", re.DOTALL),
}
"""Indentation, and lines that are a comment alone. An eighth of what a browser would load is for
readers of the repository. Lines of scripts stay, so that an error has the same line in both; no
text of a script goes over the end of a line, but in markup, where blanks are one."""


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


def broker_files(sign_in_issuer: str) -> dict[str, PageFile]:
    """The files of a broker's page, whose readers may sign in at an issuer."""
    files = page_files()
    server = {**json.loads(files[SERVER].body), "signIn": sign_in_issuer}
    return {**files, SERVER: _file(json.dumps(server).encode(), _TYPES[".json"])}


def history_files() -> dict[str, PageFile]:
    """The files of a page whose server has the past alone: :data:`SERVER` says so."""
    return {**page_files(), SERVER: _file(_HISTORY, _TYPES[".json"])}


def agent_files() -> dict[str, PageFile]:
    """The files of a page whose server looks at clusters: :data:`SERVER` says what it can fill."""
    return {**page_files(), SERVER: _file(_AGENT, _TYPES[".json"])}


def _below(folder: Traversable, prefix: str) -> list[tuple[str, PageFile]]:
    found = []
    for entry in sorted(folder.iterdir(), key=lambda each: each.name):
        if entry.is_dir():
            found += _below(entry, f"{prefix}{entry.name}/")
        elif kind := _TYPES.get(ending := "." + entry.name.rpartition(".")[2]):
            path = f"{prefix}{entry.name}"
            body = entry.read_bytes()
            if ending in _NOT_SENT and not path.startswith("vendor/"):
                body = _NOT_SENT[ending].sub(b"", body)
            found.append((path, _file(body, kind)))
    return found


def _file(body: bytes, kind: str) -> PageFile:
    digest = hashlib.sha256(body).hexdigest()[:32]
    return PageFile(body, gzip.compress(body, mtime=0), kind, f'"{digest}"')
