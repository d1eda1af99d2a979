"""``./dev soak``: what takes too long for the test lanes.

The long grid of the closed-loop simulation of adaptive throttling, or twenty kills of the pipeline.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from devkit.console import DevError
from devkit.paths import ROOT
from devkit.processes import shown

SEEDS: Final = 40
KILLS: Final = 20
KILL_LIMIT_S: Final = 300
SEED_LIMIT_S: Final = 600
"""Time that each of them has, many times what it needs."""
KILLS_WORD: Final = "kills"
"""First argument: not the grid, but ``headgate pipeline stream``, killed again and again."""


def soak(python: Path, arguments: Sequence[str]) -> int:
    """Play every load with so many seeds, 40 unless told; 1 if law drain broke a promise.

    With ``kills``, kill the pipeline so many times, 20 unless told; 1 if a row was lost or doubled.

    Raises:
        DevError: the argument is no number of seeds or kills.
    """
    is_kills = arguments[:1] == [KILLS_WORD]
    usual, what = (KILLS, KILLS_WORD) if is_kills else (SEEDS, "seeds")
    words = [*arguments][is_kills:] or [str(usual)]
    if len(words) > 1 or not words[0].isdecimal() or int(words[0]) < 1:
        raise DevError(f"./dev soak {' '.join(arguments)}: how many {what}? {usual}, for example")
    command = [str(python), str(ROOT / "tools" / "adaptive_grid.py"), words[0]]
    if is_kills:
        test = str(ROOT / "tests" / "spark" / "test_pipeline_kills.py")
        command = [str(python), "-m", "pytest", "-q", f"--kills={words[0]}", test]
    each_s = KILL_LIMIT_S if is_kills else SEED_LIMIT_S
    return shown(command, int(words[0]) * each_s, ROOT)
