"""Full telemetry messages into rows and files of bronze: rows a second of a core, memory."""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import pyarrow as pa

from bench.report import Table, median, number
from headgate.pipeline.kernels.decode import bronze_tables
from headgate.pipeline.store.parquet_files import write_tables
from headgate.record.codec import BatchHeader, decode, encode_window
from headgate.record.fields import FIELDS, MESSAGE_BYTES_MAX, Field, FieldType, Kind

ROWS_PER_S_MIN = 100_000
MEMORY_MIB_MAX = 500
SPARK_BATCH_BYTES = 64 << 20
"""Where Spark cuts what it hands to a Python worker."""
WINDOW_END_NS = 1_763_719_200 * 10**9
KIND = Kind.SUBSCRIPTION
"""The rows with the most columns."""


def window(rows: int, rng: random.Random) -> list[bytes]:
    """One window of subscriptions of which most cells of the account stay as they were."""
    columns = {field.name: [_value(field, i, rng) for i in range(rows)] for field in FIELDS[KIND]}
    header = BatchHeader(
        "broker-1", "bench", "broker-1:6650", "boot", WINDOW_END_NS - 10**10, WINDOW_END_NS
    )
    return encode_window(header, 0, {KIND: columns})


def _value(field: Field, i: int, rng: random.Random) -> str | int | float | bool | None:
    if field.name == "topic":
        return f"persistent://tenant-{i % 7}/namespace-{i % 31}/topic-{i // 4}"
    if field.name == "subscription":
        return f"subscription-{i % 4}"
    if field.type is FieldType.STRING:
        return rng.choice(("Shared", "topic policy", None))
    if field.type is FieldType.DOUBLE:
        return rng.random()
    if field.type is FieldType.BOOL:
        return False
    if field.name.startswith(("state_", "throttled_")):
        return rng.randrange(1 << 40) if rng.random() < 0.1 else 0
    if field.name.startswith("limit_"):
        return 1_000 if i % 3 == 0 else None
    return rng.randrange(1 << 30)


def messages_batch(messages: list[bytes]) -> pa.RecordBatch:
    """Messages as Spark hands them to a worker."""
    count = len(messages)
    published = pa.array([WINDOW_END_NS // 1_000] * count, pa.timestamp("us", "UTC"))
    return pa.record_batch(
        {
            "value": pa.array(messages, pa.binary()),
            "__topic": pa.array(["persistent://headgate/telemetry/samples"] * count),
            "__messageId": pa.array([b"id"] * count, pa.binary()),
            "__publishTime": published,
        }
    )


def full_messages(rng: random.Random) -> tuple[list[bytes], int]:
    """Messages near the largest size, and how many rows they have."""
    rows = 20_000
    messages = window(rows, rng)
    largest = max(len(message) for message in messages)
    assert largest > MESSAGE_BYTES_MAX * 3 // 4
    return messages, rows


def rates(work: Callable[[], object], rows: int, rounds: int) -> list[float]:
    """Rows for each second of CPU, round by round."""
    found = []
    for _ in range(rounds):
        began_s = time.process_time()
        work()
        found.append(rows / (time.process_time() - began_s))
    return found


def measure(rounds: int) -> Table:
    """Decode into lists, into rows of bronze and into files."""
    pa.set_cpu_count(1)
    messages, rows = full_messages(random.Random(1))
    batch = messages_batch(messages)
    table = Table(f"{len(messages)} messages with {rows:,} rows of {len(FIELDS[KIND])} fields")
    lists = rates(lambda: [decode(message) for message in messages], rows, rounds)
    table.add("decoded into Python's lists", f"{number(median(lists))} rows/s")
    arrays = rates(lambda: list(bronze_tables(batch)), rows, rounds)
    _at_least(table, "decoded into rows of bronze", median(arrays))
    with tempfile.TemporaryDirectory() as root:
        files = rates(lambda: write_tables(root, "0", bronze_tables(batch)), rows, rounds)
    table.add("the same and written into Parquet files", f"{number(median(files))} rows/s")
    command = [sys.executable, "-m", "bench.decode", "--memory"]
    before, after = (
        int(line)
        for line in subprocess.run(command, check=True, capture_output=True, text=True)
        .stdout.split()
    )  # fmt: skip
    table.check(
        "a worker's memory after three batches of 64 MiB",
        after / 1024,
        "MiB",
        MEMORY_MIB_MAX,
        note=f"{number(before / 1024)} before",
    )
    return table


def _at_least(table: Table, name: str, rate: float) -> None:
    table.check(name, ROWS_PER_S_MIN / rate, "x 100,000 rows/s needed", 1.0, note=f"{rate:,.0f}/s")


def memory() -> None:
    """Do a worker's part with full batches, and print its largest memory in KiB before and after.

    The messages come one batch at a time, as they do from Spark.
    """
    messages, _ = full_messages(random.Random(1))
    times = SPARK_BATCH_BYTES // sum(len(message) for message in messages)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    with tempfile.TemporaryDirectory() as root:
        write_tables(
            root,
            "0",
            (pair for _ in range(3) for pair in bronze_tables(messages_batch(messages * times))),
        )
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--memory", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        memory()
        return
    measure(3 if options.quick else 15).print()


if __name__ == "__main__":
    main()
