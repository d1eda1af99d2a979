"""The longest time for which anything holds the event loop of a broker with very many topics.

Clients publish, consume, redeliver, join and leave; administrators list, read statistics, change
policies, delete and unload; segments fill, so that seals and checkpoints run. The broker's own
meter says how long the loop was held, garbage collection included, and a process beside it how
long a PING took. Both run before other processes where that is allowed. Elsewhere the share
of other processes is in the figures.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.report import Table, number
from bench.servers import ROOT, Server, headgate, scratch
from bench.turn_admin import Administrators, metric
from bench.turn_clients import Load
from headgate.app.descriptors import raise_descriptors_max
from headgate.broker.work.turn_meter import WINDOW_S

TURN_MS_MAX = 25.0
TOPICS = 100_000
CONNECTIONS = 10_000
QUICK = 10
"""So many times smaller with ``--quick``."""
SECONDS = 150
FILL_TIMEOUT_S = 900.0
NAMES_SHOWN = 20
NICE = -20

SETTINGS = (
    "maxTopicsPerNamespace=0",
    "brokerDeleteInactiveTopicsFrequencySeconds=30",
    "backlogQuotaCheckIntervalInSeconds=20",
    "retentionCheckIntervalInSeconds=20",
)
"""Sweeps come several times in the measured time."""

_HELD = re.compile(
    r"the loop was held for ([0-9.]+) ms(?: \(([0-9.]+) ms of CPU\))? by ([^;]*)(?:; (.*))?"
)
_LEVEL = ("--log-level", "debug")


class Held(NamedTuple):
    """The long turns of one kind of work, in milliseconds."""

    longest_ms: float
    cpu_ms: float
    """The most CPU time of any of them; 0 if unknown."""
    turns: int
    parts: str
    """What the longest consisted of, as far as it is known."""


def longest_by_name(lines: Iterable[str]) -> dict[str, Held]:
    """Of the broker's log lines, the long turns by kind of work, the longest first."""
    found: dict[str, Held] = {}
    for line in lines:
        if (match := _HELD.search(line)) is not None:
            took_ms, cpu_ms = float(match[1]), float(match[2] or 0)
            name = re.sub(r"\d\d+", "N", match[3])
            held = found.get(name, Held(0.0, 0.0, 0, ""))
            parts = match[4] or "" if cpu_ms >= held.cpu_ms else held.parts
            longest_ms, most_cpu_ms = max(held.longest_ms, took_ms), max(held.cpu_ms, cpu_ms)
            found[name] = Held(longest_ms, most_cpu_ms, held.turns + 1, parts)
    return dict(sorted(found.items(), key=lambda item: -item[1].longest_ms))


