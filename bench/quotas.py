"""What backlog quotas cost: an append and an acknowledgement, a sweep, memory, a million holes.

Engine and log without disk and sockets: the way of an entry from the SEND's arguments to its
receipt and its acknowledgement, with the same work without quotas in the same run. The two take
turns, and the figure is the median of the pairs, since the machine's speed changes by more than is
measured.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
import tracemalloc

from bench.quota_engine import Rig
from bench.report import Table, number
from headgate.base.units import MIB
from headgate.broker.slices import SLICE_TOPICS
from headgate.flow.quota.backlog_quota import NO_QUOTAS, Quota, QuotaPolicy, Quotas, QuotaType

COST_PERCENT_MAX = 5.0
SWEEP_TOPICS = 100_000
SWEEP_MS_MAX = 200.0
SLICE_MS_MAX = 5.0
TOPIC_BYTES_MAX = 200.0
HOLES = 1_000_000
HOLES_MIB_MAX = 100.0

FAR = Quotas(
    Quota(QuotaType.SIZE, 1 << 40, QuotaPolicy.HOLD, "namespace policy acme/ns"),
    Quota(QuotaType.TIME, 3_600_000, QuotaPolicy.EVICTION, "namespace policy acme/ns"),
)
"""Both types, far away: what a topic that is well within its quotas pays."""
NEAR_BYTES = 200 * 1_024
"""A size quota that the entries of one round stay below by less than two rounds."""
NEAR = Quotas(Quota(QuotaType.SIZE, NEAR_BYTES, QuotaPolicy.HOLD, "topic policy"), FAR.time)


def tabulate_path(entries: int, pairs: int) -> Table:
    """Append and acknowledgement with quotas against those without."""
    table = Table("CPU of an entry of 1 KiB from its SEND to its acknowledgement")
    rigs = {"off": Rig(NO_QUOTAS), "far": Rig(FAR), "near": Rig(NEAR)}
    for rig in rigs.values():
        rig.cycle(entries)
    costs: dict[str, list[float]] = {name: [] for name in rigs}
    gc.disable()
    for _ in range(pairs):
        for name, rig in rigs.items():
            began_s = time.process_time()
            rig.cycle(entries)
            costs[name].append(time.process_time() - began_s)
    gc.enable()
    off_us = statistics.median(costs["off"]) / entries * 1e6
    table.add("no quota", f"{number(off_us)} us")
    for name, what in (("far", "both quotas, far from their limits"), ("near", "size quota near")):
        ratios = [own / off for own, off in zip(costs[name], costs["off"], strict=True)]
        percent = (statistics.median(ratios) - 1) * 100
        table.check(f"{what}, above that", percent, "%", COST_PERCENT_MAX)
    return table


def tabulate_sweep(topics: int) -> Table:
    """A sweep over many topics with a backlog each."""
    table = Table(f"A sweep over {topics:,} topics with both quotas and a backlog")
    rig = Rig(FAR, topics=topics)
    rig.one_each()
    keeper, loaded = rig.engine.quotas, list(rig.engine.topics.values())
    active = sum(t.quota is not None and t.quota.is_active for t in loaded)
    if active != topics:
        raise RuntimeError(f"{active} of {topics} topics are followed")
    best_ms, worst_slice_ms = float("inf"), 0.0
    for _ in range(5):
        total_s, slices = 0.0, []
        for start in range(0, topics, SLICE_TOPICS):
            began_s = time.process_time()
            keeper.verify(loaded[start : start + SLICE_TOPICS])
            slices.append(time.process_time() - began_s)
        total_s = sum(slices)
        best_ms = min(best_ms, total_s * 1e3)
        worst_slice_ms = max(worst_slice_ms, statistics.median(slices) * 1e3)
    if keeper.defects_count:
        raise RuntimeError(f"{keeper.defects_count} defects")
    table.check("CPU of the sweep", best_ms, "ms", SWEEP_MS_MAX * topics / SWEEP_TOPICS)
    table.check("median slice of 500 topics", worst_slice_ms, "ms", SLICE_MS_MAX)
    return table


def tabulate_memory(topics: int) -> Table:
    """What one more topic takes with quotas, above what it takes without."""
    table = Table("Memory of one live topic with one subscription")
    sizes = {}
    for name, quotas, used in (
        ("no quota", NO_QUOTAS, False),
        ("both quotas, nothing owed", FAR, False),
        ("no quota, a backlog", NO_QUOTAS, True),
        ("both quotas, a backlog", FAR, True),
    ):
        Rig(quotas, topics=100).one_each()  # what is made once
        gc.collect()
        tracemalloc.start()
        rig = Rig(quotas, topics=topics)
        if used:
            rig.one_each()
        else:
            rig.settle()
        sizes[name] = tracemalloc.get_traced_memory()[0] / topics
        tracemalloc.stop()
        table.add(name, f"{number(sizes[name])} bytes")
        del rig
    idle = sizes["both quotas, nothing owed"] - sizes["no quota"]
    owing = sizes["both quotas, a backlog"] - sizes["no quota, a backlog"]
    table.check("a quota on a topic that owes nothing", idle, "bytes", TOPIC_BYTES_MAX)
    table.check("a quota on a topic with a backlog", owing, "bytes", TOPIC_BYTES_MAX)
    return table


def tabulate_holes(holes: int) -> Table:
    """A backlog with every other entry acknowledged by itself, and its eviction."""
    table = Table(f"A backlog with {holes:,} holes: every other entry acknowledged one by one")
    gc.collect()
    rig = Rig(NO_QUOTAS, body_bytes=100, retain_bodies=False)
    rig.publish_only(2 * holes)
    gc.collect()
    tracemalloc.start()
    began_s = time.process_time()
    rig.ack_every_other()
    took_s = time.process_time() - began_s
    gc.collect()
    held_mib = tracemalloc.get_traced_memory()[0] / MIB
    tracemalloc.stop()
    table.check("what the holes take", held_mib, "MiB", HOLES_MIB_MAX)
    subscription = rig.subscription
    owed = holes * rig.entry_bytes
    if (subscription.backlog_bytes, subscription.acks.ranges_count) != (owed, holes):
        raise RuntimeError(f"{subscription.backlog_bytes} bytes owed, not {owed}")
    table.add("an acknowledgement, while memory is traced", f"{number(took_s / holes * 1e6)} us")
    limit = owed
    rig.set_quotas(Quotas(Quota(QuotaType.SIZE, limit, QuotaPolicy.EVICTION, "topic policy"), None))
    began_s = time.process_time()
    rig.settle()
    evicting_ms = (time.process_time() - began_s) * 1e3
    left = subscription.backlog_bytes
    if not limit * 9 // 10 - rig.entry_bytes < left <= limit * 9 // 10:
        raise RuntimeError(f"{left} bytes are left of {limit}")
    table.add(f"evicting {holes // 10:,} entries between holes", f"{number(evicting_ms)} ms")
    return table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="less of everything")
    options = parser.parse_args()
    quick: bool = options.quick
    tabulate_path(2_000, 15 if quick else 61).print()
    tabulate_sweep(10_000 if quick else SWEEP_TOPICS).print()
    tabulate_memory(2_000).print()
    tabulate_holes(HOLES // 10 if quick else HOLES).print()


if __name__ == "__main__":
    main()
