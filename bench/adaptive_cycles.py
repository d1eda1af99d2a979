"""What adaptive publish throttling costs: a cycle over many topics, and a publish beside it.

The controller and the engine without disk, sockets and loop: a cycle's slices run one after the
other, and each is timed. The physical limit beside it is the bare reading of the same counters. The
publish path is that of ``quotas``: with the controller against without, in turns, median of pairs.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import statistics
import time
from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from bench.quota_engine import Rig
from bench.report import Table, number
from headgate.base.clock import Clock
from headgate.base.units import NS_PER_S
from headgate.control.adaptive import AdaptiveThrottle
from headgate.flow.limits.precedence import NO_LIMIT
from headgate.flow.quota.backlog_quota import NO_QUOTAS, Quota, QuotaPolicy, Quotas, QuotaType
from headgate.policy.current_limits import CurrentPublishLimits
from headgate.policy.settings import Settings

TOPICS = 100_000
CYCLE_MS_MAX = 300.0
SLICE_MS_MAX = 5.0
FEW = 1_000
FEW_MS_MAX = 5.0
PUBLISH_US_MAX = 1.0
CYCLES = 5
HOLDING = Quotas(Quota(QuotaType.SIZE, 1 << 40, QuotaPolicy.HOLD, "namespace policy acme/ns"), None)


class _Memory:
    """Memory that a round fills."""

    limit_bytes = 100

    def __init__(self) -> None:
        self.used = 0

    def used_bytes(self) -> int:
        return self.used


class _Loop:
    """Keeps the next step until the bench takes it."""

    def __init__(self) -> None:
        self.steps: deque[Callable[[], None]] = deque()

    def call_soon(self, step: Callable[[], None]) -> None:
        self.steps.append(step)

    def call_later(self, _delay_s: float, _step: Callable[[], None]) -> Any:
        return SimpleNamespace(cancel=lambda: None)


class Controlled:
    """Topics of one engine under a controller."""

    def __init__(self, topics: int, quotas: Quotas) -> None:
        self.rig = Rig(quotas, topics=topics)
        self.memory, self._loop = _Memory(), _Loop()
        engine = self.rig.engine
        unlimited = SimpleNamespace(of_broker=lambda: NO_LIMIT, of_topic=lambda _: NO_LIMIT)
        self.throttle = AdaptiveThrottle(
            engine,
            Settings(),
            CurrentPublishLimits(unlimited),
            self.memory,
            loop=cast(asyncio.AbstractEventLoop, self._loop),
            clock=cast(Clock, SimpleNamespace(monotonic_ns=time.thread_time_ns)),
            begin_turn=lambda: None,
            run_in_slices=list,
        )
        self.throttle.start()

    def cycle(self) -> list[float]:
        """All slices of one cycle, in seconds of CPU each, a second after the one before."""
        engine = self.rig.engine
        now_ms = engine.now_ms + 1_000
        engine.begin_turn(engine.now_ns + NS_PER_S, now_ms, now_ms)
        slices = []
        step: Callable[[], None] = self.throttle._begin
        while True:
            began_s = time.thread_time()
            step()
            slices.append(time.thread_time() - began_s)
            if not self._loop.steps:
                return slices
            step = self._loop.steps.popleft()


def tabulate_cycles(topics: int, quotas: Quotas, what: str, *, pressed: bool) -> Table:
    """Cycles in which every topic has published."""
    table = Table(f"A cycle over {topics:,} topics that published, {what}")
    played = Controlled(topics, quotas)
    totals: list[float] = []
    worst: list[float] = []
    for _ in range(CYCLES):
        played.rig.one_each()
        played.memory.used = 80 if pressed and totals else 0
        gc.collect()
        gc.disable()
        slices = played.cycle()
        gc.enable()
        totals.append(sum(slices) * 1e3)
        worst.append(max(slices) * 1e3)
    if len(played.rig.engine.published or ()) or played.throttle.status.failures:
        raise RuntimeError("a cycle did not look at everything")
    bound = CYCLE_MS_MAX * topics / TOPICS if topics > FEW else FEW_MS_MAX
    table.check("CPU of the cycle", statistics.median(totals[1:]), "ms", bound)
    table.check("longest slice, median", statistics.median(worst[1:]), "ms", SLICE_MS_MAX)
    table.add("bare reading of two counters of each", f"{number(bare_ms(played.rig))} ms")
    return table


def bare_ms(rig: Rig) -> float:
    """CPU of asking every topic's log for its two counters."""
    logs = [topic.log for topic in rig.engine.topics.values()]
    began_s = time.thread_time()
    for log in logs:
        end = log.end
        log.messages_before(end)
        log.bytes_before(end)
    return (time.thread_time() - began_s) * 1e3


def tabulate_publish(entries: int, pairs: int) -> Table:
    """Append and acknowledgement with a controller that limits nobody, against those without."""
    table = Table("CPU of an entry of 1 KiB from its SEND to its acknowledgement")
    rigs = {"off": Rig(NO_QUOTAS), "again": Rig(NO_QUOTAS), "on": Rig(NO_QUOTAS)}
    rigs["on"].engine.published = {}
    costs: dict[str, list[float]] = {name: [] for name in rigs}
    for rig in rigs.values():
        rig.cycle(entries)
    gc.disable()
    for _ in range(pairs):
        for name, rig in rigs.items():
            began_s = time.process_time()
            rig.cycle(entries)
            costs[name].append((time.process_time() - began_s) / entries * 1e6)
    gc.enable()
    off_us = statistics.median(costs["off"])
    table.add("without a controller", f"{number(off_us)} us")
    for name, what in (("again", "the same once more (noise)"), ("on", "with one that is calm")):
        pair = zip(costs[name], costs["off"], strict=True)
        more_us = statistics.median(own - off for own, off in pair)
        table.check(f"{what}, above that", more_us, "us", PUBLISH_US_MAX)
    return table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="less of everything")
    quick: bool = parser.parse_args().quick
    many = 10_000 if quick else TOPICS
    tabulate_publish(2_000, 15 if quick else 61).print()
    tabulate_cycles(FEW, HOLDING, "with a size quota", pressed=False).print()
    tabulate_cycles(many, NO_QUOTAS, "without quotas", pressed=False).print()
    tabulate_cycles(many, HOLDING, "with a size quota", pressed=False).print()
    tabulate_cycles(many, HOLDING, "with a size quota, memory pressed", pressed=True).print()


if __name__ == "__main__":
    main()
