"""The values of OpenTelemetry instruments that are more than an attribute of their subject.

A reader takes the subject of its table, within one turn, and changes nothing. A reader of several
values gives each with the attributes that tell it apart. None, or no values at all, means that the
instrument has nothing to report for this subject now.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from headgate.base.park_cause import ParkCause
from headgate.base.units import MS_PER_S, NS_PER_S
from headgate.flow.account.account import LABELS
from headgate.flow.limits.precedence import NO_LIMIT, EffectiveLimit
from headgate.flow.limits.rate_limit import Dimension
from headgate.flow.quota.backlog_quota import NO_QUOTAS, Quotas, QuotaType
from headgate.policy.current_limits import PUBLISH_BROKER, PUBLISH_TOPIC
from headgate.telemetry.prometheus.values import Number
from headgate.telemetry.records.subjects import cells_of

if TYPE_CHECKING:
    from headgate.broker.authentication import Authentication
    from headgate.broker.connection.connection import Connection
    from headgate.broker.connection_admission import ConnectionAdmission
    from headgate.broker.info import BrokerCounts
    from headgate.broker.sweeps.trimming import Trimming
    from headgate.engine.engine import Engine
    from headgate.engine.parking import Parking
    from headgate.engine.producer_stops import ProducerStops
    from headgate.engine.subscription import Subscription
    from headgate.engine.topic import Topic
    from headgate.engine.topic_quota import TopicQuota
    from headgate.ledger import CommitLog
    from headgate.storage.commit_latency import CommitLatency
    from headgate.storage.disk_monitor import DiskMonitor

Attributes = Mapping[str, str | int]
Values = Iterable[tuple[Attributes, Number]]

CONNECTION_STATUS: Final = "pulsar.connection.status"
CREATE_STATUS: Final = "pulsar.connection.create.operation.status"
RATE_LIMIT_OPERATION: Final = "pulsar.connection.rate_limit.operation.name"
QUOTA_TYPE: Final = "pulsar.backlog.quota.type"

_QUOTA_TYPES: Final = tuple((kind, {QUOTA_TYPE: kind.label}) for kind in QuotaType)
_CELLS: Final = tuple(
    {
        name: text
        for name, text in (
            ("state", cell.state.value),
            ("dimension", cell.dimension),
            ("consumer", cell.consumer),
        )
        if text
    }
    for cell in LABELS
)


class Connections(Protocol):
    """The connections of a broker and their counts since its start."""

    counts: BrokerCounts

    @property
    def connections(self) -> Collection[Connection]:
        """The open ones."""


class Storage(NamedTuple):
    """The resources that all topics share."""

    disk: DiskMonitor
    latency: CommitLatency
    admission: ConnectionAdmission
    logs: Mapping[str, CommitLog]
    """The logs by name."""
    trimming: Trimming
    now_ns: int


class Policies(NamedTuple):
    """The limits and quotas in force on the broker, a topic or a subscription."""

    dispatch: EffectiveLimit
    publish: EffectiveLimit = NO_LIMIT
    quotas: Quotas = NO_QUOTAS


# -- the broker ----------------------------------------------------------------------------------


def connections(of: Connections) -> Values:
    """Connections that are open now, were ever accepted, have ended."""
    counts = of.counts
    return (
        ({CONNECTION_STATUS: "active"}, len(of.connections)),
        ({CONNECTION_STATUS: "open"}, counts.connections_accepted),
        ({CONNECTION_STATUS: "close"}, counts.connections_closed),
    )


def connections_created(of: Connections) -> Values:
    """Connections that sent a CONNECT, and those that ended without one."""
    counts = of.counts
    return (
        ({CREATE_STATUS: "success"}, counts.connections_established),
        ({CREATE_STATUS: "failure"}, counts.connections_failed),
    )


def attempts(of: Authentication) -> Values:
    """Attempts to authenticate, by method and result."""
    return tuple(
        ({"method": method, "result": result}, count)
        for (method, result), count in of.counts.items()
    )


def connections_limited(of: Connections) -> Values:
    """How often messages of a connection began to wait, and stopped waiting."""
    counts = of.counts
    return (
        ({RATE_LIMIT_OPERATION: "paused"}, counts.throttles_begun),
        ({RATE_LIMIT_OPERATION: "resumed"}, counts.throttles_ended),
        ({RATE_LIMIT_OPERATION: "throttled"}, counts.pending_limits_reached),
        ({RATE_LIMIT_OPERATION: "unthrottled"}, counts.pending_limits_left),
    )


def tenant_stored_bytes(engine: Engine) -> Values:
    """What all topics of each tenant store."""
    for stored in engine.tenant_storage.tenants():
        yield {"tenant": stored.owner}, stored.bytes


def tenant_storage_full(engine: Engine) -> Values:
    """Whether the producers of each tenant are refused."""
    known = engine.tenant_storage
    for stored in known.tenants():
        yield {"tenant": stored.owner}, int(known.is_full(stored))


def disk_free_bytes(storage: Storage) -> int | None:
    """Free space of the file system."""
    return None if storage.disk.space is None else storage.disk.space.free_bytes


def disk_size_bytes(storage: Storage) -> int | None:
    """Size of the file system."""
    return None if storage.disk.space is None else storage.disk.space.size_bytes


def disk_full_seconds(storage: Storage) -> float:
    """Time in which published messages waited for disk space."""
    return storage.disk.full_ns(storage.now_ns) / NS_PER_S


def disk_full_in_seconds(storage: Storage) -> float | None:
    """Time until published messages wait for disk space."""
    return storage.disk.full_in_s()


def disk_growth(storage: Storage) -> Values:
    """Growth of the used disk by what grows."""
    growth = storage.disk.forecast().growth
    parts = {} if growth is None else growth.by_content()
    return tuple(({"content": content}, per_s) for content, per_s in parts.items())


def commit_seconds(storage: Storage) -> float:
    """Time that commits took."""
    return storage.latency.sum_ns / NS_PER_S


def commit_running_seconds(storage: Storage) -> float:
    """Age of the running commit."""
    return storage.latency.running_ns() / NS_PER_S


def storage_bytes(storage: Storage) -> Values:
    """Bytes of each log's files, by what they are needed for."""
    for name, log in storage.logs.items():
        for state, size_bytes in log.space_use().by_state().items():
            yield {"log": name, "state": state}, size_bytes


