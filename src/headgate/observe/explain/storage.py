"""The report on what takes the disk: which topics keep segments, and why."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from heapq import nlargest
from operator import attrgetter
from typing import Any, Final, Protocol

from headgate.base.errors import StorageError
from headgate.base.instants import iso_time
from headgate.base.largest import Largest
from headgate.base.names import TopicName
from headgate.base.texts import duration, number, size_text
from headgate.base.units import MIB, MS_PER_S, S_PER_MINUTE
from headgate.broker.slices import Pace, Turns, live_topics
from headgate.engine.engine import Engine
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.explain.reports import (
    FillingReport,
    GrowingTopic,
    SpaceReport,
    StorageHolder,
    StorageReport,
    TenantStored,
)
from headgate.flow.sentences.disk_forecast import FillingFacts, filling_sentence
from headgate.flow.topic_growth import TopicGrowth
from headgate.ledger import CommitLog
from headgate.metadata.policies import Retention
from headgate.observe.explain.topic import plain
from headgate.storage.managed_logs import ManagedLog

SPACE_UNITS: Final = 1 / 2
"""Of each segment of a topic whose space is added up."""

HOLDER_UNITS: Final = 16
"""Of a topic in the report."""


class Logs(Protocol):
    """The logs of the broker."""

    def by_name(self) -> dict[str, CommitLog]:
        """The logs with their names in reports."""

    def of(self, topic: Topic, /) -> ManagedLog:
        """The log of a topic, with its parts."""

    def log_of(self, topic: Topic, /) -> CommitLog:
        """The log that holds a topic."""


class StorageReports:
    """Reports on the disk space of one broker."""

    def __init__(
        self,
        engine: Engine,
        turns: Turns,
        logs: Logs,
        retention_of: Callable[[TopicName], Retention],
        started_ms: int,
        filling_of: Callable[[int], FillingFacts],
    ) -> None:
        """``filling_of`` is the forecast of the disk now, with that many topics at most."""
        self._engine = engine
        self._turns = turns
        self._logs = logs
        self._retention_of = retention_of
        self._started_ms = started_ms
        self._filling_of = filling_of

    async def report(self, count: int, broker: str) -> dict[str, Any]:
        """The space of each log of ``broker``, and the ``count`` topics that keep most of it: a
        :class:`StorageReport` as plain values."""
        worst = Largest[_TopicSpace](count)
        topics_total, pace = 0, Pace(self._turns)
        async for topic in live_topics(self._engine, self._turns):
            space = self._space_of(topic)
            if space.held_bytes:
                topics_total += 1
                worst.add((space.pinned_bytes, space.held_bytes), space)
            if pace.spent(SPACE_UNITS * (1 + space.segments)):
                await pace.give_way()
        holders = []
        for space in worst.items():
            holder = await self._looked_up_holder(space)
            if holder is not None:
                holders.append(holder)
            if pace.spent(HOLDER_UNITS):
                await pace.give_way()
        report = StorageReport(
            at=iso_time(self._engine.now_ms),
            broker=broker,
            started=iso_time(self._started_ms),
            logs=[_space(name, log) for name, log in self._logs.by_name().items()],
            forecast=await self._forecast(count, pace),
            tenants=self._tenants(count),
            topics_total=topics_total,
            topics=holders,
        )
        return plain(report)

    def _tenants(self, count: int) -> list[TenantStored]:
        known = self._engine.tenant_storage
        most = nlargest(count, known.tenants(), key=attrgetter("bytes"))
        return [
            TenantStored(
                tenant=stored.owner,
                bytes=stored.bytes,
                bytes_max=stored.bytes_max if stored.is_limited else None,
                is_full=known.is_full(stored),
            )
            for stored in most
        ]

    async def _forecast(self, count: int, pace: Pace) -> FillingReport:
        facts = self._filling_of(count)
        forecast, growth = facts.forecast, facts.forecast.growth
        full_at_ms = self._engine.now_ms + round((facts.full_in_s or 0) * MS_PER_S)
        topics = []
        for one in facts.topics:
            if (topic := await self._growing(one)) is not None:
                topics.append(topic)
            if pace.spent(HOLDER_UNITS):
                await pace.give_way()
        return FillingReport(
            filling="full" if facts.full_s is not None else forecast.filling.value,
            full_in_s=facts.full_in_s,
            full_at=None if facts.full_in_s is None else iso_time(full_at_ms),
            known_in_s=forecast.known_in_s,
            span_s=None if growth is None else growth.span_s,
            growth_bytes_per_s=None if growth is None else growth.total_per_s,
            retained_bytes_per_s=None if growth is None else growth.retained_per_s,
            unneeded_bytes_per_s=None if growth is None else growth.unneeded_per_s,
            other_bytes_per_s=None if growth is None else growth.other_per_s,
            held_for_backup=facts.is_held_for_backup,
            topics=topics,
            sentence=filling_sentence(facts),
        )

    async def _growing(self, growth: TopicGrowth) -> GrowingTopic | None:
        """The report on a topic that grows; None if it was unloaded since it was measured."""
        topic = self._engine.topics.get(growth.topic)
        if topic is None or topic.log.number != growth.number:
            return None
        holder = await self._looked_up_holder(self._space_of(topic))
        if holder is None:
            return None
        return GrowingTopic(
            topic=holder.topic,
            growth_bytes_per_s=growth.bytes_per_s,
            held_bytes=holder.held_bytes,
            cause=holder.cause,
            subscription=holder.subscription,
            sentence=holder.sentence,
        )

    def _space_of(self, topic: Topic) -> _TopicSpace:
        space = _TopicSpace(topic)
        log = self._logs.log_of(topic)
        for segment, live_bytes in log.topic(topic.log.number).live_runs():
            space.held_bytes += live_bytes
            waste = log.segment_waste(segment)
            if waste is None:
                continue
            space.segments += 1
            space.pinned_bytes += waste.pinned_bytes // max(waste.live_runs, 1)
            space.frees_bytes += live_bytes
            if waste.live_runs <= 1:
                space.frees_bytes += waste.rest_bytes
        return space

    async def _looked_up_holder(self, space: _TopicSpace) -> StorageHolder | None:
        """:meth:`_holder`, after reading the block of the index that it needs; None if the topic is
        not live any more. One topic whose index cannot be read keeps no other from the report."""
        topic, unread = space.topic, ""
        if not topic.is_live:
            return None
        find = partial(topic.log.bytes_before, topic.first_needed_ordinal())
        try:
            await self._logs.of(topic).index.look_up(find)
        except StorageError as error:
            unread = str(error)
        return self._holder(space, unread) if topic.is_live else None

    def _holder(self, space: _TopicSpace, unread: str) -> StorageHolder:
        """``unread``: why the index of the topic cannot be read; empty if it was."""
        topic = space.topic
        log = self._logs.log_of(topic).topic(topic.log.number)
        slowest = _slowest(topic)
        mark = log.end if slowest is None else max(slowest.acks.mark_delete + 1, log.first)
        waiting_bytes = acked_bytes = 0
        if unread:
            cause, sentence = "unknown", f"what keeps its messages is not known: {unread}"
        else:
            waiting_bytes = log.live_bytes(mark, log.end)
            acked_bytes = log.live_bytes(log.first, mark)
            cause, sentence = self._cause(topic, slowest, is_unread=waiting_bytes > acked_bytes)
        last_publish_ms = topic.publishing.last_publish_ms
        last_acked_ms = 0 if slowest is None else slowest.last_acked_ms
        return StorageHolder(
            topic=topic.name.full,
            held_bytes=space.held_bytes,
            pinned_bytes=space.pinned_bytes,
            frees_bytes=space.frees_bytes,
            segments=space.segments,
            cause=cause,
            subscription=slowest.name if slowest is not None and cause == "subscription" else None,
            backlog_messages=0 if slowest is None else slowest.backlog_messages,
            waiting_bytes=waiting_bytes,
            acknowledged_bytes=acked_bytes,
            last_publish=iso_time(last_publish_ms) if last_publish_ms else None,
            last_acked=iso_time(last_acked_ms) if last_acked_ms else None,
            sentence=sentence,
        )

    def _cause(
        self, topic: Topic, slowest: Subscription | None, *, is_unread: bool
    ) -> tuple[str, str]:
        """What keeps most of a topic's messages, and a sentence about it."""
        if topic.log.damage:
            return (
                "damage",
                "the topic is damaged: nothing of it is given back until an operator"
                " accepts the loss",
            )
        if slowest is not None and is_unread:
            return "subscription", self._about(slowest)
        retention = _retention_text(self._retention_of(topic.name))
        whose = "no subscription needs the messages"
        if retention:
            return "retention", f"{whose}; {retention}"
        if slowest is None:
            return (
                "ledger",
                "the topic has no subscription, and no retention applies: its messages go when"
                " their ledger is closed, by age, by size or because nothing is published any more",
            )
        if slowest.backlog_messages:
            return (
                "ledger",
                f"most messages are acknowledged, and no retention applies, but a ledger goes as a"
                f" whole: once subscription {slowest.name} has acknowledged the rest of it;"
                f" {_waiting(slowest)}",
            )
        return (
            "ledger",
            f"{whose}, and no retention applies: they go as soon as their ledger is closed",
        )

    def _about(self, subscription: Subscription) -> str:
        amount = _amount(subscription)
        consumers = len(subscription.consumers)
        whose = "no consumer is connected" if not consumers else (
            f"{number(consumers)} consumer{'' if consumers == 1 else 's'} connected"
        )  # fmt: skip
        if subscription.last_acked_ms:
            ago_s = (self._engine.now_ms - subscription.last_acked_ms) / 1_000
            last = (
                f"it last acknowledged {duration(ago_s)} ago"
                if ago_s >= 1
                else "it acknowledged something just now"
            )
        else:
            last = "it has acknowledged nothing since the broker started"
        return (
            f"subscription {subscription.name} has not acknowledged {amount}; {whose}, and {last}"
        )


