"""The values of all instruments, read on the loop in slices and handed on in batches.

A batch is what one request carries, so the values of all topics are never in memory at once. All
values of one subject are of one turn.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncGenerator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from headgate.base.units import KIB, NS_PER_MS
from headgate.base.work_units import SLICE_UNITS
from headgate.telemetry.adaptive_figures import broker_figures, topic_figures
from headgate.telemetry.otel.instruments import (
    ADAPTIVE_INSTRUMENTS,
    ADAPTIVE_TOPIC_INSTRUMENTS,
    AUTHENTICATION_INSTRUMENTS,
    BROKER_POLICY_INSTRUMENTS,
    CLIENT_MEMORY_INSTRUMENTS,
    CONNECTION_INSTRUMENTS,
    CONSUMER_INSTRUMENTS,
    ENGINE_INSTRUMENTS,
    LOOKUP_INSTRUMENTS,
    PRODUCER_INSTRUMENTS,
    STORAGE_INSTRUMENTS,
    SUBSCRIPTION_INSTRUMENTS,
    SUBSCRIPTION_POLICY_INSTRUMENTS,
    TLS_INSTRUMENTS,
    TOPIC_INSTRUMENTS,
    TOPIC_POLICY_INSTRUMENTS,
    TURN_INSTRUMENTS,
    Instrument,
)
from headgate.telemetry.otel.readings import Attributes, Policies, Storage
from headgate.telemetry.prometheus.values import Number
from headgate.telemetry.property_labels import PropertyLabels
from headgate.wire.ids import to_signed

if TYPE_CHECKING:
    from headgate.broker.service import Broker
    from headgate.engine.consumer import Consumer
    from headgate.engine.producer import Producer
    from headgate.engine.subscription import Subscription
    from headgate.engine.topic import Topic

SLICE_MEASUREMENTS: Final = 400
"""Measurements of one slice, between which other work has its turn: about a millisecond."""

BATCH_MEASUREMENTS: Final = 2_000
"""Measurements of one request, without the rest of its last subject: about half a megabyte. Its
serialization holds the interpreter for a millisecond, in which no other thread runs."""

BATCH_TEXT_BYTES: Final = 512 * KIB
"""Bytes of the texts of one request, without those of its last subject. Clients choose names of up
to two kilobytes. With these 2,000 measurements are 13 MB, which proxies and collectors refuse, and
what comes behind them is not sent."""


Readable = tuple[tuple[Instrument, ...], Any]
"""Instruments, and what they read."""


class Measurement(NamedTuple):
    """One value of one instrument."""

    attributes: Attributes
    since_ns: int
    """Wall clock: the instant at which a counter was 0."""
    at_ns: int
    """Wall clock."""
    value: Number


class Batch:
    """Measurements of some subjects."""

    def __init__(self) -> None:
        self.by_name: defaultdict[str, list[Measurement]] = defaultdict(list)
        self.size = 0
        self.text_bytes = 0
        """Of the attributes that name subjects."""

    @property
    def is_full(self) -> bool:
        """Whether it is enough for one request."""
        return self.size >= BATCH_MEASUREMENTS or self.text_bytes >= BATCH_TEXT_BYTES

    def take(
        self,
        now_ms: int,
        readables: Iterable[Readable],
        attributes: Attributes,
        since_ms: int,
    ) -> None:
        """Add what the instruments of one subject read now (wall clock)."""
        at_ns = now_ms * NS_PER_MS
        since_ns = min(since_ms * NS_PER_MS, at_ns)
        size_before = self.size
        for table, readable in readables:
            for instrument in table:
                found = instrument.read(readable)
                if found is None:
                    continue
                if isinstance(found, Number):
                    values = [Measurement(attributes, since_ns, at_ns, found)]
                else:
                    values = [
                        Measurement({**attributes, **own}, since_ns, at_ns, value)
                        for own, value in found
                    ]
                if values:
                    self.by_name[instrument.name] += values
                    self.size += len(values)
        texts = (text for text in attributes.values() if isinstance(text, str))
        self.text_bytes += (self.size - size_before) * sum(len(text.encode()) for text in texts)


async def batches(broker: Broker) -> AsyncGenerator[Batch, None]:
    """All measurements. Other work has its turn between two slices, and while a batch is handed
    on."""
    broker.begin_turn()
    batch, rested_at = Batch(), 0
    for readables, attributes, since_ms in _subjects(broker):
        batch.take(broker.engine.now_ms, readables, attributes, since_ms)
        if batch.is_full:
            yield batch
            batch, rested_at = Batch(), 0
            broker.begin_turn()
        elif batch.size - rested_at >= SLICE_MEASUREMENTS:
            rested_at = batch.size
            await broker.give_way(SLICE_UNITS)
    if batch.size:
        yield batch


Subject = tuple[Iterable[Readable], Attributes, int]
"""All that is read of it, its attributes, and since when it counts (ms, wall clock)."""


def _subjects(broker: Broker) -> Iterator[Subject]:
    """The subjects that are live when their turn comes."""
    yield _of_broker(broker), {}, broker.started_ms
    labels = PropertyLabels(broker.settings, broker.catalog)
    for topic in broker.engine.live_topics():
        named = _of_topic(topic, labels)
        yield _readables_of_topic(broker, topic), named, topic.loaded_ms
        for producer in list(topic.producers.values()):
            readables = [(PRODUCER_INSTRUMENTS, producer)]
            yield readables, _of_producer(named, producer), producer.connected_ms
        for subscription in list(topic.subscriptions.values()):
            if not subscription.removed:
                yield from _subscription(broker, subscription, named)


def _of_broker(broker: Broker) -> Iterator[Readable]:
    if broker.adaptive is not None:
        yield ADAPTIVE_INSTRUMENTS, broker_figures(broker.adaptive)
    latency, now_ns = broker.committer.latency, broker.engine.now_ns
    limits = Policies(
        broker.current_dispatch_limits.of_broker(), broker.current_publish_limits.of_broker()
    )
    yield CONNECTION_INSTRUMENTS, broker
    yield LOOKUP_INSTRUMENTS, broker
    yield TURN_INSTRUMENTS, broker.turns
    if broker.tls.expires_at_s is not None:
        yield TLS_INSTRUMENTS, broker.tls
    yield ENGINE_INSTRUMENTS, broker.engine
    yield (
        STORAGE_INSTRUMENTS,
        Storage(
            broker.disk,
            latency,
            broker.connection_admission,
            broker.logs.by_name(),
            broker.trimming,
            now_ns,
        ),
    )
    yield CLIENT_MEMORY_INSTRUMENTS, broker.client_memory
    if broker.authentication is not None:
        yield AUTHENTICATION_INSTRUMENTS, broker.authentication
    yield BROKER_POLICY_INSTRUMENTS, limits


def _readables_of_topic(broker: Broker, topic: Topic) -> Iterator[Readable]:
    yield TOPIC_INSTRUMENTS, topic
    policies = Policies(
        broker.current_dispatch_limits.of_topic(topic),
        broker.current_publish_limits.of_topic(topic),
        broker.policies.shown_quotas(topic),
    )
    yield TOPIC_POLICY_INSTRUMENTS, policies
    figures = topic_figures(broker.settings, topic)
    if figures is not None:
        yield ADAPTIVE_TOPIC_INSTRUMENTS, figures


def _subscription(
    broker: Broker, subscription: Subscription, topic: Attributes
) -> Iterator[Subject]:
    named = {**topic, "pulsar.subscription.name": subscription.name}
    limits = Policies(broker.current_dispatch_limits.of_subscription(subscription))
    readables: list[Readable] = [
        (SUBSCRIPTION_INSTRUMENTS, subscription),
        (SUBSCRIPTION_POLICY_INSTRUMENTS, limits),
    ]
    yield readables, named, subscription.created_ms
    # Clients may give several consumers one name; what they count is then one sum.
    consumers: dict[tuple[str, int], list[Consumer]] = {}
    for consumer in subscription.consumers:
        consumers.setdefault((consumer.name, consumer.consumer_id), []).append(consumer)
    for same in consumers.values():
        since_ms = min(consumer.connected_ms for consumer in same)
        attributes = _of_consumer(named, subscription, same[0])
        yield [(CONSUMER_INSTRUMENTS, same)], attributes, since_ms


def _of_topic(topic: Topic, labels: PropertyLabels) -> Attributes:
    """The attributes of a topic; those of its properties are in small letters, as in Pulsar."""
    name = topic.name
    named: dict[str, str | int] = {
        "pulsar.domain": name.domain,
        "pulsar.tenant": name.tenant,
        "pulsar.namespace": str(name.namespace),
        "pulsar.topic": name.base.full,
    }
    if name.partition >= 0:
        named["pulsar.partition.index"] = name.partition
    return named | {label.lower(): value for label, value in labels.of(name).items()}


def _of_producer(topic: Attributes, producer: Producer) -> Attributes:
    """The attributes of a producer. Ids are those of the client, up to 64 bits: signed as in
    Pulsar, they fit OTLP, which has no unsigned ones."""
    return {
        **topic,
        "pulsar.producer.name": producer.name,
        "pulsar.producer.id": to_signed(producer.producer_id),
        "pulsar.producer.access_mode": producer.access_mode.name.lower(),
    }


def _of_consumer(
    subscription_named: Attributes, subscription: Subscription, consumer: Consumer
) -> Attributes:
    return {
        **subscription_named,
        "pulsar.subscription.type": subscription.type.label,
        "pulsar.consumer.name": consumer.name,
        "pulsar.consumer.id": to_signed(consumer.consumer_id),
    }