def storage_segments(storage: Storage) -> Values:
    """Segment files of each log."""
    for name, log in storage.logs.items():
        yield {"log": name}, log.space_use().segments


def storage_written_bytes(storage: Storage) -> Values:
    """Bytes that each log has written, by what they are for."""
    for name, log in storage.logs.items():
        for content, size_bytes in log.written_bytes()._asdict().items():
            yield {"log": name, "content": content}, size_bytes


def index_use(at: int) -> Callable[[Storage], Values]:
    """A reader of one figure of each log's index, by its place in
    :class:`headgate.ledger.statistics.IndexUse`."""

    def read(storage: Storage) -> Values:
        for name, log in storage.logs.items():
            yield {"log": name}, log.index_use()[at]

    return read


def broker_limit(policies: Policies) -> Values:
    """The broker's limits in force, on dispatch and on publishing."""
    yield from _limit("broker", policies.dispatch)
    yield from _limit(PUBLISH_BROKER, policies.publish)


# -- a topic -------------------------------------------------------------------------------------


def messages_out(topic: Topic) -> int:
    """Messages handed to consumers since the topic was loaded."""
    sent = sum(subscription.messages_sent for subscription in topic.subscriptions.values())
    return topic.messages_out_removed + sent


def delayed_entries(topic: Topic) -> int:
    """Entries of its subscriptions that are not due yet."""
    delayed = (subscription.dispatcher.delayed for subscription in topic.subscriptions.values())
    return sum(each.not_due.entries for each in delayed if each is not None)


def bytes_out(topic: Topic) -> int:
    """Bytes handed to consumers since the topic was loaded."""
    sent = sum(subscription.bytes_sent for subscription in topic.subscriptions.values())
    return topic.bytes_out_removed + sent


def quota_bytes(policies: Policies) -> int:
    """The size quota in force; -1 without one."""
    size = policies.quotas.size
    return -1 if size is None else size.limit


def quota_s(policies: Policies) -> int:
    """The time quota in force; -1 without one."""
    time = policies.quotas.time
    return -1 if time is None else time.limit // MS_PER_S


