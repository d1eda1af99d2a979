"""``./dev soak``: the long grid of the closed-loop simulation, and what it found."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from devkit.console import DevError
from devkit.paths import ROOT, environment_variables

SEEDS: Final = 40


def soak(python: Path, arguments: Sequence[str]) -> int:
    """Play every load with so many seeds, 40 unless told; 1 if law drain broke a promise.

    Raises:
        DevError: the argument is no number of seeds.
    """
    words = [*arguments] or [str(SEEDS)]
    if len(words) > 1 or not words[0].isdecimal() or int(words[0]) < 1:
        raise DevError(f"./dev soak {' '.join(words)}: how many seeds? {SEEDS}, for example")
    command = [str(python), str(ROOT / "tools" / "adaptive_grid.py"), words[0]]
    return subprocess.run(command, cwd=ROOT, env=environment_variables(), check=False).returncode
