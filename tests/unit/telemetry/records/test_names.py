"""Names in the records: as they are, or hashed everywhere and always alike."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
from functools import partial

import pytest

from headgate.base.names import parse_topic
from headgate.metadata.policies import DispatchRate, PublishRate
from headgate.record.codec import Batch
from headgate.telemetry.records.names import PLAIN, HashedNames
from headgate.telemetry.records.publisher import TelemetryPublisher
from headgate.testing import World
from tests.unit.telemetry.support import bodies, entropy, limit, records

KEY = b"sixteen bytes or more"
TENANT, NAMESPACE, BASE, OTHER = "public", "default", "invoices", "refunds"
SUBSCRIPTIONS = ("billing", "audit", "a third one")
PRODUCERS = ("till", "web shop")
ALL_NAMES = (TENANT, NAMESPACE, BASE, OTHER, *SUBSCRIPTIONS, *PRODUCERS)
INVOICES = f"persistent://{TENANT}/{NAMESPACE}/{BASE}"
REFUNDS = f"persistent://{TENANT}/{NAMESPACE}/{OTHER}"


def hashed(name: str, key: bytes = KEY) -> str:
    """What the documentation promises."""
    return hmac.new(key, name.encode(), hashlib.sha256).hexdigest()[:16]


def test_each_part_is_hashed_separately_and_partitions_keep_their_number() -> None:
    names = HashedNames(KEY)
    topic = parse_topic(f"{INVOICES}-partition-12")
    base = f"persistent://{hashed(TENANT)}/{hashed(NAMESPACE)}/{hashed(BASE)}"
    assert names.topic(topic) == f"{base}-partition-12"
    assert names.topic(topic.base) == base
    assert parse_topic(names.topic(topic)).base.full == base
    assert names.part("ü |") == hashed("ü |")
    assert PLAIN.topic(topic) == topic.full
    assert PLAIN.part("ü |") == "ü |"


def test_a_key_decides() -> None:
    assert HashedNames(KEY).part("s") == HashedNames(KEY).part("s")
    assert HashedNames(KEY).part("s") != HashedNames(KEY + b".").part("s")


@pytest.mark.parametrize(
    "source", ["", "topic policy", "subscription policy", "broker setting dispatch and rates"]
)
def test_sources_without_names_stay(source: str) -> None:
    assert HashedNames(KEY).limit_source(source) == PLAIN.limit_source(source) == source


def test_a_namespaces_policy_is_named_by_hashes() -> None:
    source = "namespace policy acme/orders"
    expected = f"namespace policy {hashed('acme')}/{hashed('orders')}"
    assert HashedNames(KEY).limit_source(source) == expected
    both = f"{source} and adaptive controller"
    assert HashedNames(KEY).limit_source(both) == f"{expected} and adaptive controller"
    assert PLAIN.limit_source(source) == source


async def play(world: World, names_key: bytes | None) -> tuple[list[Batch], bytes]:
    """Everything that a record can name: partitions, limits of all levels, waiters, events."""
    broker = await world.start()
    publisher = TelemetryPublisher(broker, entropy=entropy, names_key=names_key)
    partitioned = broker.catalog.plan_create_partitioned(parse_topic(INVOICES), 2, now_ms=1)
    await broker.writer.commit(partitioned)
    client = await world.connect()
    topics = [f"{INVOICES}-partition-{index}" for index in range(2)] + [REFUNDS]
    for topic in topics:
        for name in SUBSCRIPTIONS:
            await client.subscribe(topic, name)
    rate = DispatchRate(dispatch_throttling_rate_in_msg=2)
    namespace = parse_topic(REFUNDS).namespace
    plan = broker.catalog.plan_namespace_policies
    await broker.writer.commit(plan(namespace, subscription_dispatch_rate=rate))
    await limit(broker, 3, INVOICES, of="topic")
    for topic in topics:
        producer = await client.producer(topic)
        for _ in range(20):
            await producer.send(b"x")
    await broker.writer.commit(plan(namespace, publish_rate=PublishRate(1)))
    for name in PRODUCERS:
        producer = await client.producer(REFUNDS, name=name)
        for _ in range(20):
            producer.send_nowait(b"x")
    await asyncio.sleep(3)
    await publisher.publish_window(broker.clock.wall_ns())
    rate = DispatchRate(dispatch_throttling_rate_in_msg=4)
    await broker.writer.commit(plan(namespace, subscription_dispatch_rate=rate))
    await publisher.publish_window(broker.clock.wall_ns())
    refunds = broker.engine.topics[REFUNDS]
    refunds.fence()
    broker.engine.unload_topic(refunds)
    await asyncio.sleep(3)
    await publisher.publish_window(broker.clock.wall_ns())
    await broker.when_durable()
    own = broker.engine.topics[broker.settings.headgateTelemetryTopic]
    return records(broker), b"".join(bodies(broker, own))


def played(names_key: bytes | None) -> tuple[list[Batch], bytes]:
    settings = {
        "dispatchThrottlingRateInMsg": "9",
        "dispatchThrottlingRatePerTopicInMsg": "5",
        "brokerPublisherThrottlingMaxMessageRate": "100",
    }
    with World(seed=5, settings=settings) as world:
        return world.run(play(world, names_key))


def test_records_differ_in_nothing_but_the_names() -> None:
    plain, plain_bytes = played(None)
    secret, secret_bytes = played(KEY)
    # Longest first; a name is a whole word of what the records say.
    words = "|".join(sorted(map(re.escape, ALL_NAMES), key=len, reverse=True))
    replace = partial(re.compile(rf"(?<![\w-])({words})(?!\w)").sub, lambda m: hashed(m[0]))
    assert len(plain) == len(secret) > 1
    found = set()
    for batch, twin in zip(plain, secret, strict=True):
        assert batch.rows == twin.rows
        for kind, columns in batch.columns.items():
            for name, values in columns.items():
                expected = [replace(v) if isinstance(v, str) else v for v in values]
                assert list(twin.columns[kind][name]) == expected, (kind, name)
                if expected != list(values):
                    found.add(f"{kind}.{name}")
    assert {place.rpartition(".")[2] for place in found} >= {
        "topic", "subscription", "oldest_subscription", "subject", "waiter_1",
        "limit_source", "limit_subscription_source", "publish_limit_source", "inputs", "outcome",
    }  # fmt: skip
    for name in (BASE, OTHER, *SUBSCRIPTIONS, *PRODUCERS):
        assert name.encode() in plain_bytes
        assert name.encode() not in secret_bytes
    assert f"{TENANT}/{NAMESPACE}".encode() not in secret_bytes


def test_the_same_key_gives_the_same_records() -> None:
    assert played(KEY) == played(KEY)
