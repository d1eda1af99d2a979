"""``./dev bench``: runs what is in ``bench/``."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from devkit.console import DevError
from devkit.paths import ROOT
from devkit.processes import shown

LIMIT_S: Final = 7_200
"""Of one bench, the peer beside it included."""


def benches() -> dict[str, str]:
    """Each bench that can be run, with the first line of what it says about itself."""
    found = {}
    for path in sorted((ROOT / "bench").glob("*.py")):
        text = path.read_text()
        if "__main__" in text:
            found[path.stem] = (ast.get_docstring(ast.parse(text)) or "").split("\n")[0]
    return found


def run_benches(python: Path, arguments: Sequence[str]) -> int:
    """Run one bench with its own arguments, or ``all``; with no name, list them.

    Raises:
        DevError: no bench has that name.
    """
    known = benches()
    if not arguments:
        print("./dev bench NAME [ARGS], or ./dev bench all:")
        for name, line in known.items():
            print(f"  {name:<20} {line}")
        return 0
    name, *rest = arguments
    names = list(known) if name == "all" else [name]
    for each in names:
        if each not in known:
            raise DevError(f"There is no bench {each!r}: {', '.join(known) or 'none'} is there")
    return max(_run(python, each, rest) for each in names)


def _run(python: Path, name: str, arguments: Sequence[str]) -> int:
    print(f"\n=== {name}", flush=True)
    command = [str(python), "-m", f"bench.{name}", *arguments]
    return shown(command, LIMIT_S, ROOT)
