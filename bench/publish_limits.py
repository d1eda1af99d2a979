"""What publish limits cost: an append without them, under one that does not bind, and a held one.

Engine and log without disk and sockets: the way of an entry from the SEND's arguments to its
receipt and its acknowledgement, with the same work without limits in the same run. The sides take
turns, and figures are medians of the pairs. Held ones wait in simulated time: each SEND is parked,
waits for its turn, and is staged at the instant at which its limit allows it.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Callable

from bench.quota_engine import Rig
from bench.report import Table, number
from headgate.base.units import NS_PER_MS
from headgate.engine.producer import Producer
from headgate.flow.limits.rate_limit import RateLimit
from headgate.flow.quota.backlog_quota import NO_QUOTAS

ROOMY_MESSAGES = RateLimit(messages=1_000_000_000, bytes=None)
ROOMY = RateLimit(messages=1_000_000_000, bytes=1 << 50)
"""Far above: the limit is asked and charged for each entry, and never binds."""
LIFTED_US_MAX = 0.05
"""A limit that was removed: its topic's append is one comparison again."""
ROOM_US_MAX = 1.0
TWO_LEVELS_US_AIM = 2.0
HELD_US_AIM = 15.0
"""As much as a whole delivery may take."""
TIGHT_PER_S = 20_000
SLICE_ENTRIES = 160
"""What a slice of that carries: so many share a commit."""


def limit(rig: Rig, of_topics: RateLimit | None, of_broker: RateLimit | None) -> None:
    """Put limits in force."""
    for topic in rig.engine.topics.values():
        topic.publishing.limit = of_topics
        rig.engine.admission.put_in_force(topic)
    rig.engine.admission.set_broker_limit(of_broker)


def tabulate_path(entries: int, pairs: int) -> Table:
    """An entry's way under limits that do not bind against that without."""
    table = Table("CPU of an entry of 1 KiB from its SEND to its acknowledgement")
    rigs = {name: Rig(NO_QUOTAS) for name in ("off", "lifted", "messages", "topic", "both")}
    limit(rigs["messages"], ROOMY_MESSAGES, None)
    for name in ("lifted", "topic", "both"):
        limit(rigs[name], ROOMY, ROOMY if name == "both" else None)
    limit(rigs["lifted"], None, None)
    for rig in rigs.values():
        rig.cycle(entries)
    costs: dict[str, list[float]] = {name: [] for name in rigs}
    gc.disable()
    for _ in range(pairs):
        for name, rig in rigs.items():
            began_s = time.process_time()
            rig.cycle(entries)
            costs[name].append((time.process_time() - began_s) / entries * 1e6)
    gc.enable()
    table.add("no limit", f"{number(statistics.median(costs['off']))} us")
    more = {
        name: statistics.median(a - b for a, b in zip(costs[name], costs["off"], strict=True))
        for name in rigs
    }
    table.check("a limit that was removed, above that", more["lifted"], "us", LIFTED_US_MAX)
    table.check("messages of a topic, above that", more["messages"], "us", ROOM_US_MAX)
    table.aim("messages and bytes of a topic, above that", more["topic"], "us", ROOM_US_MAX)
    table.aim("of topic and broker, above that", more["both"], "us", TWO_LEVELS_US_AIM)
    return table


class HeldRig(Rig):
    """Topics whose producers send more than a limit allows."""

    def __init__(self, topics: int, producers: int) -> None:
        """``producers`` in all, on ``topics`` in turn."""
        super().__init__(NO_QUOTAS, topics=topics, retain_bodies=False)
        self.engine.limits.parked_bytes_per_connection_max = 1 << 50
        self.engine.limits.parked_bytes_max = 1 << 50
        self._held = []
        for index in range(producers):
            topic = self._topics[index % topics]
            producer = Producer(2 + index, f"held{index}", self._port)
            topic.add_producer(producer)
            self._held.append((topic, producer))

    def hold(self, entries: int) -> None:
        """Park so many entries and let them go, each at its instant."""
        for index in range(entries):
            topic, producer = self._held[index % len(self._held)]
            topic.publishing.publish(producer, index, 0, 1, self._body)
        while (wake_ns := self.engine.next_wake_ns()) is not None:
            now_ns = max(wake_ns, self.engine.now_ns)
            self.engine.begin_turn(now_ns, self._effects.now_ms, self._effects.now_ms)
            self.settle()
            self._commit()
        now_ms = self._effects.now_ms
        self.engine.begin_turn(self.engine.now_ns + NS_PER_MS, now_ms, now_ms)

    def pass_freely(self, entries: int) -> None:
        """Publish so many entries without a limit, a slice's worth in each commit."""
        for first in range(0, entries, SLICE_ENTRIES):
            self._turn()
            for index in range(first, first + SLICE_ENTRIES):
                topic, producer = self._held[index % len(self._held)]
                topic.publishing.publish(producer, index, 0, 1, self._body)
            self._commit()
            self.settle()


def tabulate_held(entries: int, rounds: int) -> Table:
    """The figures of SENDs that wait."""
    table = Table(f"CPU of a SEND that is held, at {TIGHT_PER_S:,} messages a second in all")
    tight = RateLimit(messages=TIGHT_PER_S, bytes=None)
    for who, what, topics, producers, at_broker in (
        ("one producer", "its topic's limit", 1, 1, False),
        ("1,000 producers", "their topic's limit", 1, 1_000, False),
        ("1,000 topics", "the broker's limit", 1_000, 1_000, True),
    ):
        free = HeldRig(topics, producers)
        free_us = best_us(free.pass_freely, entries, rounds)
        table.add(f"{who}, no limit", f"{number(free_us)} us")
        rig = HeldRig(topics, producers)
        limit(rig, None if at_broker else tight, tight if at_broker else None)
        rig.hold(TIGHT_PER_S)  # the burst that a limit that was idle lets through
        cost_us = best_us(rig.hold, entries, rounds)
        table.aim(f"{who}, {what}, above that", cost_us - free_us, "us", HELD_US_AIM)
    return table


def best_us(work: Callable[[int], None], entries: int, rounds: int) -> float:
    """CPU of an entry, of the best round: others on the machine only ever add to it."""
    best_s = float("inf")
    for _ in range(rounds):
        began_s = time.process_time()
        work(entries)
        best_s = min(best_s, time.process_time() - began_s)
    return best_s / entries * 1e6


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="less of everything")
    options = parser.parse_args()
    quick: bool = options.quick
    tabulate_path(2_000, 15 if quick else 61).print()
    tabulate_held(20_000, 2 if quick else 5).print()


if __name__ == "__main__":
    main()
