"""Publish latency while segments are rewritten at full rate, beside the same without rewriting.

A broker holds four topics whose messages lie one by one beside each other in all segments. Two of
the topics are deleted, so half of each segment is pinned, and no hole is worth punching. The rate
of the rewriting is then set to its default and to 0 in turns, in the order ABBA, and receipts are
timed at 1,000 messages a second. A turn that was to rewrite and did not ends the bench. The figures
are medians of those of single seconds: a bad moment of the machine is in one second, and what the
rewriting costs is in each.

A third turn of each pair shows what the disk alone costs: nothing is rewritten, and another process
writes as many bytes a second to the same disk, with a sync behind each 64 KiB.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from math import sqrt
from pathlib import Path

from bench.client import WINDOW, Publisher, Subscriber, entry, publish
from bench.commit_neighbours import write
from bench.latency import RATE_PER_S, TOPIC, PacedPublisher, Samples
from bench.report import Table, median, number
from bench.servers import Server, headgate, scratch
from bench.turn_admin import ask
from headgate.base.units import KIB, MIB
from headgate.policy.settings import Settings
from headgate.wire import client
from headgate.wire.codes import SubscriptionType

PAIRS = 12
TURN_S = 3.0
SETTLE_S = 1.5
"""The broker looks once a second whether it may rewrite."""
KEY = "headgateRewriteBytesPerSecond"
TIMES_MAX = 1.2
TOPICS = tuple(f"persistent://public/default/pinned-{at}" for at in range(4))
RETAINED_PART = 0.5
SPARE = 1.3
"""How much more there is to rewrite than all turns can: it stops before the last tenth."""
CHECKPOINT_S_MAX = 120.0
"""Only segments before a checkpoint are rewritten."""
NORMAL_95 = 1.96
"""Standard deviations of the interval of 95 %."""
_WRITTEN = r'^headgate_storage_written_bytes_total{.*log="main".*content="rewritten".*} (\S+)$'


class MixedPublisher(Publisher):
    """One producer on each topic, over one connection: their SENDs take turns one by one."""

    def __init__(self, port: int, topics: tuple[str, ...], body: bytes) -> None:
        super().__init__(port, topics[0], body)
        for at, topic in enumerate(topics[1:], 1):
            self.ask(client.producer(at + 1, at, topic))
        self.frame = b"".join(client.send(at, 1, body) for at in range(len(topics)))
        self._each = len(topics)

    def fill(self, total: int) -> None:
        """Send what the window allows, up to ``total`` SENDs in all."""
        while self.sent < total and self.sent - self.received + self._each <= WINDOW:
            self.socket.sendall(self.frame)
            self.sent += self._each


@dataclass
class Side:
    """The turns with one rate of rewriting."""

    samples: Samples = field(default_factory=Samples)
    cpu_ns: list[int] = field(default_factory=list)
    rewritten_bytes: list[float] = field(default_factory=list)


def pin(server: Server, port: int, size_bytes: int) -> None:
    """Fill segments with so many bytes, then release half of each."""
    for topic in TOPICS:
        Subscriber(server.port, topic, "holds", SubscriptionType.EXCLUSIVE).close()
    publisher = MixedPublisher(server.port, TOPICS, entry())
    publish([publisher], size_bytes // len(entry()) // len(TOPICS) * len(TOPICS))
    publisher.close()
    for topic in TOPICS[::2]:
        path = topic.replace("://", "/")
        status, answer = ask(port, "DELETE", f"/admin/v2/{path}?force=true")
        if status != 204:
            raise RuntimeError(f"deleting {topic}: {status} {answer!r}")


def rewritten_bytes(port: int) -> float:
    """What the broker has copied forward."""
    text = ask(port, "GET", "/metrics")[1].decode()
    found = re.search(_WRITTEN, text, re.MULTILINE)
    if found is None:
        raise RuntimeError("/metrics has no figure of what was rewritten")
    return float(found[1])


def allow(port: int, rate: int) -> None:
    """Set the rate of rewriting."""
    ask(port, "POST", f"/admin/v2/brokers/configuration/{KEY}/{rate}")


def wait_until_rewritten(port: int, rate: int) -> None:
    """Return when a checkpoint is behind what was released, and rewriting has begun."""
    allow(port, rate)
    deadline_s = time.monotonic() + CHECKPOINT_S_MAX
    while not rewritten_bytes(port):
        if time.monotonic() > deadline_s:
            raise RuntimeError("nothing was rewritten")
        time.sleep(0.2)
    allow(port, 0)


def ratio_text(beside: Samples, alone: Samples) -> str:
    """The median of the ratios of p99, second by second, with its interval of 95 %.

    The interval is that of the sign test: it assumes nothing about bad moments of a machine, which
    make the p99 of a second ten times what it was.
    """
    ratios = sorted(a / b for a, b in zip(beside.p99_ms(), alone.p99_ms(), strict=True))
    count = len(ratios)
    low = max(int((count - NORMAL_95 * sqrt(count)) / 2), 0)
    return f"{median(ratios):.3f} ({ratios[low]:.3f} to {ratios[count - 1 - low]:.3f})"


def by_second(latencies_ms: list[float]) -> list[list[float]]:
    """The latencies of each second of a turn."""
    return [latencies_ms[at : at + RATE_PER_S] for at in range(0, len(latencies_ms), RATE_PER_S)]


@contextmanager
def another_writer(folder: Path, bytes_per_s: float) -> Iterator[None]:
    """A process that writes to the same disk as the rewriting does."""
    context = multiprocessing.get_context("fork")
    stop = context.Event()
    sizes = {"piece_bytes": 64 * KIB, "sync_bytes": 64 * KIB, "bytes_per_s": bytes_per_s}
    process = context.Process(target=write, args=(folder, stop), kwargs=sizes, daemon=True)
    process.start()
    try:
        yield
    finally:
        stop.set()
        process.join()


def take_turns(
    server: Server, port: int, folder: Path, rate: int, pairs: int
) -> tuple[Side, Side, Side]:
    """Turns without rewriting, with it, and beside another writer.

    Raises :class:`RuntimeError` if nothing was rewritten in one that was to.
    """
    publisher = PacedPublisher(server.port, TOPIC, entry())
    alone, beside, written = sides = (Side(), Side(), Side())
    for pair in range(pairs):
        for side in sides[:: 1 if pair % 2 == 0 else -1]:
            allow(port, rate if side is beside else 0)
            speed = median(beside.rewritten_bytes or [rate * TURN_S]) / TURN_S
            with another_writer(folder, speed) if side is written else nullcontext():
                publisher.run(SETTLE_S)
                before, before_ns = rewritten_bytes(port), server.cpu_ns()
                side.samples.turns += by_second(publisher.run(TURN_S))
                side.cpu_ns.append(server.cpu_ns() - before_ns)
            side.rewritten_bytes.append(rewritten_bytes(port) - before)
            if side is beside and not side.rewritten_bytes[-1]:
                raise RuntimeError(f"nothing was rewritten in pair {pair + 1} of {pairs}")
    publisher.close()
    return alone, beside, written


def measure(table: Table, folder: Path, pairs: int) -> None:
    """Fill a broker, then take turns."""
    rate = Settings().headgateRewriteBytesPerSecond
    wanted_bytes = int(SPARE * rate * (SETTLE_S + TURN_S) * pairs / RETAINED_PART)
    server = headgate(folder, [f"{KEY}=0"], name="rewriting")
    try:
        web = re.search(r"http://\S+:(\d+)", server.ready_line)
        if web is None:
            raise RuntimeError(server.ready_line)
        port = int(web[1])
        pin(server, port, wanted_bytes)
        wait_until_rewritten(port, rate)
        alone, beside, written = take_turns(server, port, folder, rate, pairs)
        total_bytes = rewritten_bytes(port)
    finally:
        server.close()
    table.add("receipt of 1 KiB, nothing is rewritten", alone.samples.text())
    table.add(f"receipt, rewriting at {rate // MIB} MiB/s", beside.samples.text())
    table.add("receipt, another process writes as much", written.samples.text())
    speed = median(beside.rewritten_bytes) / TURN_S / MIB
    table.add("rewritten in each second of these turns", f"{number(speed)} MiB")
    table.add("rewritten in all", f"{number(total_bytes / MIB)} MiB")
    more = (median(beside.cpu_ns) - median(alone.cpu_ns)) / TURN_S / 1e7
    table.add("CPU of the rewriting", f"{number(more)} % of a core")
    for name, side in (("rewriting", beside), ("another process", written)):
        ratio = ratio_text(side.samples, alone.samples)
        table.add(f"p99 beside {name}, times that alone, and interval of 95 %", ratio)
    times = beside.samples.times(alone.samples)
    table.check("p99, rewriting / nothing is rewritten, median", times, "times", TIMES_MAX)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer turns")
    parser.add_argument("--pairs", type=int, default=0, help="of turns")
    options = parser.parse_args()
    table = Table(f"Latency beside rewriting, {RATE_PER_S:,} messages a second, by the wall clock")
    pairs = options.pairs or (4 if options.quick else PAIRS)
    with scratch() as folder:
        measure(table, folder, pairs)
    table.print()


if __name__ == "__main__":
    main()