def evictions(topic: Topic) -> Values:
    """Evictions by type of quota, zeros included."""
    for kind, attributes in _QUOTA_TYPES:
        yield attributes, 0 if topic.quota is None else topic.quota.evictions(kind)[0]


def evicted_messages(topic: Topic) -> Values:
    """Messages that each type of quota evicted."""
    return _by_type(topic, lambda quota, kind: quota.evictions(kind)[1])


def evicted_bytes(topic: Topic) -> Values:
    """The same in bytes."""
    return _by_type(topic, lambda quota, kind: quota.evictions(kind)[2])


def seconds_to_breach(topic: Topic) -> Values:
    """Time until each type of quota is reached, if the backlog approaches it."""
    return _by_type(topic, lambda quota, kind: quota.seconds_to_breach(kind))


def stopped_seconds(topic: Topic) -> Values:
    """Time in which each type of quota held or refused producers."""

    def stopped(quota: TopicQuota, kind: QuotaType) -> float:
        stops = quota.stops
        return 0.0 if stops is None else stops.stopped_ns(kind, topic.now_ns) / NS_PER_S

    return _by_type(topic, stopped)


def _by_type(topic: Topic, read: Callable[[TopicQuota, QuotaType], Number | None]) -> Values:
    if topic.quota is not None:
        for kind, attributes in _QUOTA_TYPES:
            value = read(topic.quota, kind)
            if value is not None:
                yield attributes, value


def producers_held(topic: Topic) -> int | None:
    """Producers whose messages wait; None on a topic that never had a quota."""
    if topic.quota is None:
        return None
    parking = topic.publishing.parking
    return 0 if parking is None else parking.waiting(ParkCause.BACKLOG_QUOTA).producers


def producers_closed(topic: Topic) -> int | None:
    """Producers that a quota disconnected; None on a topic that never had one."""
    return _of_stops(topic, lambda stops: stops.closed_count)


def producers_refused(topic: Topic) -> int | None:
    """Attempts that a quota refused; None on a topic that never had one."""
    return _of_stops(topic, lambda stops: stops.refused_count)


def _of_stops(topic: Topic, read: Callable[[ProducerStops], int]) -> int | None:
    if topic.quota is None:
        return None
    return 0 if topic.quota.stops is None else read(topic.quota.stops)


def parked_seconds(topic: Topic) -> Values:
    """Time in which messages waited before their append, by cause."""
    now_ns = topic.now_ns
    return _parked(topic, lambda parking, cause: parking.parked_ns(cause, now_ns) / NS_PER_S)


def parked_messages(topic: Topic) -> Values:
    """Messages that wait before their append, by cause."""
    return _parked(topic, lambda parking, cause: parking.waiting(cause).messages)


def parked_bytes(topic: Topic) -> Values:
    """The same in bytes."""
    return _parked(topic, lambda parking, cause: parking.waiting(cause).bytes)


def _parked(topic: Topic, read: Callable[[Parking, ParkCause], Number]) -> Values:
    parking = topic.publishing.parking
    if parking is None:
        return ()
    parking.fix_causes(topic.now_ns)
    causes = parking.causes(topic.now_ns)
    return [({"cause": cause.label}, read(parking, cause)) for cause in causes]


def topic_limit(policies: Policies) -> Values:
    """The topic's limits in force, on dispatch and on publishing."""
    yield from _limit("topic", policies.dispatch)
    yield from _limit(PUBLISH_TOPIC, policies.publish)


# -- a subscription ------------------------------------------------------------------------------


def state_seconds(subscription: Subscription) -> Values:
    """Time spent in each state that ever occurred."""
    spent = cells_of(subscription.account, subscription.topic.now_ns)
    for attributes, spent_ns in zip(_CELLS, spent, strict=True):
        if spent_ns:
            yield attributes, spent_ns / NS_PER_S


def subscription_limit(policies: Policies) -> Values:
    """The dispatch limit in force on a subscription."""
    return _limit("subscription", policies.dispatch)


def _limit(limiter: str, effective: EffectiveLimit) -> Values:
    if effective.limit is None:
        return
    for dimension in Dimension:
        rate = effective.limit.per_second(dimension)
        if rate is not None:
            yield (
                {
                    "limiter": limiter,
                    "dimension": dimension.name.lower(),
                    "source": effective.source_of(dimension),
                },
                rate,
            )
