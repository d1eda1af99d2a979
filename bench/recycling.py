"""A commit into a new segment's file beside one into a deleted segment's file, used again.

Prepared as the writer of the log does it, a file has its room but no written blocks, so a sync has
to record in the file system's journal which blocks are written now. The blocks of an old file are
written, but a commit that begins or ends within a page has to read that page if it is not cached.
The sides take turns in the order ABBA, each with a file of its own, on the disk that TMPDIR names.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from math import sqrt
from pathlib import Path

from bench.disk import forget_pages
from bench.report import Table, number, quantile
from bench.servers import scratch
from headgate.base.units import MIB
from headgate.fs.os_fs import OsFile, OsFs
from headgate.ledger.format.records import SEGMENT_HEADER_BYTES, segment_header, segment_name

SEGMENT_BYTES = 64 * MIB
PAIRS = 20
COMMITS = 1_000
"""In one turn, so that its p99 leaves ten behind."""
SIZES = (200, 1_200, 5_000, 40_000)
"""Bytes of a commit, none a whole number of pages, as those of the log."""
PAGE_BYTES = 4096
T_95 = 2.1
"""Student's t for the interval of 95 % with about 20 pairs."""


@dataclass
class Side:
    """One way to prepare a file, and what each turn with it showed, in milliseconds."""

    name: str
    prepare: Callable[[int], OsFile]
    whole_pages: bool = False
    """Whether a commit ends with zeros up to the end of its last page."""
    p50_ms: list[float] = field(default_factory=list)
    p99_ms: list[float] = field(default_factory=list)
    prepare_ms: list[float] = field(default_factory=list)

    def turn(self, segment: int, commit_bytes: int) -> None:
        """Prepare a file and commit into it."""
        begun_s = time.perf_counter()
        file = self.prepare(segment)
        self.prepare_ms.append((time.perf_counter() - begun_s) * 1_000)
        data, offset = os.urandom(commit_bytes), SEGMENT_HEADER_BYTES
        taken_ms = []
        for _ in range(COMMITS):
            begun_s = time.perf_counter()
            rest = -(offset + commit_bytes) % PAGE_BYTES if self.whole_pages else 0
            file.write_at(offset, [data, bytes(rest)])
            file.sync_data()
            taken_ms.append((time.perf_counter() - begun_s) * 1_000)
            offset += commit_bytes
        file.close()
        self.p50_ms.append(quantile(taken_ms, 0.5))
        self.p99_ms.append(quantile(taken_ms, 0.99))


def new_file(fs: OsFs, folder: Path, segment: int) -> OsFile:
    """As the writer prepares a segment; the file is gone at the end of the turn."""
    path = str(folder / segment_name(segment))
    file = fs.create(path, exclusive=True)
    file.allocate(SEGMENT_BYTES)
    _begin(fs, folder, file, segment)
    fs.remove(path)
    return file


def old_file(fs: OsFs, folder: Path, old: Path, segment: int, *, is_cached: bool) -> OsFile:
    """A file whose blocks are written gets the name and the header of a new segment."""
    if not is_cached:
        forget_pages(old)
    path = folder / segment_name(segment)
    fs.rename(str(old), str(path))
    file = fs.open(str(path), writable=True)
    _begin(fs, folder, file, segment)
    fs.rename(str(path), str(old))
    return file


def _begin(fs: OsFs, folder: Path, file: OsFile, segment: int) -> None:
    header = segment_header(segment, stamp=segment)
    file.write_at(0, [header.ljust(PAGE_BYTES, b"\0")])
    file.sync_data()
    fs.sync_directory(str(folder))


def written_file(fs: OsFs, path: Path) -> Path:
    """A file of a segment's size with all of its blocks written."""
    file = fs.create(str(path))
    for at in range(0, SEGMENT_BYTES, MIB):
        file.write_at(at, [os.urandom(MIB)])
    file.sync_data()
    file.close()
    return path


def change(before: list[float], after: list[float]) -> str:
    """The mean relative change over the pairs, with its interval of 95 %."""
    changes = [b / a - 1 for a, b in zip(before, after, strict=True)]
    spread = T_95 * statistics.stdev(changes) / sqrt(len(changes))
    return f"{statistics.mean(changes):+.1%} ± {spread:.1%}"


def measure(folder: Path, commit_bytes: int, pairs: int) -> Table:
    """Commits of one size into each kind of file."""
    fs = OsFs()
    warm, cold = (written_file(fs, folder / name) for name in ("warm.old", "cold.old"))
    sides = [
        Side("new", partial(new_file, fs, folder)),
        Side("old, cached", partial(old_file, fs, folder, warm, is_cached=True)),
        Side("old, not cached", partial(old_file, fs, folder, cold, is_cached=False)),
        Side("new, whole pages", partial(new_file, fs, folder), whole_pages=True),
        Side(
            "old, not cached, whole pages",
            partial(old_file, fs, folder, cold, is_cached=False),
            whole_pages=True,
        ),
    ]
    segment = 0
    for pair in range(pairs):
        for side in sides[:: -1 if pair % 2 else 1]:
            segment += 1
            side.turn(segment, commit_bytes)
    table = Table(f"commits of {commit_bytes:,} bytes, {pairs} pairs of {COMMITS:,} commits each")
    new = sides[0]
    for side in sides:
        p50_ms, p99_ms = statistics.median(side.p50_ms), statistics.median(side.p99_ms)
        prepare_ms = statistics.median(side.prepare_ms)
        figure = f"p50 {number(p50_ms)} ms, p99 {number(p99_ms)} ms, prepare {number(prepare_ms)}"
        table.add(f"a file that is {side.name}", figure + " ms")
    for side in islice(sides, 1, None):
        p50, p99 = change(new.p50_ms, side.p50_ms), change(new.p99_ms, side.p99_ms)
        table.add(f"change with {side.name}", f"p50 {p50}, p99 {p99}")
    return table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer pairs")
    options = parser.parse_args()
    with scratch() as folder:
        for commit_bytes in SIZES:
            measure(folder, commit_bytes, 4 if options.quick else PAIRS).print()


if __name__ == "__main__":
    main()
