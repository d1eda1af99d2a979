"""Publish latency while segments are rewritten at full rate, beside the same without rewriting.

A broker holds four topics whose messages share all segments. Two of them are deleted, so half of
each segment is pinned. The rate of the rewriting is then set to its default and to 0 in turns, in
the order ABBA, and receipts are timed at 1,000 messages a second.
"""

from __future__ import annotations

import argparse
import re
import time
from pathlib import Path

from bench.client import Publisher, Subscriber, entry, publish
from bench.latency import RATE_PER_S, TOPIC, PacedPublisher, Samples
from bench.report import Table, median, number
from bench.servers import Server, headgate, scratch
from bench.turn_admin import ask
from headgate.base.units import MIB
from headgate.policy.settings import Settings
from headgate.wire.codes import SubscriptionType

PAIRS = 10
TURN_S = 1.0
SETTLE_S = 1.2
"""The broker looks once a second whether it may rewrite."""
KEY = "headgateRewriteBytesPerSecond"
TIMES_MAX = 1.2
TOPICS = tuple(f"persistent://public/default/pinned-{at}" for at in range(4))
ENTRIES_EACH = 240_000
ROUND = 300
"""Entries that each topic gets before the next round, so that they lie close together."""


def pin(server: Server, port: int) -> None:
    """Fill segments, then release half of each."""
    for topic in TOPICS:
        Subscriber(server.port, topic, "holds", SubscriptionType.EXCLUSIVE).close()
    publishers = [Publisher(server.port, topic, entry()) for topic in TOPICS]
    for _ in range(ENTRIES_EACH // ROUND):
        publish(publishers, ROUND)
    for publisher in publishers:
        publisher.close()
    for topic in TOPICS[::2]:
        path = topic.replace("://", "/")
        status, answer = ask(port, "DELETE", f"/admin/v2/{path}?force=true")
        if status != 204:
            raise RuntimeError(f"deleting {topic}: {status} {answer!r}")


def rewritten_bytes(port: int) -> float:
    """What the broker has copied forward."""
    text = ask(port, "GET", "/metrics")[1].decode()
    name = r'^headgate_storage_written_bytes_total{.*log="main".*content="rewritten".*} (\S+)$'
    found = re.search(name, text, re.MULTILINE)
    return float(found[1]) if found is not None else 0.0


def measure(table: Table, folder: Path, pairs: int) -> None:
    """Turns with and without rewriting."""
    rate = Settings().headgateRewriteBytesPerSecond
    server = headgate(folder, [f"{KEY}=0"], name="rewriting")
    try:
        web = re.search(r"http://\S+:(\d+)", server.ready_line)
        if web is None:
            raise RuntimeError(server.ready_line)
        port = int(web[1])
        pin(server, port)
        time.sleep(60)  # until a checkpoint is behind the deleted messages
        publisher = PacedPublisher(server.port, TOPIC, entry())
        sides = {0: Samples(), rate: Samples()}
        speeds: list[float] = []
        cpu_ns = {0: 0, rate: 0}
        for pair in range(pairs):
            for allowed in (0, rate) if pair % 2 == 0 else (rate, 0):
                ask(port, "POST", f"/admin/v2/brokers/configuration/{KEY}/{allowed}")
                publisher.run(SETTLE_S)
                before, before_ns = rewritten_bytes(port), server.cpu_ns()
                began_s = time.perf_counter()
                sides[allowed].turns.append(publisher.run(TURN_S))
                cpu_ns[allowed] += server.cpu_ns() - before_ns
                if allowed:
                    took_s = time.perf_counter() - began_s
                    speeds.append((rewritten_bytes(port) - before) / took_s / MIB)
    finally:
        server.close()
    alone, beside = sides[0], sides[rate]
    table.add("receipt of 1 KiB, nothing is rewritten", alone.text())
    table.add(f"receipt, rewriting at {rate // MIB} MiB/s", beside.text())
    table.add("rewritten in each second", f"{number(median(speeds))} MiB")
    more = (cpu_ns[rate] - cpu_ns[0]) / pairs / TURN_S / 1e7
    table.add("CPU of the rewriting", f"{number(more)} % of a core")
    table.check("p99, rewriting / nothing is rewritten", beside.times(alone), "times", TIMES_MAX)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer turns")
    options = parser.parse_args()
    table = Table(f"Latency beside rewriting, {RATE_PER_S:,} messages a second, by the wall clock")
    with scratch() as folder:
        measure(table, folder, 4 if options.quick else PAIRS)
    table.print()


if __name__ == "__main__":
    main()
