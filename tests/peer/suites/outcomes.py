"""Runs tests one by one, each in a process of its own, and compares with what is absent."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

TEST_LIMIT_S: Final = 120
"""When a test that hangs is ended."""
SHOWN_CHARACTERS: Final = 3_000
"""Of the output of a test that failed."""


@dataclass(frozen=True)
class Outcome:
    """How one test ended."""

    name: str
    passed: bool
    took_s: float
    output: str


def read_absent(path: Path) -> dict[str, str]:
    """The tests that need what the broker does not have, with the reason: ``NAME: REASON`` in each
    line of a file."""
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return dict(tuple(part.strip() for part in line.split(": ", 1)) for line in lines)  # type: ignore[misc]


def run_one(name: str, command: Sequence[str], folder: Path) -> Outcome:
    """Run one test in a folder."""
    begin_s = time.monotonic()
    try:
        result = subprocess.run(
            command, cwd=folder, timeout=TEST_LIMIT_S, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        passed, output = result.returncode == 0, result.stdout
    except subprocess.TimeoutExpired as expired:
        passed = False
        output = (expired.stdout or b"") + f"\nended after {TEST_LIMIT_S} s".encode()
    text = output.decode(errors="replace")
    return Outcome(name, passed, time.monotonic() - begin_s, text)


def play(
    title: str,
    names: Sequence[str],
    command_of: Callable[[str], Sequence[str]],
    folder: Path,
    absent: Mapping[str, str],
    jobs: int,
) -> int:
    """Run all tests but the absent ones, print how they ended, and return 0 if all passed and the
    list of absent ones is right."""
    todo = [name for name in names if name not in absent]
    with ThreadPoolExecutor(jobs) as pool:
        outcomes = list(pool.map(lambda name: run_one(name, command_of(name), folder), todo))
    failed = []
    for each in outcomes:
        if each.passed:
            continue
        again = run_one(each.name, command_of(each.name), folder)
        if again.passed:
            sys.stdout.write(f"\n--- {each.name} passed only when it was run again; before:\n")
            sys.stdout.write(each.output[-SHOWN_CHARACTERS:] + "\n")
        else:
            failed.append(again)
    for each in failed:
        sys.stdout.write(f"\n--- {each.name} failed after {each.took_s:.0f} s\n")
        sys.stdout.write(each.output[-SHOWN_CHARACTERS:] + "\n")
    unknown = sorted(set(absent) - set(names))
    sys.stdout.write(
        f"{title}: {len(outcomes) - len(failed)} of {len(names)} tests passed,"
        f" {len(failed)} failed, {len(names) - len(outcomes)} need what is absent\n"
    )
    for each in failed:
        sys.stdout.write(f"  failed: {each.name}\n")
    for name in unknown:
        sys.stdout.write(f"  listed as absent, but not in the suite: {name}\n")
    return 1 if failed or unknown else 0
