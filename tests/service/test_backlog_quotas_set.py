"""Backlog quotas as they are set, changed and seen while clients publish: REST, stats, /metrics."""

from __future__ import annotations

import asyncio
import json
import re
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest

from headgate.testing.client import SimClient
from tests.service.clients import EARLIEST, SHARED, client_of, full, receive, wait_until
from tests.service.measuring import Noise, Rest, topic_path
from tests.service.neighbour import processor_times_s
from tests.service.process import BrokerProcess
from tests.service.quota_scenes import (
    EVICT,
    EVICTION_PERCENT,
    HOLD,
    OVERHEAD_BYTES,
    REFUSE,
    Sending,
    connected,
    fill,
    setting,
    stored,
)

pytestmark = pytest.mark.waits

LIMIT_BYTES = 1_000_000
PAYLOAD_BYTES = 9_000
ENTRY_BYTES = PAYLOAD_BYTES + OVERHEAD_BYTES
FILLING = 130

CHECK = "/admin/v2/brokers/backlog-quota-check"
TOPICS = 2_000
"""Topics in the sweep that is measured; the law speaks of a hundred thousand."""
SWEEP_S_PER_TOPIC = 10 * 0.2 / 100_000
"""`bench/quotas` holds a tenth of it in CPU time. Here the clock counts, on whatever machine, and
only a check whose work grows faster than the number of topics fails."""
CHECKS = 20
BLOCKED_S = 0.005


def set_size(rest: Rest, where: str, limit_bytes: int, policy: str) -> None:
    body = {"limitSize": limit_bytes, "policy": policy}
    rest.ask("POST", f"{where}/backlogQuota", body)


def set_time(rest: Rest, where: str, limit_s: int, policy: str) -> None:
    body = {"limitTime": limit_s, "policy": policy}
    rest.ask("POST", f"{where}/backlogQuota?backlogQuotaType=message_age", body)


def samples_of(broker: BrokerProcess, name: str, topic: str = "") -> dict[str, float]:
    """Values of one series on /metrics, of one topic, by the labels that are left."""
    found = {}
    for line in broker.get("/metrics")[1].decode().splitlines():
        match = re.fullmatch(r"(\w+)\{(.*)\} (\S+)", line)
        if match is None or match[1] != name or (topic and f'topic="{topic}"' not in match[2]):
            continue
        labels = re.sub(r'(?:^|,)(?:cluster|namespace|topic)="[^"]*"', "", match[2])
        found[labels.lstrip(",")] = float(match[3])
    return found


# Input -------------------------------------------------------------------------------------------


def test_input_is_as_pulsars(broker: BrokerProcess, rest: Rest, namespace: str) -> None:
    """Rule 4.8: statuses are Pulsar's; what is left out is off, and an explicit 0 blocks."""
    where = f"/admin/v2/namespaces/{namespace}"
    topic = f"persistent://{namespace}/t"

    def post(body: dict[str, Any], query: str = "") -> int:
        path = f"{where}/backlogQuota{query}"
        return broker.request("POST", path, json.dumps(body).encode())[0]

    with client_of(broker.service_url) as client:
        client.subscribe(topic, "s", initial_position=EARLIEST).close()
        sending = Sending(client, topic, "p", 100)
        # An absent limit, a negative one, and a quota in seconds without seconds bound nothing.
        for body, query in (
            ({"policy": HOLD}, ""),
            ({"limitSize": -1, "policy": HOLD}, ""),
            ({"limitTime": 10, "policy": HOLD}, ""),
            ({"policy": HOLD}, "?backlogQuotaType=message_age"),
            ({"limitTime": -5, "policy": HOLD}, "?backlogQuotaType=message_age"),
            ({"limitTime": 0, "policy": HOLD}, "?backlogQuotaType=message_age"),
        ):
            assert post(body, query) == 204
            sending.send(2)
            sending.finish()
        assert len(sending.with_result()) == 12
        stats = rest.topic(topic)
        assert (stats["backlogQuotaLimitSize"], stats["backlogQuotaLimitTime"]) == (-1, -1)
        assert post({"limitSize": 5, "policy": "producer_request_wait"}) == 400
        assert post({"limitSize": 5}) == 400
        assert post({"limitSize": 5, "policy": HOLD}, "?backlogQuotaType=weight") == 404
        rest.ask(
            "POST", f"{where}/retention", {"retentionTimeInMinutes": 10, "retentionSizeInMB": 1}
        )
        assert post({"limitSize": 1 << 20, "policy": HOLD}) == 412
        assert post({"limitSize": 0, "policy": HOLD}) == 204
        sending.send(1)
        assert sending.settle() == 12
        set_size(rest, where, -1, HOLD)
        sending.finish()
        assert sending.with_result() == sending.sent


