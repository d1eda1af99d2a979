"""Gives partitions that are added to a topic the subscriptions of its other partitions.

Messages in a new partition belong to the topic's subscriptions like all others. The transaction
that creates the partition therefore sets ``lacks_subscriptions`` in its row. When that partition is
loaded, the durable subscriptions of the others are created in it, at its first message and before
a producer can publish to it. When they are durable, the flag is cleared. If the broker crashes in
between, the flag remains and the next start continues.

While the flag is set, its subscriptions cannot be deleted: they would be created again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager

from headgate.base.ack_set import AckSet
from headgate.base.errors import HeadgateError, StorageError
from headgate.base.names import PARTITION_SUFFIX, TopicName, parse_topic
from headgate.broker.keyed_mutex import KeyedMutex
from headgate.broker.subscription_properties import copied_properties
from headgate.engine.errors import TooManySubscriptionsError
from headgate.engine.topic import Topic
from headgate.ledger import CommitLog
from headgate.metadata.catalog import Catalog, Change
from headgate.metadata.errors import not_allowed
from headgate.metadata.rows import Kind, TopicRow
from headgate.storage.metadata_writer import MetadataWriter

logger = logging.getLogger("headgate.topics")

SLICE_PARTITIONS = 8
"""Most partitions that are loaded in one slice."""

SLICE_ITEMS = 128
"""Subscriptions and properties of them after which a slice ends: a partition gets those of all
others when it is loaded, at 30 to 60 us each."""


class PartitionSubscriptions:
    """The new partitions of one broker and the subscriptions that they lack."""

    def __init__(
        self,
        log: CommitLog,
        catalog: Catalog,
        writer: MetadataWriter,
        when_durable: Callable[[], Awaitable[None]],
        load: Callable[[TopicName], Topic | None],
        check_partitions: Callable[[TopicName, int, Callable[[], int], int], int],
        of_tenant: Mapping[str, int],
        properties_of_tenant: Mapping[str, int],
        take_turn: Callable[[str], Awaitable[None]],
    ) -> None:
        """``load`` returns the live topic of a name, loaded if necessary; None if it does not
        exist. ``check_partitions`` is as :meth:`CountLimits.check_partitions`. ``of_tenant`` are
        the durable subscriptions of tenants, 0 for others, and
        ``properties_of_tenant`` the bytes of their properties. ``take_turn`` returns when a tenant
        may load the partitions of a slice."""
        self._check_partitions = check_partitions
        self._of_tenant = of_tenant
        self._properties_of_tenant = properties_of_tenant
        self._log = log
        self._catalog = catalog
        self._writer = writer
        self._when_durable = when_durable
        self._load = load
        self._take_turn = take_turn
        self._mutex = KeyedMutex()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        """Background tasks, by partitioned topic."""
        self._promised: dict[str, dict[TopicName, int]] = {}
        """Subscriptions of partitions that are being created, by tenant and partitioned topic. Some
        of them are there already."""
        self._found: dict[str, dict[str, Mapping[str, str]]] | None = None
        """What :meth:`_subscriptions_of_others` found, by partitioned topic; only within
        :meth:`loading_many`."""

    @contextmanager
    def loading_many(self) -> Iterator[None]:
        """Collect the subscriptions of each partitioned topic only once, while the caller loads
        many topics in one turn."""
        self._found = {}
        try:
            yield
        finally:
            self._found = None

    def topic_loaded(self, topic: Topic) -> None:
        """Create the subscriptions that a new partition lacks. The topic was loaded in this turn;
        a background task makes them durable."""
        row = self._catalog.topic(topic.name.full)
        if row is None or not row.lacks_subscriptions:
            return
        partitioned = self._catalog.partitioned(topic.name.base.full)
        count = 0 if partitioned is None else partitioned.partitions
        for name, of_others in self._subscriptions_of_others(topic.name.base).items():
            if name in topic.subscriptions:
                continue
            of_tenant = self._properties_of_tenant.get(topic.name.tenant, 0)
            properties = copied_properties(of_others, count, of_tenant)
            acks = AckSet(topic.log.first - 1)
            try:
                cursor_id = self._log.create_cursor(topic.log.number, name, acks, properties)
            except StorageError:
                break  # The log stores nothing until a restart, which tries again.
            topic.add_subscription(name, acks, cursor_id=cursor_id, properties=dict(properties))
        self._complete_soon(topic.name.base)

    def check_room(self, base: TopicName, added: int) -> None:
        """Check that a topic may have so many partitions more: each gets the subscriptions of all
        others, which may have different ones.

        Raises:
            RefusalError: 412, for the limits on numbers of subscriptions.
        """
        subscriptions = -1

        def count() -> int:
            nonlocal subscriptions
            if subscriptions < 0:
                subscriptions = len(self._subscriptions_of_others(base))
            return subscriptions

        tenant = base.tenant
        try:
            try:
                more = self._check_partitions(base, added, count, self._with_promised(tenant))
            except TooManySubscriptionsError:
                self._forget_kept_promises(tenant)
                more = self._check_partitions(base, added, count, self._with_promised(tenant))
        except TooManySubscriptionsError as error:
            raise not_allowed(str(error)) from error
        if more:
            promised = self._promised.setdefault(tenant, {})
            promised[base] = promised.get(base, 0) + more

    def _with_promised(self, tenant: str) -> int:
        """What a tenant has and what was promised to its topics."""
        return self._of_tenant[tenant] + sum(self._promised.get(tenant, {}).values())

    def _forget_kept_promises(self, tenant: str) -> None:
        """Forget what topics were promised whose partitions have it, or whose change was
        abandoned."""
        for base in list(self._promised.get(tenant, ())):
            self._forget_if_kept(base)

    def _forget_if_kept(self, base: TopicName) -> None:
        promised = self._promised.get(base.tenant, {})
        if base in promised and self._catalog.are_partitions_settled(base):
            del promised[base]
            if not promised:
                del self._promised[base.tenant]

    def applied(self, change: Change) -> None:
        """A change is durable: complete the new partitions that it created."""
        for base in _incomplete_in(change):
            self._complete_soon(base)

    def is_completing(self, base: TopicName) -> bool:
        """Whether new partitions of a topic get the subscriptions of the others now."""
        return base.full in self._tasks

    async def when_created(self, change: Change) -> None:
        """Return when the partitions that a durable change created have all their subscriptions,
        and these are durable.

        Raises:
            StorageError: they could not be stored; the next start tries again.
        """
        for base in _incomplete_in(change):
            await self._complete(base)

    async def when_ready(self, topic: Topic) -> None:
        """Return when a topic has all its subscriptions.

        Raises:
            StorageError: its subscriptions could not be stored; the next start tries again.
        """
        row = self._catalog.topic(topic.name.full)
        if row is not None and row.lacks_subscriptions:
            await self._complete(topic.name.base)

    async def _complete(self, base: TopicName) -> None:
        """Load every incomplete partition of ``base``, store its subscriptions, clear the flag.

        Raises:
            StorageError: it could not be stored; the next start tries again.
        """
        await self._mutex.run_alone(base.full, lambda: self._complete_alone(base))
        self._forget_if_kept(base)

    async def _complete_alone(self, base: TopicName) -> None:
        while rows := [row for row in self._partitions(base) if row.lacks_subscriptions]:
            left, items_count = deque(rows), 0
            while left:
                # In turn: the topics of a tenant may grow all at once.
                await self._take_turn(base.tenant)
                items_count += self._load_some(left)
            await self._when_durable()
            change = self._catalog.plan_subscriptions_complete(row.number for row in rows)
            if change is None:
                await self._writer.when_earlier_done()  # they are being deleted
            else:
                await self._writer.commit(change)
                if items_count:  # one line, without their names: there may be very many
                    logger.info(
                        "partitions that %s got, with the subscriptions of the others: %d",
                        base,
                        len(rows),
                    )

    def _load_some(self, left: deque[TopicRow]) -> int:
        """Load the first partitions that are ``left``, as many as one slice may. Returns how many
        subscriptions and properties they have."""
        partitions_count = items_count = 0
        with self.loading_many():
            while left and partitions_count < SLICE_PARTITIONS and items_count < SLICE_ITEMS:
                topic = self._load(parse_topic(left.popleft().name))
                partitions_count += 1
                if topic is not None:
                    items_count += sum(1 + len(s.properties) for s in topic.subscriptions.values())
        return items_count

    def _complete_soon(self, base: TopicName) -> None:
        if base.full in self._tasks:
            return
        task = asyncio.get_running_loop().create_task(self._complete_or_log(base))
        self._tasks[base.full] = task
        task.add_done_callback(lambda _: self._tasks.pop(base.full))

    async def _complete_or_log(self, base: TopicName) -> None:
        try:
            await self._complete(base)
        except HeadgateError as error:
            logger.warning("new partitions of %s: %s; the next start tries again", base, error)

    def _subscriptions_of_others(self, base: TopicName) -> dict[str, Mapping[str, str]]:
        """Properties of the durable subscriptions of all complete partitions, by name;
        also of those that are being created."""
        if self._found is not None and base.full in self._found:
            return self._found[base.full]
        found = {
            cursor.name: cursor.properties
            for row in self._partitions(base)
            if not row.lacks_subscriptions
            for cursor in self._log.cursors_of(row.number)
        }
        if self._found is not None:
            self._found[base.full] = found
        return found

    def _partitions(self, base: TopicName) -> list[TopicRow]:
        partitioned = self._catalog.partitioned(base.full)
        count = 0 if partitioned is None else partitioned.partitions
        names = (f"{base.full}{PARTITION_SUFFIX}{index}" for index in range(count))
        rows = map(self._catalog.topic, names)
        return [row for row in rows if row is not None]


def _incomplete_in(change: Change) -> dict[TopicName, None]:
    """The partitioned topics for which a change creates incomplete partitions."""
    return {
        parse_topic(row.key).base: None
        for row in change.rows
        if row.kind is Kind.TOPIC
        and isinstance(row.after, TopicRow)
        and row.after.lacks_subscriptions
    }
