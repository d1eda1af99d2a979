"""Parts of a long test: each is played, whatever becomes of the others, and a summary ends them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from devkit.console import DevError, LeftOutError, say
from devkit.paths import ROOT
from devkit.processes import shown

PART_LIMIT_S: Final = 1_800
"""When a part that hangs is ended."""


@dataclass(frozen=True)
class Part:
    """What one program plays."""

    name: str
    title: str
    command: Callable[[Path], Sequence[str]]
    """Builds what the part needs, and returns the command that plays it. It gets the Python with
    the packages of the tests. A :class:`LeftOutError` says that the part cannot be played here."""
    limit_s: float = PART_LIMIT_S


def play_parts(title: str, python: Path, parts: Sequence[Part]) -> int:
    """Play them all, print how each ended, and return 0 if none failed."""
    outcomes = [(part, *_play(python, part)) for part in parts]
    width = max(len(part.name) for part in parts)
    print(f"\n{title}:", flush=True)
    for part, outcome, detail in outcomes:
        print(f"  {part.name:<{width}}  {outcome}: {part.title}{detail}", flush=True)
    failed = sum(outcome == "failed" for _, outcome, _ in outcomes)
    passed = sum(outcome == "passed" for _, outcome, _ in outcomes)
    print(f"{passed} passed, {failed} failed, {len(parts) - passed - failed} left out", flush=True)
    return 1 if failed else 0


def _play(python: Path, part: Part) -> tuple[str, str]:
    """How a part ended, and what there is to say about that."""
    begin_s = time.monotonic()
    print(f"\n--- {part.name}: {part.title}", flush=True)
    try:
        status = shown(part.command(python), part.limit_s, ROOT)
        detail = f", {time.monotonic() - begin_s:.0f} s"
        return ("failed", f"{detail}, status {status}") if status else ("passed", detail)
    except LeftOutError as error:
        return "left out", f": {error}"
    except (DevError, OSError) as error:  # one program that is not there ends one part
        say(str(error))
        return "failed", f": {str(error).splitlines()[0]}"