# Changes -----------------------------------------------------------------------------------------


def test_a_raise_another_policy_and_a_removal_let_producers_go_on_at_once(
    broker: BrokerProcess, rest: Rest, namespace: str
) -> None:
    """Rules 4.2 and 4.3: what waits goes on, over the same producer, and not before."""
    where, topic = f"/admin/v2/namespaces/{namespace}", f"persistent://{namespace}/t"
    with client_of(broker.service_url) as client, client_of(broker.service_url) as other:
        client.subscribe(topic, "s", initial_position=EARLIEST).close()
        set_size(rest, where, LIMIT_BYTES, HOLD)
        sending = Sending(other, topic, "p", PAYLOAD_BYTES)
        before = connected(rest.topic(topic))
        fill(sending, FILLING)
        rest.ask("POST", f"{where}/dispatchRate", {"dispatchThrottlingRateInMsg": 1_000})
        assert sending.settle() < len(sending.sent)
        begin = time.monotonic()
        set_size(rest, where, 2 * LIMIT_BYTES, HOLD)
        sending.finish()
        raised_s = time.monotonic() - begin
        fill(sending, FILLING)
        set_size(rest, where, 2 * LIMIT_BYTES, EVICT)
        sending.finish()
        assert rest.topic(topic)["backlogSize"] < 2 * LIMIT_BYTES
        set_size(rest, where, LIMIT_BYTES, HOLD)
        sending.send(1)
        assert sending.settle() < len(sending.sent)
        # A topic's own quota takes the namespace's place.
        set_size(rest, topic_path(topic), 100 * LIMIT_BYTES, HOLD)
        sending.finish()
        rest.ask("DELETE", f"{topic_path(topic)}/backlogQuota")
        sending.send(1)
        assert sending.settle() < len(sending.sent)
        begin = time.monotonic()
        rest.ask("DELETE", f"{where}/backlogQuota")
        sending.finish()
        removed_s = time.monotonic() - begin
        assert connected(rest.topic(topic)) == before
    assert max(raised_s, removed_s) < 2
    assert sending.with_result() == sending.sent == stored(broker.service_url, topic)


def test_both_types_act_each_by_its_own_policy(
    broker: BrokerProcess, rest: Rest, namespace: str
) -> None:
    """Rules 4.1, 4.2 and 4.6: while the size holds producers the age still evicts, and that ends
    the hold; statistics and metrics name both limits, the oldest message and whose it is."""
    where, topic = f"/admin/v2/namespaces/{namespace}", f"persistent://{namespace}/t"
    limit_s = 2
    set_size(rest, where, LIMIT_BYTES, HOLD)
    set_time(rest, where, limit_s, EVICT)
    with client_of(broker.service_url) as client, Noise([broker.pid]) as noise:
        client.subscribe(topic, "s", initial_position=EARLIEST).close()
        assert rest.topic(topic)["oldestBacklogMessageAgeSeconds"] == -1
        sending = Sending(client, topic, "p", PAYLOAD_BYTES)
        begin = time.monotonic()
        count = fill(sending, FILLING)
        stats = rest.topic(topic)
        shown_at = time.monotonic()
        assert stats["backlogQuotaLimitSize"] == LIMIT_BYTES
        assert stats["backlogQuotaLimitTime"] == limit_s
        assert 0 <= stats["oldestBacklogMessageAgeSeconds"] <= shown_at - begin
        assert stats["oldestBacklogMessageSubscriptionName"] == "s"
        assert samples_of(broker, "pulsar_storage_backlog_quota_limit", topic) == {"": LIMIT_BYTES}
        assert samples_of(broker, "pulsar_storage_backlog_quota_limit_time", topic) == {"": limit_s}
        assert samples_of(broker, "headgate_backlog_quota_producers_held", topic) == {"": 1}
        sending.finish()
        late_s = noise.lost_s(broker.pid, begin, sending.told[-1][2])
        resumed = sending.told[count][2]
        assert 0.9 * limit_s <= resumed - begin
        assert resumed <= sending.told[count - 1][2] + limit_s + 1 + late_s + 0.5
        evictions = "pulsar_storage_backlog_quota_exceeded_evictions_total"
        found = samples_of(broker, evictions, topic)
        assert found['quota_type="size"'] == 0
        assert found['quota_type="time"'] >= 1
    assert sending.with_result() == sending.sent


