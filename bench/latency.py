"""Publish latency, paced, and the commit's under load, beside a raw write and fdatasync.

Everything that is compared takes turns of half a second on the same disk, and the figures are
medians over the turns. Three questions: how long does a receipt take at 1,000 messages a second;
how long does a commit take while the loop has no idle moment; how much longer does a receipt take
while somebody reads an old backlog from disk. It is the wall clock that counts here: on a machine
that others use, their share of its CPUs and its disk is in the figures.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bench.client import PAYLOAD_BYTES, Publisher, Subscriber, entry, publish
from bench.disk import RawDisk, forget_pages
from bench.report import Table, median, number, quantile
from bench.servers import Server, headgate, scratch
from headgate.wire.codes import SubscriptionType

RATE_PER_S = 1_000
TURN_S = 0.5
SETTLE_S = 0.1
"""After a change, before it counts."""
TIMES_RAW_MAX = 3.0
COMMIT_EXTRA_MS_MAX = 10.0
BACKLOG_TIMES_MAX = 1.2
TOPIC = "persistent://public/default/latency"
BACKLOG_TOPIC = "persistent://public/default/backlog"
BACKLOG_ENTRIES = 60_000
BACKLOG_RATE_PER_S = 5_000


class PacedPublisher(Publisher):
    """Sends at fixed instants, whatever comes back, and notes how long each receipt took."""

    def run(self, duration_s: float) -> list[float]:
        """Milliseconds from each SEND to its receipt, in order."""
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        sent_s: deque[float] = deque()
        latencies_ms: list[float] = []
        began_s = time.perf_counter()
        count, total = 0, int(duration_s * RATE_PER_S)
        while count < total or sent_s:
            now_s = time.perf_counter()
            due_s = began_s + count / RATE_PER_S
            if count < total and now_s >= due_s:
                sent_s.append(now_s)
                self.socket.sendall(self.frame)
                count += 1
                continue
            wait_ms = (due_s - now_s) * 1_000 if count < total else 10_000
            if poll.poll(wait_ms):
                came = self.receive()
                now_s = time.perf_counter()
                latencies_ms += [(now_s - sent_s.popleft()) * 1_000 for _ in range(came)]
            elif count >= total:
                raise RuntimeError("no receipt came")
        return latencies_ms


def paced_commits(disk: RawDisk, data: bytes, duration_s: float) -> list[float]:
    """Milliseconds of raw commits at the same instants."""
    began_s = time.perf_counter()
    taken_ms = []
    for count in range(int(duration_s * RATE_PER_S)):
        pause_s = began_s + count / RATE_PER_S - time.perf_counter()
        if pause_s > 0:
            time.sleep(pause_s)
        taken_ms.append(disk.commit(data) * 1_000)
        if time.perf_counter() - began_s > duration_s:
            break
    return taken_ms


@dataclass
class Samples:
    """Milliseconds of one kind, turn by turn."""

    turns: list[list[float]] = field(default_factory=list)

    def p99_ms(self) -> list[float]:
        """What one in a hundred exceeds, in each turn."""
        return [quantile(turn, 0.99) for turn in self.turns]

    def text(self) -> str:
        """Both quantiles as they are printed: medians of the turns, which outlast a bad moment."""
        p50_ms = median([quantile(turn, 0.5) for turn in self.turns])
        return f"p50 {number(p50_ms)} ms  p99 {number(median(self.p99_ms()))} ms"

    def times(self, base: Samples) -> float:
        """How many times the p99 of ``base``, turn by turn, the p99 is; the median."""
        return median([a / b for a, b in zip(self.p99_ms(), base.p99_ms(), strict=True)])

    def above(self, base: Samples) -> float:
        """By how much the p99 is above that of ``base``, turn by turn; the median."""
        return median([a - b for a, b in zip(self.p99_ms(), base.p99_ms(), strict=True)])


def measure_paced(table: Table, folder: Path, disk: RawDisk, turns: int) -> None:
    """Publish latency at a fixed rate."""
    raw, ours = Samples(), Samples()
    server = headgate(folder, name="paced")
    try:
        publisher = PacedPublisher(server.port, TOPIC, entry())
        publisher.run(0.2)
        for _ in range(turns):
            raw.turns.append(paced_commits(disk, entry(), TURN_S))
            ours.turns.append(publisher.run(TURN_S))
    finally:
        server.close()
    table.add("raw write and fdatasync of 1 KiB, 1,000 /s", raw.text())
    table.add("Headgate, receipt of 1 KiB, 1,000 /s", ours.text())
    table.check("p99, Headgate / raw", ours.times(raw), "times", TIMES_RAW_MAX)


def measure_saturated(table: Table, folder: Path, disk: RawDisk, turns: int) -> None:
    """A commit's time while PINGs leave the loop no idle moment."""
    raw, thread, loop = Samples(), Samples(), Samples()
    code = "import sys; from bench.timed import main; main(sys.argv[1])"
    server = Server("timed", ["-c", code, str(folder / "timed")], folder)
    flood: Server | None = None
    spans: list[tuple[float, float]] = []
    cpu_ns = 0
    try:
        publisher = PacedPublisher(server.port, TOPIC, entry())
        flood_code = "from bench.flood import main; main()"
        flood = Server("flood", ["-c", flood_code, str(server.port)], folder)
        for _ in range(turns):
            # Both under the flood: the machine is as busy for the one as for the other.
            raw.turns.append(paced_commits(disk, entry(), TURN_S))
            began_s, before_ns = time.monotonic(), server.cpu_ns()
            publisher.run(TURN_S)
            spans.append((began_s, time.monotonic()))
            cpu_ns += server.cpu_ns() - before_ns
        server.ask_to_end()
        times_s = json.loads("".join(server.lines()))
    finally:
        if flood is not None:
            flood.close()
        server.close()
    for start_s, end_s in spans:
        inside = [times for times in times_s if start_s <= times[0] <= end_s]
        thread.turns.append([(written - began) * 1_000 for began, written, _ in inside])
        loop.turns.append([(known - began) * 1_000 for began, _, known in inside])
    share = cpu_ns / sum(end_s - start_s for start_s, end_s in spans) / 1e7
    table.add("raw write and fdatasync beside a saturated Headgate", raw.text())
    table.add("Headgate, saturated: CPU of its process", f"{share:.0f} % of a core")
    table.add("Headgate, saturated: commit, in its thread", thread.text())
    table.add("Headgate, saturated: commit, until the loop knows", loop.text())
    extra_ms = loop.above(raw)
    table.check("p99, commit with a saturated loop less raw", extra_ms, "ms", COMMIT_EXTRA_MS_MAX)


