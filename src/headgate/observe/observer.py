"""The observer of one broker, composed of history, explain and statistics."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from headgate.base.names import TopicName
from headgate.broker.slices import AdminTurns, in_slices
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.explain.states import StorageState
from headgate.flow.topic_growth import TopicGrowths
from headgate.observe.changes.change_history import ChangeHistory
from headgate.observe.explain.adaptive import adaptive_report
from headgate.observe.explain.broker import broker_report
from headgate.observe.explain.delivery import DeliveryReports
from headgate.observe.explain.limits import LimitReports
from headgate.observe.explain.publishing import PublishingReports
from headgate.observe.explain.storage import StorageReports
from headgate.observe.explain.top import TopReports
from headgate.observe.explain.topic import TopicReports
from headgate.observe.history.parked import ParkedHistory
from headgate.observe.history.tracks import History
from headgate.observe.states.filling import filling_facts
from headgate.observe.states.parked import ParkedStates
from headgate.observe.states.storage import storage_state
from headgate.observe.stats.fields import StatsOptions, TopicStats
from headgate.observe.stats.topic import TopicStatsReader

if TYPE_CHECKING:
    from headgate.broker.service import Broker


class Observer:
    """Keeps the history of one broker and answers explain and statistics from it.

    Make it before the broker starts: it attaches itself to the broker's sweeps.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._turns = AdminTurns(broker)
        """An administrator waits for what is asked for here."""
        self.history = History()
        self.parked_history = ParkedHistory()
        self.changes = ChangeHistory(broker.engine, lambda: broker.started_ms)
        broker.audit.listeners.append(self.changes.changed)
        if broker.adaptive is not None:
            broker.adaptive.listeners.append(self.changes.adaptive.decided)
        broker.topic_sweeps.observer = self
        parked = ParkedStates(self.parked_history, broker.current_publish_limits)
        delivery = DeliveryReports(broker.engine, self.history, broker.current_dispatch_limits)
        publishing = PublishingReports(parked, broker.current_publish_limits, broker.adaptive)
        self._topic = TopicReports(
            broker.engine, broker.registry, delivery, publishing, self._storage_without_names,
            self.changes, self.parked_history,
        )  # fmt: skip
        self._top = TopReports(
            broker.engine, self._turns, broker.registry, delivery, publishing, self.storage_state,
            self.changes,
        )  # fmt: skip
        self._limits = LimitReports(
            broker.engine, self._turns, broker.current_dispatch_limits,
            broker.current_publish_limits,
        )  # fmt: skip
        self._storage = StorageReports(
            broker.engine,
            self._turns,
            broker.logs,
            broker.policies.applied_retention,
            broker.started_ms,
            lambda count: filling_facts(broker.disk, broker.topic_growth.growths, count),
        )
        self._stats = TopicStatsReader(
            broker.current_dispatch_limits,
            broker.current_publish_limits,
            broker.policies.shown_quotas,
            parked,
            broker.info.broker_id,
        )

    # What the sweep calls.

    def begin_round(self) -> bool:
        if not self.history.begin_round():
            return False
        self.parked_history.forget_gone()
        return True

    def forget_some(self) -> bool:
        return self.history.forget_some()

    def observe(self, topic: Topic) -> None:
        self.parked_history.observe(topic)

    def observe_subscription(self, subscription: Subscription) -> bool:
        return self.history.observe(subscription)

    # What the admin API asks for.

    async def explain_top(self, count: int, *, timelines: bool = False) -> dict[str, Any]:
        """The ``count`` largest backlogs and the cause of each, as plain values."""
        broker_id = self._broker.info.broker_id
        return await self._top.report(count, broker_id, with_timelines=timelines)

    async def explain_topic(
        self,
        topic: TopicName,
        *,
        per_partition: bool = False,
        timelines: bool = False,
        roles_of: Collection[str] = (),
    ) -> dict[str, Any]:
        """What delays a topic's messages, as plain values; see :meth:`TopicReports.report`.

        Raises:
            RefusalError: 404, there is no such topic.
        """
        work = self._topic.report(
            topic, per_partition=per_partition, with_timelines=timelines, roles_of=roles_of
        )
        return await in_slices(self._turns, work)

    async def explain_storage(self, count: int) -> dict[str, Any]:
        """What takes the disk, and the ``count`` topics that keep most of it, as plain values."""
        return await self._storage.report(count, self._broker.info.broker_id)

    async def explain_limits(self, count: int) -> dict[str, Any]:
        """The ``count`` limits at which most waits, as plain values."""
        return await self._limits.report(count, self._broker.info.broker_id)

    def explain_adaptive(self, count: int) -> dict[str, Any]:
        """The adaptive controller and its latest ``count`` decisions, as plain values."""
        return adaptive_report(self._broker, count)

    def explain_broker(self) -> dict[str, Any]:
        """How the broker itself is, as plain values."""
        return broker_report(self._broker, self.storage_state)

    async def topic_stats(self, topic: Topic, options: StatsOptions) -> TopicStats:
        """Statistics of a live topic in Pulsar's shape."""
        work = self._stats.read(topic, options, skew_ms=self._broker.log_clock.skew_ms)
        return await in_slices(self._turns, work)

    def storage_state(self) -> StorageState:
        """The disk, commit latency, and room for connections."""
        return self._storage_state(self._broker.topic_growth.growths)

    def _storage_without_names(self) -> StorageState:
        """The same for readers who may see one topic alone: it names no topic."""
        return self._storage_state(None)

    def _storage_state(self, growths: TopicGrowths | None) -> StorageState:
        broker = self._broker
        return storage_state(
            broker.disk,
            growths,
            () if growths is None else broker.engine.tenant_storage.full_tenants(),
            broker.committer.latency,
            broker.connection_admission,
            broker.engine.now_ns,
        )
