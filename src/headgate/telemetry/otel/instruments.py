"""Every OpenTelemetry instrument: the one table from which export and reference page are made.

A new instrument is one line here and, if its value is more than an attribute of the subject, a
reader in :mod:`.readings`. An instrument whose reader gives nothing is absent from that export.
Names that start with ``pulsar.broker.`` are Pulsar's, with its units and attributes; names that
start with ``headgate.`` are Headgate's own series of ``/metrics``. This module needs none of
OpenTelemetry's libraries: only :mod:`.otlp`, which exports, loads them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from headgate.base.units import NS_PER_S
from headgate.broker.damage import damage_counts
from headgate.broker.tls_status import HandshakeEnd
from headgate.telemetry.adaptive_figures import PULSAR_BROKER, PULSAR_TOPIC
from headgate.telemetry.otel import readings
from headgate.telemetry.otel.readings import Values
from headgate.telemetry.prometheus.series import (
    adaptive,
    authentication,
    broker,
    client_memory,
    limits,
    parked,
    quotas,
    storage,
    subscriptions,
    tls,
    topics,
)
from headgate.telemetry.prometheus.series.definition import SUBSCRIPTION_LABELS, Series
from headgate.telemetry.prometheus.values import Number, topic_backlog_age_s

if TYPE_CHECKING:
    from headgate.engine.consumer import Consumer

TOPIC_ATTRIBUTES: Final = (
    "pulsar.domain", "pulsar.tenant", "pulsar.namespace", "pulsar.topic", "pulsar.partition.index",
)  # fmt: skip
SUBSCRIPTION_ATTRIBUTES: Final = (*TOPIC_ATTRIBUTES, "pulsar.subscription.name")
CONSUMER_ATTRIBUTES: Final = (
    *SUBSCRIPTION_ATTRIBUTES, "pulsar.subscription.type", "pulsar.consumer.name",
    "pulsar.consumer.id",
)  # fmt: skip
PRODUCER_ATTRIBUTES: Final = (
    *TOPIC_ATTRIBUTES, "pulsar.producer.name", "pulsar.producer.id", "pulsar.producer.access_mode",
)  # fmt: skip


class Kind(Enum):
    """How values may be combined."""

    COUNTER = "counter"
    """They only grow: a rate makes sense."""
    UP_DOWN_COUNTER = "up-down counter"
    """They may be summed over subjects."""
    GAUGE = "gauge"
    """Neither."""


COUNTER, UP_DOWN_COUNTER, GAUGE = Kind

Reader = Callable[[Any], Number | Values | None]


@dataclass(frozen=True, slots=True)
class Instrument:
    """One exported name, which reads the subjects of its table."""

    name: str
    kind: Kind
    unit: str
    """In UCUM's notation, as OpenTelemetry wants it."""
    meaning: str
    read: Reader
    """Gives a number, or several with attributes of their own, or nothing."""
    attributes: tuple[str, ...] = ()
    """Attributes that tell several numbers apart, besides those of the subject."""


_PUBLIC_NAMES = {"quota_type": readings.QUOTA_TYPE}


def _ours(of: Series, kind: Kind, unit: str, read: Reader) -> Instrument:
    """A series of ``/metrics`` that is Headgate's own, under its name with dots."""
    name = of.name.removesuffix("_total").replace("_", ".")
    own = [label for label in of.labels if label not in SUBSCRIPTION_LABELS]
    attributes = tuple(_PUBLIC_NAMES.get(label, label) for label in own)
    return Instrument(name, kind, unit, of.meaning, read, attributes)


def _adaptive(name: str, kind: Kind, unit: str, of: Sequence[Series], index: int) -> Instrument:
    """A figure of the adaptive controller, under the name of Pulsar's draft."""
    is_of_broker = of is adaptive.ADAPTIVE_SERIES
    prefix = PULSAR_BROKER if is_of_broker else PULSAR_TOPIC
    return Instrument(prefix + name, kind, unit, of[index].meaning, itemgetter(index))


