"""Partitions that are added to a topic get the subscriptions that its other partitions have.

A message that is sent to a new partition belongs to the topic's subscriptions as any other does. So
the transaction that makes the partition marks its row as ``joining``. Whoever loads such a topic
makes the durable subscriptions of the partitions beside it, from its first message on and before
anybody can publish there. When these are durable, the mark goes. A crash in between leaves the
mark, and the next start goes on from there.

Until the mark is gone no subscription of the partition is deleted: it could come back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager

from headgate.base.ack_set import AckSet
from headgate.base.errors import HeadgateError, StorageError
from headgate.base.names import PARTITION_SUFFIX, TopicName, parse_topic
from headgate.broker.keyed_mutex import KeyedMutex
from headgate.engine.topic import Topic
from headgate.ledger import CommitLog
from headgate.metadata.catalog import Catalog, Change
from headgate.metadata.rows import Kind, TopicRow
from headgate.storage.metadata_writer import MetadataWriter

logger = logging.getLogger("headgate.topics")

SLICE_PARTITIONS = 8
"""Partitions that are loaded before others have their turn."""


class PartitionSubscriptions:
    """The partitions of one broker that join others."""

    def __init__(
        self,
        log: CommitLog,
        catalog: Catalog,
        writer: MetadataWriter,
        when_durable: Callable[[], Awaitable[None]],
        load: Callable[[TopicName], Topic | None],
    ) -> None:
        """``load`` returns the live topic of a name, loaded if need be, and None without one."""
        self._log = log
        self._catalog = catalog
        self._writer = writer
        self._when_durable = when_durable
        self._load = load
        self._work = KeyedMutex()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        """What goes on by itself, by the partitioned topic."""
        self._found: dict[str, dict[str, Mapping[str, str]]] | None = None
        """What is beside partitions of topics, by these; only within :meth:`many`."""

    @contextmanager
    def many(self) -> Iterator[None]:
        """Topics are loaded in a row meanwhile, without rests: look at what is beside them once."""
        self._found = {}
        try:
            yield
        finally:
            self._found = None

    def loaded(self, topic: Topic) -> None:
        """Make what a joining topic lacks, which was loaded in this turn; what makes it durable
        goes on by itself."""
        row = self._catalog.topic(topic.name.full)
        if row is None or not row.joining:
            return
        made = []
        for name, properties in self._subscriptions_beside(topic.name.base).items():
            if name in topic.subscriptions:
                continue
            acks = AckSet(topic.log.first - 1)
            try:
                cursor_id = self._log.create_cursor(topic.log.number, name, acks, properties)
            except StorageError:
                break  # The log stores nothing until a restart, which comes here again.
            topic.add_subscription(name, acks, cursor_id=cursor_id, properties=dict(properties))
            made.append(name)
        if made:
            logger.info(
                "%s gets the subscriptions of the partitions beside it: %s",
                topic.name,
                ", ".join(sorted(made)),
            )
        self._soon(topic.name.base)

    def applied(self, change: Change) -> None:
        """Partitions may have been made: load those that join others, and go on from there."""
        for base in _joining_in(change):
            self._soon(base)

    async def joined(self, change: Change) -> None:
        """Return when what a change has made that is durable now has all its subscriptions, and
        they are durable.

        Raises:
            StorageError: they could not be stored; the next start tries again.
        """
        for base in _joining_in(change):
            await self.settle(base)

    async def settled(self, topic: Topic) -> None:
        """Return when a topic joins no others any more.

        Raises:
            StorageError: that could not be stored; the next start tries again.
        """
        row = self._catalog.topic(topic.name.full)
        if row is not None and row.joining:
            await self.settle(topic.name.base)

    async def settle(self, base: TopicName) -> None:
        """Have every partition of ``base`` that joins others do so, and let the marks go.

        Raises:
            StorageError: it could not be stored; the next start tries again.
        """
        await self._work.run_alone(base.full, lambda: self._settle(base))

    async def _settle(self, base: TopicName) -> None:
        while rows := [row for row in self._partitions(base) if row.joining]:
            for start in range(0, len(rows), SLICE_PARTITIONS):
                with self.many():
                    for row in rows[start : start + SLICE_PARTITIONS]:
                        self._load(parse_topic(row.name))
                await asyncio.sleep(0)
            await self._when_durable()
            change = self._catalog.plan_joined(row.number for row in rows)
            if change is None:
                await self._writer.settled()  # somebody is deleting them
            else:
                await self._writer.commit(change)

    def _soon(self, base: TopicName) -> None:
        if base.full in self._tasks:
            return
        task = asyncio.get_running_loop().create_task(self._settle_quietly(base))
        self._tasks[base.full] = task
        task.add_done_callback(lambda _: self._tasks.pop(base.full))

    async def _settle_quietly(self, base: TopicName) -> None:
        try:
            await self.settle(base)
        except HeadgateError as error:
            logger.warning("new partitions of %s: %s; the next start tries again", base, error)

    def _subscriptions_beside(self, base: TopicName) -> dict[str, Mapping[str, str]]:
        """Durable subscriptions of the partitions that join nobody, also those that are being made
        just now, by name with their properties."""
        if self._found is not None and base.full in self._found:
            return self._found[base.full]
        found = {
            cursor.name: cursor.properties
            for row in self._partitions(base)
            if not row.joining
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


def _joining_in(change: Change) -> dict[TopicName, None]:
    """The partitioned topics of which a change makes partitions that join others."""
    return {
        parse_topic(row.key).base: None
        for row in change.rows
        if row.kind is Kind.TOPIC and isinstance(row.after, TopicRow) and row.after.joining
    }