# What is seen ------------------------------------------------------------------------------------


def test_evictions_are_counted_of_the_topic_and_of_the_broker(
    broker: BrokerProcess, rest: Rest, namespace: str
) -> None:
    """Rules 4.3 and 4.6: one act counts one, whatever it took from how many subscriptions; the
    stepwise figures of the topic add up in the broker's, which outlive the topic."""
    where, topic = f"/admin/v2/namespaces/{namespace}", f"persistent://{namespace}/t"
    of_topic = "pulsar_storage_backlog_quota_exceeded_evictions_total"
    of_broker = "pulsar_broker_storage_backlog_quota_exceeded_evictions_total"
    by_size = 'quota_type="size"'
    before = samples_of(broker, of_broker)
    set_size(rest, where, LIMIT_BYTES, EVICT)
    with client_of(broker.service_url) as client:
        names = ["a", "b", "c"]
        for name in names:
            client.subscribe(topic, name, initial_position=EARLIEST).close()
        sending = Sending(client, topic, "p", PAYLOAD_BYTES)
        sending.send(FILLING)
        sending.finish()
    acts = samples_of(broker, of_topic, topic)
    assert acts[by_size] >= 1
    assert acts['quota_type="time"'] == 0
    after = samples_of(broker, of_broker)
    assert after[by_size] - before[by_size] == acts[by_size]
    lost = samples_of(broker, "headgate_backlog_evicted_messages_total", topic)[by_size]
    left = rest.topic(topic)["headgate"]["backlogMessages"]
    assert lost == len(names) * (FILLING - left)
    assert left * ENTRY_BYTES >= LIMIT_BYTES * EVICTION_PERCENT // 100 - ENTRY_BYTES
    rest.ask("DELETE", f"{topic_path(topic)}?force=true")
    assert samples_of(broker, of_topic, topic) == {}
    assert samples_of(broker, of_broker) == after


def test_a_refusing_quota_shows_who_is_refused_why(
    broker: BrokerProcess, rest: Rest, namespace: str
) -> None:
    """Rules 4.3 and 4.6: no producer is left, the oldest message and its subscription are named,
    and nothing is said once all is acknowledged."""
    where, topic = f"/admin/v2/namespaces/{namespace}", f"persistent://{namespace}/t"
    set_size(rest, where, LIMIT_BYTES, REFUSE)
    with client_of(broker.service_url) as client:
        consumer = client.subscribe(topic, "s", SHARED)
        client.subscribe(topic, "done", SHARED)
        sending = Sending(client, topic, "p", PAYLOAD_BYTES)
        sending.send(FILLING)
        sending.finish()
        stats = rest.topic(topic)
        assert stats["publishers"] == []
        assert stats["backlogSize"] >= LIMIT_BYTES
        for message in receive(consumer, len(sending.with_result())):
            consumer.acknowledge(message)
        wait_until(lambda: rest.topic(topic)["oldestBacklogMessageSubscriptionName"] == "done")
        rest.ask("POST", f"{topic_path(topic)}/subscription/done/skip_all")
        wait_until(lambda: rest.topic(topic)["backlogSize"] == 0)
        stats = rest.topic(topic)
        assert stats["oldestBacklogMessageAgeSeconds"] == -1
        assert "oldestBacklogMessageSubscriptionName" not in stats


