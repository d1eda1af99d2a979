"""``./dev soak``: what takes too long for the test lanes.

The long grid of the closed-loop simulation of adaptive throttling, or one of the words in
:data:`SOAKS`: a test of the lanes with a larger number, or tests that are in no lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from devkit.console import DevError
from devkit.paths import ROOT
from devkit.processes import shown

SEEDS: Final = 40
SEED_LIMIT_S: Final = 600
"""Time that each of them has, many times what it needs."""
KILLS: Final = 20
CLIENTS: Final = 10_000
TOPICS: Final = 100_000
FUZZ_SEED: Final = 1
FUZZ_MINUTES: Final = 10
LIFETIMES: Final = 4_800
"""Segments that half a MiB/s fills in a week."""
POWER_CUT_SEEDS: Final = 100
RACE_SEEDS: Final = 200
FAULT_SECONDS: Final = 60
KILLS_WORD: Final = "kills"
"""First argument: not the grid, but ``headgate pipeline stream``, killed again and again."""
POWER_CUTS_WORD: Final = "powercuts"
FOREVER: Final = "forever"
"""In the place of a number of seeds: until it is stopped."""
FOREVER_LIMIT_S: Final = 10 * 366 * 86_400.0


@dataclass(frozen=True)
class Soak:
    """A test that is played with a number."""

    usual: int
    what: str
    """The number is of these."""
    option: str
    """The test's option for the number; empty if it goes to a module."""
    test: str
    """The file or folder under ``tests/``, or the module to run."""
    limit_s: float
    """Time for the whole soak."""
    each_s: float = 0
    """Time for each of the number, besides."""
    more: tuple[str, ...] = ()
    """Further words for pytest."""


SOAKS: Final = {
    KILLS_WORD: Soak(KILLS, "kills", "--kills", "spark/test_pipeline_kills.py", 0, 300),
    "broker": Soak(
        KILLS,
        "kills",
        "--rounds",
        "service/faults/test_f01_kills_beside_changes.py",
        0,
        300,
        more=("-rP",),
    ),
    "clients": Soak(
        CLIENTS, "clients", "--clients", "service/test_client_memory.py", 1_800, more=("-rP",)
    ),
    "tls": Soak(
        CLIENTS,
        "clients",
        "--clients",
        "service/faults/test_f14_tls_crowd.py",
        1_800,
        more=("-rP",),
    ),
    "fuzz": Soak(
        FUZZ_SEED,
        "seed",
        "--fuzz-seed",
        "service/test_fuzzing.py",
        1_800,
        more=(f"--fuzz-minutes={FUZZ_MINUTES}", "-rP"),
    ),
    "topics": Soak(TOPICS, "topics", "--topics", "faults/test_f15_many_topics.py", 1_800),
    "faults": Soak(FAULT_SECONDS, "seconds", "--seconds", "preload", 900, each_s=10, more=("-rP",)),
    "flips": Soak(
        1,
        "bytes apart",
        "--flip-stride",
        "faults/test_f04_flipped_bytes.py",
        3_600,
        more=("-k", "flipped", "tests/unit/metadata/test_sqlite_store.py"),
    ),
    "space": Soak(LIFETIMES, "segments", "--lifetimes", "sim/test_space_bound.py", 14_400),
    "races": Soak(RACE_SEEDS, "seeds", "", "tests.sim.more_races", 600, 60),
    POWER_CUTS_WORD: Soak(POWER_CUT_SEEDS, "seeds", "", "tests.faults.more_power_cuts", 600, 600),
}
"""By first argument."""


def soak(python: Path, arguments: Sequence[str]) -> int:
    """Play every load with so many seeds, 40 unless told; 1 if law drain broke a promise.

    With a word of :data:`SOAKS`, play that test with its number or the one given; 1 if it failed.
    The power cuts also take ``forever``.

    Raises:
        DevError: the argument is no such number.
    """
    found = SOAKS.get(arguments[0]) if arguments else None
    usual, what = (SEEDS, "seeds") if found is None else (found.usual, found.what)
    words = [*arguments][found is not None :] or [str(usual)]
    if arguments[:1] == [POWER_CUTS_WORD] and words == [FOREVER]:
        return shown([str(python), "-m", SOAKS[POWER_CUTS_WORD].test], FOREVER_LIMIT_S, ROOT)
    if len(words) > 1 or not words[0].isdecimal() or int(words[0]) < 1:
        raise DevError(f"./dev soak {' '.join(arguments)}: how many {what}? {usual}, for example")
    count = words[0]
    if found is None:
        command = [str(python), str(ROOT / "tools" / "adaptive_grid.py"), count]
        return shown(command, int(count) * SEED_LIMIT_S, ROOT)
    if found.option:
        test = str(ROOT / "tests" / found.test)
        command = [str(python), "-m", "pytest", "-q", *found.more, f"{found.option}={count}", test]
    else:
        command = [str(python), "-m", found.test, count]
    return shown(command, found.limit_s + int(count) * found.each_s, ROOT)
