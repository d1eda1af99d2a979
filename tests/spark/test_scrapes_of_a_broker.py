"""Scrapes of a broker under load give the right verdict without its own account."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pulsar
import pytest
import urllib3

from headgate.pipeline.scrapes.folder import file_name
from tests.service.measuring import QUIET, Arrivals
from tests.spark.conftest import Broker, Cluster
from tests.spark.scrape_job import attribute_scrapes
from tests.unit.pipeline.scrapes.judged import judgements, minutes

pytestmark = pytest.mark.alone

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


def scrape(broker: Broker, whole: Path, stripped: Path) -> None:
    """The broker's texts at even times while the load goes on, and what a Pulsar would say."""
    http, begin = urllib3.PoolManager(timeout=10), time.monotonic()
    for folder in (whole, stripped):
        folder.mkdir()
    for number in range(1, int(LOAD_S / SCRAPES_EVERY_S) + 1):
        time.sleep(max(0.0, begin + number * SCRAPES_EVERY_S - time.monotonic()))
        at_ms = time.time_ns() // 1_000_000
        text = http.request("GET", f"{broker.admin_url}/metrics").data.decode()
        kept = [line for line in text.splitlines(keepends=True) if "headgate_" not in line]
        (whole / file_name(at_ms)).write_text(text, encoding="utf-8")
        (stripped / file_name(at_ms)).write_text("".join(kept), encoding="utf-8")


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
def test_each_situation_is_judged_from_counters_alone(
    broker: Broker, topics: dict[str, str], tmp_path: Path
) -> None:
    whole, stripped = tmp_path / "whole", tmp_path / "stripped"
    with ThreadPoolExecutor(2) as pool:
        load = pool.submit(publish, broker, topics)
        scrapes = pool.submit(scrape, broker, whole, stripped)
        for done in (load, scrapes):
            done.result()
    rows, _ = attribute_scrapes(tmp_path / "tables", stripped)
    by_topic = {row["topic"]: row for row in rows}
    found = {name: by_topic[topic] for name, topic in topics.items()}
    assert {name: row["verdict"] for name, row in found.items()} == VERDICTS, found
    alone = found["alone"]
    assert alone["growth"] / alone["seconds"] == pytest.approx(PUBLISHED_PER_S, rel=0.15)

    # The same texts with the broker's own account in them, which is exact.
    names = {topic.rpartition("/")[2]: name for name, topic in topics.items()}
    measured = {names[last]: row for last, row in judgements(whole).items() if last in names}
    assert {name: row["verdict"] for name, row in measured.items()} == VERDICTS, measured
    told = {row["evidence"] for row in minutes(whole) if row["topic"] in topics.values()}
    assert told == {"measured" if "headgate_" in _any_text(whole) else "inferred"}
    # Of a healthy one some instants say little; of a backlog they say what the account says.
    for name in VERDICTS.keys() - {"healthy"}:
        share = measured[name][f"share_{VERDICTS[name].lower()}"]
        assert found[name]["shares"][VERDICTS[name]] == pytest.approx(share, abs=0.3), name


def _any_text(folder: Path) -> str:
    return next(folder.iterdir()).read_text(encoding="utf-8")