_OF_BROKER, _OF_TOPIC = adaptive.ADAPTIVE_SERIES, adaptive.ADAPTIVE_TOPIC_SERIES

ADAPTIVE_INSTRUMENTS: Final = (
    _adaptive("memory.pressure", GAUGE, "1", _OF_BROKER, 0),
    _adaptive("active.topic.count", GAUGE, "{topic}", _OF_BROKER, 1),
    _adaptive("activation.count", COUNTER, "{activation}", _OF_BROKER, 2),
    _adaptive("controller.last.evaluation.timestamp", GAUGE, "ms", _OF_BROKER, 3),
    _adaptive("controller.evaluation.duration", GAUGE, "ms", _OF_BROKER, 4),
    _adaptive("controller.evaluation.failure.count", COUNTER, "{failure}", _OF_BROKER, 5),
    _ours(_OF_BROKER[6], GAUGE, "ms", itemgetter(6)),
    _ours(_OF_BROKER[7], GAUGE, "1", itemgetter(7)),
    _ours(_OF_BROKER[8], GAUGE, "By", itemgetter(8)),
    _ours(_OF_BROKER[9], GAUGE, "By", itemgetter(9)),
)
"""Their subject: :func:`.adaptive_figures.broker_figures`, while the feature is enabled."""

ADAPTIVE_TOPIC_INSTRUMENTS: Final = (
    _adaptive("active", GAUGE, "1", _OF_TOPIC, 0),
    _adaptive("natural.publish.rate", GAUGE, "{message}/s", _OF_TOPIC, 1),
    _adaptive("effective.publish.rate", GAUGE, "{message}/s", _OF_TOPIC, 2),
    _adaptive("memory.pressure", GAUGE, "1", _OF_TOPIC, 3),
    _adaptive("backlog.pressure", GAUGE, "1", _OF_TOPIC, 4),
    _adaptive("rate.reduction.ratio", GAUGE, "1", _OF_TOPIC, 5),
)
"""Their subject: :func:`.adaptive_figures.topic_figures`, with
``adaptivePublisherThrottlingPerTopicMetricsEnabled``."""

CONNECTION_INSTRUMENTS: Final = (
    Instrument("pulsar.broker.connection.count", UP_DOWN_COUNTER, "{connection}",
               "Connections of the binary protocol: ``active`` are open now, ``open`` were accepted"
               " and ``close`` ended since the start.",
               readings.connections, (readings.CONNECTION_STATUS,)),
    Instrument("pulsar.broker.connection.create.operation.count", COUNTER, "{operation}",
               "Connections that sent a CONNECT (``success``), and those that ended without one.",
               readings.connections_created, (readings.CREATE_STATUS,)),
    Instrument("pulsar.broker.connection.rate_limit.count", COUNTER, "{operation}",
               "Times that messages of a connection began to wait for any cause (``paused``) and"
               " ceased to (``resumed``); that it reached its limit of unanswered messages"
               " (``throttled``) and fell below it (``unthrottled``).",
               readings.connections_limited, (readings.RATE_LIMIT_OPERATION,)),
    _ours(broker.DELAYS_IGNORED_SERIES, COUNTER, "{message}",
          lambda of: of.counts.delays_ignored),
    _ours(broker.DELAYS_REFUSED_SERIES, COUNTER, "{message}",
          lambda of: of.counts.delays_refused),
    _ours(broker.DELAYED_INDEX_SERIES, UP_DOWN_COUNTER, "By",
          lambda of: of.engine.delays.held_bytes),
    _ours(broker.PARTIALS_SERIES, UP_DOWN_COUNTER, "By",
          lambda of: of.engine.partials.held_bytes),
    _ours(broker.UNAUTHORIZED_SERIES, COUNTER, "{request}",
          lambda of: of.counts.unauthorized),
    _ours(broker.DUPLICATES_SERIES, COUNTER, "{message}",
          lambda of: of.engine.duplicates_dropped),
)  # fmt: skip
"""Their subject: :class:`.readings.Connections`."""

