"""``./dev soak races``: races with seeds that no run had before, so many.

Each seed prints one line. One that fails prints what it found and the command that plays it again,
and the others go on.
"""

from __future__ import annotations

import sys
import time
import traceback

from tests.sim.racesim.search import search

PHASES = 20


def main() -> int:
    """Play seeds from the wall clock on. Arguments: how many, and the first, which is optional."""
    counts = [int(word) for word in sys.argv[1:]]
    first = counts[1] if len(counts) > 1 else int(time.time()) * 1_000
    failed: list[int] = []
    for seed in range(first, first + counts[0]):
        try:
            played = search(seed, PHASES)
        except Exception:
            failed.append(seed)
            text = f"seed {seed} failed; python -m tests.sim.more_races 1 {seed} plays it again\n"
            sys.stdout.write(f"{traceback.format_exc()}{text}")
        else:
            requests_count = sum(played.requests.values())
            text = f"seed {seed}: {played.commands_count} commands, {requests_count} requests\n"
            sys.stdout.write(text)
        sys.stdout.flush()
    sys.stdout.write(f"{len(failed)} of {counts[0]} seeds failed: {failed}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
