"""Stores the topic epochs of exclusive producers in the metadata."""

from __future__ import annotations

from collections.abc import Callable

from headgate.engine.topic import Topic
from headgate.metadata.catalog import Catalog, Change
from headgate.storage.metadata_writer import MetadataWriter


class TopicEpochs:
    """The topic epochs of one broker. They survive an unload and a restart."""

    def __init__(self, catalog: Catalog, writer: MetadataWriter) -> None:
        self._catalog = catalog
        self._writer = writer

    async def store_epoch(
        self, topic: Topic, epoch: int, check: Callable[[], None] = lambda: None
    ) -> None:
        """Make the topic epoch of a new exclusive producer durable. ``check`` is called at the turn
        of its tenant: nothing is stored if it raises.

        Raises:
            StorageError: it could not be stored.
            RefusalError: 404, the topic is deleted.
        """

        def plan() -> Change:
            check()
            return self._catalog.plan_topic_epoch(topic.log.number, epoch)

        await self._writer.commit_in_turn(topic.name.tenant, plan)
