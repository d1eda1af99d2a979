"""Memory, start and look-ups of a log with up to 100 million retained entries.

The bench writes sealed segments with complete footers, a checkpoint, and holes in the place of the
records. Another process opens the log, as a broker does after ``kill -9``, and measures itself. The
limit beside the figures is what the same index takes as plain columns in memory: 32 bytes an entry.

    ./dev bench index_memory                          5 million entries, a quarter of a minute
    ./dev bench index_memory --entries 100_000_000    3 GB of files, some minutes
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from array import array
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

from bench.report import Table, median, number
from bench.servers import ROOT, scratch
from headgate.base.ack_set import AckSet
from headgate.base.units import MIB
from headgate.flow.quota.backlog import done_before
from headgate.fs import OsFs
from headgate.ledger import BlockMissingError, CommitLog, LedgerSettings, TopicLog
from headgate.ledger.format.directory import lock_directory
from headgate.ledger.format.records import (
    ENTRY_HEAD_BYTES,
    SEGMENT_HEADER_BYTES,
    segment_name,
)
from headgate.ledger.index.checkpoint import CheckpointBuilder, Counters
from headgate.ledger.index.columns import Columns, TopicTotals
from headgate.ledger.index.footer import FooterBuilder

ENTRIES = 5_000_000
TOPICS = 100
SEGMENT_BYTES = 64 * MIB
BODY_BYTES = 1_000
LEDGER_ENTRIES = 50_000
PLAIN_BYTES = 32
"""Bytes of the index of one entry as columns in memory."""
RSS_MIB_MAX = 500.0
LOOK_UPS = 200


class Source:
    """Writes a log of so many entries, which the topics got in turn."""

    def __init__(self, folder: Path, topics: int) -> None:
        self._folder = folder
        self._ends = [0] * topics
        self._totals = [TopicTotals(0, 0, 1_700_000_000_000, 0)] * topics
        self._sizes = random.Random(7).choices(range(500, 1_001), k=100_003)

    def write(self, entries: int) -> int:
        """Write segments and checkpoint; returns the number of segments."""
        lock_directory(OsFs(), str(self._folder)).release()  # it marks the folder as a log
        each = (SEGMENT_BYTES - SEGMENT_HEADER_BYTES) // (ENTRY_HEAD_BYTES + BODY_BYTES)
        segments = -(-entries // each)
        for segment in range(1, segments + 1):
            self._write_segment(segment, min(each, entries - (segment - 1) * each))
        builder = CheckpointBuilder(segments + 1, 0)
        ledger_id = 0
        for number_of_topic, end in enumerate(self._ends, 1):
            topic = TopicLog(number_of_topic)
            topic.restart_at(end, self._totals[number_of_topic - 1])
            for first in range(0, max(end, 1), LEDGER_ENTRIES):
                ledger_id += 1
                topic._ledger_ids.append(ledger_id)
                topic._ledger_first.append(first)
                topic._ledger_created.append(1_700_000_000_000)
            builder.add_topic(topic)
        builder.add_counters(Counters(ledger_id + 1, 1, 1, segments + 1))
        builder.write(OsFs(), str(self._folder))
        return segments

    def _write_segment(self, segment: int, entries: int) -> None:
        topics = len(self._ends)
        record = ENTRY_HEAD_BYTES + BODY_BYTES
        data_end = SEGMENT_HEADER_BYTES + entries * record
        builder = FooterBuilder(segment, data_end)
        for at in range(topics):
            count = len(range(at, entries, topics))
            if not count:
                continue
            before = self._totals[at]
            start = (segment * 7_919 + at) % (len(self._sizes) - count)
            sizes = self._sizes[start : start + count]
            columns = Columns(
                array("I", range(SEGMENT_HEADER_BYTES + at * record, data_end, topics * record)),
                array("q", range(before.received_ms, before.received_ms + count + 1)),
                array("I", bytes(4 * (count + 1))),
                array("q", range(before.messages, before.messages + count + 1)),
                array("q", accumulate(sizes, initial=before.size_bytes)),
            )
            builder.add_columns(at + 1, self._ends[at], columns)
            self._ends[at] += count
            self._totals[at] = TopicTotals(
                before.messages + count, columns.sizes[-1], columns.received[-1], 0
            )
        with (self._folder / segment_name(segment)).open("wb") as file:
            file.truncate(data_end)
            file.seek(data_end)
            file.writelines(builder.finish())


def forget_pages(folder: Path) -> None:
    """Let the kernel drop what it has of the files, so that reads come from the disk."""
    for path in folder.iterdir():
        descriptor = os.open(path, os.O_RDONLY)
        os.fdatasync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def rss_mib() -> float:
    """Resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / MIB


def look_up(log: CommitLog, action: Callable[[], object]) -> None:
    """A look-up as the broker's, with the reads that the read lane would do."""
    while True:
        try:
            log.look_up(action)
        except BlockMissingError as missing:
            log.keep_index(log.fetch_index(missing.keys))
        else:
            return


