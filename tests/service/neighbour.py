"""A well-behaved client in a process of its own, which must not notice what others do."""

from __future__ import annotations

import multiprocessing
import os
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import pulsar

RATE_PER_S = 100
TOPIC = "persistent://public/default/neighbour"
WATCH_S = 0.7
"""The least time that is judged."""
REPORT_TIMEOUT_S = 20.0
HARM_S = 0.03
"""What the median of a message's way may grow by, however many others are served."""


class Delivery(NamedTuple):
    """One message's way."""

    number: int
    sent: float
    latency_s: float
    """From the call of the producer to that of the consumer's listener."""


def _work(url: str, pipe: Connection) -> None:
    client = pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    sent: list[float] = []
    arrived: list[tuple[int, float]] = []

    def heard(consumer: pulsar.Consumer, message: pulsar.Message) -> None:
        arrived.append((int(message.data()), time.monotonic()))
        consumer.acknowledge(message)

    client.subscribe(TOPIC, "s", message_listener=heard)
    producer = client.create_producer(TOPIC, block_if_queue_full=True)
    reported = 0
    due = time.monotonic()
    while True:
        while not pipe.poll(max(0.0, due - time.monotonic())):
            sent.append(time.monotonic())
            producer.send_async(str(len(sent) - 1).encode().ljust(200), lambda *_: None)
            due = max(due + 1 / RATE_PER_S, time.monotonic() - 0.5)
        if pipe.recv() == "end":
            break
        end = time.monotonic() + REPORT_TIMEOUT_S / 2
        while len(arrived) < len(sent) and time.monotonic() < end:
            time.sleep(0.002)
        pipe.send([Delivery(number, sent[number], at - sent[number])
                   for number, at in arrived[reported:]])  # fmt: skip
        reported = len(arrived)
        due = time.monotonic()
    client.close()


class Neighbour:
    """Publishes and consumes at a steady rate until it is left."""

    def __init__(self, url: str, pid: int) -> None:
        """``pid`` is the broker's process."""
        self._url = url
        self._pid = pid
        self._next = 0
        self.usual_s = 0.0
        """Median latency while nobody disturbed."""

    def __enter__(self) -> Neighbour:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(self._url, theirs), daemon=True)
        self._process.start()
        theirs.close()
        self._report()
        time.sleep(WATCH_S)
        self.usual_s = statistics.median(each.latency_s for each in self._report())
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.send("end")
        self._process.join(REPORT_TIMEOUT_S)
        self._pipe.close()
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    @contextmanager
    def unharmed(self) -> Iterator[None]:
        """Whatever happens inside, the neighbour keeps its rate, order and latency."""
        self._report()
        begin = time.monotonic()
        before = processor_times_s(self._pid)
        yield
        time.sleep(max(0.0, begin + WATCH_S - time.monotonic()))
        lasted_s = time.monotonic() - begin
        ran_s, waited_s = (
            after - at_begin
            for after, at_begin in zip(processor_times_s(self._pid), before, strict=True)
        )
        # Where the broker gets a processor a part of the time only, all it does takes longer.
        slower = 1 + waited_s / max(ran_s, 0.01)
        found = self._report()
        assert len(found) >= 0.8 * RATE_PER_S * lasted_s, (len(found), lasted_s)
        latencies_s = sorted(each.latency_s for each in found)
        middle_s = latencies_s[len(latencies_s) // 2]
        bound_s = (HARM_S + 2 * self.usual_s) * slower
        assert middle_s <= bound_s, (middle_s, self.usual_s, slower)
        assert latencies_s[-1] <= 20 * bound_s + 1, latencies_s[-5:]

    @contextmanager
    def served(self) -> Iterator[None]:
        """Whatever happens inside, all that it sends arrives, in order and once. How fast is not
        judged, for a soak on a machine that others use."""
        self._report()
        yield
        self._report()

    def _report(self) -> list[Delivery]:
        """Deliveries since the last report: everything sent has arrived, in order and once."""
        self._pipe.send("report")
        assert self._pipe.poll(REPORT_TIMEOUT_S)
        found: list[Delivery] = self._pipe.recv()
        assert [each.number for each in found] == list(range(self._next, self._next + len(found)))
        self._next += len(found)
        return found


def processor_times_s(pid: int) -> tuple[float, float]:
    """How long a process's first thread ran, and how long it could have run but had to wait."""
    ran_ns, waited_ns, _ = Path(f"/proc/{pid}/schedstat").read_text().split()
    return int(ran_ns) / 1e9, int(waited_ns) / 1e9


def resident_bytes(pid: int) -> int:
    """Memory that a process holds."""
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")
