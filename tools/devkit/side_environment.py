"""An environment in the cache for programs that want versions which ours cannot have."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Final

from devkit.console import DevError
from devkit.paths import CACHE
from devkit.pip import run_pip
from devkit.processes import captured

_LIMIT_S: Final = 300
_STAMP: Final = "complete"


def ensure_side_environment(python: Path, name: str, lock: Path, title: str) -> Path:
    """Make the environment ``name``, unless it is there for today's ``lock``, and return its
    Python. ``title`` says what is installed.

    Raises:
        DevError: it cannot be made.
    """
    folder = CACHE / name
    stamp, digest = folder / _STAMP, hashlib.sha256(lock.read_bytes()).hexdigest()
    own = folder / "bin" / "python"
    if stamp.is_file() and stamp.read_text() == digest and own.exists():
        return own
    shutil.rmtree(folder, ignore_errors=True)
    made = captured([str(python), "-m", "venv", str(folder)], _LIMIT_S)
    if made.returncode != 0:
        raise DevError(f"{folder} could not be made:\n{made.stdout}{made.stderr}")
    lines = lock.read_text().splitlines()
    run_pip(
        own,
        ["--require-hashes", "--no-deps", "--only-binary", ":all:", "-r", str(lock)],
        title=title,
        total=sum(line[:1] not in " #" for line in lines if line),
        on_install=lambda: None,
        progress="off",
    )
    stamp.write_text(digest)
    return own
