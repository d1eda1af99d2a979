"""What OpenTelemetry instruments of more than one value read, and of values that take more than a
look: each with the attributes that tell its values apart.

Readers get the broker and the subject, within one turn; they change nothing. None, or no values at
all, says that there is nothing to tell of this subject now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from headgate.base.park_cause import ParkCause
from headgate.base.units import MS_PER_S, NS_PER_S
from headgate.flow.account.account import LABELS
from headgate.flow.limits.precedence import EffectiveLimit
from headgate.flow.limits.rate_limit import Dimension
from headgate.flow.quota.backlog_quota import QuotaType
from headgate.policy.limits_in_force import PUBLISH_BROKER, PUBLISH_TOPIC
from headgate.telemetry.adaptive_figures import broker_figures, topic_figures
from headgate.telemetry.prometheus.values import Number, backlog_age_s
from headgate.telemetry.records.subjects import cells_of

if TYPE_CHECKING:
    from headgate.broker.service import Broker
    from headgate.engine.parking import Parking
    from headgate.engine.subscription import Subscription
    from headgate.engine.topic import Topic
    from headgate.engine.topic_quota import ProducerStops, TopicQuota

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


# -- the broker ----------------------------------------------------------------------------------


def connections(broker: Broker, _: object) -> Values:
    """Those open now, those ever accepted, those ever ended."""
    counts = broker.counts
    return (
        ({CONNECTION_STATUS: "active"}, len(broker.connections)),
        ({CONNECTION_STATUS: "open"}, counts.connections_accepted),
        ({CONNECTION_STATUS: "close"}, counts.connections_closed),
    )


def connections_created(broker: Broker, _: object) -> Values:
    """Connections that sent a CONNECT, and those that ended without one."""
    counts = broker.counts
    return (
        ({CREATE_STATUS: "success"}, counts.connections_established),
        ({CREATE_STATUS: "failure"}, counts.connections_failed),
    )


def connections_limited(broker: Broker, _: object) -> Values:
    """How often connections were kept from sending, and let go on."""
    counts = broker.counts
    return (
        ({RATE_LIMIT_OPERATION: "paused"}, counts.connections_paused),
        ({RATE_LIMIT_OPERATION: "resumed"}, counts.connections_resumed),
        ({RATE_LIMIT_OPERATION: "throttled"}, counts.connections_throttled),
        ({RATE_LIMIT_OPERATION: "unthrottled"}, counts.connections_unthrottled),
    )


def disk_free_bytes(broker: Broker, _: object) -> int | None:
    """Room that is left on the file system."""
    return None if broker.disk.space is None else broker.disk.space.free_bytes


def disk_size_bytes(broker: Broker, _: object) -> int | None:
    """Size of the file system."""
    return None if broker.disk.space is None else broker.disk.space.size_bytes


def disk_full_seconds(broker: Broker, _: object) -> float:
    """Time in which what was sent waited for room."""
    return broker.disk.full_ns(broker.engine.now_ns) / NS_PER_S


def commit_seconds(broker: Broker, _: object) -> float:
    """Time that commits took."""
    return broker.committer.pace.sum_ns / NS_PER_S


def commit_running_seconds(broker: Broker, _: object) -> float:
    """For how long the present one has run."""
    return broker.committer.pace.running_ns() / NS_PER_S


def broker_limit(broker: Broker, _: object) -> Values:
    """The broker's limits in force: of dispatch, and of publishing."""
    yield from _limit("broker", broker.in_force.of_broker())
    yield from _limit(PUBLISH_BROKER, broker.publish_in_force.of_broker())


# -- a topic -------------------------------------------------------------------------------------


def messages_out(_: Broker, topic: Topic) -> int:
    """Messages handed to consumers since the topic was loaded."""
    sent = sum(subscription.messages_sent for subscription in topic.subscriptions.values())
    return topic.messages_out_removed + sent


def bytes_out(_: Broker, topic: Topic) -> int:
    """The same in bytes."""
    sent = sum(subscription.bytes_sent for subscription in topic.subscriptions.values())
    return topic.bytes_out_removed + sent


def oldest_age_s(_: Broker, topic: Topic) -> int:
    """Age of what a stored subscription owes the longest; -1 without backlog."""
    ages = map(backlog_age_s, topic.subscriptions.values())
    return max((age_s for age_s in ages if age_s is not None), default=-1)


def quota_bytes(broker: Broker, topic: Topic) -> int:
    """The size quota in force; -1 without one."""
    size = broker.policies.shown_quotas(topic).size
    return -1 if size is None else size.limit


def quota_s(broker: Broker, topic: Topic) -> int:
    """The time quota in force; -1 without one."""
    time = broker.policies.shown_quotas(topic).time
    return -1 if time is None else time.limit // MS_PER_S


