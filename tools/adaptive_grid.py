"""Play adaptive throttling's laws against every load, quota and seed, and print what they did.

Without the quotas' own hold, so that it shows what the laws are worth alone.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import product

from headgate.flow.adaptive.cycle import Law
from headgate.testing.adaptive_scenes import LOADS, QUOTAS_S, Outcome, memory_scene, outcome

LIGHT_TOPICS = 50


def line(found: Sequence[Outcome]) -> str:
    """The worst of the scenes of one load, law and quota."""
    first = found[0]
    over = sum(outcome.highest > 1 for outcome in found)
    return (
        f"{first.law:<9}{first.quota_s:>4} s  {first.load:<27}"
        f"{max(outcome.highest for outcome in found):>7.2f}{over:>6}"
        f"{100 * min(outcome.used for outcome in found):>8.1f} %"
        f"{max(outcome.activations / outcome.disturbances for outcome in found):>8.2f}"
    )


def memory_line(law: Law, seeds: int) -> tuple[str, bool]:
    """What shared memory came to; whether the light topics kept their rate and all were let go."""
    plants = [memory_scene(law, seed) for seed in range(seeds)]
    highest = max(plant.memory_max / plant.memory_limit for plant in plants)
    slowed = sum(bool(topic.decisions) for plant in plants for topic in plant.topics[:LIGHT_TOPICS])
    limited = sum(topic.limit is not None for plant in plants for topic in plant.topics)
    text = f"{law:<9}memory: at most {highest:.2f} of the limit, {slowed} light topics slowed"
    return f"{text}, {limited} limits left", not slowed and not limited and highest < 1


def main(seeds: int) -> int:
    """Print a line for each load and the promises that were broken."""
    print(f"{seeds} seeds, consumers that acknowledge at once and in lumps; the worst of each")
    print("law      quota  load                       highest  over    used  activations/change")
    broken = []
    for law, quota_s, load in product(Law, QUOTAS_S, LOADS):
        found = [
            outcome(load, law, quota_s, seed, lumps=lumps)
            for seed, lumps in product(range(seeds), (False, True))
        ]
        print(line(found), flush=True)
        if law is Law.DRAIN:
            broken += [one for one in found if one.broken()]
    is_kept = True
    for law in Law:
        text, kept = memory_line(law, min(seeds, 10))
        print(text, flush=True)
        is_kept = is_kept and kept
    for one in broken:
        print(f"BROKEN: {', '.join(one.broken())}: {one}")
    print("every promise kept" if is_kept and not broken else "promises broken")
    return 0 if is_kept and not broken else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
