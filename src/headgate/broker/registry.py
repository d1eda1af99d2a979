"""Finds, creates, loads, unloads and deletes the topics of one broker.

The metadata alone decides which topics exist. The log knows topics by number, and the engine holds
those that are loaded. The registry keeps the three consistent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, TypeVar

from headgate.base.errors import StorageError
from headgate.base.names import TopicName, parse_topic
from headgate.base.work_units import (
    CLIENT_CLOSED,
    PARTITION_FOUND,
    SLICE_UNITS,
    SUBSCRIPTION_LOADED,
    SUBSCRIPTION_LOOKED_AT,
    SUBSCRIPTION_REMOVED,
    TOPIC_DROPPED,
    TOPIC_LOADED,
)
from headgate.broker.keyed_mutex import KeyedMutex
from headgate.broker.partition_subscriptions import PartitionSubscriptions
from headgate.broker.work.scheduler import JobClass, Steps, WorkScheduler
from headgate.engine.engine import Engine
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.metadata.catalog import Catalog
from headgate.metadata.errors import RefusalError, not_found
from headgate.metadata.rows import Kind, TopicRow
from headgate.metadata.state import Change
from headgate.policy.settings import Settings
from headgate.policy.use_table import UseTable
from headgate.storage.managed_logs import ManagedLogs
from headgate.storage.metadata_writer import MetadataWriter, OutcomeUnknownError

logger = logging.getLogger("headgate.topics")

T = TypeVar("T")

CREATE_TRIES = 3
"""How often the registry creates a topic again that is deleted as soon as it exists."""


class TopicNotFoundError(RefusalError):
    """The topic does not exist and may not be created."""

    def __init__(self, name: TopicName) -> None:
        super().__init__(404, f"Topic {name} not found")


def check_persistent(name: TopicName) -> None:
    """Refuse non-persistent topics.

    Raises:
        RefusalError: 405.
    """
    if not name.is_persistent:
        raise RefusalError(405, f"{name}: non-persistent topics are not supported")


class TopicRegistry:
    """The topics of one broker."""

    def __init__(
        self,
        engine: Engine,
        logs: ManagedLogs,
        catalog: Catalog,
        writer: MetadataWriter,
        settings: Settings,
        uses: UseTable,
        when_durable: Callable[[Topic], Awaitable[None]],
        scheduler: WorkScheduler,
        check_partitions: Callable[[TopicName, int, Callable[[], int], int], int],
        *,
        system_topics: Iterable[str] = (),
    ) -> None:
        self._engine = engine
        self._logs = logs
        self._catalog = catalog
        self._writer = writer
        self._settings = settings
        self._uses = uses
        catalog.allow_grants_without_topics(settings.allowAclChangesOnNonExistentTopics)
        self._when_durable = when_durable
        self._scheduler = scheduler
        self.system_topics = frozenset(system_topics)
        """Full names of the broker's own topics."""
        main = logs.main
        self.partition_subscriptions = PartitionSubscriptions(
            main.log,
            catalog,
            writer,
            main.committer.when_durable,
            self.get,
            check_partitions,
            engine.durable_by_tenant,
            engine.properties.by_tenant,
            lambda tenant: scheduler.give_way(SLICE_UNITS, JobClass.ADMIN, tenant),
        )
        catalog.limit_partitions(self.partition_subscriptions.check_room)
        catalog.limit_memory(engine.memory_part)
        self._mutex = KeyedMutex()
        """Held by base name while a topic is unloaded or deleted."""
        self._used: dict[str, set[str]] = {}
        """Subscriptions by topic whose use waits to be stored."""
        self._uses_stored = KeyedMutex()

    def is_system(self, name: TopicName) -> bool:
        """Whether it is the broker's own topic, which has no limits and to which only the broker
        may produce. Other topics of its namespace are ordinary ones."""
        return name.full in self.system_topics

    def partitions(self, name: TopicName) -> int:
        """Partitions of a partitioned topic; 0 if it is not partitioned (or does not exist)."""
        row = self._catalog.partitioned(name.full)
        return row.partitions if row is not None else 0

    def exists(self, name: TopicName) -> bool:
        """Whether a topic or a partitioned topic of that name exists."""
        return (
            self._catalog.topic(name.full) is not None
            or self._catalog.partitioned(name.full) is not None
        )

    def check_usable(self, name: TopicName) -> None:
        """Refuse names that producers and consumers cannot use.

        Raises:
            RefusalError: 405 for a partitioned topic's own name, a partition beyond the count, or
                a non-persistent topic.
        """
        check_persistent(name)
        if self._catalog.partitioned(name.full) is not None:
            raise RefusalError(405, f"{name} is a partitioned topic: use one of its partitions")
        if name.partition >= 0:
            count = self.partitions(name.base)
            if count and name.partition >= count:
                raise RefusalError(405, f"{name.base} has {count} partitions: there is no {name}")

    def loaded(self, name: TopicName) -> Topic | None:
        """The live topic; None if it is not loaded."""
        return self._engine.topics.get(name.full)

    def get(self, name: TopicName) -> Topic | None:
        """The live topic, loaded if necessary; None if it does not exist."""
        topic = self._engine.topics.get(name.full)
        if topic is not None:
            return topic
        row = self._catalog.topic(name.full)
        return self._load(name, row) if row is not None else None

    async def get_in_turn(self, name: TopicName) -> Topic | None:
        """As :meth:`get`. A topic that has to be loaded is so in the turn of its tenant: clients
        may ask for hundreds at once, and each new partition gets the subscriptions of the others.
        """
        if self.loaded(name) is None and (row := self._catalog.topic(name.full)) is not None:
            await self._scheduler.give_way(self._load_units(row), JobClass.COMMAND, name.tenant)
        return self.get(name)

    def _load_units(self, row: TopicRow) -> int:
        """Units of the load of a topic; a whole slice if it gets subscriptions of others."""
        if row.lacks_subscriptions:
            return SLICE_UNITS
        cursors = self._logs.register(row.number, row.log).log.cursors_of(row.number)
        return TOPIC_LOADED + SUBSCRIPTION_LOADED * len(cursors)

    async def load_new_partitions(self, name: TopicName) -> None:
        """Load the partitions of a topic of which new ones get the subscriptions of the others, a
        few in each iteration: a request about all partitions loads them without a pause."""
        if self.partition_subscriptions.is_completing(name.base):
            await self._load_partitions(name.base)

    async def get_or_create(
        self, name: TopicName, *, create: bool, check: Callable[[], None] = lambda: None
    ) -> Topic:
        """The live topic. It is created if it does not exist and ``create``, policies and settings
        allow that. ``check`` is that of :meth:`create`.

        Raises:
            TopicNotFoundError: it does not exist and may not be created.
            RefusalError: its namespace does not exist, or the name cannot be used.
            DamagedError: data of the topic is lost, and no administrator has accepted that.
        """
        self.check_usable(name)
        topic = await self.get_in_turn(name)
        if topic is not None:
            topic.check_not_damaged()
            return topic
        if not create or self._uses.created_partitions(name.namespace) is None:
            raise TopicNotFoundError(name)
        return await self.create(name, check)

    async def create(self, name: TopicName, check: Callable[[], None] = lambda: None) -> Topic:
        """Create a topic that is not partitioned, or wait until one that is being created exists.
        ``check`` is called at the turn of its tenant: nothing is created if it raises.

        Raises:
            RefusalError: its namespace does not exist, or it names a partition beyond the
                partitioned topic's count.
            StorageError: it could not be stored.
        """

        def plan() -> Change:
            check()
            return self._catalog.plan_create_topic(name, now_ms=self._engine.now_ms)

        for _ in range(CREATE_TRIES):
            await self._commit_unless_made(name, plan)
            topic = self.get(name)
            if topic is not None:
                return topic
            self.check_usable(name)  # the other creation failed, or made it partitioned
        raise TopicNotFoundError(name)

    async def create_partitions_on_demand(
        self, name: TopicName, check: Callable[[], None] = lambda: None
    ) -> int:
        """Create an unknown topic that a client names, if policies or settings make such topics
        partitioned. Returns its partitions; 0 for a topic that is created when it is used.
        ``check`` is that of :meth:`create`.

        Raises:
            TopicNotFoundError: it is not created by its use.
        """
        partitions = self._uses.created_partitions(name.namespace)
        if partitions is None:
            raise TopicNotFoundError(name)
        if not partitions:
            return 0

        def plan() -> Change:
            check()
            now_ms = self._engine.now_ms
            return self._catalog.plan_create_partitioned(name, partitions, now_ms=now_ms)

        await self._commit_unless_made(name, plan)
        return self.partitions(name)

    async def _commit_unless_made(self, name: TopicName, plan: Callable[[], Change]) -> None:
        """Commit a planned creation. If the object exists or is being created, wait until that is
        durable."""
        try:
            change = await self._writer.commit_in_turn(name.tenant, plan)
        except RefusalError as refusal:
            if refusal.status != 409:
                raise
            await self._writer.when_earlier_done()
        else:
            await self.partition_subscriptions.when_created(change)

    async def note_use(self, topic: TopicName, subscription: str) -> None:
        """A subscription is created or gets a consumer: forget the stored time since when it, or an
        earlier one of that name, has none. Otherwise a crash before the next sweep would bring that
        time back, and the subscription would expire although it was just used. A sweep that runs
        until the consumer has joined finds that the subscription is idle since now."""
        live = self.loaded(topic)
        used = None if live is None else live.subscriptions.get(subscription)
        if used is not None:
            used.idle_since_ms = self._engine.log_ms
        if not self._catalog.is_idle_subscription(topic.full, subscription):
            return
        self._used.setdefault(topic.full, set()).add(subscription)
        try:
            await self._uses_stored.run_alone(topic.full, lambda: self._store_uses(topic.full))
        except StorageError as error:  # consumers go on without the disk
            logger.warning(
                "the use of subscription %s of %s is not stored: %s", subscription, topic, error
            )

    async def _store_uses(self, topic: str) -> None:
        """Store the uses that wait, in one change: each writes the times of all subscriptions of
        the topic, which may be megabytes. Then those that came meanwhile: whoever noted them may be
        gone before its turn."""
        while used := self._used.pop(topic, None):
            await self._writer.commit(self._catalog.plan_subscriptions_used(topic, used))

    def _load(self, name: TopicName, row: TopicRow) -> Topic:
        log = self._logs.register(row.number, row.log).log
        topic = self._engine.load_topic(
            name,
            log.enter_topic(row.number),
            incarnation=row.number,
            created_ms=row.created_ms,
            is_system=self.is_system(name),
            epoch=row.epoch,
            terminated=row.terminated,
        )
        idle_since_ms = self._catalog.idle_subscriptions(name.full).since_ms
        for cursor in log.cursors_of(row.number):
            subscription = topic.add_subscription(
                cursor.name,
                cursor.ack_set,
                cursor_id=cursor.cursor_id,
                properties=dict(cursor.properties),
            )
            subscription.damage = cursor.damage
            if (since_ms := idle_since_ms.get(cursor.name)) is not None:
                subscription.idle_since_ms = min(since_ms, subscription.idle_since_ms)
        if topic.log.damage or any(one.damage for one in topic.subscriptions.values()):
            self._engine.damaged_topics.add(row.number)
        self.partition_subscriptions.topic_loaded(topic)
        return topic

    def load_all(self) -> None:
        """Load every stored topic at start, so that backlogs are visible before clients connect."""
        with self.partition_subscriptions.loading_many():
            for number in sorted(self._catalog.topic_numbers()):
                row = self._catalog.topic_by_number(number)
                if row is not None:
                    name = parse_topic(row.name)
                    if self.loaded(name) is None:
                        self._load(name, row)

    async def unload(self, name: TopicName) -> object:
        """Disconnect all producers and consumers of a topic and drop it from memory. Nothing stored
        changes. What the next load of the topic looks up of the index stays in memory as long as
        the caller holds the result: a load does not wait for the disk.

        Raises:
            StorageError: staged entries could not be stored, or the index of the entries at its
                cursors cannot be read; the topic stays loaded.
        """

        async def work() -> object:
            topic = self.loaded(name)
            if topic is None:
                return None
            await self._fence([topic])
            try:
                await self._when_durable(topic)
                held = await self._load_index_at_cursors(topic)
            except StorageError:
                topic.fenced = False  # the producers of the staged entries got errors
                raise
            await self._unload(topic)
            return held

        return await self._mutex.run_alone(name.base.full, work)

    async def run_alone(self, name: TopicName, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run ``work`` on a topic while nothing unloads or deletes it; to its end even if the
        caller is cancelled. Raises what ``work`` raises."""
        return await self._mutex.run_alone(name.base.full, work)

    async def _load_index_at_cursors(self, topic: Topic) -> object:
        wanted = {
            ordinal
            for subscription in topic.subscriptions.values()
            for ordinal in subscription.entries_counted()
        }
        return await self._logs.of(topic).index.load(topic.log, sorted(wanted))

    async def delete(
        self,
        name: TopicName,
        *,
        force: bool,
        unless: Callable[[], bool] = lambda: False,
        keeps_grants: bool = False,
    ) -> None:
        """Delete a topic, or a partitioned topic with all its partitions: all or nothing.

        ``unless`` is called at the last moment; if it returns True, nothing is deleted. The grants
        on the topic remain with ``keeps_grants``, or if grants need no topic.

        Raises:
            RefusalError: 404; 412 if it has producers or consumers and ``force`` is not set.
            StorageError: the deletion could not be stored; the topic stays. If the outcome is
                unknown (:class:`OutcomeUnknownError`), the topic takes no messages until a
                restart, which may find it deleted.
        """

        async def work() -> None:
            await self._load_partitions(name)
            if count := self.partitions(name):  # all of them are looked at in one step
                await self._scheduler.give_way(PARTITION_FOUND * count, JobClass.ADMIN)
            if not unless():
                await self._delete(name, force=force, keeps_grants=keeps_grants)

        await self._mutex.run_alone(name.base.full, work)

    async def _load_partitions(self, name: TopicName) -> None:
        """Load the partitions of a topic, which may be thousands, a few in each iteration of the
        loop: a deletion fences all of them at once."""
        units = SLICE_UNITS  # a turn for the first ones, too: many callers may begin at once
        for index in range(self.partitions(name)):
            partition = name.partition_name(index)
            row = self._catalog.topic(partition.full)
            more = PARTITION_FOUND
            if row is not None and self.loaded(partition) is None:
                more += self._load_units(row)
            if units + more > SLICE_UNITS:
                await self._scheduler.give_way(SLICE_UNITS, JobClass.ADMIN)
                units = 0
            units += more
            self.get(partition)

    async def _delete(self, name: TopicName, *, force: bool, keeps_grants: bool) -> None:
        count = self.partitions(name)
        names = [name.partition_name(i) for i in range(count)] if count else [name]
        if not self.exists(name):
            raise not_found(f"Topic {name} not found")
        live = [topic for n in names if (topic := self.get(n)) is not None]
        if not force:
            for topic in live:
                _check_unused(topic)
        try:
            await self._fence(live)
            keeps_grants = keeps_grants or self._settings.allowAclChangesOnNonExistentTopics
            change = self._catalog.plan_delete_topic(name, keeps_grants=keeps_grants)
            await self._writer.commit(change)
        except OutcomeUnknownError:
            raise
        except BaseException:
            for topic in live:
                topic.fenced = False
            raise
        deleted = [
            row.before
            for row in change.rows
            if row.kind is Kind.TOPIC and isinstance(row.before, TopicRow)
        ]
        dropped = [self._engine.by_number.get(row.number) for row in deleted]
        for topic in dropped:
            if topic is not None:
                topic.fence()  # a client may have loaded it meanwhile
                self._engine.release_name(topic)  # it may be created again from now on

        def drop() -> Steps:
            for row, topic in zip(deleted, dropped, strict=True):
                if topic is not None:
                    yield from self._drop(topic)
                self._logs.drop_topic(row.number, row.log)
                yield TOPIC_DROPPED

        subscriptions_count = sum(len(topic.subscriptions) for topic in dropped if topic)
        units = TOPIC_DROPPED * len(deleted) + SUBSCRIPTION_REMOVED * subscriptions_count
        await self._work("dropping topics", units, drop())

    async def _fence(self, topics: list[Topic]) -> None:
        """Refuse new clients of topics, and disconnect the present ones."""
        clients_count = subscriptions_count = forgotten_units = 0
        for topic in topics:
            topic.fenced = True
            clients_count += len(topic.producers) + _consumers_count(topic)
            clients_count += 0 if topic.access is None else topic.access.waiting_count
            subscriptions_count += len(topic.subscriptions)
            forgotten_units += sum(
                each.dispatcher.forgotten_units() for each in topic.subscriptions.values()
            )
        steps = (
            SUBSCRIPTION_LOOKED_AT + CLIENT_CLOSED * count
            for topic in topics
            for count in topic.disconnect_clients()
        )
        units = CLIENT_CLOSED * clients_count + SUBSCRIPTION_LOOKED_AT * subscriptions_count
        await self._work("fencing a topic", units + forgotten_units, steps)

    async def _unload(self, topic: Topic) -> None:
        """Drop a fenced topic from memory that stays in the log."""
        ended: list[Subscription] = []

        def end() -> Steps:
            for subscription in self._engine.end_subscriptions(topic):
                ended.append(subscription)
                yield SUBSCRIPTION_REMOVED

        def release() -> Steps:
            while ended:
                ended.pop()
                yield SUBSCRIPTION_LOOKED_AT

        count = len(topic.subscriptions)
        await self._work("unloading a topic", SUBSCRIPTION_REMOVED * count, end())
        self._engine.unload_topic(topic)
        await self._work("unloading a topic", SUBSCRIPTION_LOOKED_AT * count, release())

    def _drop(self, topic: Topic) -> Steps:
        """Drop a deleted topic from memory, but for the log."""
        for name in list(topic.subscriptions):
            if name in topic.subscriptions:
                topic.remove_subscription(name)
            yield SUBSCRIPTION_REMOVED
        self._engine.unload_topic(topic, deleted=True)

    async def _work(self, name: str, units: int, steps: Steps) -> None:
        """Run ``steps``, which need about ``units``: at once if these are few."""
        if units <= SLICE_UNITS:
            for _ in steps:
                pass
        else:
            await asyncio.shield(self._scheduler.run(name, JobClass.ADMIN, steps))


def _consumers_count(topic: Topic) -> int:
    return sum(len(s.consumers) for s in topic.subscriptions.values())


def _check_unused(topic: Topic) -> None:
    consumers = _consumers_count(topic)
    if topic.producers or consumers:
        raise RefusalError(
            412, f"Topic has {len(topic.producers) + consumers} connected producers/consumers"
        )
    if topic.subscriptions and topic.is_system:
        raise RefusalError(412, f"Topic has {len(topic.subscriptions)} subscriptions")
