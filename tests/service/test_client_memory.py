"""Clients that make the broker hold memory lose their connections, and their neighbour notices
nothing, on real sockets.

``./dev soak clients`` plays the same crowds with ten thousand clients. It judges the neighbour's
p99 beside its p99 alone, on the same machine in the same run.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pulsar
import pytest

from headgate.base.units import KIB, MIB
from headgate.broker.held_memory import CONNECTION_BYTES
from tests.service.client_loads import Load, crowd
from tests.service.clients import client_of, full, wait_until
from tests.service.conftest import CLIENTS
from tests.service.neighbour import processor_times_s, resident_bytes
from tests.service.process import BrokerProcess

pytestmark = pytest.mark.alone

MEMORY_FS = "/dev/shm"
RATE = 200
P99_S = 0.1
ALONE_S = 3
WATCH_S = 4
PING_S = 45
"""Ten thousand that PING are watched for so long: they cannot fill the bound, as the kernel takes
128 KiB of each before the broker has to hold anything."""
CLOSED_S = 240
"""A crowd must have filled the bound by then. The kernel takes what it can of what a peer does not
read, before the broker has to hold it."""
PINGING = 60
"""So many are enough in the lane: the broker has to answer some 10,000 PINGs of each."""
RESIDENT_FACTOR = 1.6
"""The process may grow by so many times the bound: the allocator keeps pages that are part free."""
RESIDENT_BYTES = 48 * MIB
"""What else a crowd may make it grow by."""


def come_first(tasks: Iterable[int]) -> None:
    """Schedule threads before other programs, where that is allowed: what is measured is the broker
    beside a crowd, not the machine beside other work."""
    with contextlib.suppress(PermissionError):
        for task in tasks:
            os.sched_setscheduler(task, os.SCHED_RR, os.sched_param(1))


class Neighbour:
    """Publishes at a steady rate and notes how long each message takes."""

    def __init__(self, broker: BrokerProcess) -> None:
        self._broker = broker
        self._is_over = threading.Event()
        self.took_s: list[float] = []
        self.failed = 0
        self.resident_bytes: list[int] = []

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Publish while the crowd does what it does."""
        thread = threading.Thread(target=self._publish)
        before = processor_times_s(self._broker.pid)
        thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            thread.join()
        after = processor_times_s(self._broker.pid)
        self.ran_s, waited_s = (b - a for a, b in zip(before, after, strict=True))
        # Where the broker gets a processor a part of the time only, all it does takes longer.
        self.slower = 1 + waited_s / max(self.ran_s, 0.01)

    def p99_s(self) -> float:
        return sorted(self.took_s)[int(0.99 * len(self.took_s))]

    def _publish(self) -> None:
        come_first([0])  # also the threads of its client
        with client_of(self._broker.service_url) as client:
            producer = client.create_producer(
                full("neighbour"), batching_enabled=False, block_if_queue_full=True
            )
            producer.send(b"first")
            due = time.monotonic()
            while not self._is_over.wait(max(0.0, due - time.monotonic())):
                # It waits for no answer: however late the broker is, the next one is sent in time.
                producer.send_async(b"x" * 100, partial(self._answered, time.monotonic()))
                due += 1 / RATE
                if round(due * RATE) % (RATE // 4) == 0:
                    self.resident_bytes.append(resident_bytes(self._broker.pid))
            producer.flush()

    def _answered(self, sent: float, result: pulsar.Result, _: object) -> None:
        self.failed += result != pulsar.Result.Ok
        self.took_s.append(time.monotonic() - sent)


def figures(broker: BrokerProcess) -> dict[str, int]:
    """What the broker holds by kind, and ``limit``, ``slowed`` and ``closed``."""
    page = _page(broker)
    start = r"^headgate_client_memory_"
    by_kind = re.findall(start + r'bytes{.*kind="(\w+)"} (\S+)$', page, re.MULTILINE)
    others = re.findall(start + r"(limit|slowed|closed)_\w+{.*} (\S+)$", page, re.MULTILINE)
    return {name: round(float(value)) for name, value in (*by_kind, *others)}


def _page(broker: BrokerProcess) -> str:
    """The page of metrics. Ten thousand sockets whose peers do not read can fill the memory that
    the kernel has for TCP (tcp_mem): then it resets any connection, also a scrape's."""
    for _ in range(SCRAPES_MAX - 1):
        with contextlib.suppress(ConnectionResetError):
            return broker.get("/metrics/")[1].decode()
    return broker.get("/metrics/")[1].decode()


SCRAPES_MAX = 3
OVER_BYTES = 64 * KIB
"""The crowd stands at the bound: as soon as one that holds much is closed, others go on, and one
that goes on adds up to a buffer of answers before the broker looks again."""


def held_bytes(broker: BrokerProcess) -> int:
    kinds = ("connections", "received", "unsent", "descriptions", "commands", "pending")
    found = figures(broker)
    return sum(found[kind] for kind in kinds)


@pytest.fixture
def data_path(tmp_path: Path) -> Iterator[Path]:
    """A data directory in memory, where there is one: a slow disk is not what is measured."""
    if not os.access(MEMORY_FS, os.W_OK):
        yield tmp_path / "data"
        return
    with tempfile.TemporaryDirectory(dir=MEMORY_FS) as directory:
        yield Path(directory) / "data"


@pytest.mark.parametrize("load", Load)
def test_a_crowd_stays_within_the_bound(
    make_broker: Callable[..., BrokerProcess], data_path: Path, load: Load, clients: int
) -> None:
    is_soak = clients != CLIENTS
    if load is Load.PING and not is_soak:
        clients = PINGING
    # Beside the part for other things, and the one that is left to other addresses.
    bound = -(-clients * 7 // 4 * CONNECTION_BYTES // MIB)
    if load is Load.DESCRIBE:
        bound = clients * 16 * KIB // MIB
    broker = make_broker(words=["--set", f"headgateClientMemoryMB={bound}"])
    broker.data_path = data_path
    broker.start()
    come_first(int(task.name) for task in Path(f"/proc/{broker.pid}/task").iterdir())
    alone, neighbour = Neighbour(broker), Neighbour(broker)
    with alone.watching():
        time.sleep(ALONE_S)
    before = resident_bytes(broker.pid)
    fills = load is Load.HALF or (load is Load.PING and not is_soak)
    with neighbour.watching(), crowd(broker.service_url, load, clients):
        time.sleep(PING_S if load is Load.PING and is_soak else WATCH_S)
        if fills:
            wait_until(lambda: figures(broker)["closed"] > 0, CLOSED_S, each_s=0.5)
        wait_until(lambda: held_bytes(broker) <= bound * MIB + OVER_BYTES, 30, each_s=0.5)
        found = figures(broker)
    highest = max(neighbour.resident_bytes) - before
    sys.stdout.write(
        f"{load.value}: {clients:,} clients, bound {bound} MiB, grew {highest / MIB:.0f} MiB,"
        f" neighbour p99 {neighbour.p99_s() * 1e3:.1f} ms of {len(neighbour.took_s)},"
        f" longest {max(neighbour.took_s) * 1e3:.1f} ms, alone p99 {alone.p99_s() * 1e3:.1f} ms,"
        f" broker's processor time {neighbour.ran_s:.1f} s,"
        f" {neighbour.slower:.1f} times slower for want of a processor, {found}\n"
    )
    assert highest <= RESIDENT_FACTOR * bound * MIB + RESIDENT_BYTES
    assert neighbour.failed == 0
    assert neighbour.p99_s() <= P99_S * neighbour.slower + alone.p99_s()
    assert found["limit"] == bound * MIB
    if load is Load.IDLE:
        assert found["closed"] == found["slowed"] == 0
    elif load is Load.DESCRIBE:
        assert 0.5 * bound * MIB < found["descriptions"] <= 0.9 * bound * MIB
    elif fills:
        assert found["closed"] > 0
        assert "is disconnected: this connection holds" in broker.log()
    wait_until(lambda: held_bytes(broker) < MIB, 30)
    wait_until(lambda: figures(broker)["slowed"] == 0)
    with client_of(broker.service_url) as client:
        client.create_producer(full("later")).send(b"last")
