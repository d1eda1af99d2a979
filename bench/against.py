"""CPU of an entry and the p99 of a receipt, beside another version of Headgate: at most 3 % more.

The other version is a checkout, or a folder into which ``pip install --target`` put one. Without
one this version is compared with itself, which shows what the noise of the machine makes of a
ratio. Both brokers run at once, and one idles while the other works. They take turns in the order
ABBA, so that a machine that grows slower disturbs both sides alike. A ratio is the geometric mean
over the pairs, with the interval of 95 % that Student's t gives for the logarithms.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bench.client import entry
from bench.latency import PacedPublisher
from bench.messages import BATCH, Cost, Delivery, publish_round
from bench.report import Table, median, number, quantile
from bench.servers import ROOT, Server, headgate, scratch

TIMES_MAX = 1.03
PAIRS = 20
PACED_S = 2.0
"""Of one turn of paced sends: its p99 leaves twenty receipts behind."""
PACED_TOPIC = "persistent://public/default/bench-paced"
T_95 = {10: 2.26, 20: 2.09, 40: 2.02, 60: 2.0}
"""Student's t for an interval of 95 %, by the number of pairs; a smaller number than the pairs at
hand has the wider interval."""


@dataclass
class Side:
    """One version: its broker, and the figures of each of its turns by the kind of work."""

    server: Server
    count: int
    figures: dict[str, list[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._delivery = Delivery(self.server, self.count)
        self._paced = PacedPublisher(self.server.port, PACED_TOPIC, entry())

    def turns(self) -> dict[str, Callable[[], None]]:
        """One turn of each kind of work."""
        return {
            "publish": partial(self._publish, "publish", 1),
            "publish by 4 producers": partial(self._publish, "publish by 4 producers", 4),
            f"publish of a batch of {BATCH}": partial(
                self._publish, f"publish of a batch of {BATCH}", 1, BATCH
            ),
            "delivery from memory": self._deliver,
            "receipt at 1,000 /s": self._pace,
        }

    def _publish(self, name: str, producers: int, batch: int = 0) -> None:
        cost = Cost()
        publish_round(self.server, cost, self.count // 2 if batch else self.count, producers, batch)
        self._note(f"{name}, CPU", cost.cpu_us[0])

    def _deliver(self) -> None:
        cost = Cost()
        self._delivery.round(cost)
        self._note("delivery from memory, CPU", cost.cpu_us[0])

    def _pace(self) -> None:
        before_ns = self.server.cpu_ns()
        latencies_ms = self._paced.run(PACED_S)
        cpu_us = (self.server.cpu_ns() - before_ns) / 1_000 / len(latencies_ms)
        self._note("receipt at 1,000 /s, CPU", cpu_us)
        self._note("receipt at 1,000 /s, p50", quantile(latencies_ms, 0.5))
        self._note("receipt at 1,000 /s, p99", quantile(latencies_ms, 0.99))

    def _note(self, name: str, value: float) -> None:
        self.figures.setdefault(name, []).append(value)


def ratio(before: list[float], after: list[float]) -> tuple[float, float, float]:
    """The geometric mean of ``after / before`` over the pairs, and the ends of its interval."""
    logs = [math.log(b / a) for a, b in zip(before, after, strict=True)]
    mean = statistics.mean(logs)
    known = [t for pairs, t in T_95.items() if pairs <= len(logs)]
    spread = (known[-1] if known else 4.3) * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), math.exp(mean - spread), math.exp(mean + spread)


def measure(folder: Path, other: Path, pairs: int, count: int) -> Table:
    """Let both versions do each kind of work in turns."""
    with ExitStack() as stack:
        servers = (headgate(folder, name="other", source=other), headgate(folder, name="this"))
        for server in servers:
            stack.callback(server.close)
        old, new = (Side(server, count) for server in servers)
        works = list(zip(old.turns().values(), new.turns().values(), strict=True))
        for turn in range(pairs):
            for work in works:
                for side in reversed(work) if turn % 2 else work:
                    side()
    table = Table(f"This version beside that of {other}, {pairs} pairs in the order ABBA")
    for name, before in old.figures.items():
        after = new.figures[name]
        unit = "us" if name.endswith("CPU") else "ms"
        times, low, high = ratio(before, after)
        medians = f"{number(median(before))} and {number(median(after))} {unit}"
        note = f"95 % {low:.3f} to {high:.3f}; {medians}"
        if name.endswith("p50"):
            table.add(name, f"{number(times)} times  ({note})")
        else:
            table.check(name, times, "times", TIMES_MAX, note=note)
    return table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "other",
        type=Path,
        nargs="?",
        default=ROOT / "src",
        help="the folder of the other version's packages; by default this one, beside itself",
    )
    parser.add_argument("--pairs", type=int, default=PAIRS, help="at least ten for a claim")
    parser.add_argument("--count", type=int, default=20_000, help="entries in each turn")
    options = parser.parse_args()
    with scratch() as folder:
        measure(folder, options.other.resolve(), options.pairs, options.count).print()


if __name__ == "__main__":
    main()
