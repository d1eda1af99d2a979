"""What every generator of committed files does in the end: write them, or say which are stale."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def write_or_check(description: str | None, generate: Callable[[], Mapping[Path, str]]) -> int:
    """Carry out a generator's command line; the exit status.

    ``generate`` gives each file's path below the repository root, and its text. With ``--check``
    nothing is written, and the status is 1 if a file differs.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    stale = 0
    for relative, text in generate().items():
        path = ROOT / relative
        if path.exists() and path.read_text("utf-8") == text:
            continue
        stale += 1
        if check:
            print(f"stale: {relative}", file=sys.stderr)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
    return 1 if check and stale else 0