def times_us(log: CommitLog, action: Callable[[TopicLog, random.Random], object]) -> float:
    """The median of look-ups in random topics."""
    chance, topics = random.Random(11), [log.topic(n) for n in log._state.topics]
    taken = []
    for _ in range(LOOK_UPS):
        topic = chance.choice(topics)
        began = time.perf_counter_ns()
        action(topic, chance)
        taken.append((time.perf_counter_ns() - began) / 1_000)
    return median(taken)


def measure(folder: Path, topics: int) -> dict[str, float]:
    """Open the log and measure; for a process of its own."""
    before_mib, began_s = rss_mib(), time.perf_counter()
    cpu_s = time.process_time()
    log = CommitLog.open(
        OsFs(),
        str(folder),
        topic_numbers=range(1, topics + 1),
        entropy=os.urandom,
        settings=LedgerSettings(),
    )
    found = {
        "start_s": time.perf_counter() - began_s,
        "start_cpu_s": time.process_time() - cpu_s,
        "before_mib": before_mib,
        "opened_mib": rss_mib(),
        "replayed": float(log.statistics().replayed_records),
        "entries": float(sum(t.end - t.first for t in log._state.topics.values())),
    }

    def by_id(topic: TopicLog, chance: random.Random) -> None:
        acks = AckSet(chance.randrange(topic.end) - 1)
        look_up(log, lambda: done_before(topic, acks, topic.first, topic.end))

    def by_time(topic: TopicLog, chance: random.Random) -> None:
        at_ms = 1_700_000_000_000 + chance.randrange(topic.end)
        look_up(log, lambda: topic.ordinal_published_at_or_after(at_ms))

    def backlog(topic: TopicLog, chance: random.Random) -> None:
        first = chance.randrange(topic.end - 600)
        log.keep_index(log.fetch_index(log.missing_index(topic, first, 512)))
        log.fetch(log.locate(topic, first, 512, MIB))

    for name, action in (("id_us", by_id), ("time_us", by_time), ("read_us", backlog)):
        forget_pages(folder)
        log._state.blocks.clear()
        found[name] = times_us(log, action)
    rng = random.Random(3)
    for _ in range(20_000):  # until the cache is full
        topic = log.topic(rng.randrange(topics) + 1)
        ordinal = rng.randrange(topic.end)
        look_up(log, lambda topic=topic, ordinal=ordinal: topic.size_bytes(ordinal))  # type: ignore[misc]
    found["full_mib"] = rss_mib()
    found["cache_mib"] = log.index_use().size_bytes / MIB
    return found


def main() -> None:
    """Write, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=ENTRIES)
    parser.add_argument("--topics", type=int, default=TOPICS)
    parser.add_argument("--quick", action="store_true", help="a million entries")
    parser.add_argument("--measure", help="for the bench's own process")
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(Path(options.measure), options.topics)))
        return
    entries = 1_000_000 if options.quick else options.entries
    with scratch() as folder:
        log = folder / "log"
        log.mkdir()
        began_s = time.perf_counter()
        segments = Source(log, options.topics).write(entries)
        forget_pages(log)
        written_s = time.perf_counter() - began_s
        command = [sys.executable, "-m", "bench.index_memory", "--topics", str(options.topics)]
        done = subprocess.run(
            [*command, "--measure", str(log)], cwd=ROOT, check=True, stdout=subprocess.PIPE
        )
        found = json.loads(done.stdout.splitlines()[-1])
    report(found, options.topics, segments, written_s)


def report(found: dict[str, float], topics: int, segments: int, written_s: float) -> None:
    """Print the figures."""
    entries = found["entries"]
    table = Table(
        f"{entries:,.0f} retained entries of {topics:,} topics in {segments:,} segments"
        f" (written in {number(written_s)} s)"
    )
    opened = found["opened_mib"] - found["before_mib"]
    table.add("opened the log", f"{number(found['start_s'])} s, {number(found['start_cpu_s'])} CPU")
    table.add("records replayed", f"{found['replayed']:,.0f}")
    table.add("memory of the index, opened", f"{number(opened)} MiB")
    table.add("bytes of memory a retained entry", f"{number(opened * MIB / entries)}")
    table.add("as plain columns", f"{PLAIN_BYTES} ({number(entries * PLAIN_BYTES / MIB)} MiB)")
    table.add("memory of the cache, full", f"{number(found['cache_mib'])} MiB")
    table.add("seek by id with its backlog, cold", f"{number(found['id_us'])} us")
    table.add("seek by publish time, cold", f"{number(found['time_us'])} us")
    table.add(f"read of {256} KiB of a backlog, cold", f"{number(found['read_us'])} us")
    table.check("resident memory of the process", found["full_mib"], "MiB", RSS_MIB_MAX)
    table.print()


if __name__ == "__main__":
    main()
