"""Reading a topic by Spark through ``format("pulsar")`` against bare readers of pulsar-client.

Both read the same topic of the same broker in two halves, each in a process of its own, and take
turns; the session and the bare processes are started and warm before. Then the way from messages
to Spark alone: record batches as the source makes them against the tuples that a source may yield
as well, over the same messages held in memory.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import pulsar
from pyspark.sql import DataFrame, SparkSession

from bench.held_messages import HeldMessages
from bench.processes import check_memory, cpu_parts_s, watched_memory
from bench.report import Table, number
from bench.servers import ROOT, Server, headgate, scratch

TOPIC = "persistent://public/default/bench-source"
TIMEOUT_MS = 30_000
AGAINST_BARE_AIM = 1.25
"""Time of the source / of bare readers: 0.8 of their throughput."""
AGAINST_TUPLES_MAX = 0.4
"""Time of record batches / of tuples: 2.5 times their throughput."""
TOPICS = ((1_000_000, 1_024, 1), (600_000, 1_024, 100))
"""Messages, bytes of a payload, messages in an entry. So many that what Spark needs to plan a
query, a third of a second however short it is, is no large part."""
BARE = "bare readers"
NS = 1e9
IDLE_US = 0.1
"""What a process takes that has nothing to do."""
PIPELINE_COLUMNS = "value,__topic,__messageId,__publishTime"
"""What Headgate's own pipeline reads."""