def test_the_check_finds_nothing_and_is_timed(broker: BrokerProcess, rest: Rest) -> None:
    """Rule 4.6: each check is observed once, and what it could mend would be a defect."""
    duration = "pulsar_storage_backlog_quota_check_duration_seconds"
    before = samples_of(broker, f"{duration}_count")[""]
    for _ in range(3):
        rest.ask("GET", CHECK)
    assert samples_of(broker, f"{duration}_count")[""] == before + 3
    buckets = samples_of(broker, f"{duration}_bucket")
    assert buckets['le="+Inf"'] == before + 3
    assert {'le="5.0"', 'le="10.0"', 'le="30.0"', 'le="60.0"', 'le="300.0"'} <= set(buckets)
    assert list(buckets.values()) == sorted(buckets.values())
    assert samples_of(broker, f"{duration}_sum")[""] > 0
    assert samples_of(broker, "headgate_backlog_quota_check_defects_total") == {"": 0}


async def connect(url: str) -> SimClient:
    loop = asyncio.get_running_loop()
    address = urlsplit(url)
    _, client = await loop.create_connection(
        lambda: SimClient(loop), address.hostname, address.port
    )
    await client.connect()
    return client


async def make_topics(url: str, namespace: str, count: int) -> None:
    """So many topics that owe a message each."""
    client = await connect(url)
    at_once = asyncio.Semaphore(100)

    async def make(number: int) -> None:
        async with at_once:
            topic = f"persistent://{namespace}/t{number}"
            await client.subscribe(topic, "s", queue_size=0)
            await (await client.producer(topic)).send(b"owed")

    await asyncio.gather(*(make(number) for number in range(count)))
    client.close()


async def answer_s(url: str) -> float:
    """How long the broker takes to answer on a connection: of a quarter of the requests, as the
    rest may have waited for the machine."""
    client = await connect(url)
    found = []
    for _ in range(200):
        begin = time.monotonic()
        await client.partitions(full("undisturbed"))
        found.append(time.monotonic() - begin)
    client.close()
    return statistics.quantiles(found, n=4)[0]


def test_a_check_of_many_topics_is_quick_and_disturbs_nobody(
    broker: BrokerProcess, rest: Rest, namespace: str
) -> None:
    """Rule 4.7: its time grows by a few microseconds a topic, and requests to the broker meanwhile
    do not wait for its end."""
    where = f"/admin/v2/namespaces/{namespace}"
    set_size(rest, where, LIMIT_BYTES, HOLD)
    duration = "pulsar_storage_backlog_quota_check_duration_seconds_sum"

    def checked() -> float:
        before = samples_of(broker, duration)[""]
        rest.ask("GET", CHECK)
        return samples_of(broker, duration)[""] - before

    with setting(rest, "exposeTopicLevelMetricsInPrometheus", "false"):
        few_s = min(checked() for _ in range(CHECKS))
        asyncio.run(asyncio.wait_for(make_topics(broker.service_url, namespace, TOPICS), 120))
        many_s = min(checked() for _ in range(CHECKS))
    assert many_s - few_s <= TOPICS * SWEEP_S_PER_TOPIC, (few_s, many_s)
    stop = threading.Event()

    def check() -> int:
        checking, count = Rest(broker.admin_url), 0
        while not stop.is_set():
            checking.ask("GET", CHECK)
            count += 1
        checking.close()
        return count

    usual_s = asyncio.run(answer_s(broker.service_url))
    before = processor_times_s(broker.pid)
    with ThreadPoolExecutor(1) as pool:
        checks = pool.submit(check)
        checked_s = asyncio.run(answer_s(broker.service_url))
        stop.set()
    after = processor_times_s(broker.pid)
    assert checks.result() >= 10
    ran_s, waited_s = (late - early for early, late in zip(before, after, strict=True))
    # Where the broker gets a processor a part of the time only, all it does takes longer.
    slower = 1 + waited_s / ran_s
    assert checked_s <= (usual_s + BLOCKED_S) * slower, (usual_s, checked_s, slower)
