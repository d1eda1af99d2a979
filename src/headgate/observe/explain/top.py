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
from headgate.broker.slices import Pace, Turns, in_slices, live_topics
from headgate.engine.engine import Engine
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.explain.reports import DamageState, SubscriptionReport, TopicQuotaReport, TopReport
from headgate.explain.states import StorageState
from headgate.flow.quota.backlog_quota import QuotaType
from headgate.observe.changes.change_history import ChangeHistory
from headgate.observe.explain.delivery import DeliveryReports
from headgate.observe.explain.publishing import PublishingReports
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
        worst = Largest[_Backlog](count)
        total, with_backlog = await self._find_backlogs(worst)
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
            quotas=await _soonest_quotas(self._engine, self._turns, count),
            publishing=await self._publishing.parked_topics(self._engine, self._turns, count),
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
        changes = yield from self._changes.of_topic(name, names, with_roles=True)
        work = self._delivery.report(
            parts,
            backlog.topic,
            self._topics.partitions(name),
            with_timeline=with_timelines,
            changes=changes,
        )
        return (yield from work)

    async def _find_backlogs(self, worst: Largest[_Backlog]) -> tuple[int, int]:
        """Add the subscriptions of users' topics to ``worst``, in slices so that publishers do not
        wait; returns how many there are, and how many with a backlog.

        Those of partitioned topics are kept until all partitions are known, the others are not:
        to free 100,000 would take long.
        """
        partitioned: dict[str, dict[str, _Backlog]] = {}
        total = with_backlog = 0
        pace = Pace(self._turns)
        async for topic in live_topics(self._engine, self._turns):
            if topic.is_system:
                continue
            base = topic.name.full.rpartition(PARTITION_SUFFIX)[0] if topic.partition >= 0 else ""
            # A name may look like a partition's without being one.
            is_part = base and (base in partitioned or self._topics.partitions(parse_topic(base)))
            by_name = partitioned.setdefault(base, {}) if is_part else None
            for subscription in list(topic.subscriptions.values()):
                backlog = None if by_name is None else by_name.get(subscription.name)
                messages = subscription.backlog_messages
                if backlog is not None:
                    backlog.messages += messages
                    backlog.parts.append(subscription)
                else:
                    total += 1
                    of = base if is_part else topic.name.full
                    backlog = _Backlog(of, messages, [subscription], total)
                    if by_name is not None:
                        by_name[subscription.name] = backlog
                    elif messages > 0:
                        with_backlog += 1
                        worst.add((messages, -total), backlog)
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


async def _soonest_quotas(engine: Engine, turns: Turns, count: int) -> list[TopicQuotaReport]:
    """The quotas on users' topics that are exceeded, then those with a breach ahead, the soonest
    first; at most ``count``."""
    soonest = Largest[tuple[str, QuotaType, Topic]](count)
    async for topic in live_topics(engine, turns):
        topic_quota = topic.quota
        # Without backlog there is nothing to report.
        if topic_quota is None or not topic_quota.is_active:
            continue
        for kind in QuotaType:
            left_s = topic_quota.seconds_to_breach(kind)  # 0 while exceeded
            is_reached = enforced_ago_s([topic_quota], kind) is not None
            if is_reached and topic_quota.quotas[kind] is not None:
                left_s = 0.0
            if left_s is not None:
                name = topic.name.full
                soonest.add(Reversed((left_s, name, kind)), (name, kind, topic))
    return [
        TopicQuotaReport(topic=name, quota=state)
        for name, kind, topic in soonest.items()
        for state in quota_states([topic])
        if state.type == kind.label
    ]
