"""``./dev soak powercuts``: F2 with seeds that no run had before, so many or until it is stopped.

Each seed prints one line with its cuts. A seed that fails prints what broke and the command that
plays it again, and ends the run.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections import Counter

from tests.faults.long_life import live
from tests.faults.test_f02_power_cuts import CUTS_EACH


def main() -> int:
    """Play seeds from the wall clock on. Arguments: how many, and the first, both optional."""
    counts = [int(word) for word in sys.argv[1:]]
    first = counts[1] if len(counts) > 1 else int(time.time()) * 1_000
    seeds = range(first, first + counts[0]) if counts else itertools.count(first)
    total, under_way = 0, Counter[str]()
    for seed in seeds:
        cuts = live(seed, CUTS_EACH)
        total += cuts.count
        under_way += cuts.under_way
        sys.stdout.write(f"seed {seed}: {cuts.count} power cuts, {total:,} in all\n")
        sys.stdout.flush()
    met = ", ".join(f"{what} {count}" for what, count in sorted(under_way.items()))
    sys.stdout.write(f"{total:,} power cuts broke no promise; under way were: {met}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
