"""Parked SENDs: how many, how long, at which limit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from headgate.base.park_cause import ParkCause
from headgate.base.sliced import Sliced
from headgate.base.units import NS_PER_HOUR, NS_PER_MINUTE, NS_PER_S
from headgate.engine.parked_send import ParkedAt
from headgate.engine.parking import Parking
from headgate.engine.topic import Topic
from headgate.explain.states import LimitRef, ParkedState
from headgate.flow.limits.precedence import ADAPTIVE_SOURCE
from headgate.flow.limits.rate_limit import Dimension
from headgate.flow.sentences.backlog import limit_text
from headgate.observe.history.parked import ParkedHistory
from headgate.policy.current_limits import PUBLISH_BROKER, PUBLISH_TOPIC, CurrentPublishLimits

PRODUCERS_PER_YIELD: Final = 512
"""Producers that are looked at between two yields, of 0.1 us each: a topic may have 60,000."""


class ParkedStates:
    """Reads the messages that wait before their append, with their history and publish limits."""

    def __init__(self, history: ParkedHistory, limits: CurrentPublishLimits) -> None:
        self._history = history
        self._limits = limits

    def states(self, topics: Sequence[Topic]) -> Sliced[list[ParkedState]]:
        """The waiting messages of a topic, given as its partitions, for each cause that ever made
        one wait."""
        known = [
            (topic, topic.publishing.parking)
            for topic in topics
            if topic.publishing.parking is not None
        ]
        if not known:
            return []
        history, minutes, hours = self._history, [], []
        for topic, _ in known:
            minutes.append(history.last(topic, NS_PER_MINUTE))
            hours.append(history.last(topic, NS_PER_HOUR))
            yield
        unread = yield from _unread(known)
        now_ns = topics[0].now_ns
        for _, parking in known:
            parking.fix_causes(now_ns)
        ever = {cause for _, parking in known for cause in parking.causes(now_ns)}
        states = []
        for cause in sorted(ever):
            waiting = [parking.waiting(cause) for _, parking in known]
            spent_ns = sum(parking.parked_ns(cause, now_ns) for _, parking in known)
            since = [s for _, parking in known if (s := parking.since_ns(cause)) is not None]
            fullest = max(zip(waiting, known, strict=True), key=lambda each: each[0])[1][0]
            states.append(
                ParkedState(
                    cause=cause.label,
                    producers=sum(each.producers for each in waiting),
                    unread=unread[cause],
                    messages=sum(each.messages for each in waiting),
                    bytes=sum(each.bytes for each in waiting),
                    seconds=spent_ns / NS_PER_S,
                    minute_s=max(each[cause] for each in minutes) / NS_PER_S,
                    hour_s=max(each[cause] for each in hours) / NS_PER_S,
                    waiting_s=(now_ns - min(since)) / NS_PER_S if since else None,
                    last_goes_s=_last_goes_s(self._limits, fullest, cause),
                    limit=_limit_ref(self._limits, fullest, cause),
                )
            )
        return states


def _unread(known: Sequence[tuple[Topic, Parking]]) -> Sliced[Counter[ParkCause]]:
    """The producers that wait on connections which are not read, by cause."""
    found: Counter[ParkCause] = Counter()
    for topic, parking in known:
        for number, producer in enumerate([*topic.producers.values()], start=1):
            if number % PRODUCERS_PER_YIELD == 0:
                yield
            if producer.is_paused_for_parked and (cause := parking.cause_of(producer)) is not None:
                found[cause] += 1
    return found


def _last_goes_s(limits: CurrentPublishLimits, topic: Topic, cause: ParkCause) -> float | None:
    """Seconds until the last waiting message passes its limit; None if a limit is not the cause."""
    if cause is ParkCause.BROKER_RATE:
        limit = limits.of_broker().limit
    elif cause in (ParkCause.TOPIC_RATE, ParkCause.ADAPTIVE):
        limit = limits.of_topic(topic).limit
    else:
        return None
    if limit is None or topic.publishing.parking is None:
        return None
    _, messages, size_bytes = topic.publishing.parking.waiting(cause)
    rates = (limit.per_second(Dimension.MESSAGES), limit.per_second(Dimension.BYTES))
    amounts = zip((messages, size_bytes), rates, strict=True)
    return max((amount / rate for amount, rate in amounts if rate), default=None)


def _limit_ref(limits: CurrentPublishLimits, topic: Topic, cause: ParkCause) -> LimitRef | None:
    """The publish limit behind a cause: in the dimension that producers wait for, if that is known,
    else in each that it may be."""
    is_broker = cause is ParkCause.BROKER_RATE
    if is_broker:
        effective = limits.of_broker()
    elif cause in (ParkCause.TOPIC_RATE, ParkCause.ADAPTIVE):
        effective = limits.of_topic(topic)
    else:
        return None
    limit = effective.limit
    if limit is None:
        return None
    is_adaptive = cause is ParkCause.ADAPTIVE
    dimensions = [
        dimension
        for dimension in Dimension
        if limit.amount(dimension) is not None
        and (effective.source_of(dimension) == ADAPTIVE_SOURCE) is is_adaptive
    ]
    refusing = _refusing(topic)
    if refusing in dimensions:
        dimensions = [refusing]
    if not dimensions:
        return None
    sources = dict.fromkeys(effective.source_of(dimension) for dimension in dimensions)
    return LimitRef(
        level=PUBLISH_BROKER if is_broker else PUBLISH_TOPIC,
        dimension=dimensions[0].name.lower() if len(dimensions) == 1 else "",
        text=" and ".join(limit_text(limit, dimension) for dimension in dimensions),
        source=" and ".join(sources),
    )


def _refusing(topic: Topic) -> Dimension | None:
    """The dimension in which a limit refuses the next message of a waiting producer."""
    for producer in topic.producers.values():
        if producer.parked_at is ParkedAt.GATE and producer.gate is not None:
            refusal = producer.gate.cause(topic.now_ns)
            if refusal is not None:
                return refusal.dimension
    return None
