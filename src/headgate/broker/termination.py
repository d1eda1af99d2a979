"""Terminates topics: they take no more messages, for good."""

from __future__ import annotations

import logging

from headgate.base.names import TopicName
from headgate.base.positions import EARLIEST, Position
from headgate.broker.producer_closing import CommitHost, close_producers, refuse_waiters
from headgate.broker.registry import TopicRegistry
from headgate.engine.errors import EngineError, TopicFencedError, TopicTerminatedError
from headgate.engine.topic import Topic
from headgate.metadata.catalog import Catalog
from headgate.metadata.errors import not_allowed, not_found
from headgate.storage.metadata_writer import MetadataWriter, OutcomeUnknownError

logger = logging.getLogger("headgate.topics")


class TopicTermination:
    """Terminates the topics of one broker.

    While a topic is being terminated its producers are closed, each when its messages are
    answered, and new ones may try again. When the termination is durable, producers are refused
    for good. So the answer names the last message that the topic ever has. Producers that wait for
    exclusive access wait until then, and are refused for good at once.
    """

    def __init__(
        self, host: CommitHost, registry: TopicRegistry, catalog: Catalog, writer: MetadataWriter
    ) -> None:
        self._host = host
        self._registry = registry
        self._catalog = catalog
        self._writer = writer

    async def terminate(self, name: TopicName) -> Position:
        """Terminate a topic that holds messages; return the id of its last message, which has the
        entry -1 if it has none. A topic that is terminated already stays so.

        Raises:
            RefusalError: 404; 412 for the broker's own topic.
            StorageError: it could not be stored, and the topic takes messages as before. If the
                outcome is unknown (:class:`OutcomeUnknownError`), it takes no producers until a
                restart, which may find it terminated.
        """
        if self._registry.is_system(name):
            raise not_allowed(f"{name} belongs to the broker: it cannot be terminated")

        async def work() -> Position:
            self._host.begin_turn()
            topic = self._registry.get(name)
            if topic is None:
                raise not_found(f"Topic {name} not found")
            if not topic.terminated:
                await self._terminate(topic)
            return last_position(topic)

        return await self._registry.run_alone(name, work)

    async def _terminate(self, topic: Topic) -> None:
        topic.terminating = True
        access = topic.access
        if access is not None:
            access.pause()
        try:
            await close_producers(topic, self._host)
            await self._host.when_durable(topic)  # also what closed producers had sent
            await self._writer.commit(self._catalog.plan_terminate(topic.log.number))
        except OutcomeUnknownError:
            self._refuse_waiters(topic, TopicFencedError(f"{topic.name} may be terminated"))
            raise
        except BaseException:
            topic.terminating = False
            self._host.begin_turn()
            if access is not None:
                access.resume(topic.producers)
            raise
        self._host.begin_turn()
        topic.terminated, topic.terminating = True, False
        self._refuse_waiters(topic, TopicTerminatedError("Topic was already terminated"))
        topic.engine.wake_subscriptions(topic)  # consumers learn that they reached the end
        logger.info("%s is terminated at %s", topic.name, last_position(topic))

    def _refuse_waiters(self, topic: Topic, error: EngineError) -> None:
        if topic.access is not None:
            refuse_waiters(topic, topic.access.take_waiters(), error, self._host)


def last_position(topic: Topic) -> Position:
    """The id of the last message that a topic ever got; with the entry -1 if it got none."""
    log = topic.log
    return log.position(log.end - 1) if log.ledgers() else EARLIEST
