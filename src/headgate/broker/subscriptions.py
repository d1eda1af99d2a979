"""Subscriptions made, deleted and moved: always durable before anybody is told.

The binary protocol and the admin API both come here. Work on one subscription name happens one
after the other, and is carried on when the client that asked for it goes away meanwhile: a change
that is half staged would otherwise be followed by nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from headgate.base.ack_set import AckSet
from headgate.base.errors import StorageError
from headgate.base.units import NS_PER_S
from headgate.broker.keyed_mutex import KeyedMutex
from headgate.engine.errors import NotAllowedError, SubscriptionBusyError, TopicFencedError
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic

if TYPE_CHECKING:
    from headgate.broker.service import Broker

T = TypeVar("T")

READER_RETURN_NS = 60 * NS_PER_S
"""A reader that was disconnected by its seek and is not back by then has left for good."""


class CursorWork(KeyedMutex):
    """Which subscription names are being worked on. One per broker."""

    async def settled(self, topic: Topic, name: str) -> None:
        """Return, at once if may be, when nobody creates, deletes or moves that name."""
        await self.idle((topic.log.number, name))

    async def run(self, topic: Topic, name: str, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run ``work`` when nobody else works on that name; a cancelled caller does not stop it."""
        return await self.run_alone((topic.log.number, name), work)


async def create_subscription(
    broker: Broker, topic: Topic, name: str, *, at_ordinal: int, properties: Mapping[str, str]
) -> Subscription:
    """The durable subscription of that name; made, at ``at_ordinal``, if there is none.

    Several callers at once get the one that the first of them makes.

    Raises:
        TopicFencedError: the topic is being closed; the client may try again.
        DamagedError: something of it is lost, and nobody has accepted that.
        NotAllowedError: a reader has that name.
        StorageError: it could not be stored, and is given up.
        InputError: its name or properties are too long to be stored.
    """

    async def work() -> Subscription:
        broker.begin_turn()
        _check_open(topic)
        topic.check_sound()
        known = topic.subscriptions.get(name)
        if known is not None:
            if not known.is_durable:
                raise NotAllowedError(f"Subscription {name} exists and is non-durable")
            return known
        log = topic.log
        acks = AckSet(min(max(at_ordinal, log.first), log.end) - 1)
        cursor_id = broker.logs.of(topic).log.create_cursor(log.number, name, acks, properties)
        try:
            await broker.when_durable(topic)
        except StorageError:
            broker.logs.of(topic).log.delete_cursor(cursor_id)
            raise
        finally:
            broker.begin_turn()
        if not topic.is_live:
            raise TopicFencedError("Topic is temporarily unavailable")
        # Even on a fenced topic: the cursor is stored, and the fence may be lifted again.
        made = topic.add_subscription(name, acks, cursor_id=cursor_id, properties=dict(properties))
        _check_open(topic)
        return made

    return await broker.cursor_work.run(topic, name, work)


async def delete_subscription(
    broker: Broker, subscription: Subscription, *, force: bool = False
) -> None:
    """Delete a subscription; nothing happens if that was done already.

    Raises:
        TopicFencedError: the topic is being closed; the client may try again.
        SubscriptionBusyError: it has consumers and ``force``, to disconnect them, is not set.
        StorageError: the deletion is not stored yet; until a restart it holds all the same.
    """

    async def work() -> None:
        broker.begin_turn()
        _check_open(subscription.topic)
        await broker.registry.partition_subscriptions.settled(subscription.topic)
        broker.begin_turn()
        _check_open(subscription.topic)
        if subscription.removed:
            return
        if subscription.consumers and not force:
            raise SubscriptionBusyError("Subscription has active connected consumers")
        subscription.fenced = True
        subscription.disconnect_consumers()
        try:
            if subscription.cursor_id is not None:
                # What is staged to end a cursor stays staged over a failed commit, so memory
                # follows at once in any case.
                log = broker.logs.of(subscription.topic).log
                log.delete_cursor(subscription.cursor_id)
                await broker.when_durable(subscription.topic)
        finally:
            broker.begin_turn()
            _remove(subscription)

    await broker.cursor_work.run(subscription.topic, subscription.name, work)


async def seek(broker: Broker, subscription: Subscription, ordinal: int) -> None:
    """Move a subscription so that it delivers ``ordinal`` next; its consumers have to come back.

    Raises:
        TopicFencedError: it was deleted or unloaded meanwhile.
        StorageError: the move is not stored yet; until a restart it holds all the same.
    """

    async def work() -> None:
        broker.begin_turn()
        if subscription.removed:
            raise TopicFencedError(f"Subscription {subscription.name} was closed")
        subscription.fenced = True
        try:
            subscription.disconnect_consumers()
            subscription.reset(ordinal)
            if subscription.is_durable:
                await broker.when_durable(subscription.topic)
        finally:
            broker.begin_turn()
            if not subscription.removed:
                subscription.fenced = False
                subscription.wake()
                _expect_reader(broker, subscription)

    await broker.cursor_work.run(subscription.topic, subscription.name, work)


def _check_open(topic: Topic) -> None:
    if topic.fenced or not topic.is_live:
        raise TopicFencedError("Topic is temporarily unavailable")


def _remove(subscription: Subscription) -> None:
    if not subscription.removed:
        subscription.topic.remove_subscription(subscription.name)


def _expect_reader(broker: Broker, subscription: Subscription) -> None:
    """A reader's cursor outlives its seek, so that the reader finds it when it comes back."""
    if subscription.is_durable:
        return

    def look() -> None:
        if not subscription.consumers and not subscription.fenced:
            _remove(subscription)

    broker.engine.wake_at(broker.engine.now_ns + READER_RETURN_NS, look)
