"""``./dev soak``: what takes too long for the test lanes.

The long grid of the closed-loop simulation of adaptive throttling, twenty kills of the pipeline or
of a broker under load, or crowds of ten thousand clients that make a broker hold memory.
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
CLIENTS: Final = 10_000
CLIENTS_LIMIT_S: Final = 1_800
CLIENTS_WORD: Final = "clients"
"""First argument: not the grid, but crowds of clients."""

BROKER_WORD: Final = "broker"
"""First argument: not the grid, but a broker, killed again and again under load."""


def soak(python: Path, arguments: Sequence[str]) -> int:
    """Play every load with so many seeds, 40 unless told; 1 if law drain broke a promise.

    With ``kills``, kill the pipeline so many times, 20 unless told; 1 if a row was lost or doubled.
    With ``broker``, kill a broker so many times, 20 unless told; 1 if it broke a promise.
    With ``clients``, play crowds of so many clients, 10,000 unless told; 1 if they took more memory
    than they may, or their neighbour waited.

    Raises:
        DevError: the argument is no number of seeds, kills or clients.
    """
    counts = {
        KILLS_WORD: (KILLS, KILLS_WORD),
        BROKER_WORD: (KILLS, KILLS_WORD),
        CLIENTS_WORD: (CLIENTS, CLIENTS_WORD),
    }
    word = arguments[0] if arguments and arguments[0] in counts else ""
    usual, what = counts.get(word, (SEEDS, "seeds"))
    words = [*arguments][bool(word) :] or [str(usual)]
    if len(words) > 1 or not words[0].isdecimal() or int(words[0]) < 1:
        raise DevError(f"./dev soak {' '.join(arguments)}: how many {what}? {usual}, for example")
    count, tests = words[0], ROOT / "tests"
    if word == CLIENTS_WORD:
        test = str(tests / "service" / "test_client_memory.py")
        command = [str(python), "-m", "pytest", "-q", "-rP", f"--clients={count}", test]
        return shown(command, CLIENTS_LIMIT_S, ROOT)
    if word == BROKER_WORD:
        test = str(tests / "service" / "faults" / "test_f01_kills_beside_changes.py")
        command = [str(python), "-m", "pytest", "-q", f"--rounds={count}", test]
        return shown(command, int(count) * KILL_LIMIT_S, ROOT)
    if word == KILLS_WORD:
        test = str(tests / "spark" / "test_pipeline_kills.py")
        command = [str(python), "-m", "pytest", "-q", f"--kills={count}", test]
        return shown(command, int(count) * KILL_LIMIT_S, ROOT)
    command = [str(python), str(ROOT / "tools" / "adaptive_grid.py"), count]
    return shown(command, int(count) * SEED_LIMIT_S, ROOT)
