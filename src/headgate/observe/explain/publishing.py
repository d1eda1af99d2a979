"""The publishing side of a topic in reports: what its producers wait for, and how long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headgate.base.instants import iso_time
from headgate.base.largest import Largest
from headgate.base.park_cause import ParkCause
from headgate.base.sliced import Sliced, at_once
from headgate.base.units import NS_PER_S
from headgate.broker.slices import Turns, in_slices
from headgate.control.adaptive import AdaptiveThrottle
from headgate.engine.topic import Topic
from headgate.explain.reports import Publishing, TopicPublishingReport, WaitingProducer
from headgate.explain.states import AdaptiveState, ParkedState
from headgate.flow.limits.gate_node import LARGEST_WAITERS
from headgate.flow.sentences.access import access_sentence
from headgate.flow.sentences.publish import NOTHING_HOLDS, ParkSummary, publish_sentence
from headgate.observe.states.adaptive import adaptive_state
from headgate.observe.states.limits import publish_limits
from headgate.observe.states.parked import PRODUCERS_PER_YIELD, ParkedStates
from headgate.policy.current_limits import CurrentPublishLimits

_NAME_SHOWN: Final = 80
"""Characters of a producer's name in a sentence."""


class LargestParked:
    """Finds the users' topics whose producers wait now, those with most waiting messages first."""

    def __init__(self, count: int) -> None:
        """At most ``count`` are found."""
        self._worst = Largest[Topic](count)

    def add(self, topic: Topic) -> None:
        """Look at one topic of a user."""
        parking = topic.publishing.parking
        if parking is None:
            return
        paused = parking.waiting(ParkCause.MEMORY).producers
        if parking or paused:
            self._worst.add((parking.messages, paused, topic.name.full), topic)

    def topics(self) -> list[Topic]:
        """Those with most waiting messages, the most first."""
        return self._worst.items()


class PublishingReports:
    """Reports on publishing, from parked SENDs, current limits and the controller."""

    def __init__(
        self,
        parked: ParkedStates,
        limits: CurrentPublishLimits,
        throttle: AdaptiveThrottle | None,
    ) -> None:
        self._parked = parked
        self._limits = limits
        self._throttle = throttle

    def report(self, topics: Sequence[Topic]) -> Sliced[Publishing]:
        """The publishing side of a topic, given as its partitions."""
        rates = []
        for topic in topics:
            rates.append(topic.current_rates())
            yield
        last_ms = max((topic.publishing.last_publish_ms for topic in topics), default=0)
        waiting = Largest[WaitingProducer](LARGEST_WAITERS)
        for topic in topics:
            if topic.publishing.parking:
                yield from _add_parked(waiting, topic)
                yield
        parked = yield from self._parked.states(topics)
        return Publishing(
            producers=sum(len(topic.producers) for topic in topics),
            messages_per_s=sum(rate[0] for rate in rates),
            bytes_per_s=sum(rate[1] for rate in rates),
            pending_entries=sum(topic.publishing.pending_count for topic in topics),
            parked=parked,
            longest_waiting=waiting.items(),
            limits=publish_limits(self._limits, topics),
            waiting_for_access=sum(
                topic.access.waiting_count for topic in topics if topic.access is not None
            ),
            delays_ignored=sum(topic.delays_ignored for topic in topics),
            delays_refused=sum(topic.delays_refused for topic in topics),
            duplicates_dropped=sum(topic.publishing.duplicates_dropped for topic in topics),
            sentence=_sentence(parked, topics),
            last_publish=iso_time(last_ms) if last_ms else None,
        )

    def adaptive(self, topics: Sequence[Topic]) -> AdaptiveState | None:
        """What the adaptive controller does to a topic; see :func:`adaptive_state`."""
        return adaptive_state(self._throttle, topics)

    async def parked_topics(
        self, turns: Turns, parked: LargestParked
    ) -> list[TopicPublishingReport]:
        """What the producers of the topics that were found wait for, the most messages first."""
        return await in_slices(turns, self._reports(parked.topics()))

    def _reports(self, topics: Sequence[Topic]) -> Sliced[list[TopicPublishingReport]]:
        reports = []
        for topic in topics:
            report = self._parked_topic(topic)
            if report is not None:
                reports.append(report)
            yield
        return reports

    def _parked_topic(self, topic: Topic) -> TopicPublishingReport | None:
        parked = at_once(self._parked.states([topic]))
        now = sorted((p for p in parked if p.producers), key=lambda state: -state.messages)
        if not now:
            return None  # nothing waits any more
        return TopicPublishingReport(
            topic=topic.name.full,
            causes=[state.cause for state in now],
            messages=sum(state.messages for state in now),
            bytes=sum(state.bytes for state in now),
            sentence=_sentence(parked, [topic]),
        )


def _sentence(parked: Sequence[ParkedState], topics: Sequence[Topic]) -> str:
    causes = [
        ParkSummary(
            cause=ParkCause[state.cause.upper()],
            producers=state.producers,
            messages=state.messages,
            minute_s=state.minute_s,
            hour_s=state.hour_s,
            waiting_s=state.waiting_s,
            limit_text="" if state.limit is None else state.limit.text,
            limit_source="" if state.limit is None else state.limit.source,
            last_goes_s=state.last_goes_s,
            unread=state.unread,
        )
        for state in parked
    ]
    stopped = any(topic.quota is not None and topic.quota.exceeded is not None for topic in topics)
    disk_full = any(topic.publishing.is_disk_full for topic in topics)
    sentence = publish_sentence(
        causes,
        partitions=max(1, len(topics)),
        stopped=stopped,
        disk_full=disk_full,
        tenant_full=topics[0].publishing.tenant_full_text if topics else "",
    )
    access = _access_sentence(topics)
    if not access:
        return sentence
    return access if sentence == NOTHING_HOLDS else f"{sentence}; {access}"


def _access_sentence(topics: Sequence[Topic]) -> str:
    found = [topic.access for topic in topics if topic.access is not None]
    holders = (access.holder for access in found if access.waiting_count)
    names = [holder.name[:_NAME_SHOWN] for holder in holders if holder is not None]
    return access_sentence(
        waiting=sum(access.waiting_count for access in found),
        holder=names[0] if names else "",
        terminated=sum(topic.terminated for topic in topics),
        partitions=len(topics),
    )


def _add_parked(largest: Largest[WaitingProducer], topic: Topic) -> Sliced[None]:
    """Look at the producers of a topic whose messages wait now."""
    for number, producer in enumerate([*topic.producers.values()], start=1):
        if number % PRODUCERS_PER_YIELD == 0:
            yield
        parking = topic.publishing.parking
        if parking is None or not (producer.parked and largest.keeps(producer.parked_messages)):
            continue
        cause = parking.cause_of(producer)
        if cause is not None:
            found = WaitingProducer(
                topic=topic.name.full,
                producer=producer.name,
                cause=cause.label,
                messages=producer.parked_messages,
                bytes=producer.parked_bytes,
                waiting_s=(topic.now_ns - producer.parked[0].arrived_ns) / NS_PER_S,
            )
            largest.add(producer.parked_messages, found)
