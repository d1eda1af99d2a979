"""What limits cost by themselves: one decision, 10,000 held subscriptions, a limiter's memory.

Pure CPU, no broker. A decision asks whether an entry may go and charges it, with both dimensions
(messages and bytes) limited at each level. "With room" passes at once; "held" is always at its
limit, so that every entry also waits for its turn and is released by the gate.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

from bench.crowd import Crowd, Timers, core_share
from bench.footprint import BUSY_CHARGES, busy, heap_bytes, idle, idle_again, object_bytes
from bench.report import Table, number
from headgate.base.units import NS_PER_S
from headgate.flow.limits.gate import BrokerGate
from headgate.flow.limits.rate_limit import Level, PerSecond, RateLimit
from headgate.flow.limits.relative import SAMPLE_NS, PublishRate
from headgate.flow.limits.waiter_gate import WaiterGate

ENTRY_BYTES = 1_024
STEP_NS = 20_000
"""From one decision to the next: 50,000 entries a second."""
ROOMY = RateLimit(messages=1_000_000, bytes=1_000_000 * ENTRY_BYTES)
TIGHT_PER_S = 20_000
TIGHT = RateLimit(messages=TIGHT_PER_S, bytes=TIGHT_PER_S * ENTRY_BYTES)
ONE_LEVEL_US_AIM = 2.0
THREE_LEVELS_US_AIM = 5.0
"""A third of the 15 us that a whole delivery may take."""
CROWD = 10_000
CROWD_CORE_PERCENT_AIM = 5.0
IDLE_BYTES_AIM = 500
BUSY_BYTES_AIM = 4_096


def gates(limit: RateLimit, levels: int) -> tuple[BrokerGate, WaiterGate]:
    """A subscription with ``limit`` on itself, then its topic, then the broker."""
    broker = BrokerGate()
    topic = broker.topic()
    subscription = topic.waiter()
    for gate in (subscription, topic, broker)[:levels]:
        gate.set_limit(limit, 0)
    return broker, subscription


def with_room(levels: int, count: int) -> None:
    """Decide ``count`` times where there is always room."""
    _, subscription = gates(ROOMY, levels)
    now_ns = 0
    for _ in range(count):
        now_ns += STEP_NS
        if subscription.limited:
            if subscription.request(now_ns) is not None:
                raise RuntimeError("there is room")
            subscription.charge(now_ns, 1, ENTRY_BYTES)


def held(levels: int, count: int) -> None:
    """Let ``count`` entries go, each as soon as the limit allows it."""
    broker, subscription = gates(TIGHT, levels)
    now_ns = NS_PER_S
    left = count
    while left:
        ready = subscription if subscription.request(now_ns) is None else None
        while ready is None:
            wake_ns = broker.next_wake_ns()
            if wake_ns is None:
                raise RuntimeError("nobody waits")
            now_ns = max(now_ns, wake_ns)
            ready = broker.pop_ready(now_ns)
        ready.charge(now_ns, 1, ENTRY_BYTES)
        left -= 1


def followed(count: int) -> None:
    """Sample a publish rate and put what a relative limit amounts to in force, ``count`` times."""
    _, subscription = gates(ROOMY, 1)
    relative = RateLimit(messages=100, bytes=100 * ENTRY_BYTES, relative=True)
    rate = PublishRate((0, 0, 0), 0)
    for sample in range(1, count + 1):
        now_ns = sample * SAMPLE_NS
        messages = sample * 100 + sample % 7
        rate.sample((messages, messages * ENTRY_BYTES, messages), now_ns)
        per_second = PerSecond(rate.per_second[0], rate.per_second[1])
        subscription.set_limit(relative.above(per_second), now_ns)


def token_bucket(count: int) -> None:
    """The least that a limiter in Python can be: one level, one dimension, no fairness."""
    tokens = limit = 1_000_000.0
    rate_per_ns = limit / NS_PER_S
    refilled_ns = now_ns = 0
    for _ in range(count):
        now_ns += STEP_NS
        tokens = min(limit, tokens + (now_ns - refilled_ns) * rate_per_ns)
        refilled_ns = now_ns
        if tokens < 1:
            raise RuntimeError("there is room")
        tokens -= 1


def cost_us(work: Callable[[int], None], count: int, rounds: int) -> float:
    """CPU of one decision, of the best round: others on the machine only ever add to it."""
    best_s = float("inf")
    for _ in range(rounds):
        began_s = time.process_time()
        work(count)
        best_s = min(best_s, time.process_time() - began_s)
    return best_s / count * 1e6


def tabulate_decisions(count: int, rounds: int) -> Table:
    """The figures of one decision."""
    table = Table("CPU of one dispatch decision and its charge, messages and bytes limited")
    bucket = cost_us(token_bucket, count, rounds)
    table.add("bare token bucket, one level, messages only", f"{number(bucket)} us")
    free = cost_us(partial(with_room, 0), count, rounds)
    table.add("no limit", f"{number(free)} us")
    for levels, aim in ((1, ONE_LEVEL_US_AIM), (3, THREE_LEVELS_US_AIM)):
        name = f"{levels} level{'s' if levels > 1 else ''}"
        cost = cost_us(partial(with_room, levels), count, rounds)
        table.aim(f"{name}, with room", cost, "us", aim)
        cost = cost_us(partial(held, levels), count, rounds)
        table.add(f"{name}, held: waits, turns and releases included", f"{number(cost)} us")
    cost = cost_us(followed, count // 10, rounds)
    table.add("a sample of a publish rate, its relative limit in force", f"{number(cost)} us")
    return table


def tabulate_crowds(rounds: int) -> Table:
    """The figures of many that are held, of the best of so many simulated seconds."""
    table = Table(f"CPU of {CROWD:,} held at one message a second, in simulated time")
    percent, cost = core_share(Timers(CROWD), rounds)
    each = "us for each message"
    table.add("bare heap of timers", f"{number(percent)} % of a core, {number(cost)} {each}")
    for name, level in (("subscriptions", Level.SUBSCRIPTION), ("topics", Level.TOPIC)):
        crowd = Crowd(CROWD, level)
        crowd.run(1)
        percent, cost = core_share(crowd, rounds)
        table.aim(f"limits of {name}", percent, "% of a core", CROWD_CORE_PERCENT_AIM)
        table.add(f"limits of {name}, request to request", f"{number(cost)} {each}")
    return table


def tabulate_memory() -> Table:
    """The figures of one limiter."""
    table = Table("Memory of one limiter in one dimension")
    exact = BUSY_CHARGES * 8
    table.add(f"the times of {BUSY_CHARGES:,} deliveries, 8 bytes each", f"{number(exact)} bytes")
    idle_bytes = max(object_bytes(idle_again(count)) for count in (1, 15, 1_000))
    table.aim("idle, never used", object_bytes(idle()), "bytes", IDLE_BYTES_AIM)
    table.aim("idle, whatever it was used for", idle_bytes, "bytes", IDLE_BYTES_AIM)
    kinds = [
        (entry, rate, period_ns)
        for entry in (1, 1_000, 10**9)
        for rate in (10, 7_000, 10**6)
        for period_ns in (NS_PER_S, 60 * NS_PER_S)
    ]
    busy_bytes = max(object_bytes(busy(*kind)) for kind in kinds)
    table.aim("busy, the most of any entries and rates", busy_bytes, "bytes", BUSY_BYTES_AIM)
    for name, make in (
        ("idle, never used", idle),
        ("idle, used", partial(idle_again, 1_000)),
        ("busy", partial(busy, 1, 7_000, NS_PER_S)),
    ):
        table.add(f"{name}, with its numbers", f"{number(heap_bytes(make))} bytes")
    return table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer decisions")
    options = parser.parse_args()
    count, rounds = (20_000, 3) if options.quick else (50_000, 7)
    tabulate_decisions(count, rounds).print()
    tabulate_crowds(5 if options.quick else 20).print()
    tabulate_memory().print()


if __name__ == "__main__":
    main()