def measure_disk_beside_reads(table: Table, folder: Path, disk: RawDisk, turns: int) -> None:
    """What reading costs raw commits: no broker on this disk can do better."""
    path = folder / "read.data"
    with path.open("wb") as file:
        file.write(os.urandom(BACKLOG_ENTRIES * PAYLOAD_BYTES))
        file.flush()
        os.fsync(file.fileno())
    code = "from bench.disk import main; main()"
    arguments = ["-c", code, str(path), str(BACKLOG_RATE_PER_S * PAYLOAD_BYTES)]
    reader = Server("raw-reader", arguments, folder)
    take = partial(paced_commits, disk, entry())
    alone, beside = _beside_reader(reader, [path], take, turns)
    path.unlink()
    table.add("raw write and fdatasync, nobody reads", alone.text())
    table.add(f"raw write and fdatasync, {BACKLOG_RATE_PER_S:,} KiB/s are read", beside.text())
    table.add("p99, raw beside reads / nobody reads", f"{number(beside.times(alone))} times")


def measure_backlog(table: Table, folder: Path, turns: int) -> None:
    """Publish latency with and without somebody who reads an old backlog from disk."""
    server = headgate(folder, ["managedLedgerCacheSizeMB=8"], name="backlog")
    try:
        _fill(server.port, BACKLOG_TOPIC, BACKLOG_ENTRIES)
        publisher = PacedPublisher(server.port, TOPIC, entry())
        publisher.run(0.2)
        for rate in (BACKLOG_RATE_PER_S, 0):
            reader = _reader(server, folder, BACKLOG_TOPIC, BACKLOG_ENTRIES, rate)
            logs = list(folder.rglob("*.log"))
            alone, beside = _beside_reader(reader, logs, publisher.run, turns)
            speed = f"at {rate:,} /s" if rate else "at full speed"
            table.add("Headgate, receipt, nobody reads", alone.text())
            table.add(f"Headgate, receipt, a backlog is read {speed}", beside.text())
            name = f"p99, backlog read {speed} / nobody reads"
            if rate:
                table.check(name, beside.times(alone), "times", BACKLOG_TIMES_MAX)
            else:
                table.add(name, f"{number(beside.times(alone))} times")
    finally:
        server.close()


def _beside_reader(
    reader: Server, files: list[Path], take: Callable[[float], list[float]], turns: int
) -> tuple[Samples, Samples]:
    """What ``take`` finds, in turns, while ``reader`` stands still and while it reads ``files``
    from the disk; ends the reader. ``take`` is given seconds and returns milliseconds."""
    alone, beside = Samples(), Samples()
    try:
        for _ in range(turns):
            os.kill(reader.pid, signal.SIGSTOP)
            take(SETTLE_S)
            alone.turns.append(take(TURN_S))
            for path in files:
                forget_pages(path)
            os.kill(reader.pid, signal.SIGCONT)
            take(SETTLE_S)
            beside.turns.append(take(TURN_S))
    finally:
        os.kill(reader.pid, signal.SIGCONT)
        reader.close()
    return alone, beside


def _fill(port: int, topic: str, count: int) -> None:
    """Publish entries that a stored subscription holds."""
    Subscriber(port, topic, "holds", SubscriptionType.EXCLUSIVE).close()
    publisher = Publisher(port, topic, entry())
    publish([publisher], count)
    publisher.close()


def _reader(server: Server, folder: Path, topic: str, count: int, rate: int) -> Server:
    """A process that reads a topic again and again; stop and continue it by signals.

    It runs when nobody else wants the CPU: elsewhere it would have its own, and what is asked is
    what its reading costs the broker.
    """
    code = "from bench.backlog import main; main()"
    arguments = ["-c", code, str(server.port), topic, str(count), str(rate)]
    reader = Server("reader", arguments, folder)
    os.sched_setscheduler(reader.pid, os.SCHED_IDLE, os.sched_param(0))
    return reader


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer turns")
    parser.add_argument("--turns", type=int, default=0, help="of half a second for each side")
    options = parser.parse_args()
    turns = options.turns or (5 if options.quick else 15)
    table = Table(f"Latency of {PAYLOAD_BYTES} byte messages, milliseconds by the wall clock")
    with scratch() as folder:
        disk = RawDisk(folder)
        measure_paced(table, folder, disk, turns)
        measure_saturated(table, folder, disk, turns)
        measure_disk_beside_reads(table, folder, disk, turns)
        measure_backlog(table, folder, turns)
        disk.close()
    table.print()


if __name__ == "__main__":
    main()