def evictions(_: Broker, topic: Topic) -> Values:
    """Acts of eviction, by type of quota, zeros included."""
    for kind, attributes in _QUOTA_TYPES:
        yield attributes, 0 if topic.quota is None else topic.quota.evictions(kind)[0]


def evicted_messages(_: Broker, topic: Topic) -> Values:
    """Messages that each type of quota took."""
    return _by_type(topic, lambda quota, kind: quota.evictions(kind)[1])


def evicted_bytes(_: Broker, topic: Topic) -> Values:
    """The same in bytes."""
    return _by_type(topic, lambda quota, kind: quota.evictions(kind)[2])


def seconds_to_breach(_: Broker, topic: Topic) -> Values:
    """Until each type of quota is reached, where that comes nearer."""
    return _by_type(topic, lambda quota, kind: quota.seconds_to_breach(kind))


def stopped_seconds(_: Broker, topic: Topic) -> Values:
    """Time in which each type of quota held or refused producers."""

    def stopped(quota: TopicQuota, kind: QuotaType) -> float:
        stops = quota.stops
        return 0.0 if stops is None else stops.stopped_ns(kind, topic.engine.now_ns) / NS_PER_S

    return _by_type(topic, stopped)


def _by_type(topic: Topic, read: Callable[[TopicQuota, QuotaType], Number | None]) -> Values:
    if topic.quota is not None:
        for kind, attributes in _QUOTA_TYPES:
            value = read(topic.quota, kind)
            if value is not None:
                yield attributes, value


def producers_held(_: Broker, topic: Topic) -> int | None:
    """Producers whose messages wait; None on a topic that never had a quota."""
    if topic.quota is None:
        return None
    parking = topic.parking
    return 0 if parking is None else parking.waiting(ParkCause.BACKLOG_QUOTA).producers


def producers_closed(_: Broker, topic: Topic) -> int | None:
    """Producers that a quota disconnected; None on a topic that never had one."""
    return _of_stops(topic, lambda stops: stops.closed)


def producers_refused(_: Broker, topic: Topic) -> int | None:
    """Attempts that a quota refused; None on a topic that never had one."""
    return _of_stops(topic, lambda stops: stops.refused)


def _of_stops(topic: Topic, read: Callable[[ProducerStops], int]) -> int | None:
    if topic.quota is None:
        return None
    return 0 if topic.quota.stops is None else read(topic.quota.stops)


def parked_seconds(_: Broker, topic: Topic) -> Values:
    """Time in which something waited to be appended, by each cause that ever had anything wait."""
    now_ns = topic.engine.now_ns
    return _parked(topic, lambda parking, cause: parking.parked_ns(cause, now_ns) / NS_PER_S)


def parked_messages(_: Broker, topic: Topic) -> Values:
    """Messages that wait to be appended."""
    return _parked(topic, lambda parking, cause: parking.waiting(cause).messages)


def parked_bytes(_: Broker, topic: Topic) -> Values:
    """The same in bytes."""
    return _parked(topic, lambda parking, cause: parking.waiting(cause).bytes)


def _parked(topic: Topic, read: Callable[[Parking, ParkCause], Number]) -> Values:
    parking = topic.parking
    if parking is None:
        return ()
    causes = parking.causes(topic.engine.now_ns)
    return [({"cause": cause.label}, read(parking, cause)) for cause in causes]


def topic_limit(broker: Broker, topic: Topic) -> Values:
    """The topic's limits in force: of dispatch, and of publishing."""
    yield from _limit("topic", broker.in_force.of_topic(topic))
    yield from _limit(PUBLISH_TOPIC, broker.publish_in_force.of_topic(topic))


# -- a subscription ------------------------------------------------------------------------------


def state_seconds(_: Broker, subscription: Subscription) -> Values:
    """Time spent in each state that it ever was in."""
    spent = cells_of(subscription.account, subscription.topic.engine.now_ns)
    for attributes, spent_ns in zip(_CELLS, spent, strict=True):
        if spent_ns:
            yield attributes, spent_ns / NS_PER_S


def subscription_limit(broker: Broker, subscription: Subscription) -> Values:
    """The subscription's dispatch limit in force."""
    return _limit("subscription", broker.in_force.of_subscription(subscription))


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


# -- the adaptive controller ---------------------------------------------------------------------


def adaptive(index: int) -> Callable[[Broker, object], Number | None]:
    """One of :func:`.adaptive_figures.broker_figures`, while the feature is on."""

    def read(broker: Broker, _: object) -> Number | None:
        return None if broker.adaptive is None else broker_figures(broker.adaptive)[index]

    return read


def adaptive_topic(index: int) -> Callable[[Broker, Topic], Number | None]:
    """One of :func:`.adaptive_figures.topic_figures`, where they are asked for."""

    def read(broker: Broker, topic: Topic) -> Number | None:
        figures = topic_figures(broker, topic)
        return None if figures is None else figures[index]

    return read
