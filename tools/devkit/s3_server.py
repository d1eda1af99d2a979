"""The S3 of ``./dev test-peer``: moto, in an environment of its own in the cache.

It wants versions that ours cannot have, and nothing of ours imports it: it is a program.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Final

from devkit.console import DevError
from devkit.paths import CACHE, LOCKS
from devkit.pip import run_pip
from devkit.processes import captured

LOCK: Final = LOCKS / "peer.txt"
_LIMIT_S: Final = 300
_STAMP: Final = "complete"


def ensure_s3_server(python: Path) -> Path:
    """Make the environment, unless it is there for today's lock, and return its Python.

    Raises:
        DevError: it cannot be made.
    """
    folder = CACHE / "s3-server"
    stamp, digest = folder / _STAMP, hashlib.sha256(LOCK.read_bytes()).hexdigest()
    own = folder / "bin" / "python"
    if stamp.is_file() and stamp.read_text() == digest and own.exists():
        return own
    shutil.rmtree(folder, ignore_errors=True)
    made = captured([str(python), "-m", "venv", str(folder)], _LIMIT_S)
    if made.returncode != 0:
        raise DevError(f"{folder} could not be made:\n{made.stdout}{made.stderr}")
    lines = LOCK.read_text().splitlines()
    run_pip(
        own,
        ["--require-hashes", "--no-deps", "--only-binary", ":all:", "-r", str(LOCK)],
        title="packages of an S3 server",
        total=sum(line[:1] not in " #" for line in lines if line),
        on_install=lambda: None,
        progress="off",
    )
    stamp.write_text(digest)
    return own