LOOKUP_INSTRUMENTS: Final = (
    Instrument("pulsar.broker.request.topic.lookup.concurrent.usage", UP_DOWN_COUNTER,
               "{operation}", "Lookups that wait for the creation of a topic.",
               lambda broker: broker.counts.lookups_pending),
    Instrument("pulsar.broker.request.topic.lookup.concurrent.limit", UP_DOWN_COUNTER,
               "{operation}", "Highest number of waiting lookups: ``maxConcurrentLookupRequest``.",
               lambda broker: broker.settings.maxConcurrentLookupRequest),
)  # fmt: skip
"""Their subject: the broker's pending lookups and its settings."""

TURN_INSTRUMENTS: Final = (
    _ours(broker.TURN_SERIES[0], GAUGE, "s", lambda turns: turns.longest()[0] / NS_PER_S),
    _ours(broker.TURN_SERIES[1], COUNTER, "{turn}", lambda turns: turns.long_count),
)  # fmt: skip
"""Their subject: the broker's meter of turns."""

ENGINE_INSTRUMENTS: Final = (
    _ours(quotas.CHECK_DEFECTS_SERIES, COUNTER, "{topic}",
          lambda engine: engine.quotas.defects_count),
    _ours(broker.DAMAGE_SERIES[0], GAUGE, "{topic}", lambda engine: damage_counts(engine)[0]),
    _ours(broker.DAMAGE_SERIES[1], GAUGE, "{subscription}",
          lambda engine: damage_counts(engine)[1]),
    _ours(storage.TENANT_STORED_SERIES, GAUGE, "By", readings.tenant_stored_bytes),
    _ours(storage.TENANT_FULL_SERIES, GAUGE, "1", readings.tenant_storage_full),
)  # fmt: skip
"""Their subject: the engine."""

STORAGE_INSTRUMENTS: Final = (
    _ours(storage.DISK_FREE_SERIES, GAUGE, "By", readings.disk_free_bytes),
    _ours(storage.DISK_SIZE_SERIES, GAUGE, "By", readings.disk_size_bytes),
    _ours(storage.DISK_FULL_SERIES, GAUGE, "1",
          lambda storage: int(storage.disk.full_since_ns is not None)),
    _ours(storage.DISK_FULL_SECONDS_SERIES, COUNTER, "s", readings.disk_full_seconds),
    _ours(storage.DISK_FULL_IN_SERIES, GAUGE, "s", readings.disk_full_in_seconds),
    _ours(storage.DISK_GROWTH_SERIES, GAUGE, "By/s", readings.disk_growth),
    _ours(storage.COMMITS_SERIES, COUNTER, "{commit}",
          lambda storage: storage.latency.count),
    _ours(storage.COMMIT_SECONDS_SERIES, COUNTER, "s", readings.commit_seconds),
    _ours(storage.COMMIT_LONGEST_SERIES, GAUGE, "s",
          lambda storage: storage.latency.facts().longest_s),
    _ours(storage.COMMIT_RUNNING_SERIES, GAUGE, "s", readings.commit_running_seconds),
    _ours(storage.CONNECTIONS_REFUSED_SERIES, COUNTER, "{connection}",
          lambda storage: storage.admission.refused_count),
    _ours(storage.STORAGE_BYTES_SERIES, GAUGE, "By", readings.storage_bytes),
    _ours(storage.STORAGE_SEGMENTS_SERIES, GAUGE, "{file}", readings.storage_segments),
    _ours(storage.STORAGE_WRITTEN_SERIES, COUNTER, "By", readings.storage_written_bytes),
    _ours(storage.INDEX_SERIES[0], GAUGE, "By", readings.index_use(0)),
    _ours(storage.INDEX_SERIES[1], COUNTER, "{lookup}", readings.index_use(1)),
    *(_ours(series, COUNTER, "{block}", readings.index_use(at))
      for at, series in enumerate(storage.INDEX_SERIES) if at > 1),
    _ours(storage.TRIMS_FOUND_SERIES, COUNTER, "{topic}",
          lambda storage: storage.trimming.found_by_walk),
)  # fmt: skip
"""Their subject: :class:`.readings.Storage`."""

