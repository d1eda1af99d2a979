"""The report on the largest backlogs of a broker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from headgate.base.instants import iso_time
from headgate.base.largest import Largest, Reversed
from headgate.base.names import PARTITION_SUFFIX, parse_topic
from headgate.base.sliced import Sliced
from headgate.broker.damage import damages
from headgate.broker.slices import Pace, Turns, in_slices, live_topic_slices
from headgate.engine.engine import Engine
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.explain.changes import LEVELS
from headgate.explain.reports import DamageState, SubscriptionReport, TopicQuotaReport, TopReport
from headgate.explain.states import StorageState
from headgate.flow.quota.backlog_quota import QuotaType
from headgate.observe.changes.change_history import ChangeHistory
from headgate.observe.explain.delivery import DeliveryReports
from headgate.observe.explain.publishing import LargestParked, PublishingReports
from headgate.observe.explain.topic import TopicLookup, plain_in_steps
from headgate.observe.states.quotas import enforced_ago_s, quota_states

BACKLOG_UNITS: Final = 1 / 4
"""Of a subscription that is compared with those of the largest backlogs."""


@dataclass(slots=True)
class _Backlog:
    """One subscription of one topic, summed over its partitions."""

    topic: str
    messages: int
    parts: list[Subscription]
    number: int
    """In the order in which they were found: of equal backlogs, the first is shown first."""


class _SoonestQuotas:
    """Finds the quotas on users' topics that are exceeded, then those with a breach ahead, the
    soonest first."""

    def __init__(self, count: int) -> None:
        """At most ``count`` are found."""
        self._soonest = Largest[tuple[str, QuotaType, Topic]](count)

    def add(self, topic: Topic) -> None:
        """Look at one topic of a user."""
        topic_quota = topic.quota
        # Without backlog there is nothing to report.
        if topic_quota is None or not topic_quota.is_active:
            return
        for kind in QuotaType:
            left_s = topic_quota.seconds_to_breach(kind)  # 0 while exceeded
            is_reached = enforced_ago_s([topic_quota], kind) is not None
            if is_reached and topic_quota.quotas[kind] is not None:
                left_s = 0.0
            if left_s is not None:
                name = topic.name.full
                self._soonest.add(Reversed((left_s, name, kind)), (name, kind, topic))

    def reports(self) -> list[TopicQuotaReport]:
        """Their reports, the soonest first."""
        return [
            TopicQuotaReport(topic=name, quota=state)
            for name, kind, topic in self._soonest.items()
            for state in quota_states([topic])
            if state.type == kind.label
        ]


class TopReports:
    """Reports on the largest backlogs of one broker."""

    def __init__(
        self,
        engine: Engine,
        turns: Turns,
        topics: TopicLookup,
        delivery: DeliveryReports,
        publishing: PublishingReports,
        storage: Callable[[], StorageState],
        changes: ChangeHistory,
    ) -> None:
        self._engine = engine
        self._turns = turns
        self._topics = topics
        self._delivery = delivery
        self._publishing = publishing
        self._storage = storage
        self._changes = changes

    async def report(
        self, count: int, broker: str, *, with_timelines: bool = False
    ) -> dict[str, Any]:
        """The ``count`` largest backlogs of ``broker`` and the cause of each, as plain values.

        The partitions of a topic count as one subscription: otherwise one topic could fill the
        list. System topics are left out.
        """
        worst, quotas, parked = (
            Largest[_Backlog](count),
            _SoonestQuotas(count),
            LargestParked(count),
        )
        total, with_backlog = await self._find(worst, quotas, parked)
        live = [
            (backlog, parts)
            for backlog in worst.items()
            if (parts := [part for part in backlog.parts if not part.removed])
        ]
        reports = []
        for backlog, parts in live:
            work = self._report(backlog, parts, with_timelines=with_timelines)
            reports.append(await in_slices(self._turns, work))
        report = TopReport(
            at=iso_time(self._engine.now_ms),
            broker=broker,
            subscriptions_total=total,
            with_backlog=with_backlog,
            storage=self._storage(),
            subscriptions=reports,
            quotas=quotas.reports(),
            publishing=await self._publishing.parked_topics(self._turns, parked),
            damaged=[
                DamageState(topic=one.topic, subscription=one.subscription or None, damage=one.text)
                for one in islice(damages(self._engine), count)
            ],
        )
        return await in_slices(self._turns, plain_in_steps(report))

    def _report(
        self, backlog: _Backlog, parts: Sequence[Subscription], *, with_timelines: bool
    ) -> Sliced[SubscriptionReport]:
        """The report on one of the largest. Only super users see it, so it names roles."""
        name = parse_topic(backlog.topic)
        names = [part.topic.name for part in parts]
        changes = yield from self._changes.of_topic(name, names, LEVELS)
        work = self._delivery.report(
            parts,
            backlog.topic,
            self._topics.partitions(name),
            with_timeline=with_timelines,
            changes=changes,
        )
        return (yield from work)

    async def _find(
        self, worst: Largest[_Backlog], quotas: _SoonestQuotas, parked: LargestParked
    ) -> tuple[int, int]:
        """Show users' topics to ``quotas`` and ``parked`` and add their subscriptions to ``worst``,
        in one walk, in slices so that publishers do not wait; returns how many subscriptions there
        are, and how many with a backlog.

        Subscriptions of partitioned topics are kept until all partitions are known, the others are
        not: to free 100,000 would take long.
        """
        partitioned: dict[str, dict[str, _Backlog]] = {}
        total = with_backlog = 0
        pace = Pace(self._turns)
        async for topics in live_topic_slices(self._engine, self._turns):
            for topic in topics:
                # A walk through the subscriptions of one topic may pause, so that others end.
                if topic.is_system or not topic.is_live:
                    continue
                quotas.add(topic)
                parked.add(topic)
                by_name = self._partitions_of(topic, partitioned)
                for subscription in list(topic.subscriptions.values()):
                    messages = subscription.backlog_messages
                    if by_name is None:
                        total += 1
                        with_backlog += messages > 0
                        key = (messages, -total)
                        if messages > 0 and worst.keeps(key):
                            name = topic.name.full
                            worst.add(key, _Backlog(name, messages, [subscription], total))
                    elif (backlog := by_name.get(subscription.name)) is not None:
                        backlog.messages += messages
                        backlog.parts.append(subscription)
                    else:
                        total += 1
                        base = _base_of(topic)
                        by_name[subscription.name] = _Backlog(base, messages, [subscription], total)
                    if pace.spent(1):
                        await pace.give_way()
        while partitioned:
            _, by_name = partitioned.popitem()
            while by_name:
                _, backlog = by_name.popitem()
                if backlog.messages > 0:
                    with_backlog += 1
                    worst.add((backlog.messages, -backlog.number), backlog)
                if pace.spent(BACKLOG_UNITS):
                    await pace.give_way()
        return total, with_backlog

    def _partitions_of(
        self, topic: Topic, partitioned: dict[str, dict[str, _Backlog]]
    ) -> dict[str, _Backlog] | None:
        """The subscriptions that were found on the partitions of a topic of which this is one; None
        if it is no partition. A name may look like a partition's without being one."""
        if topic.partition < 0:
            return None
        base = _base_of(topic)
        if base in partitioned or self._topics.partitions(parse_topic(base)):
            return partitioned.setdefault(base, {})
        return None


def _base_of(partition: Topic) -> str:
    """The name of the topic of which this is a partition."""
    return partition.name.full.rpartition(PARTITION_SUFFIX)[0]
