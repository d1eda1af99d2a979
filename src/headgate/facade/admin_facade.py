"""The facade of the admin API over a running broker.

Every method begins a turn before it looks at the engine, and again after each await: everything
until the next await happens at one instant. A method that changes a cursor returns when the change
is durable.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from headgate.base.errors import CorruptionError, InputError, StorageError
from headgate.base.identity import Identity
from headgate.base.names import NamespaceName, TopicName, parse_topic
from headgate.base.positions import EARLIEST, LATEST, Position
from headgate.base.schema_types import CompatibilityStrategy
from headgate.base.units import KIB, MS_PER_S
from headgate.base.work_units import PIECE_UNITS, SLICE_UNITS
from headgate.broker.authorization import check_allowed
from headgate.broker.damage import accept_damage, damage_text
from headgate.broker.entries import FoundMessage, Reserve, StoredEntry, uncharged
from headgate.broker.info import BrokerInfo
from headgate.broker.slices import AdminTurns, in_slices
from headgate.broker.termination import TopicTermination
from headgate.engine.errors import NotAllowedError
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.facade.messages import TopicMessages
from headgate.facade.protocol import AtPosition, AtTime, BackupHold, OlderThan
from headgate.facade.refusals import refusals, schema_refusals
from headgate.flow.sentences.disk import MAKE_ROOM, disk_sentence
from headgate.metadata.catalog import Catalog, Change
from headgate.metadata.errors import RefusalError, conflict, not_allowed, not_found
from headgate.metadata.policies import (
    BacklogQuota,
    CountField,
    DelayedDeliveryPolicy,
    DispatchRate,
    PublishRate,
    QuotaKind,
    Retention,
)
from headgate.metadata.rows import SchemaRow
from headgate.observe.observer import Observer
from headgate.observe.stats.fields import InternalStats, StatsOptions, TopicStats
from headgate.observe.stats.internal import internal_stats
from headgate.policy.access_law import Decision
from headgate.policy.expiry_table import ExpiryTable
from headgate.policy.schema_table import SchemaRules
from headgate.policy.settings import SETTINGS
from headgate.policy.use_table import UseTable
from headgate.schema.definition import Definition
from headgate.storage.fair_slots import FairSlots

if TYPE_CHECKING:
    from headgate.broker.service import Broker


SUBSCRIPTION_BYTES: Final = 6 * KIB
CLIENT_BYTES: Final = 2 * KIB
"""About what the statistics of a subscription, and of a producer or consumer, take in memory."""

CHANGES_MAX: Final = 8
"""Changes about one tenant that one role has carried out at the same time. All changes of the
metadata stand in one line, and one may write megabytes: hundreds of one tenant would hold up those
of others."""

REQUESTS_MAX: Final = 32
"""Reads of one role that are carried out at the same time, and as many changes. What a request
holds meanwhile is charged only where it is large, and hundreds hold much of what is small."""


def asker_of(identity: Identity, address: str, anonymous_role: str) -> str:
    """Whose turns a request uses up: those of its role. A role that may consume can ask for what
    takes long, again and again: who takes its rights away, an administrator of the tenant or of the
    broker, must not wait for it. Clients without a role of their own have turns by their addresses:
    else anybody could use up those of all others."""
    has_role = identity.role not in ("", anonymous_role)
    return f"role {identity.text}" if has_role else f"address {address}"


class Backups(Protocol):
    """What holds the files of a data directory for backups; raises as :class:`Facade`."""

    async def begin(self) -> BackupHold:
        """As :meth:`Facade.begin_backup`."""

    async def renew(self, backup_id: str, /) -> None:
        """As :meth:`Facade.renew_backup`."""

    async def end(self, backup_id: str, /) -> None:
        """As :meth:`Facade.end_backup`."""


class AdminFacade:
    """The :class:`~headgate.facade.protocol.Facade` of one broker."""

    def __init__(
        self,
        broker: Broker,
        observer: Observer,
        backups: Backups | None = None,
        shut_down: Callable[[], None] | None = None,
    ) -> None:
        """``backups`` hold the files of the data directory, if the broker has one on a disk.
        ``shut_down`` begins to close the process, if the broker is all that it runs."""
        self._broker = broker
        self._messages = TopicMessages(broker)
        self._shut_down = shut_down
        self._turns = AdminTurns(broker)
        self._changing = FairSlots(sys.maxsize, CHANGES_MAX)
        self._asking = FairSlots(sys.maxsize, REQUESTS_MAX)
        self._backups = backups
        self._observer = observer
        self._registry = broker.registry
        self._subscriptions = broker.subscriptions
        self._entries = broker.entries
        self._policies = broker.policies

    @property
    def catalog(self) -> Catalog:
        return self._broker.catalog

    @property
    def info(self) -> BrokerInfo:
        return self._broker.info

    @property
    def expiry(self) -> ExpiryTable:
        return self._policies.expiry

    @property
    def uses(self) -> UseTable:
        return self._policies.uses

    @property
    def messages(self) -> TopicMessages:
        return self._messages

    def check_allowed(
        self, identity: Identity, operation: str, resource: str, subscription: str = ""
    ) -> None:
        """The broker's authorizer decides."""
        authorizer, counts = self._broker.authorizer, self._broker.counts
        check_allowed(authorizer, counts, identity, operation, resource, subscription)

    def decide(
        self, identity: Identity, operation: str, resource: str, subscription: str = ""
    ) -> Decision:
        return self._broker.authorizer.decide(identity, operation, resource, subscription)

    def turn_to_change(
        self, tenant: str, identity: Identity, address: str
    ) -> AbstractAsyncContextManager[None]:
        return self._changing.slot(f"{tenant} {self._asker(identity, address)}")

    def turn_to_ask(
        self, identity: Identity, address: str, *, is_read: bool
    ) -> AbstractAsyncContextManager[None]:
        kind = "reads" if is_read else "changes"
        return self._asking.slot(f"{kind} {self._asker(identity, address)}")

    def _asker(self, identity: Identity, address: str) -> str:
        return asker_of(identity, address, self._broker.settings.anonymousUserRole)

    async def commit(self, change: Change) -> None:
        await self._broker.commit(change)

    # -- large answers -----------------------------------------------------------------------

    async def give_way(self, pieces: int = 1) -> None:
        await self._turns.give_way(pieces * PIECE_UNITS)

    async def load_new_partitions(self, resource: str) -> None:
        if self.catalog.topic(resource) or self.catalog.partitioned(resource):
            await self._registry.load_new_partitions(parse_topic(resource))

    def answer_bytes(self, topic: TopicName) -> int:
        found = self._registry.get(topic)
        if found is None:
            return 0
        clients = len(found.producers)
        clients += sum(len(each.consumers) for each in found.subscriptions.values())
        return len(found.subscriptions) * SUBSCRIPTION_BYTES + clients * CLIENT_BYTES

    async def reserve_answer(self, size_bytes: int, owner: str = "") -> None:
        await self._broker.http_memory.reserve(size_bytes, owner)

    def release_answer(self, size_bytes: int, owner: str = "") -> None:
        self._broker.http_memory.release(size_bytes, owner)

    # -- settings and policies -------------------------------------------------------------

    def dynamic_settings(self) -> Sequence[str]:
        return [name for name, info in SETTINGS.items() if info.dynamic]

    def runtime_settings(self) -> Mapping[str, str]:
        """No setting is a secret yet."""
        return {name: self._broker.settings.shown(name) for name in SETTINGS}

    def check_setting(self, name: str, value: str | None) -> None:
        try:
            self._broker.dynamic.check(name, value, self.catalog.planned_settings())
        except InputError as error:
            raise not_allowed(str(error)) from error

    def effective_dispatch_rate(
        self,
        scope: Literal["topic", "subscription"],
        topic: TopicName,
        subscription: str = "",
    ) -> DispatchRate:
        if scope == "topic":
            return self._policies.applied_dispatch_rate(topic)
        return self._policies.applied_subscription_rate(topic, subscription)

    def effective_publish_rate(self, topic: TopicName) -> PublishRate | None:
        return self._policies.applied_publish_rate(topic)

    def effective_retention(self, topic: TopicName) -> Retention:
        return self._policies.applied_retention(topic)

    def effective_delayed_delivery(self, topic: TopicName) -> DelayedDeliveryPolicy:
        return self._policies.applied_delayed_delivery_policy(topic)

    def effective_count(self, topic: TopicName, field: CountField) -> int:
        return self._policies.applied_count(topic, field)

    def effective_deduplication(self, topic: TopicName) -> bool:
        return self._policies.applied_deduplication(topic)

    def broker_retention(self) -> Retention:
        return self._broker.policies.retentions.of_broker()

    def effective_backlog_quotas(self, topic: TopicName) -> Mapping[QuotaKind, BacklogQuota]:
        return self._policies.applied_quotas(topic)

    async def check_backlog_quotas(self) -> None:
        await self._broker.quota_sweep.check()

    def schema_rules(self, topic: TopicName) -> SchemaRules:
        return self._policies.schemas.of_topic(topic)

    def namespace_schema_rules(self, namespace: NamespaceName) -> SchemaRules:
        return self._policies.schemas.of_namespace(namespace)

    def schema(self, topic: TopicName, version: int | None = None) -> SchemaRow | None:
        return self._broker.schemas.get(topic, version)

    async def add_schema(
        self, topic: TopicName, schema: Definition, check: Callable[[], None] = lambda: None
    ) -> int:
        with schema_refusals():
            return await self._broker.schemas.add(topic, schema, check)

    async def schema_version(self, topic: TopicName, schema: Definition) -> int:
        with schema_refusals():
            return await self._broker.schemas.find_version(topic, schema)

    async def check_schema(self, topic: TopicName, schema: Definition) -> CompatibilityStrategy:
        with schema_refusals():
            return await self._broker.schemas.check_compatible(topic, schema)

    async def delete_schema(
        self, topic: TopicName, *, force: bool, check: Callable[[], None] = lambda: None
    ) -> int:
        return await self._broker.schemas.delete(topic, force=force, check=check)

    def auto_creation_partitions(self, topic: TopicName) -> int | None:
        if not topic.is_persistent or self._registry.is_system(topic):
            return None
        partitions = self._policies.uses.created_partitions(topic.namespace)
        return partitions if partitions is None or topic.partition < 0 else 0

    # -- the broker ------------------------------------------------------------------------

    def is_ready(self) -> bool:
        return self._broker.is_ready

    def why_unready(self) -> str:
        self._broker.begin_turn()
        return self._broker.why_unready()

    async def check_health(self) -> str:
        broker = self._broker
        if not broker.is_ready:
            raise RefusalError(503, "Broker is not ready")
        if broker.writer.failed is not None:
            raise RefusalError(500, str(broker.writer.failed))
        for managed in broker.logs:
            if managed.log.failed is not None:
                raise RefusalError(500, str(managed.log.failed))
        if unready := self.why_unready():
            raise RefusalError(503, unready)
        if errors := broker.internal_errors():
            raise RefusalError(500, "; ".join(errors))
        try:
            await broker.check_commits()
        except StorageError as error:
            raise RefusalError(503 if error.retryable else 500, str(error)) from error
        if broker.log.full:
            sentence = disk_sentence(broker.disk.facts()).replace("the", "The", 1)
            raise RefusalError(503, f"{sentence}; {MAKE_ROOM}")
        if damage := damage_text(broker.engine):
            raise RefusalError(500, damage)
        warnings = (self._observer.storage_state().sentence, broker.tls.problem)
        return "; ".join(warning for warning in warnings if warning)

    def shut_down(self) -> None:
        if self._shut_down is None:
            raise RefusalError(405, "This broker is part of another process, which ends it")
        self._shut_down()

    async def explain_top(self, count: int, *, timelines: bool = False) -> Any:
        self._broker.begin_turn()
        return await self._observer.explain_top(count, timelines=timelines)

    async def explain_limits(self, count: int) -> Any:
        self._broker.begin_turn()
        return await self._observer.explain_limits(count)

    def explain_adaptive(self, count: int) -> Any:
        self._broker.begin_turn()
        return self._observer.explain_adaptive(count)

    def explain_broker(self) -> Any:
        self._broker.begin_turn()
        return self._observer.explain_broker()

    async def explain_storage(self, count: int) -> Any:
        self._broker.begin_turn()
        return await self._observer.explain_storage(count)

    async def explain_topic(
        self,
        topic: TopicName,
        *,
        per_partition: bool,
        timelines: bool = False,
        roles_of: Collection[str] = (),
    ) -> Any:
        self._broker.begin_turn()
        return await self._observer.explain_topic(
            topic, per_partition=per_partition, timelines=timelines, roles_of=roles_of
        )

    # -- topics ----------------------------------------------------------------------------

    async def begin_backup(self) -> BackupHold:
        return await self._file_backups().begin()

    async def renew_backup(self, backup_id: str) -> None:
        await self._file_backups().renew(backup_id)

    async def end_backup(self, backup_id: str) -> None:
        await self._file_backups().end(backup_id)

    def _file_backups(self) -> Backups:
        if self._backups is None:
            raise not_allowed("this broker has no data directory on a disk")
        return self._backups

    async def delete_topic(self, topic: TopicName, *, force: bool) -> None:
        self._broker.begin_turn()
        await self._registry.delete(topic, force=force)

    async def unload_topic(self, topic: TopicName) -> None:
        """Loads the topic again at once, so that statistics keep showing its backlog."""
        self._broker.begin_turn()
        held = await self._registry.unload(topic)
        self._broker.begin_turn()
        self._registry.get(topic)
        del held

    async def terminate_topic(self, topic: TopicName) -> Position:
        broker = self._broker
        termination = TopicTermination(broker, self._registry, self.catalog, broker.writer)
        return await termination.terminate(topic)

    async def accept_damage(self, topic: TopicName) -> None:
        await accept_damage(self._broker.logs, self._topic(topic))

    async def topic_stats(self, topic: TopicName, options: StatsOptions) -> TopicStats:
        found = self._topic(topic)
        index = self._broker.logs.of(found).index
        await index.look_up(partial(found.log.bytes_before, found.first_needed_ordinal()))
        return await self._observer.topic_stats(found, options)

    async def internal_stats(self, topic: TopicName, *, metadata: bool) -> InternalStats:
        found = self._topic(topic)
        skew_ms = self._broker.log_clock.skew_ms
        index = self._broker.logs.of(found).index
        held = await index.load(found.log, found.log.ledger_starts())  # in one read
        await index.look_up(found.log.ledgers)
        del held
        work = internal_stats(found, metadata=metadata, skew_ms=skew_ms)
        return await in_slices(self._turns, work)

    async def last_message(self, topic: TopicName) -> FoundMessage:
        with refusals():
            return await self._entries.last_message(self._topic(topic))

    async def message_at(self, topic: TopicName, publish_ms: int) -> FoundMessage:
        """Publish times are on the clock of the producers, bounded by the receive time."""
        found = self._topic(topic)
        position = found.log.position(await self._ordinal(found, AtTime(publish_ms)))
        if position == EARLIEST:
            raise not_found("Message ID not found")
        return FoundMessage(position)

    async def entry(
        self, topic: TopicName, position: Position, reserve: Reserve = uncharged
    ) -> StoredEntry:
        found = self._topic(topic)
        log = found.log
        ordinal = log.ordinal_at_or_after(*position)
        if ordinal >= log.end or log.position(ordinal) != position:
            raise not_found("Message id not found")
        with refusals():
            try:
                return await self._entries.stored_entry(found, ordinal, reserve)
            except CorruptionError:
                if ordinal < found.log.first:  # trimmed while it was read
                    raise not_found("Message id not found") from None
                raise

    # -- subscriptions ---------------------------------------------------------------------

    def subscriptions(self, topic: TopicName) -> Sequence[str]:
        return list(self._topic(topic).subscriptions)

    async def create_subscription(
        self,
        topic: TopicName,
        name: str,
        at: AtPosition,
        properties: Mapping[str, str],
        check: Callable[[], None] = lambda: None,
    ) -> None:
        await self._when_idle(topic, name)
        found = self._topic(topic)
        if name in found.subscriptions:
            raise conflict("Subscription already exists for topic")
        ordinal = await self._ordinal(found, at)
        with refusals():
            await self._subscriptions.create(
                found, name, at_ordinal=ordinal, properties=properties, check=check
            )

    def subscription_properties(self, topic: TopicName, name: str) -> Mapping[str, str]:
        return self._subscription(topic, name).properties

    async def set_subscription_properties(
        self,
        topic: TopicName,
        name: str,
        properties: Mapping[str, str],
        check: Callable[[], None] = lambda: None,
    ) -> None:
        await self._when_idle(topic, name)
        subscription = self._subscription(topic, name)
        with refusals():
            try:
                await self._subscriptions.set_properties(subscription, properties, check)
            except (InputError, NotAllowedError) as error:
                raise not_allowed(str(error)) from error

    async def delete_subscription(
        self, topic: TopicName, name: str, *, force: bool, check: Callable[[], None] = lambda: None
    ) -> None:
        await self._when_idle(topic, name)
        subscription = self._subscription(topic, name)
        with refusals():
            await self._subscriptions.delete(subscription, force=force, check=check)

    async def skip_messages(
        self, topic: TopicName, name: str, count: int, check: Callable[[], None] = lambda: None
    ) -> None:
        # It goes through the runs of some blocks: milliseconds, and many requests may come at once.
        await self.give_way(SLICE_UNITS // PIECE_UNITS)
        await self._when_idle(topic, name)
        subscription = self._subscription(topic, name)
        last = subscription.after_messages(count) - 1
        with refusals():
            held = await self._subscriptions.load_passed(subscription, last)
        check()
        subscription.skip_messages(count)
        del held
        await self._broker.when_durable(subscription.topic)

    async def clear_backlog(
        self, topic: TopicName, name: str, check: Callable[[], None] = lambda: None
    ) -> None:
        await self._when_idle(topic, name)
        subscription = self._subscription(topic, name)
        last = subscription.topic.log.end - 1
        with refusals():
            held = await self._subscriptions.load_passed(subscription, last)
        check()
        subscription.skip_to(subscription.topic.log.end)
        del held
        await self._broker.when_durable(subscription.topic)

    async def reset_cursor(
        self,
        topic: TopicName,
        name: str,
        to: AtPosition | AtTime,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        await self._when_idle(topic, name)
        subscription = self._subscription(topic, name)
        ordinal = await self._ordinal(subscription.topic, to)
        with refusals():
            await self._subscriptions.seek(subscription, ordinal, check=check)

    async def expire_messages(
        self,
        topic: TopicName,
        name: str,
        what: OlderThan | AtPosition,
        check: Callable[[], None] = lambda: None,
    ) -> bool:
        await self._when_idle(topic, name)
        subscription = self._subscription(topic, name)
        if isinstance(what, OlderThan):
            before_ms = subscription.topic.log_ms - what.age_s * MS_PER_S
            find = subscription.topic.log.ordinal_received_at_or_after
            index = self._broker.logs.of(subscription.topic).index
            ordinal = await index.look_up(partial(find, before_ms))
        else:
            # A position that the topic no longer holds expires nothing after it.
            ordinal = await self._ordinal(subscription.topic, replace(what, excluded=True))
        with refusals():
            held = await self._subscriptions.load_passed(subscription, ordinal - 1)
        check()
        skipped = subscription.expire_to(ordinal, None)
        del held
        if not skipped:
            return False
        await self._broker.when_durable(subscription.topic)
        return True

    # -- finding ---------------------------------------------------------------------------

    def _topic(self, name: TopicName) -> Topic:
        self._broker.begin_turn()
        topic = self._registry.get(name)
        if topic is None:
            raise not_found(f"Topic {name} not found")
        return topic

    def _subscription(self, name: TopicName, subscription: str) -> Subscription:
        found = self._topic(name).subscriptions.get(subscription)
        if found is None:
            raise not_found(f"Subscription {subscription} not found for topic {name}")
        return found

    async def _ordinal(self, topic: Topic, at: AtPosition | AtTime) -> int:
        """The ordinal of the entry at a place in a topic; the end of the topic if there is none."""
        if isinstance(at, AtTime):
            find = partial(self._broker.ordinal_at_time, topic, at.publish_ms)
            return await self._broker.logs.of(topic).index.look_up(find)
        log = topic.log
        if at.position == LATEST:
            return log.end
        ordinal = log.ordinal_at_or_after(*at.position)
        if at.excluded and ordinal < log.end and log.position(ordinal) == at.position:
            return ordinal + 1
        return ordinal

    async def _when_idle(self, name: TopicName, subscription: str) -> None:
        """Return when no work on that subscription is under way."""
        await self._subscriptions.when_idle(self._topic(name), subscription)
