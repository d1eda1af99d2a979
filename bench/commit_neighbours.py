"""The latency of commits beside other work on the same disk, done in several ways.

A thread commits 1 KiB a thousand times a second into a file whose blocks are written. Beside it
another thread writes a new file at 16 MiB/s, as the rewriting of segments does, with a sync behind
each so many bytes; or it removes files of 64 MiB, whole or in pieces. The sides take turns, each
other time in the reverse order. The disk is the one that TMPDIR names.
"""

from __future__ import annotations

import argparse
import os
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bench.recycling import SEGMENT_BYTES, written_file
from bench.report import Table, number, quantile
from bench.servers import scratch
from headgate.base.units import KIB, MIB
from headgate.fs.os_fs import OsFs
from headgate.ledger.format.records import segment_name
from headgate.ledger.write.file_removal import FileRemoval
from headgate.storage.paced_removal import BYTES_PER_S

TURN_S = 4.0
RATE_PER_S = 1_000
COMMIT_BYTES = 1_100
WRITE_BYTES_PER_S = 16 * MIB
ROUNDS = 5

Neighbour = Callable[[Path, threading.Event], None]


@dataclass
class Side:
    """One way to work beside the commits, and what they took in each turn, in milliseconds."""

    name: str
    work: Neighbour
    p50_ms: list[float] = field(default_factory=list)
    p99_ms: list[float] = field(default_factory=list)
    max_ms: list[float] = field(default_factory=list)

    def turn(self, folder: Path) -> None:
        """Commit for a turn, with the work beside it."""
        stop = threading.Event()
        thread = threading.Thread(target=self.work, args=(folder, stop))
        taken_ms = commits(folder / "commits", thread)
        stop.set()
        thread.join()
        self.p50_ms.append(quantile(taken_ms, 0.5))
        self.p99_ms.append(quantile(taken_ms, 0.99))
        self.max_ms.append(max(taken_ms))


def commits(path: Path, neighbour: threading.Thread) -> list[float]:
    """Paced commits over a written file, as many milliseconds late as their client would see."""
    file = OsFs().open(str(path), writable=True)
    data, taken_ms, at = os.urandom(COMMIT_BYTES), [], 0
    neighbour.start()
    begun_s = time.perf_counter()
    for number_ in range(int(TURN_S * RATE_PER_S)):
        due_s = begun_s + number_ / RATE_PER_S
        time.sleep(max(due_s - time.perf_counter(), 0))
        file.write_at(at, [data])
        file.sync_data()
        taken_ms.append((time.perf_counter() - due_s) * 1_000)
        at = (at + COMMIT_BYTES) % (SEGMENT_BYTES - COMMIT_BYTES)
    file.close()
    return taken_ms


def nothing(_: Path, stop: threading.Event) -> None:
    """The commits have the disk for themselves."""
    stop.wait()


def write(
    folder: Path,
    stop: threading.Event,
    *,
    piece_bytes: int,
    sync_bytes: int,
    bytes_per_s: float = WRITE_BYTES_PER_S,
) -> None:
    """Write a new file at a bounded rate."""
    path = folder / f"new {time.monotonic_ns()}"
    file = OsFs().create(str(path))
    data = os.urandom(piece_bytes)
    at, begun_s = 0, time.perf_counter()
    while not stop.wait(max(begun_s + at / bytes_per_s - time.perf_counter(), 0)):
        file.write_at(at, [data])
        at += piece_bytes
        if at % sync_bytes == 0:
            file.sync_data()
    file.sync_data()
    file.close()
    path.unlink()


def remove(folder: Path, stop: threading.Event, *, piece_bytes: int) -> None:
    """Remove files, one in each two seconds of the turn."""
    fs = OsFs()
    removal = FileRemoval(fs, str(folder), SEGMENT_BYTES, piece_bytes)
    for segment in (1, 2):
        aside = removal.put_aside(segment)
        if aside:
            removal.add(aside)
        else:
            removal.forget(segment_name(segment))
        while freed_bytes := removal.step():
            time.sleep(freed_bytes / BYTES_PER_S)
        stop.wait(TURN_S / 4)


def measure(folder: Path, rounds: int) -> Table:
    """Turns of each side."""
    fs = OsFs()
    written_file(fs, folder / "commits")
    sides = [
        Side("nothing", nothing),
        Side(
            "writing, a sync each 8 MiB", partial(write, piece_bytes=256 * KIB, sync_bytes=8 * MIB)
        ),
        Side("writing, a sync each 1 MiB", partial(write, piece_bytes=256 * KIB, sync_bytes=MIB)),
        Side(
            "writing, a sync each 64 KiB", partial(write, piece_bytes=64 * KIB, sync_bytes=64 * KIB)
        ),
        Side("removing files whole", partial(remove, piece_bytes=SEGMENT_BYTES)),
        Side("removing files by 8 MiB", partial(remove, piece_bytes=8 * MIB)),
        Side("removing files by 1 MiB", partial(remove, piece_bytes=MIB)),
    ]
    for round_ in range(rounds):
        for side in sides[:: -1 if round_ % 2 else 1]:
            for segment in (1, 2):
                if side.work is not nothing:
                    written_file(fs, folder / segment_name(segment))
            time.sleep(0.5)
            side.turn(folder)
    table = Table(f"commits of {COMMIT_BYTES:,} bytes, {RATE_PER_S:,} a second; beside them")
    for side in sides:
        p50_ms, p99_ms, max_ms = map(statistics.median, (side.p50_ms, side.p99_ms, side.max_ms))
        table.add(
            side.name,
            f"p50 {number(p50_ms)} ms  p99 {number(p99_ms)} ms  longest {number(max_ms)} ms",
        )
    return table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer turns")
    parser.add_argument("--rounds", type=int, default=0, help="of one turn of each side")
    options = parser.parse_args()
    with scratch() as folder:
        table = measure(folder, options.rounds or (2 if options.quick else ROUNDS))
    table.print()


if __name__ == "__main__":
    main()
