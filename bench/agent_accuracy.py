"""How often the agent's verdict is the one that a broker measured, by the period of its looks.

Headgate's own broker plays each situation in virtual time, once for each rate. It is seen through
statistics as Apache Pulsar 4.0 has them, at several periods at once. "Settling" counts as wrong.
The interval is Wilson's at 95 %.
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from typing import Final

from bench.report import Table
from tests.sim.agentsim.oracle import Answer, Run
from tests.sim.agentsim.situations import SITUATIONS

PERIODS_S: Final = (1.0, 5.0, 15.0, 60.0)
JUDGED_AT_S: Final = (61.7, 301.3)
LEAST_PERCENT: Final = {(61.7, 1.0): 90.0, (301.3, 5.0): 95.0}
FACTORS: Final = (0.6, 1.0, 1.3)
_Z: Final = 1.96


def answers(work: tuple[int, float]) -> list[Answer]:
    """The answers about one situation at one rate."""
    place, factor = work
    return list(Run(SITUATIONS[place], factor, PERIODS_S).play(JUDGED_AT_S))


def interval(right: int, count: int) -> tuple[float, float]:
    """The 95 % interval of a share."""
    share = right / count
    middle = share + _Z**2 / (2 * count)
    reach = _Z * math.sqrt(share * (1 - share) / count + _Z**2 / (4 * count**2))
    return (middle - reach) / (1 + _Z**2 / count), (middle + reach) / (1 + _Z**2 / count)


def main() -> None:
    """Play all, print the table and every wrong answer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--factors", type=float, nargs="+", default=list(FACTORS))
    options = parser.parse_args()
    work = [(place, factor) for factor in options.factors for place in range(len(SITUATIONS))]
    by_kind: dict[tuple[float, float], list[Answer]] = defaultdict(list)
    with ProcessPoolExecutor(options.processes) as pool:
        for found in pool.map(answers, work):
            for answer in found:
                by_kind[answer.at_s, answer.period_s].append(answer)
    table = Table("the agent's verdicts that are those of the broker")
    for (at_s, period_s), asked in sorted(by_kind.items()):
        right = sum(answer.is_right for answer in asked)
        low, high = interval(right, len(asked))
        name = (
            f"after {round(at_s / 60)} min of a look each {period_s:g} s: {right} of {len(asked)}"
        )
        name += f" ({low:.0%} to {high:.0%})"
        share = 100 * right / len(asked)
        least = LEAST_PERCENT.get((at_s, period_s))
        if least is None:
            table.add(name, f"{share:.1f} %")
        else:
            table.check_least(name, share, "%", least)
    table.print()
    for asked in by_kind.values():
        for answer in asked:
            if not answer.is_right:
                print(answer)


if __name__ == "__main__":
    main()
