"""Chooses the topics that have series of their own on a page of metrics.

``headgateMetricsSubjectsMax`` bounds topics and subscriptions together: a page of 100,000 topics
would be hundreds of megabytes, which no scraper takes in its time. Of each tenant the topics that
matter most stay: in turns the largest backlog, a topic that is throttled or stopped by a quota now,
the highest rate, and then those that the page had before. A topic of the last page counts a fourth
more, so that topics of about the same rank do not replace each other from page to page. A tenant
with very many leaves room to the others: else one could take the series of all, and alerts about
the others would not fire.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from heapq import heapify, heappop, heapreplace
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Final

from headgate.base.fair_largest import FairLargest
from headgate.base.largest import Largest
from headgate.base.park_cause import ParkCause
from headgate.broker.slices import AdminTurns, Pace
from headgate.flow.account.account import LABELS
from headgate.telemetry.prometheus.left_out_evictions import LeftOutEvictions

if TYPE_CHECKING:
    from headgate.broker.service import Broker
    from headgate.engine.subscription import Subscription
    from headgate.engine.topic import Topic

logger = logging.getLogger("headgate.metrics")

STAY_FACTOR: Final = 1.25
"""What a topic of the last page counts, compared with others."""

WIDE_PARTS: Final = 4
"""A topic with very many subscriptions gets a fourth of the room, and more only if no other topic
with a backlog, a limit or a rate needs it."""

SUBJECTS_PER_UNIT: Final = 2
"""Topics and subscriptions that are looked at with one unit of work."""


class Shown:
    """What has series of its own on one page."""

    def __init__(self, subscriptions: dict[str, frozenset[str] | None] | None) -> None:
        """``subscriptions`` has the topics with the names of their subscriptions, None for all;
        None altogether for all topics."""
        self._subscriptions = subscriptions
        self.is_bounded = subscriptions is not None
        """Whether anything is left out."""

    def has(self, topic: Topic) -> bool:
        """Whether a topic has series of its own."""
        return self._subscriptions is None or topic.name.full in self._subscriptions

    def has_subscription(self, subscription: Subscription) -> bool:
        """Whether a subscription of a topic of :meth:`has` has them."""
        if self._subscriptions is None:
            return True
        names = self._subscriptions.get(subscription.topic.name.full)
        return names is None or subscription.name in names


class TopicChoice:
    """Chooses the topics of each page, and knows those of the last one."""

    def __init__(self) -> None:
        self._before: frozenset[str] = frozenset()
        self._has_logged = False
        self.evictions = LeftOutEvictions()
        """Of the topics that the pages do not show."""

    async def choose(self, broker: Broker) -> Shown:
        """Look at all topics, in slices, and choose."""
        subjects_max = broker.settings.headgateMetricsSubjectsMax
        ranking = _Ranking(subjects_max, self._before)
        pace = Pace(AdminTurns(broker))
        for topic in broker.engine.live_topics():
            throttled, rate = _producers_wait(topic), topic.current_rates()[0]
            backlog_bytes = 0
            subscriptions = list(topic.subscriptions.values())
            for subscription in subscriptions:
                throttled |= LABELS[subscription.account.cell].level is not None
                rate += subscription.current_rates()[0]
                backlog_bytes = max(backlog_bytes, subscription.backlog_bytes)
                if pace.spent(1 / SUBJECTS_PER_UNIT):
                    await pace.give_way()
            ranking.add(topic, backlog_bytes, rate, is_throttled=throttled)
            ranking.subjects += 1 + len(subscriptions)
            if pace.spent(1 / SUBJECTS_PER_UNIT):
                await pace.give_way()
        if not subjects_max or ranking.subjects <= subjects_max:
            self._before, self._has_logged = frozenset(), False
            return Shown(None)
        room = _Room(subjects_max, pace)
        await room.give(await ranking.ranked(pace), max(1, subjects_max // WIDE_PARTS))
        await room.give_rest()
        await room.give(ranking.others(), subjects_max)
        chosen = room.chosen
        self._before = frozenset(chosen)
        self._log(ranking.subjects, subjects_max)
        return Shown(chosen)

    def _log(self, subjects: int, subjects_max: int) -> None:
        if self._has_logged:
            return
        self._has_logged = True
        logger.warning(
            "%s topics and subscriptions are more than headgateMetricsSubjectsMax=%s: the others"
            " are on /metrics as sums for each namespace, and"
            " headgate_metrics_topics_left_out counts their topics",
            subjects,
            subjects_max,
        )


def _producers_wait(topic: Topic) -> bool:
    """Whether a limit, a quota or memory stops the producers of a topic now."""
    if topic.quota is not None and topic.quota.exceeded is not None:
        return True
    parking = topic.publishing.parking
    if parking is None:
        return False
    return bool(parking) or parking.waiting(ParkCause.MEMORY).producers > 0


class _Ranking:
    """The topics that matter most, in bounded memory."""

    def __init__(self, count: int, before: frozenset[str]) -> None:
        self._before = before
        self._by_backlog = FairLargest["Topic"](count)
        self._throttled = FairLargest["Topic"](count)
        self._by_rate = FairLargest["Topic"](count)
        self._others = FairLargest["Topic"](count)
        self.subjects = 0

    def add(self, topic: Topic, backlog_bytes: float, rate: float, *, is_throttled: bool) -> None:
        """Rank a topic."""
        was_shown = topic.name.full in self._before
        factor, tenant = STAY_FACTOR if was_shown else 1.0, topic.name.tenant
        if backlog_bytes:
            self._by_backlog.add(tenant, backlog_bytes * factor, topic)
        if is_throttled:
            self._throttled.add(tenant, max(backlog_bytes, 1) * factor, topic)
        if rate:
            self._by_rate.add(tenant, rate * factor, topic)
        self._others.add(tenant, was_shown, topic)

    async def ranked(self, pace: Pace) -> dict[str, Iterator[Topic]]:
        """Those of each tenant with a backlog, a limit or a rate, the first first; one may come
        more than once. The tenant with the largest backlog, limit or rate comes first. Gives way
        between the sorts, of 3 ms each for 10,000 topics."""
        ranked, firsts = [], dict[str, tuple[float, ...]]()
        for place, largest in enumerate((self._by_backlog, self._throttled, self._by_rate)):
            by_tenant = largest.taken()
            ranked.append({tenant: [each[1] for each in by_tenant[tenant]] for tenant in by_tenant})
            for tenant, found in by_tenant.items():
                first = firsts.get(tenant, (0.0, 0.0, 0.0))
                firsts[tenant] = (*first[:place], found[0][0], *first[place + 1 :])
            await pace.give_way()
        return {
            tenant: _one_of_each([each.get(tenant, []) for each in ranked])
            for tenant in sorted(firsts, key=lambda each: firsts[each], reverse=True)
        }

    def others(self) -> dict[str, Iterator[Topic]]:
        """Those of the page before, then any, of each tenant."""
        taken = self._others.taken()
        return {tenant: (topic for _, topic in found) for tenant, found in taken.items()}


def _one_of_each(lists: list[list[Topic]]) -> Iterator[Topic]:
    one_of_each = chain.from_iterable(zip_longest(*lists))
    return (topic for topic in one_of_each if topic is not None)


class _Room:
    """What has series of its own, and how many subjects still may."""

    def __init__(self, subjects_max: int, pace: Pace) -> None:
        self.chosen: dict[str, frozenset[str] | None] = {}
        """As for :class:`Shown`."""
        self._left = subjects_max
        self._pace = pace
        self._taken: Counter[str] = Counter()
        """The subjects of each tenant."""
        self._cut: list[Topic] = []

    async def give(self, topics: dict[str, Iterator[Topic]], subscriptions_max: int) -> None:
        """Choose these topics of tenants while there is room, each with so many subscriptions at
        most. The next one is of the tenant that has least, of equal ones the first."""
        turns = [(self._taken[tenant], place, tenant) for place, tenant in enumerate(topics)]
        heapify(turns)
        while turns and self._left:
            _, place, tenant = turns[0]
            topic = next(topics[tenant], None)
            if topic is None:
                heappop(turns)
                continue
            if topic.is_live and topic.name.full not in self.chosen:
                self._left -= 1
                self._taken[tenant] += 1
                self.chosen[topic.name.full] = frozenset()
                await self._give_to(topic, min(self._left, subscriptions_max))
                if self.chosen[topic.name.full] is not None:
                    self._cut.append(topic)
                heapreplace(turns, (self._taken[tenant], place, tenant))
            if self._pace.spent(1 / SUBJECTS_PER_UNIT):
                await self._pace.give_way()

    async def give_rest(self) -> None:
        """Give the room that is left to chosen topics with more subscriptions."""
        for topic in self._cut:
            if self._left == 0:
                return
            await self._give_to(topic, self._left)

    async def _give_to(self, topic: Topic, more: int) -> None:
        """Choose at most so many more of a topic's subscriptions."""
        before = len(self.chosen[topic.name.full] or ())
        count = len(topic.subscriptions)
        names = None
        if count > before + more:
            names = await _largest_backlogs(topic, before + more, self._pace)
            count = len(names)
        self.chosen[topic.name.full] = names
        self._left -= max(0, count - before)
        self._taken[topic.name.tenant] += max(0, count - before)


async def _largest_backlogs(topic: Topic, count: int, pace: Pace) -> frozenset[str]:
    """The names of the subscriptions with the largest backlogs."""
    largest = Largest[str](count)
    for subscription in list(topic.subscriptions.values()):
        largest.add(subscription.backlog_bytes, subscription.name)
        if pace.spent(1 / SUBJECTS_PER_UNIT):
            await pace.give_way()
    return frozenset(largest.items())
