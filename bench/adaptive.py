"""What a cycle of adaptive publish throttling costs by itself, and what a topic's state takes.

Pure CPU, no broker: for each of many topics that all published, what memory asks of it and what the
law says. The tuple of its signals is made in the loop, gathering them is not.
"""

from __future__ import annotations

import argparse
import gc
import time
import tracemalloc
from collections.abc import Callable

from bench.report import Table, median
from headgate.base.units import MIB, NS_PER_S
from headgate.flow.adaptive.cycle import AdaptiveSettings, Cycle, Law, TopicSignals
from headgate.flow.adaptive.memory_share import MemoryAttribution
from headgate.flow.adaptive.topic import TopicControl

TOPICS = 100_000
MESSAGES = 1_000
MESSAGE_BYTES = 1_000
CALM_US_MAX = 2.0
CYCLE_MS_MAX = 300.0
STATE_BYTES_AIM = 500


class Crowd:
    """Topics that all publish at the same rate."""

    def __init__(self, count: int) -> None:
        self.controls = [TopicControl() for _ in range(count)]
        self.attribution = MemoryAttribution()
        self._now_ns = 0
        self._published = 0

    def _next(self, law: Law, memory: float) -> Cycle:
        self._now_ns += NS_PER_S
        self._published += MESSAGES
        self.attribution.begin_cycle(memory, memory, self._now_ns)
        return Cycle(AdaptiveSettings(law=law), self._now_ns, NS_PER_S)

    def calm(self) -> None:
        """A cycle over topics without quotas, while memory is clear."""
        cycle, published = self._next(Law.PRESSURE, 0.0), self._published
        size_bytes = published * MESSAGE_BYTES
        pressure_on = self.attribution.pressure_on
        for control in self.controls:
            pressure_on(control.memory_baseline, MESSAGE_BYTES)
            control.learn_rate(published, size_bytes, False, cycle)

    def quotas(self, law: Law, memory: float = 0.0, held_bytes: int = MESSAGE_BYTES) -> None:
        """A cycle over topics with a quota of which hardly anything is taken."""
        cycle, published = self._next(law, memory), self._published
        size_bytes = published * MESSAGE_BYTES
        pressure_on = self.attribution.pressure_on
        for control in self.controls:
            signals = TopicSignals(
                published, size_bytes, False, False, MESSAGE_BYTES, 100 * MIB, 5, None,
                size_bytes - MESSAGE_BYTES,
            )  # fmt: skip
            control.evaluate(signals, cycle, pressure_on(control.memory_baseline, held_bytes))

    def slowed(self) -> None:
        """A cycle in which memory presses on all of them: each has a decision at first."""
        memory = 0.5 + self._now_ns // NS_PER_S % 4 * 0.1
        self.quotas(Law.PRESSURE, memory, held_bytes=MIB)


def cycle_ms(cycle: Callable[[], None], rounds: int) -> float:
    """The median CPU time of a cycle."""
    times_ms = []
    for _ in range(rounds):
        begun_ns = time.process_time_ns()
        cycle()
        times_ms.append((time.process_time_ns() - begun_ns) / 1e6)
    return median(times_ms)


def state_bytes(count: int) -> float:
    """Memory of one topic's state once its rate is known; the list's place included."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    crowd = Crowd(count)
    for _ in range(3):
        crowd.calm()
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return taken / count


def main() -> None:
    """Run and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer topics and rounds")
    quick = parser.parse_args().quick
    count, rounds = (20_000, 3) if quick else (TOPICS, 7)
    table = Table(f"adaptive: a cycle over {count:,} topics that all published")
    crowd = Crowd(count)
    gc.freeze()
    for name, cycle in (
        ("no quota, memory clear", crowd.calm),
        ("a quota, law pressure", lambda: crowd.quotas(Law.PRESSURE)),
        ("a quota, law drain", lambda: crowd.quotas(Law.DRAIN)),
    ):
        cycle()
        taken_ms = cycle_ms(cycle, rounds)
        table.check(name, taken_ms, "ms", CYCLE_MS_MAX * count / TOPICS)
        each_us = taken_ms * 1e3 / count
        if name.startswith("no quota"):
            table.check("  a topic", each_us, "us", CALM_US_MAX)
        else:
            table.add("  a topic", f"{each_us:.2f} us")
    slowed_ms = cycle_ms(crowd.slowed, rounds)
    table.add("all slowed, most limits change", f"{slowed_ms:.0f} ms")
    table.aim("state of a topic", state_bytes(min(count, 20_000)), "bytes", STATE_BYTES_AIM)
    table.print()


if __name__ == "__main__":
    main()
