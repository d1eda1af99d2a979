"""The S3 of ``./dev test-peer``: moto, which nothing of ours imports, because it is a program."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from devkit.paths import LOCKS
from devkit.side_environment import ensure_side_environment

LOCK: Final = LOCKS / "peer.txt"


def ensure_s3_server(python: Path) -> Path:
    """Make its environment, unless it is there for today's lock, and return its Python.

    Raises:
        DevError: it cannot be made.
    """
    return ensure_side_environment(python, "s3-server", LOCK, "packages of an S3 server")
