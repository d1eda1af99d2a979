"""Scrapes of a broker under load, its own account taken out of them: the verdict is still right."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pulsar
import pytest
import urllib3

from tests.service.measuring import QUIET, Arrivals
from tests.spark.conftest import Broker, Cluster
from tests.spark.test_pipeline_scrapes import attribute_scrapes

LOAD_S = 14.0
SCRAPES_EVERY_S = 3.0
PUBLISHED_PER_S = 100
LIMIT_PER_S = 25
SLOW_WORK_S = 0.05

VERDICTS = {
    "slow": "CONSUMER",
    "alone": "NO_CONSUMER",
    "subscription-limit": "THROTTLED_SUBSCRIPTION",
    "topic-limit": "THROTTLED_TOPIC",
    "healthy": "NONE",
}
_POLICIES = {"subscription-limit": "subscriptionDispatchRate", "topic-limit": "dispatchRate"}


@pytest.fixture
def topics(cluster: Cluster) -> dict[str, str]:
    """A topic for each situation, with its subscription and its limit."""
    found = {name: cluster.new_topic() for name in VERDICTS}
    for name, topic in found.items():
        cluster.admin("PUT", topic, "")
        cluster.admin("PUT", topic, "/subscription/s")
        if name in _POLICIES:
            rate = {
                "dispatchThrottlingRateInMsg": LIMIT_PER_S,
                "dispatchThrottlingRateInByte": -1,
                "ratePeriodInSecond": 1,
            }
            cluster.admin("POST", topic, f"/{_POLICIES[name]}", rate)
    return found


def consume(broker: Broker, topic: str, work_s: float) -> pulsar.Client:
    """A consumer with a client, and so a thread, of its own."""
    client = pulsar.Client(broker.service_url, logger=QUIET)
    client.subscribe(topic, "s", pulsar.ConsumerType.Shared, message_listener=Arrivals(work_s))
    return client


def publish(broker: Broker, topics: dict[str, str]) -> None:
    """Evenly to all topics until the load ends."""
    client = pulsar.Client(broker.service_url, logger=QUIET)
    producers = [client.create_producer(topic) for topic in topics.values()]
    begin = time.monotonic()
    for number in range(int(LOAD_S * PUBLISHED_PER_S)):
        time.sleep(max(0.0, begin + number / PUBLISHED_PER_S - time.monotonic()))
        for producer in producers:
            producer.send_async(b"x" * 100, None)
    for producer in producers:
        producer.flush()
    client.close()


def scrape(broker: Broker, folder: Path) -> None:
    """What a Pulsar would say, at even times while the load goes on."""
    http, begin = urllib3.PoolManager(timeout=10), time.monotonic()
    folder.mkdir()
    for number in range(1, int(LOAD_S / SCRAPES_EVERY_S) + 1):
        time.sleep(max(0.0, begin + number * SCRAPES_EVERY_S - time.monotonic()))
        at_ms = time.time_ns() // 1_000_000
        text = http.request("GET", f"{broker.admin_url}/metrics").data.decode()
        kept = [line for line in text.splitlines(keepends=True) if "headgate_" not in line]
        (folder / f"{at_ms}.prom").write_text("".join(kept), encoding="utf-8")


@pytest.fixture
def consumers(broker: Broker, topics: dict[str, str]) -> Iterator[None]:
    """Of every topic but the lonely one."""
    clients = [
        consume(broker, topic, SLOW_WORK_S if name == "slow" else 0.0)
        for name, topic in topics.items()
        if name != "alone"
    ]
    yield
    for client in clients:
        client.shutdown()


@pytest.mark.usefixtures("spark", "consumers")
def test_each_situation_is_told_from_counters_alone(
    broker: Broker, topics: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "scrapes"
    with ThreadPoolExecutor(2) as pool:
        for done in (pool.submit(publish, broker, topics), pool.submit(scrape, broker, folder)):
            done.result()
    rows, _ = attribute_scrapes(tmp_path / "tables", folder)
    by_topic: dict[str, dict[str, Any]] = {row["topic"]: row for row in rows}
    found = {name: by_topic[topic] for name, topic in topics.items()}
    assert {name: row["verdict"] for name, row in found.items()} == VERDICTS, found
    for name, row in found.items():
        rate = row["growth"] / row["seconds"]
        left = {"healthy": 0, "alone": PUBLISHED_PER_S}.get(name)
        if left is not None:
            assert rate == pytest.approx(left, abs=0.15 * PUBLISHED_PER_S), name