@contextmanager
def child(
    module: str, *arguments: str, load: Load | None = None
) -> Iterator[subprocess.Popen[str]]:
    """A process of this bench, once it says that it is ready; it ends with its stdin."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        if load is not None:
            process.stdin.write(load.line().decode())
            process.stdin.flush()
        if process.stdout.readline() != "ready\n":
            raise RuntimeError(f"{module} ended")
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def prefer(pid: int) -> bool:
    """Have a process run before others on the machine; returns whether that is allowed.

    Linux shares a CPU among sessions first. Real-time priority is no choice: a broker without an
    idle moment is then stopped for 50 ms in each second.
    """
    try:
        Path(f"/proc/{pid}/autogroup").write_text(f"{NICE}", encoding="ascii")
        for task in Path(f"/proc/{pid}/task").iterdir():
            os.setpriority(os.PRIO_PROCESS, int(task.name), NICE)
    except OSError:
        return False
    return True


def web_port(server: Server) -> int:
    """The port of the admin API, from the line that says that the broker is ready."""
    match = re.search(r"http://\S+:(\d+)", server.ready_line)
    assert match is not None
    return int(match[1])


def measure(folder: Path, options: argparse.Namespace) -> Table:
    """Fill a broker, load it, and say what held it."""
    server = headgate(folder, SETTINGS, more=_LEVEL)
    try:
        return _measure(server, folder / f"{server.name}.log", options)
    finally:
        server.close()
        if options.log:
            shutil.copy(folder / f"{server.name}.log", options.log)


def _measure(server: Server, log: Path, options: argparse.Namespace) -> Table:
    load = Load(
        port=server.port,
        topics=options.topics,
        connections=options.connections,
        wide_subscriptions=options.connections,
        messages_per_s=options.rate,
        bulk_bytes_per_s=2 << 20,
        joins_per_s=5,
    )
    table = Table(f"Turns with {load.topics:,} topics and {load.connections:,} connections")
    began_s = time.perf_counter()
    is_preferred = prefer(server.pid)
    with child("bench.turn_clients", load=load):
        filled = log.stat().st_size
        table.add("made and connected in", f"{number(time.perf_counter() - began_s)} s")
        admin = Administrators(web_port(server), load.topics)
        with child("bench.turn_probe", str(server.port)) as probe:
            prefer(probe.pid)
            cpu_ns, waited_ns = server.cpu_ns(), server.waited_for_cpu_ns()
            memory_mib = server.memory_mib()
            admin.start()
            time.sleep(options.seconds)
            longest_s = metric(web_port(server), "headgate_turn_longest_seconds")
            admin.stop()
            p99_ms, max_ms = map(float, probe.communicate(timeout=30)[0].split())
        busy = (server.cpu_ns() - cpu_ns) / 1e9 / options.seconds
        waited = (server.waited_for_cpu_ns() - waited_ns) / 1e9
        with log.open(encoding="utf-8") as lines:
            lines.seek(filled)
            held = longest_by_name(lines)
    if options.seconds < WINDOW_S:
        longest_s = 0.0  # the broker's gauge still has turns from before
    longest_ms = max([1_000 * longest_s, *(each.longest_ms for each in held.values())])
    table.check("longest turn", longest_ms, "ms", TURN_MS_MAX)
    cpu_ms = max((each.cpu_ms for each in held.values()), default=0.0)
    table.add("most CPU in a turn that took longer", f"{number(cpu_ms)} ms")
    table.add("a PING beside it: p99, longest", f"{number(p99_ms)}, {number(max_ms)} ms")
    for name, (took_ms, most_ms, times, parts) in list(held.items())[:NAMES_SHOWN]:
        text = f"{number(took_ms)} ms, CPU {number(most_ms)} ms"
        table.add(f"  {name}", f"{text}  ({times} over {TURN_MS_MAX:.0f} ms)")
        if parts:
            table.add("    of which", parts)
    table.add("rounds of administrators", f"{admin.rounds}  {dict(sorted(admin.statuses.items()))}")
    slowest = sorted(admin.slowest_s.items(), key=lambda item: -item[1])[:5]
    for name, took_s in slowest:
        table.add(f"  {name}", f"{number(took_s)} s")
    memory = f"{number(memory_mib)} MiB before, {number(server.memory_mib())} MiB after"
    preferred = "before other processes" if is_preferred else "without priority"
    cores = f"{number(busy)}, {number(waited)} s  ({preferred})"
    table.add("cores in use, waited for a CPU", cores)
    table.add("resident memory", memory)
    return table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of topics and connections")
    parser.add_argument("--topics", type=int, default=0)
    parser.add_argument("--connections", type=int, default=0)
    parser.add_argument("--rate", type=int, default=500, help="messages a second")
    parser.add_argument("--seconds", type=int, default=0)
    parser.add_argument("--log", type=Path, help="where to copy the broker's log to")
    options = parser.parse_args()
    smaller = QUICK if options.quick else 1
    options.topics = options.topics or TOPICS // smaller
    options.connections = options.connections or CONNECTIONS // smaller
    options.seconds = options.seconds or SECONDS
    raise_descriptors_max()
    with scratch() as folder:
        measure(folder, options).print()


if __name__ == "__main__":
    main()
