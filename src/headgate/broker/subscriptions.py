"""Creates, deletes and seeks subscriptions; each change is durable before a client sees it.

The binary protocol and the admin API both use this module. Changes of one subscription name run one
after the other. A change that has begun runs to its end even if its client disconnects: nothing
would complete it later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from headgate.base.ack_set import AckSet
from headgate.base.errors import StorageError
from headgate.base.names import TopicName, check_new_subscription
from headgate.base.sparse_counter import SparseCounter
from headgate.base.text_memory import properties_bytes
from headgate.base.work_units import CLIENT_CLOSED, CONSUMER_RANKED, SLICE_UNITS
from headgate.broker.count_limits import CountLimits
from headgate.broker.expected_readers import ExpectedReaders
from headgate.broker.keyed_mutex import KeyedMutex
from headgate.broker.subscription_properties import check_properties
from headgate.broker.work.scheduler import JobClass, WorkScheduler
from headgate.engine.engine import Engine
from headgate.engine.errors import (
    DamagedError,
    NotAllowedError,
    SubscriptionBusyError,
    TopicFencedError,
)
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.engine.types import SubscriptionType
from headgate.storage.committer import NO_ROOM_REASON, Committer
from headgate.storage.managed_logs import ManagedLogs

T = TypeVar("T")


class Subscriptions:
    """The changes of the subscriptions of one broker."""

    def __init__(
        self,
        engine: Engine,
        logs: ManagedLogs,
        begin_turn: Callable[[], None],
        partition_ready: Callable[[Topic], Awaitable[None]],
        count_limits: CountLimits,
        scheduler: WorkScheduler,
        note_use: Callable[[TopicName, str], Awaitable[None]],
        partitions: Callable[[TopicName], int],
    ) -> None:
        """``partition_ready`` returns when a new partition has the subscriptions of the others;
        before that none of its subscriptions is deleted. ``note_use`` stores that a subscription is
        used. ``partitions`` returns how many a topic has; 0 if it is not partitioned."""
        self._partitions = partitions
        self._scheduler = scheduler
        self._engine = engine
        self._logs = logs
        self._begin_turn = begin_turn
        self._partition_ready = partition_ready
        self._count_limits = count_limits
        self._note_use = note_use
        self._mutex = KeyedMutex()
        self._readers = ExpectedReaders(engine)
        self._creating: SparseCounter[int] = SparseCounter()
        """Subscriptions that are being created, by topic number."""
        self._creating_of_tenant: SparseCounter[str] = SparseCounter()
        self._creating_bytes: SparseCounter[str] = SparseCounter()
        """What their properties take, by tenant."""

    async def when_idle(self, topic: Topic, name: str) -> None:
        """Return when no change of that subscription is running; at once if none is."""
        await self._mutex.when_idle((topic.log.number, name), topic.name.tenant)

    async def when_rankable(self, subscription: Subscription, kind: SubscriptionType) -> None:
        """Return when a consumer may be ranked among the others of a failover subscription, which
        takes longer than the rest of a SUBSCRIBE; at once if there are none."""
        if kind is SubscriptionType.FAILOVER and subscription.consumers:
            tenant = subscription.topic.name.tenant
            await self._scheduler.give_way(CONSUMER_RANKED, JobClass.COMMAND, tenant)

    @property
    def running_count(self) -> int:
        """Subscriptions that are being changed now."""
        return len(self._mutex)

    async def create(
        self,
        topic: Topic,
        name: str,
        *,
        at_ordinal: int,
        properties: Mapping[str, str],
        check: Callable[[], None] = lambda: None,
    ) -> Subscription:
        """Return the durable subscription of that name; create it at ``at_ordinal`` if needed, and
        if ``check`` raises nothing.

        Concurrent callers get the subscription that the first of them creates.

        Raises:
            TopicFencedError: the topic is being closed; the client may try again.
            DamagedError: data of the topic is lost, and no administrator has accepted that.
            NotAllowedError: a non-durable subscription has that name.
            TooManySubscriptionsError: the topic has as many as it may.
            StorageError: the subscription could not be stored and does not exist.
            InputError: the name is not allowed, or it or the properties are too long to be stored.
        """

        async def work() -> Subscription:
            self._begin_turn()
            _check_usable(topic)
            topic.check_not_damaged()
            known = topic.subscriptions.get(name)
            if known is not None:
                if not known.is_durable:
                    raise NotAllowedError(f"Subscription {name} exists and is non-durable")
                return known
            check()
            check_new_subscription(name)
            with self._room_for(topic, properties):
                await self._note_use(topic.name, name)
                log, managed = topic.log, self._logs.of(topic)
                held = await managed.index.load(log, (at_ordinal,))
                self._begin_turn()
                _check_usable(topic)
                acks = AckSet(min(max(at_ordinal, log.first), log.end) - 1)
                cursor_id = managed.log.create_cursor(log.number, name, acks, properties)
                try:
                    await managed.committer.when_durable()
                except StorageError:
                    managed.log.delete_cursor(cursor_id)
                    raise
                finally:
                    self._begin_turn()
            topic.check_loaded()
            # Also on a fenced topic: the cursor is stored, and the fence may be lifted again.
            made = topic.add_subscription(
                name, acks, cursor_id=cursor_id, properties=dict(properties)
            )
            _check_usable(topic)
            del held  # until here the index of the first entry stays in memory
            return made

        return await self._alone(topic, name, work)

    @contextmanager
    def _room_for(self, topic: Topic, properties: Mapping[str, str]) -> Iterator[None]:
        """Count a subscription with these properties while it is being created: also while its
        index is read, which its client need not await.

        Raises:
            TooManySubscriptionsError: the topic, or its tenant, has as many as it may.
            InputError: the properties are too long to be stored.
        """
        number, tenant = topic.log.number, topic.name.tenant
        of_tenant = self._engine.durable_by_tenant[tenant] + self._creating_of_tenant[tenant]
        self._check_properties(topic, properties, replaced_bytes=0)
        self._count_limits.check_subscription(topic, self._creating[number], of_tenant)
        properties_taken = properties_bytes(properties)
        self._creating[number] += 1
        self._creating_of_tenant[tenant] += 1
        self._creating_bytes[tenant] += properties_taken
        try:
            yield
        finally:
            self._creating_of_tenant[tenant] -= 1
            self._creating_bytes[tenant] -= properties_taken
            self._creating[number] -= 1

    async def add_reader(self, topic: Topic, name: str, at_ordinal: int) -> Subscription:
        """Return the non-durable subscription of that name; add it at ``at_ordinal`` if needed.

        It takes its turn like a durable one: else one name would get a subscription of each kind.

        Raises:
            TopicFencedError: the topic is being closed; the client may try again.
            NotAllowedError: a durable subscription has that name.
            StorageError: the index cannot be read.
        """
        is_wanted = True

        async def work() -> Subscription:
            held = await self._logs.of(topic).index.load(topic.log, (at_ordinal,))
            self._begin_turn()
            _check_usable(topic)
            if not is_wanted:
                raise TopicFencedError(f"The reader of subscription {name} has left")
            known = topic.subscriptions.get(name)
            if known is not None:
                if known.is_durable:
                    raise NotAllowedError(f"Subscription {name} exists and is durable")
                return known
            made = topic.add_subscription(name, AckSet(at_ordinal - 1), cursor_id=None)
            del held  # until here the index of the first entry stays in memory
            return made

        try:
            key = topic.log.number, name
            return await self._mutex.run_alone(key, work, ends_with_caller=lambda: True)
        except asyncio.CancelledError:  # the reader's connection has ended
            is_wanted = False
            made = topic.subscriptions.get(name)
            if made is not None and not (made.is_durable or made.consumers):
                self._readers.expect(made)
            raise

    async def delete(
        self,
        subscription: Subscription,
        *,
        force: bool = False,
        unless: Callable[[], bool] = lambda: False,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Delete a subscription. Deleting a deleted one does nothing; nor does a deletion for which
        ``unless``, called at the last moment, returns True, or ``check`` raises.

        Raises:
            TopicFencedError: the topic is being closed; the client may try again.
            SubscriptionBusyError: it has consumers, and ``force``, which disconnects them, is not
                set.
            StorageError: the deletion is not stored yet; it still holds until a restart.
        """
        topic = subscription.topic

        async def work() -> None:
            self._begin_turn()
            _check_usable(topic)
            await self._partition_ready(topic)
            self._begin_turn()
            _check_usable(topic)
            if subscription.removed or unless():
                return
            check()
            if subscription.consumers and not force:
                raise SubscriptionBusyError("Subscription has active connected consumers")
            subscription.fenced = True
            try:
                await self.disconnect(subscription)
                if subscription.cursor_id is not None:
                    # The staged deletion survives a failed commit, so that the subscription can be
                    # removed from memory in any case.
                    managed = self._logs.of(topic)
                    managed.log.delete_cursor(subscription.cursor_id)
                    await _when_stored(managed.committer, "the subscription has ended")
            finally:
                self._begin_turn()
                _remove(subscription)

        await self._alone(topic, subscription.name, work)

    async def seek(
        self,
        subscription: Subscription,
        ordinal: int,
        acked_mask: int = 0,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Move a subscription so that it delivers ``ordinal`` next, without the messages of its
        batch in ``acked_mask``, which are not all. Its consumers are disconnected and reconnect.
        Nothing happens if ``check``, called at the last moment, raises, or if the caller is
        cancelled before the index is there: a client that leaves is charged with nothing more.

        Raises:
            TopicFencedError: it was deleted or unloaded meanwhile.
            StorageError: the move is not stored yet; it still holds until a restart.
        """
        has_begun = False

        async def work() -> None:
            nonlocal has_begun
            self._begin_turn()
            if subscription.removed:
                raise TopicFencedError(f"Subscription {subscription.name} was closed")
            held = await self.load_passed(subscription, ordinal - 1)
            check()
            has_begun = subscription.fenced = True
            try:
                await self.disconnect(subscription)
                if subscription.removed:
                    raise TopicFencedError(f"Subscription {subscription.name} was closed")
                subscription.reset(ordinal, acked_mask)
                del held
                if subscription.is_durable:
                    committer = self._logs.of(subscription.topic).committer
                    await _when_stored(committer, "the subscription has moved")
            finally:
                self._begin_turn()
                if not subscription.removed:
                    subscription.fenced = False
                    subscription.wake()
                    if not subscription.is_durable:
                        self._readers.expect(subscription)

        key = subscription.topic.log.number, subscription.name
        await self._mutex.run_alone(key, work, ends_with_caller=lambda: not has_begun)

    async def set_properties(
        self,
        subscription: Subscription,
        properties: Mapping[str, str],
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Replace the properties of a subscription, unless ``check``, called at the last moment,
        raises.

        Raises:
            TopicFencedError: it was deleted or unloaded meanwhile.
            DamagedError: acknowledgements of it are lost, and no administrator has accepted that.
            NotAllowedError: it is a reader's, which is not stored.
            StorageError: the change is not stored yet; it still holds until a restart.
            InputError: the properties are too long to be stored.
        """

        async def work() -> None:
            self._begin_turn()
            topic = subscription.topic
            _check_usable(topic)
            if subscription.removed:
                raise TopicFencedError(f"Subscription {subscription.name} was closed")
            if subscription.cursor_id is None:
                raise NotAllowedError(f"Subscription {subscription.name} is non-durable")
            if subscription.damage:
                raise DamagedError(str(topic.name), subscription.damage)
            check()
            replaced_bytes = self._engine.properties.of(subscription)
            self._check_properties(topic, properties, replaced_bytes=replaced_bytes)
            managed = self._logs.of(topic)
            managed.log.set_properties(subscription.cursor_id, properties)
            subscription.properties = dict(properties)
            self._engine.properties.measure(subscription)
            await _when_stored(managed.committer, "the properties have changed")

        await self._alone(subscription.topic, subscription.name, work)

    async def disconnect(self, subscription: Subscription) -> None:
        """Close every consumer of a subscription: few at once, many in slices."""
        if len(subscription.consumers) * CLIENT_CLOSED <= SLICE_UNITS:
            subscription.disconnect_consumers()
            return
        steps = subscription.disconnect_in_steps()
        tenant = subscription.topic.name.tenant
        await self._scheduler.run("moving a subscription", JobClass.COMMAND, steps, tenant)
        self._begin_turn()

    async def load_passed(
        self, subscription: Subscription, last: int, *, is_upkeep: bool = False
    ) -> object:
        """Bring the index that a move of the cursor to behind ``last`` needs into memory; it stays
        there as long as the caller holds the result, and the caller goes on in the same turn. A
        sweep is ``is_upkeep``, as in :meth:`headgate.storage.index_loader.IndexLoader.look_up`.

        Raises:
            StorageError: the index cannot be read.
            TopicFencedError: the subscription was closed meanwhile.
        """
        log = subscription.topic.log
        last = min(last, log.end - 1)
        index = self._logs.of(subscription.topic).index
        held = await index.look_up(
            lambda: log.index_of(subscription.entries_passed(last)), is_upkeep=is_upkeep
        )
        self._begin_turn()
        if subscription.removed:
            raise TopicFencedError(f"Subscription {subscription.name} was closed")
        return held

    async def _alone(
        self, topic: Topic, name: str, work: Callable[[], Coroutine[Any, Any, T]]
    ) -> T:
        return await self._mutex.run_alone((topic.log.number, name), work)

    def _check_properties(
        self, topic: Topic, properties: Mapping[str, str], *, replaced_bytes: int
    ) -> None:
        if properties:
            tenant = topic.name.tenant
            of_tenant = self._engine.properties.by_tenant[tenant] + self._creating_bytes[tenant]
            partitions = self._partitions(topic.name.base)
            part = self._engine.memory_part.part
            check_properties(properties, partitions, of_tenant, replaced_bytes, part)


def _check_usable(topic: Topic) -> None:
    topic.check_not_fenced()
    topic.check_loaded()


def _remove(subscription: Subscription) -> None:
    if not subscription.removed:
        subscription.topic.remove_subscription(subscription.name)


async def _when_stored(committer: Committer, done: str) -> None:
    """Return when a change that holds in memory already is durable. ``done`` names the change.

    Raises :class:`StorageError`, which says whether the change will be stored all the same.
    """
    try:
        await committer.when_durable()
    except StorageError as error:
        if not error.retryable or str(error) == NO_ROOM_REASON:
            raise
        text = f"{done}, which is not stored yet: {error}. It is stored once the disk takes it"
        raise StorageError(f"{text}, unless power fails before", retryable=True) from error