CLIENT_MEMORY_INSTRUMENTS: Final = (
    _ours(client_memory.CLIENT_MEMORY_BYTES_SERIES, GAUGE, "By",
          lambda memory: (({"kind": kind}, size) for kind, size in memory.by_kind().items())),
    _ours(client_memory.CLIENT_MEMORY_SERIES[0], GAUGE, "By", lambda memory: memory.bytes_max),
    _ours(client_memory.CLIENT_MEMORY_SERIES[1], GAUGE, "{connection}",
          lambda memory: memory.figures()[1]),
    _ours(client_memory.CLIENT_MEMORY_SERIES[2], COUNTER, "{connection}",
          lambda memory: memory.closed_count),
)  # fmt: skip
"""Their subject: the bound on what clients hold."""

AUTHENTICATION_INSTRUMENTS: Final = (
    _ours(authentication.AUTHENTICATION_SERIES, COUNTER, "{attempt}", readings.attempts),
)
"""Their subject: the broker's authentication, if it is enabled."""

TLS_INSTRUMENTS: Final = (
    _ours(tls.TLS_EXPIRES_SERIES, GAUGE, "s", lambda status: status.expires_at_s),
    _ours(tls.TLS_RELOADS_SERIES, COUNTER, "{reload}", lambda status: status.reloads),
    _ours(tls.TLS_RELOAD_FAILURES_SERIES, COUNTER, "{look}",
          lambda status: status.reload_failures),
    _ours(tls.TLS_HALF_OPEN_SERIES, UP_DOWN_COUNTER, "{connection}",
          lambda status: status.half_open),
    _ours(tls.TLS_HANDSHAKES_SERIES, COUNTER, "{handshake}",
          lambda status: (({"result": str(end)}, status.handshakes[end]) for end in HandshakeEnd)),
)  # fmt: skip
"""Their subject: the state of TLS. There is none without TLS."""

BROKER_POLICY_INSTRUMENTS: Final = (
    _ours(limits.LIMIT_SERIES, GAUGE, "1/s", readings.broker_limit),
)

BROKER_INSTRUMENTS: Final = (
    *ADAPTIVE_INSTRUMENTS, *CONNECTION_INSTRUMENTS, *LOOKUP_INSTRUMENTS, *TURN_INSTRUMENTS,
    *ENGINE_INSTRUMENTS, *STORAGE_INSTRUMENTS, *CLIENT_MEMORY_INSTRUMENTS,
    *AUTHENTICATION_INSTRUMENTS, *TLS_INSTRUMENTS, *BROKER_POLICY_INSTRUMENTS,
)  # fmt: skip
"""All instruments of the broker."""

