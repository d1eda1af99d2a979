"""Which topics are live: found, created, loaded, unloaded, deleted.

Metadata alone decides which topics exist; the log knows them by number; the engine holds the ones
that are loaded. This module keeps the three in step.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable

from headgate.base.errors import StorageError
from headgate.base.names import TopicName, parse_topic
from headgate.broker.keyed_mutex import KeyedMutex
from headgate.broker.partition_subscriptions import PartitionSubscriptions
from headgate.engine.engine import Engine
from headgate.engine.topic import Topic
from headgate.metadata.catalog import Catalog
from headgate.metadata.errors import RefusalError, not_found
from headgate.metadata.rows import Kind, TopicRow
from headgate.metadata.state import Change
from headgate.policy.settings import Settings
from headgate.storage.managed_logs import ManagedLogs
from headgate.storage.metadata_writer import MetadataWriter, OutcomeUnknownError

logger = logging.getLogger("headgate.topics")


CREATE_TRIES = 3
"""A topic that goes again as soon as it was made is not made more often than this."""


class TopicNotFoundError(RefusalError):
    """There is no such topic, and it may not be created."""

    def __init__(self, name: TopicName) -> None:
        super().__init__(404, f"Topic {name} not found")


def check_persistent(name: TopicName) -> None:
    """Refuse topics that would not be stored.

    Raises:
        RefusalError: 405.
    """
    if not name.is_persistent:
        raise RefusalError(405, f"{name}: non-persistent topics are not supported")


class TopicRegistry:
    """Live topics of one broker."""

    def __init__(
        self,
        engine: Engine,
        logs: ManagedLogs,
        catalog: Catalog,
        writer: MetadataWriter,
        settings: Settings,
        when_durable: Callable[[Topic], Awaitable[None]],
        *,
        system_topics: Iterable[str] = (),
    ) -> None:
        self._engine = engine
        self._logs = logs
        self._catalog = catalog
        self._writer = writer
        self._settings = settings
        self._when_durable = when_durable
        self.system_topics = frozenset(system_topics)
        """Full names of the topics that the broker itself owns."""
        main = logs.main
        self.partition_subscriptions = PartitionSubscriptions(
            main.log, catalog, writer, main.committer.when_durable, self.get
        )
        self._work = KeyedMutex()
        """Which topics, by base name, are being unloaded or deleted."""

    def is_system(self, name: TopicName) -> bool:
        """Whether the broker itself owns it: no limits, only the broker may produce. Other topics
        of its namespace are everybody's."""
        return name.full in self.system_topics

    def partitions(self, name: TopicName) -> int:
        """Partitions of a partitioned topic; 0 if it is not partitioned (or does not exist)."""
        row = self._catalog.partitioned(name.full)
        return row.partitions if row is not None else 0

    def exists(self, name: TopicName) -> bool:
        """Whether it is a partitioned topic or one that holds messages."""
        return (
            self._catalog.topic(name.full) is not None
            or self._catalog.partitioned(name.full) is not None
        )

    def check_usable(self, name: TopicName) -> None:
        """Refuse names that no producer or consumer may use directly.

        Raises:
            RefusalError: 405 for a partitioned topic's own name, a partition beyond the count, or
                a topic that would not be stored.
        """
        check_persistent(name)
        if self._catalog.partitioned(name.full) is not None:
            raise RefusalError(405, f"{name} is a partitioned topic: use one of its partitions")
        if name.partition >= 0:
            count = self.partitions(name.base)
            if count and name.partition >= count:
                raise RefusalError(405, f"{name.base} has {count} partitions: there is no {name}")

    def loaded(self, name: TopicName) -> Topic | None:
        """The live topic, if it is live."""
        return self._engine.topics.get(name.full)

    def get(self, name: TopicName) -> Topic | None:
        """The live topic, loaded now if it exists; None if it does not exist."""
        topic = self._engine.topics.get(name.full)
        if topic is not None:
            return topic
        row = self._catalog.topic(name.full)
        return self._load(name, row) if row is not None else None

    async def get_or_create(self, name: TopicName, *, create: bool) -> Topic:
        """The live topic; created first if it does not exist, ``create`` and the settings allow.

        Raises:
            TopicNotFoundError: it does not exist and was not to be created.
            RefusalError: its namespace does not exist, or the name cannot be used.
            DamagedError: something of it is lost, and nobody has accepted that.
        """
        self.check_usable(name)
        topic = self.get(name)
        if topic is not None:
            topic.check_sound()
            return topic
        if not (create and self._settings.allowAutoTopicCreation):
            raise TopicNotFoundError(name)
        return await self.create(name)

    async def create(self, name: TopicName) -> Topic:
        """Create a topic that holds messages, or wait for whoever is creating it just now.

        Raises:
            RefusalError: it may not exist: no such namespace, or a partition that is not one.
            StorageError: it could not be stored.
        """
        for _ in range(CREATE_TRIES):
            await self._commit_unless_made(
                lambda: self._catalog.plan_create_topic(name, now_ms=self._engine.now_ms)
            )
            topic = self.get(name)
            if topic is not None:
                return topic
            self.check_usable(name)  # whoever was creating it failed, or made it partitioned
        raise TopicNotFoundError(name)

    async def create_partitions_on_demand(self, name: TopicName) -> int:
        """What a client that names an unknown topic gets: the partitions that were made for it
        now, or 0 for a topic that is made when it is used."""
        settings = self._settings
        if settings.allowAutoTopicCreationType != "partitioned":
            return 0
        await self._commit_unless_made(
            lambda: self._catalog.plan_create_partitioned(
                name, settings.defaultNumPartitions, now_ms=self._engine.now_ms
            )
        )
        return self.partitions(name)

    async def _commit_unless_made(self, plan: Callable[[], Change]) -> None:
        """Make something; if it is there, or somebody is making it, wait until that is durable."""
        try:
            change = plan()
        except RefusalError as refusal:
            if refusal.status != 409:
                raise
            await self._writer.settled()
        else:
            await self._writer.commit(change)
            await self.partition_subscriptions.joined(change)

    def _load(self, name: TopicName, row: TopicRow) -> Topic:
        log = self._logs.enter(row.number, row.log).log
        topic = self._engine.load_topic(
            name,
            log.topic(row.number),
            incarnation=row.number,
            created_ms=row.created_ms,
            is_system=self.is_system(name),
        )
        for cursor in log.cursors_of(row.number):
            subscription = topic.add_subscription(
                cursor.name,
                cursor.ack_set,
                cursor_id=cursor.cursor_id,
                properties=dict(cursor.properties),
            )
            subscription.damage = cursor.damage
        if topic.log.damage or any(one.damage for one in topic.subscriptions.values()):
            self._engine.damaged_topics.add(row.number)
        self.partition_subscriptions.loaded(topic)
        return topic

    def load_all(self) -> None:
        """Load every stored topic: at start, so that backlogs show before anybody connects."""
        with self.partition_subscriptions.many():
            for number in sorted(self._catalog.topic_numbers()):
                row = self._catalog.topic_by_number(number)
                if row is not None:
                    name = parse_topic(row.name)
                    if self.loaded(name) is None:
                        self._load(name, row)

    async def unload(self, name: TopicName) -> None:
        """Close everybody on a topic and forget what is in memory; nothing stored changes.

        Raises:
            StorageError: what was staged could not be stored; the topic serves on.
        """

        async def work() -> None:
            topic = self.loaded(name)
            if topic is None:
                return
            topic.fence()
            try:
                await self._when_durable(topic)
            except StorageError:
                topic.fenced = False  # what it staged was refused to its producers
                raise
            self._engine.unload_topic(topic)

        await self._work.run_alone(name.base.full, work)

    async def delete(
        self, name: TopicName, *, force: bool, unless: Callable[[], bool] = lambda: False
    ) -> None:
        """Delete a topic, or a partitioned one with all its partitions: all or nothing.

        Nothing is deleted if ``unless``, asked at the last moment, says so.

        Raises:
            RefusalError: 404; 412 if it has producers or consumers and ``force`` is not set.
            StorageError: the deletion could not be stored; the topic serves on, unless nobody
                knows (:class:`OutcomeUnknownError`): what a restart may find deleted takes no
                messages until then.
        """

        async def work() -> None:
            if not unless():
                await self._delete(name, force=force)

        await self._work.run_alone(name.base.full, work)

    async def _delete(self, name: TopicName, *, force: bool) -> None:
        count = self.partitions(name)
        names = [name.partition_name(i) for i in range(count)] if count else [name]
        if not self.exists(name):
            raise not_found(f"Topic {name} not found")
        live = [topic for n in names if (topic := self.get(n)) is not None]
        if not force:
            for topic in live:
                _check_unused(topic)
        change = self._catalog.plan_delete_topic(name)
        for topic in live:
            topic.fence()
        try:
            await self._writer.commit(change)
        except OutcomeUnknownError:
            raise
        except BaseException:
            for topic in live:
                topic.fenced = False
            raise
        for row in change.rows:
            if row.kind is Kind.TOPIC and isinstance(row.before, TopicRow):
                deleted = self._engine.by_number.get(row.before.number)
                if deleted is not None:
                    deleted.fence()  # also one that was loaded meanwhile
                    self._engine.unload_topic(deleted, deleted=True)
                self._logs.drop_topic(row.before.number, row.before.log)


def _check_unused(topic: Topic) -> None:
    consumers = sum(len(s.consumers) for s in topic.subscriptions.values())
    if topic.producers or consumers:
        raise RefusalError(
            412, f"Topic has {len(topic.producers) + consumers} connected producers/consumers"
        )
    if topic.subscriptions and topic.is_system:
        raise RefusalError(412, f"Topic has {len(topic.subscriptions)} subscriptions")
