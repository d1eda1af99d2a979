"""The report on one topic: its publishing side, its limits and quotas, its subscriptions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, Protocol

import msgspec

from headgate.base.drained import drained
from headgate.base.instants import iso_time
from headgate.base.names import TopicName
from headgate.base.sliced import Sliced
from headgate.broker.damage import topic_damage_sentence
from headgate.engine.engine import Engine
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.explain.reports import TopicReport, TopReport
from headgate.explain.states import LimitState, StorageState
from headgate.metadata.errors import not_found
from headgate.observe.changes.change_history import ChangeHistory
from headgate.observe.explain.delivery import DeliveryReports
from headgate.observe.explain.publishing import PublishingReports
from headgate.observe.history.parked import ParkedHistory
from headgate.observe.states.quotas import quota_states

SUBSCRIPTIONS_PER_YIELD: Final = 64
"""Subscriptions that are listed between two pauses."""

NO_SUBSCRIPTION = "this topic has no subscription."


class TopicLookup(Protocol):
    """Finds topics by their names: the broker's registry."""

    def partitions(self, name: TopicName, /) -> int:
        """How many partitions a topic has; 0 if it is not partitioned."""

    def get(self, name: TopicName, /) -> Topic | None:
        """The topic of a name, loaded if necessary; None if there is none."""


class TopicReports:
    """Reports on topics of one broker."""

    def __init__(
        self,
        engine: Engine,
        topics: TopicLookup,
        delivery: DeliveryReports,
        publishing: PublishingReports,
        storage: Callable[[], StorageState],
        changes: ChangeHistory,
        parked: ParkedHistory,
    ) -> None:
        self._engine = engine
        self._topics = topics
        self._delivery = delivery
        self._publishing = publishing
        self._storage = storage
        self._changes = changes
        self._parked = parked

    def report(
        self,
        topic_name: TopicName,
        *,
        per_partition: bool,
        with_timelines: bool = False,
        roles_of: Collection[str] = (),
    ) -> Sliced[dict[str, Any]]:
        """What delays a topic's messages: a :class:`TopicReport` as plain values.

        A partitioned topic is reported as one; ``per_partition`` adds a report on each partition,
        and ``with_timelines`` the timeline of each subscription and the changes of the topic, which
        name roles and all values at the levels ``roles_of``. Partitions that are unloaded meanwhile
        are left out.

        Raises:
            RefusalError: 404, there is no such topic.
        """
        partitions = self._topics.partitions(topic_name)
        broker_limit = self._delivery.broker_limit()
        if not partitions:
            topic = self._topics.get(topic_name)
            if topic is None:
                raise not_found(f"Topic {topic_name} not found")
            report = yield from self._report(
                topic_name,
                [topic],
                0,
                broker_limit,
                with_timelines=with_timelines,
                roles_of=roles_of,
            )
            return (yield from plain_in_steps(report))
        topics: list[Topic] = []
        split: list[dict[str, Any]] = []
        for index in range(partitions):
            topic = self._topics.get(topic_name.partition_name(index))
            if topic is not None:
                topics.append(topic)
                if per_partition:
                    own = yield from self._report(
                        topic.name,
                        [topic],
                        0,
                        broker_limit,
                        with_timelines=False,
                        roles_of=roles_of,
                    )
                    split.append((yield from plain_in_steps(own)))
            yield
        present = [topic for topic in topics if topic.is_live]
        report = yield from self._report(
            topic_name,
            present,
            partitions,
            broker_limit,
            with_timelines=with_timelines,
            roles_of=roles_of,
        )
        answer = yield from plain_in_steps(report)
        return answer | ({"perPartition": split} if per_partition else {})

    def _report(
        self,
        name: TopicName,
        topics: Sequence[Topic],
        partitions: int,
        broker_limit: LimitState | None,
        *,
        with_timelines: bool,
        roles_of: Collection[str],
    ) -> Sliced[TopicReport]:
        """A report without those on its partitions."""
        names = [topic.name for topic in topics]
        changes = yield from self._changes.of_topic(name, names, roles_of)
        by_name: dict[str, list[Subscription]] = {}
        for topic in topics:
            for number, subscription in enumerate([*topic.subscriptions.values()], 1):
                if number % SUBSCRIPTIONS_PER_YIELD == 0:
                    yield
                by_name.setdefault(subscription.name, []).append(subscription)
        subscriptions = []
        for parts in by_name.values():
            work = self._delivery.account(
                parts, name.full, partitions, with_timeline=with_timelines, changes=changes
            )
            subscriptions.append((yield from work))
        for topic in topics if with_timelines else ():
            changes.add_quotas(self._parked, topic)
            yield
        subscriptions.sort(key=lambda report: -report.backlog_messages)
        limits = self._delivery.limits(topics, broker_limit)
        publishing = yield from self._publishing.report(topics)
        damaged = (report for report in subscriptions if report.damage)
        worst = next(damaged, subscriptions[0] if subscriptions else None)
        damage = next((topic.log.damage for topic in topics if topic.log.damage), "")
        sentence = NO_SUBSCRIPTION if worst is None else f"{worst.subscription}: {worst.sentence}"
        return TopicReport(
            topic=name.full,
            at=iso_time(self._engine.now_ms),
            partitions=partitions,
            sentence=topic_damage_sentence(damage) if damage else sentence,
            damage=damage or None,
            storage_bytes=sum(topic.storage_bytes() for topic in topics),
            storage=self._storage(),
            publishing=publishing,
            quotas=quota_states(topics),
            adaptive=self._publishing.adaptive(topics),
            limits=limits,
            subscriptions=subscriptions,
            per_partition=None,
            changes=changes.report() if with_timelines else None,
        )


def plain_in_steps(report: TopicReport | TopReport) -> Sliced[dict[str, Any]]:
    """:func:`plain`, with a pause after each subscription. The report is empty afterwards: to free
    10,000 subscriptions of it at once held the loop for 40 ms."""
    left: list[Any] = report.subscriptions
    answer = plain(msgspec.structs.replace(report, subscriptions=[]))
    for subscription in drained(left):
        answer["subscriptions"].append(plain(subscription))
        yield
    return answer


def plain(report: msgspec.Struct) -> dict[str, Any]:
    """A report as plain values for JSON."""
    values: dict[str, Any] = msgspec.to_builtins(report)
    return values