TOPIC_INSTRUMENTS: Final = (
    Instrument("pulsar.broker.topic.subscription.count", UP_DOWN_COUNTER, "{subscription}",
               "Subscriptions, readers included.", lambda topic: len(topic.subscriptions)),
    Instrument("pulsar.broker.topic.subscription.delayed.entry.count", UP_DOWN_COUNTER, "{entry}",
               "Delayed entries of its subscriptions that are not due.",
               readings.delayed_entries),
    Instrument("pulsar.broker.topic.producer.count", UP_DOWN_COUNTER, "{producer}",
               "Connected producers.", lambda topic: len(topic.producers)),
    Instrument("pulsar.broker.topic.consumer.count", UP_DOWN_COUNTER, "{consumer}",
               "Connected consumers.",
               lambda topic: sum(len(s.consumers) for s in topic.subscriptions.values())),
    Instrument("pulsar.broker.topic.message.incoming.count", COUNTER, "{message}",
               "Messages published since the topic was loaded.",
               lambda topic: topic.messages_in()),
    Instrument("pulsar.broker.topic.message.outgoing.count", COUNTER, "{message}",
               "Messages handed to consumers since the topic was loaded, repeats included.",
               readings.messages_out),
    Instrument("pulsar.broker.topic.message.incoming.size", COUNTER, "By",
               "Bytes published since the topic was loaded.", lambda topic: topic.bytes_in()),
    Instrument("pulsar.broker.topic.message.outgoing.size", COUNTER, "By",
               "Bytes handed to consumers since the topic was loaded, repeats included.",
               readings.bytes_out),
    Instrument("pulsar.broker.topic.publish.rate.limit.count", COUNTER, "{event}",
               "Times that a connection with a producer on the topic began to be throttled, as"
               " ``pulsar_publish_rate_limit_times``.",
               lambda topic: topic.publishing.throttled_count),
    Instrument("pulsar.broker.topic.storage.size", UP_DOWN_COUNTER, "By",
               "Bytes of all entries held.", lambda topic: topic.storage_bytes()),
    Instrument("pulsar.broker.topic.storage.logical.size", UP_DOWN_COUNTER, "By",
               "As the storage size: there is one copy.", lambda topic: topic.storage_bytes()),
    Instrument("pulsar.broker.topic.storage.backlog.size", UP_DOWN_COUNTER, "By",
               "Largest exact backlog of a durable subscription.",
               lambda topic: topic.backlog_bytes()),
    Instrument("pulsar.broker.topic.storage.backlog.quota.eviction.count", COUNTER, "{eviction}",
               "Evictions by a backlog quota since the topic was loaded, zeros included.",
               readings.evictions, (readings.QUOTA_TYPE,)),
    Instrument("pulsar.broker.topic.storage.backlog.age", GAUGE, "s",
               "Age of the oldest message that a durable subscription has not acknowledged; -1"
               " without backlog.", topic_backlog_age_s),
    Instrument("pulsar.broker.topic.storage.entry.outgoing.count", COUNTER, "{entry}",
               "Entries stored since the topic was loaded.",
               lambda topic: topic.counters()[2]),
    Instrument("pulsar.broker.topic.storage.entry.incoming.count", COUNTER, "{entry}",
               "Entries read from disk since the topic was loaded.",
               lambda topic: topic.entries_read),
    _ours(topics.TOPIC_DUPLICATES_SERIES, COUNTER, "{message}",
          lambda topic: topic.publishing.duplicates_if_any),
    _ours(quotas.EVICTED_MESSAGES_SERIES, COUNTER, "{message}", readings.evicted_messages),
    _ours(quotas.EVICTED_BYTES_SERIES, COUNTER, "By", readings.evicted_bytes),
    _ours(quotas.BREACH_SERIES, GAUGE, "s", readings.seconds_to_breach),
    _ours(quotas.PRODUCERS_HELD_SERIES, UP_DOWN_COUNTER, "{producer}", readings.producers_held),
    _ours(quotas.STOPPED_SECONDS_SERIES, COUNTER, "s", readings.stopped_seconds),
    _ours(quotas.PRODUCERS_CLOSED_SERIES, COUNTER, "{producer}", readings.producers_closed),
    _ours(quotas.PRODUCERS_REFUSED_SERIES, COUNTER, "{attempt}", readings.producers_refused),
    _ours(parked.PARKED_SECONDS_SERIES, COUNTER, "s", readings.parked_seconds),
    _ours(parked.PARKED_MESSAGES_SERIES, UP_DOWN_COUNTER, "{message}", readings.parked_messages),
    _ours(parked.PARKED_BYTES_SERIES, UP_DOWN_COUNTER, "By", readings.parked_bytes),
)  # fmt: skip

