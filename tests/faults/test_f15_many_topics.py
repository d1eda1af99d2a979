"""F15: very many topics with one message each survive a kill, and the start stays short and small.

``./dev soak topics`` plays it with 100,000.
"""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from headgate.testing.client import SimClient
from tests.service import process
from tests.service.neighbour import processor_times_s
from tests.service.process import BrokerProcess
from tests.service.quota_scenes import RETAINED, words

AT_ONCE = 200
START_S_MAX = 60.0
RSS_BYTES_MAX = 1_500_000_000
OPEN_FILES_MAX = 200
METRICS_BYTES_MAX = 64 * 1024 * 1024
METRICS_CPU_S_MAX = 15.0
"""Of the thread of the loop while a scrape waits, its other work included."""
SCRAPE_S_MAX = 300
SAMPLE = 97
"""Of so many topics, one is read after the restart."""


def name_of(number: int) -> str:
    """One of the topics."""
    return f"persistent://public/default/t{number}"


def rss_bytes(pid: int) -> int:
    """The memory that a process has now."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * 4096


def scrape(broker: BrokerProcess) -> tuple[int, bytes, float]:
    """Status and text of a scrape, and how long the loop's thread ran meanwhile, in seconds."""
    before_s, _ = processor_times_s(broker.pid)
    with urllib.request.urlopen(f"{broker.admin_url}/metrics", timeout=SCRAPE_S_MAX) as reply:
        status, page = reply.status, reply.read()
    after_s, _ = processor_times_s(broker.pid)
    return status, page, after_s - before_s


async def connected(url: str) -> SimClient:
    """A client of the real broker."""
    host, port = url.removeprefix("pulsar://").split(":")
    loop = asyncio.get_running_loop()
    _, client = await loop.create_connection(lambda: SimClient(loop), host, int(port))
    await client.connect()
    return client


async def fill(url: str, count: int) -> None:
    """Make the topics by publishing one message to each."""
    client, left = await connected(url), iter(range(count))

    async def work() -> None:
        for number in left:
            producer = await client.producer(name_of(number))
            await producer.send(b"of topic %d" % number)
            await producer.close()

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    client.close()
    await client.lost


async def read_some(url: str, count: int) -> None:
    """Each topic that is looked at has its message."""
    client = await connected(url)
    for number in range(0, count, max(count // SAMPLE, 1)):
        consumer = await client.subscribe(name_of(number), "s")
        message = await asyncio.wait_for(consumer.receive(), 20)
        assert message.payload == b"of topic %d" % number
    client.close()
    await client.lost


def test_many_topics_start_again_after_a_kill(
    make_broker: Callable[..., BrokerProcess],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    count = request.config.getoption("--topics")
    monkeypatch.setattr(process, "READY_TIMEOUT_S", 300.0)
    # A machine that is busy otherwise may take long: what a scrape costs is looked at.
    more = [*words(**RETAINED), "--set", "metricsServletTimeoutMs=0"]
    broker = make_broker(words=more).start()
    begun_s = time.monotonic()
    asyncio.run(fill(broker.service_url, count))
    filled_s, before_bytes = time.monotonic() - begun_s, rss_bytes(broker.pid)
    broker.kill()

    begun_s = time.monotonic()
    broker.start()
    start_s = time.monotonic() - begun_s
    ran_s, waited_s = processor_times_s(broker.pid)
    # Where the broker gets a processor a part of the time only, its start takes longer.
    slower = 1 + waited_s / max(ran_s, 0.01)
    after_bytes = rss_bytes(broker.pid)
    files = len(list(Path(f"/proc/{broker.pid}/fd").iterdir()))
    begun_s = time.monotonic()
    status, body = broker.get("/admin/v2/persistent/public/default")
    listed_s = time.monotonic() - begun_s
    listed = json.loads(body)
    begun_s = time.monotonic()
    metrics_status, metrics, metrics_cpu_s = scrape(broker)
    metrics_s = time.monotonic() - begun_s
    asyncio.run(read_some(broker.service_url, count))
    figures = (
        f"{count} topics: filled in {filled_s:.1f} s, RSS {before_bytes / 1e6:.0f} MB; start after "
        f"kill -9 {start_s:.1f} s, of which {ran_s:.1f} s on a processor, RSS "
        f"{after_bytes / 1e6:.0f} MB, {files} open files; listing {listed_s:.2f} s, "
        f"{len(body) / 1e6:.1f} MB; /metrics {metrics_s:.2f} s, {metrics_cpu_s:.2f} s CPU, "
        f"{len(metrics) / 1e6:.1f} MB; RSS at the end {rss_bytes(broker.pid) / 1e6:.0f} MB"
    )
    request.config.get_terminal_writer().line(figures)
    assert start_s < START_S_MAX * slower
    assert max(before_bytes, after_bytes) < RSS_BYTES_MAX
    assert files < OPEN_FILES_MAX
    assert status == 200
    assert {name_of(number) for number in range(count)} <= set(listed)
    assert metrics_status == 200
    assert len(metrics) < METRICS_BYTES_MAX
    assert metrics_cpu_s < METRICS_CPU_S_MAX
    assert broker.get("/admin/v2/brokers/health") == (200, b"ok")
