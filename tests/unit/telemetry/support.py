"""Shared by the telemetry tests: a simulated broker, and its page and records taken apart."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from headgate.base.names import parse_topic
from headgate.broker.service import Broker
from headgate.engine.topic import Topic
from headgate.flow.disk_forecast import DiskForecast, Filling, Growth
from headgate.flow.quota.backlog_quota import QuotaPolicy
from headgate.metadata.policies import BacklogQuota, DispatchRate, PublishRate, QuotaKind
from headgate.record.codec import Batch, decode
from headgate.record.fields import Kind
from headgate.telemetry.prometheus.render import render
from headgate.telemetry.records.publisher import TelemetryPublisher
from headgate.testing import World
from headgate.wire.entry import payload_of

NAME = "persistent://public/default/orders"
S = 1_000_000_000
_SAMPLE = re.compile(r"(?P<name>\w+)\{(?P<labels>.*)\} (?P<value>\S+)\Z")
_LABEL = re.compile(r' ?(\w+)="((?:[^"\\]|\\.)*)"(?:,|\Z)')

ADAPTIVE_SETTINGS = {
    "adaptivePublisherThrottlingEnabled": "true",
    "adaptivePublisherThrottlingPerTopicMetricsEnabled": "true",
}
"""With these all figures of the adaptive controller are told."""


class Sample(NamedTuple):
    name: str
    labels: dict[str, str]
    value: float


async def rendered(broker: Broker) -> str:
    """The metrics page as a whole."""
    return b"".join((await render(broker)).as_text()).decode()


def read_page(text: str) -> tuple[dict[str, str], list[Sample]]:
    """Types by name, and all samples; every line must be one or the other."""
    types: dict[str, str] = {}
    samples = []
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            name, kind = line.removeprefix("# TYPE ").split()
            assert name not in types, f"two TYPE blocks for {name}"
            types[name] = kind
            continue
        match = _SAMPLE.match(line)
        assert match, line
        labels = dict(_LABEL.findall(match["labels"]))
        samples.append(Sample(match["name"], labels, float(match["value"])))
        # Pulsar leaves _total out of the TYPE lines of its counters.
        families = [name, f"{name}_total", f"{name}_created"]
        if kind == "histogram":
            families += [f"{name}_bucket", f"{name}_count", f"{name}_sum"]
        if kind == "summary":
            families += [f"{name}_count", f"{name}_sum"]
        assert match["name"] in families, f"{match['name']} stands in the block of {name}"
    return types, samples


def value_of(samples: Iterable[Sample], name: str, **labels: str) -> float:
    """The one sample of that name that has these labels."""
    (found,) = [s for s in samples if s.name == name and labels.items() <= s.labels.items()]
    return found.value


def entropy(size: int) -> bytes:
    return bytes(range(size))


async def start(world: World, **publisher: Any) -> tuple[Broker, TelemetryPublisher]:
    """A running broker and its publisher, which is not started."""
    broker = await world.start()
    return broker, TelemetryPublisher(broker, entropy=entropy, **publisher)


async def publish(world: World, count: int, name: str = NAME, size: int = 100) -> Topic:
    """Store ``count`` messages."""
    client = await world.connect()
    producer = await client.producer(name)
    for _ in range(count):
        await producer.send(b"x" * size)
    await producer.close()
    return topic_of(world.broker, name)


def fill_disk_up(broker: Broker) -> None:
    """Let the broker have found that its disk fills up."""
    growth = Growth(600.0, 10.0, 1.0, 2.0)
    broker.disk.growth._forecast = DiskForecast(
        Filling.FILLING, broker.engine.now_ns, full_in_s=90.0, growth=growth
    )


def topic_of(broker: Broker, name: str = NAME) -> Topic:
    return broker.engine.topics[name]


async def limit(
    broker: Broker, messages: int, name: str = NAME, *, of: str = "subscription"
) -> None:
    """Set the dispatch rate of a topic's subscriptions, or ``of`` the topic itself."""
    rate = DispatchRate(dispatch_throttling_rate_in_msg=messages)
    field = "dispatch_rate" if of == "topic" else "subscription_dispatch_rate"
    plan = broker.catalog.plan_topic_policies(parse_topic(name), **{field: rate})
    await broker.writer.commit(plan)


async def publish_limit(
    broker: Broker, messages: int, size_bytes: int = -1, name: str = NAME
) -> None:
    """Set the publish rate of a topic."""
    rate = PublishRate(messages, size_bytes)
    plan = broker.catalog.plan_topic_policies(parse_topic(name), publish_rate=rate)
    await broker.writer.commit(plan)


async def quota(
    broker: Broker, name: str = NAME, *, policy: QuotaPolicy = QuotaPolicy.HOLD, **limits: int
) -> None:
    """Set backlog quotas of a topic: ``limit_size`` in bytes, ``limit_time`` in seconds."""
    kinds: dict[str, QuotaKind] = {
        "limit_size": "destination_storage",
        "limit_time": "message_age",
    }
    quotas = {
        kinds[field]: BacklogQuota(policy.value, **{field: value})
        for field, value in limits.items()
    }
    plan = broker.catalog.plan_topic_policies(parse_topic(name), backlog_quotas=quotas)
    await broker.writer.commit(plan)


def records(broker: Broker) -> list[Batch]:
    """Everything on the telemetry topic."""
    topic = broker.engine.topics.get(broker.settings.headgateTelemetryTopic)
    if topic is None:
        return []
    return [decode(payload_of(body)) for body in bodies(broker, topic)]


def bodies(broker: Broker, topic: Topic) -> list[bytes]:
    log = broker.log.topic(topic.log.number)
    found: list[bytes] = []
    while (at := log.first + len(found)) < log.end:
        found += [body for _, _, body in broker.log.read(broker.log.locate(log, at, 100, 1 << 24))]
    return found


def rows(batches: Iterable[Batch], kind: Kind) -> list[dict[str, Any]]:
    """All rows of one kind, in order."""
    found = []
    for batch in batches:
        for place in range(batch.rows.get(kind, 0)):
            columns = batch.columns[kind]
            found.append({name: values[place] for name, values in columns.items()})
    return found