TOPIC_POLICY_INSTRUMENTS: Final = (
    Instrument("pulsar.broker.topic.storage.backlog.quota.limit.size", UP_DOWN_COUNTER, "By",
               "Size quota in force; -1 without one.", readings.quota_bytes),
    Instrument("pulsar.broker.topic.storage.backlog.quota.limit.time", GAUGE, "s",
               "Time quota in force; -1 without one.", readings.quota_s),
    _ours(limits.LIMIT_SERIES, GAUGE, "1/s", readings.topic_limit),
)  # fmt: skip
"""Their subject: :class:`.readings.Policies`."""

SUBSCRIPTION_INSTRUMENTS: Final = (
    _ours(subscriptions.STATE_SERIES, COUNTER, "s", readings.state_seconds),
)

SUBSCRIPTION_POLICY_INSTRUMENTS: Final = (
    _ours(limits.LIMIT_SERIES, GAUGE, "1/s", readings.subscription_limit),
)
"""Their subject: :class:`.readings.Policies`."""


def _consumers(
    name: str, kind: Kind, unit: str, meaning: str, read: Callable[[Consumer], int]
) -> Instrument:
    """Its subjects are the consumers of a subscription that share a name and an id."""

    def total(consumers: Sequence[Consumer]) -> int:
        return sum(map(read, consumers))

    return Instrument(f"pulsar.broker.consumer.{name}", kind, unit, meaning, total)


CONSUMER_INSTRUMENTS: Final = (
    _consumers("message.outgoing.count", COUNTER, "{message}",
               "Messages handed to it, repeats included.", lambda c: c.messages_sent),
    _consumers("message.outgoing.size", COUNTER, "By", "Bytes handed to it, repeats included.",
               lambda c: c.bytes_sent),
    _consumers("message.ack.count", COUNTER, "{ack}", "Messages that it acknowledged.",
               lambda c: c.messages_acked),
    _consumers("message.redeliver.count", COUNTER, "{message}",
               "Messages that it returned for redelivery.",
               lambda c: c.messages_redelivered),
    _consumers("message.unack.count", UP_DOWN_COUNTER, "{message}",
               "Messages of a Shared subscription that it has not acknowledged.",
               lambda c: c.unacked_messages),
    _consumers("blocked", UP_DOWN_COUNTER, "1",
               "1 while its limit of unacknowledged messages holds it.",
               lambda c: c.blocked_on_unacked),
    _consumers("permit.count", UP_DOWN_COUNTER, "{permit}",
               "Messages that it accepts; below 0 after a batch that was larger.",
               lambda c: c.permits),
)  # fmt: skip

PRODUCER_INSTRUMENTS: Final = (
    Instrument("pulsar.broker.producer.message.incoming.count", COUNTER, "{message}",
               "Messages that it published.", lambda producer: producer.messages_published),
    Instrument("pulsar.broker.producer.message.incoming.size", COUNTER, "By",
               "Bytes that it published.", lambda producer: producer.bytes_published),
)  # fmt: skip

INSTRUMENTS: Final = (
    ("the broker", (), BROKER_INSTRUMENTS),
    ("each topic", TOPIC_ATTRIBUTES,
     (*ADAPTIVE_TOPIC_INSTRUMENTS, *TOPIC_INSTRUMENTS, *TOPIC_POLICY_INSTRUMENTS)),
    ("each subscription", SUBSCRIPTION_ATTRIBUTES,
     (*SUBSCRIPTION_INSTRUMENTS, *SUBSCRIPTION_POLICY_INSTRUMENTS)),
    ("each connected consumer", CONSUMER_ATTRIBUTES, CONSUMER_INSTRUMENTS),
    ("each connected producer", PRODUCER_ATTRIBUTES, PRODUCER_INSTRUMENTS),
)  # fmt: skip
"""All instruments: what they measure, with which attributes."""

BY_NAME: Final = {
    instrument.name: instrument for _, _, table in INSTRUMENTS for instrument in table
}
"""A name that stands in several tables has the same kind and unit in each."""