class _TopicSpace:
    """What one topic keeps on the disk."""

    __slots__ = ("frees_bytes", "held_bytes", "pinned_bytes", "segments", "topic")

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self.held_bytes = 0
        self.pinned_bytes = 0
        self.frees_bytes = 0
        self.segments = 0


def _space(name: str, log: CommitLog) -> SpaceReport:
    use, written = log.space_use(), log.written_bytes()
    amplification = written.amplification
    return SpaceReport(
        log=name,
        file_bytes=use.file_bytes,
        live_bytes=use.live_bytes,
        pinned_bytes=use.pinned_bytes,
        dead_bytes=use.dead_bytes,
        index_bytes=use.index_bytes,
        open_bytes=use.open_bytes,
        checkpoint_bytes=use.checkpoint_bytes,
        segments=use.segments,
        segments_dead=use.segments_dead,
        message_bytes_written=written.messages,
        write_amplification=None if amplification is None else round(amplification, 3),
    )


def _slowest(topic: Topic) -> Subscription | None:
    """The durable subscription that has acknowledged least; None without one."""
    durable = (s for s in topic.subscriptions.values() if s.is_durable)
    return min(durable, key=lambda subscription: subscription.acks.mark_delete, default=None)


def _amount(subscription: Subscription) -> str:
    messages = subscription.backlog_messages
    return f"{number(messages)} message{'' if messages == 1 else 's'}"


def _waiting(subscription: Subscription) -> str:
    verb = "waits" if subscription.backlog_messages == 1 else "wait"
    return f"{_amount(subscription)} {verb} for it"


def _retention_text(retention: Retention) -> str:
    """What a retention keeps; empty if it keeps nothing."""
    minutes, megabytes = retention.retention_time_in_minutes, retention.retention_size_in_mb
    if minutes == 0 or megabytes == 0:
        return ""
    bounds = []
    if minutes > 0:
        bounds.append(f"for {duration(minutes * S_PER_MINUTE)}")
    if megabytes > 0:
        bounds.append(f"up to {size_text(megabytes * MIB)}")
    return f"the topic's retention keeps acknowledged ones {' and '.join(bounds) or 'for ever'}"