def publish(url: str, topic: str, messages: int, payload_bytes: int, batch: int) -> bytes:
    """Fill the topic; returns the id, serialized, that ends its first half."""
    client = pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    producer = client.create_producer(
        topic,
        batching_enabled=batch > 1,
        batching_max_messages=max(batch, 2),
        batching_max_allowed_size_in_bytes=4 << 20,
        batching_max_publish_delay_ms=1_000,
        block_if_queue_full=True,
        max_pending_messages=20_000,
    )
    ends: list[bytes] = []

    def stored(result: pulsar.Result, message_id: pulsar.MessageId) -> None:
        if result != pulsar.Result.Ok:
            raise RuntimeError(f"the broker refused a message: {result}")
        ends.append(message_id.serialize())

    for index in range(messages):
        # Random payloads would cost the producer more than the rest; these differ and that is all.
        payload = index.to_bytes(8, "big") * (payload_bytes // 8)
        producer.send_async(payload, stored if index + 1 == messages // 2 else None)
    producer.flush()
    client.close()
    return ends[0]


def bare_reader(orders: Connection, url: str) -> None:
    """A process: at each order (topic, id to begin behind, count) read, and say when done."""
    client = pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    while (order := orders.recv()) is not None:
        topic, behind, count = order
        first = (
            pulsar.MessageId.earliest if behind is None else pulsar.MessageId.deserialize(behind)
        )
        reader = client.create_reader(topic, first, receiver_queue_size=1_000)
        for _ in range(count):
            reader.read_next(TIMEOUT_MS).data()
        orders.send(count)
        reader.close()
    client.close()


class BareReaders:
    """Two processes with a client each."""

    def __init__(self, url: str) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._orders = []
        self._processes = []
        for _ in range(2):
            here, there = spawn.Pipe()
            process = spawn.Process(target=bare_reader, args=(there, url), daemon=True)
            process.start()
            self._orders.append(here)
            self._processes.append(process)

    def read(self, topic: str, middle: bytes, messages: int) -> float:
        """Seconds in which both halves were read."""
        began_s = time.perf_counter()
        for orders, behind in zip(self._orders, (None, middle), strict=True):
            orders.send((topic, behind, messages // 2))
        for orders in self._orders:
            orders.recv()
        return time.perf_counter() - began_s

    def cpu_s(self) -> float:
        """CPU seconds of both so far."""
        clocks = [(~process.pid << 3) | 2 for process in self._processes if process.pid]
        return sum(map(time.clock_gettime, clocks))

    def close(self) -> None:
        """Have them end."""
        for orders in self._orders:
            orders.send(None)
        for process in self._processes:
            process.join(TIMEOUT_MS / 1_000)


@contextmanager
def session(folder: Path) -> Iterator[SparkSession]:
    """Spark with two cores, whose workers find the source and this bench."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    try:
        yield spark
    finally:
        spark.stop()


def read_all(frame: DataFrame) -> float:
    """Seconds in which Spark read a frame to its end, planning included."""
    began_s = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - began_s


def tabulate_topic(
    spark: SparkSession, server: Server, messages: int, payload_bytes: int, batch: int, rounds: int
) -> Table:
    """The source against bare readers of one topic."""
    url = f"pulsar://127.0.0.1:{server.port}"
    web = re.search(r"http://\S+", server.ready_line)
    assert web is not None
    topic = f"{TOPIC}-{payload_bytes}-{batch}"
    middle = publish(url, topic, messages, payload_bytes, batch)
    options = {"service.url": url, "admin.url": web[0], "topic": topic, "minPartitions": "2"}
    frames = {
        "all columns": spark.read.format("pulsar").options(**options).load(),
        "the pipeline's four": spark.read.format("pulsar")
        .options(**options, columns=PIPELINE_COLUMNS)
        .load(),
        "value alone": spark.read.format("pulsar").options(**options, columns="value").load(),
    }
    bare = BareReaders(url)

    def cpu() -> list[float]:
        return [server.cpu_ns() / NS, bare.cpu_s(), *cpu_parts_s()]

    bare_s: list[float] = []
    times_s: dict[str, list[float]] = {name: [] for name in frames}
    spent: dict[str, list[list[float]]] = {name: [] for name in (BARE, *frames)}
    try:
        for turn in range(-1, rounds):
            for name in (BARE, *frames):
                before = cpu()
                if name == BARE:
                    took_s = bare.read(topic, middle, messages)
                else:
                    took_s = read_all(frames[name])
                if turn >= 0:
                    (bare_s if name == BARE else times_s[name]).append(took_s)
                    spent[name].append([b - a for a, b in zip(before, cpu(), strict=True)])
    finally:
        bare.close()
    table = Table(
        f"{messages:,} messages of {payload_bytes} bytes, "
        + (f"batches of {batch}" if batch > 1 else "not batched")
        + ", read by two processes"
    )
    table.add(BARE, f"{number(messages / statistics.median(bare_s))} messages/s")
    for name, taken_s in times_s.items():
        table.add(f"Spark, {name}", f"{number(messages / statistics.median(taken_s))} messages/s")
        ratio = statistics.median(one / two for one, two in zip(taken_s, bare_s, strict=True))
        table.aim(f"time of Spark, {name} / bare", ratio, "times", AGAINST_BARE_AIM)
    for name, rows in spent.items():
        parts_us = [statistics.median(part) / messages * 1e6 for part in zip(*rows, strict=True)]
        shown = zip(("broker", "readers", "Java", "workers"), parts_us, strict=True)
        text = ", ".join(f"{part} {number(us)}" for part, us in shown if us > IDLE_US)
        table.add(f"CPU of a message, {name}", f"{text}: {number(sum(parts_us))} us")
    return table


def tabulate_held(spark: SparkSession, messages: int, rounds: int) -> Table:
    """Record batches against tuples."""
    spark.dataSource.register(HeldMessages)
    frames = {
        way: spark.read.format("held").option("count", messages).option("as", way).load()
        for way in ("batches", "tuples")
    }
    for frame in frames.values():
        read_all(frame)
    times_s: dict[str, list[float]] = {way: [] for way in frames}
    for _ in range(rounds):
        for way, frame in frames.items():
            times_s[way].append(read_all(frame))
    table = Table(f"{messages:,} messages of 100 bytes held in memory, all columns, to Spark")
    for way, taken_s in times_s.items():
        table.add(way, f"{number(messages / statistics.median(taken_s))} messages/s")
    ratios = [a / b for a, b in zip(times_s["batches"], times_s["tuples"], strict=True)]
    table.check("time of batches / tuples", statistics.median(ratios), "times", AGAINST_TUPLES_MAX)
    return table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="less of everything: then what Spark needs to plan weighs more",
    )
    quick: bool = parser.parse_args().quick
    rounds = 2 if quick else 3
    with scratch() as folder, session(folder) as spark, watched_memory() as peaks:
        for messages, payload_bytes, batch in TOPICS:
            server = headgate(folder, name=f"headgate-{payload_bytes}-{batch}")
            try:
                count = messages // 5 if quick else messages
                tabulate_topic(spark, server, count, payload_bytes, batch, rounds).print()
            finally:
                server.close()
        tabulate_held(spark, 200_000 if quick else 1_000_000, rounds).print()
        memory = Table("Memory of all of it")
        check_memory(memory, peaks)
        memory.print()


if __name__ == "__main__":
    main()
