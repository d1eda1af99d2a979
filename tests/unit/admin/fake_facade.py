"""A broker without a broker: the real catalog over a MemoryStore, topics as lists of times."""

from __future__ import annotations

import asyncio
import sys
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Literal

from headgate.base.identity import Identity
from headgate.base.names import NamespaceName, TopicName
from headgate.base.positions import EARLIEST, LATEST, Position
from headgate.base.schema_types import CompatibilityStrategy
from headgate.broker.authorization import AllowAll, Authorizer, check_allowed
from headgate.broker.entries import FoundMessage, Reserve, StoredEntry, uncharged
from headgate.broker.info import BrokerCounts, BrokerInfo
from headgate.facade.admin_facade import CHANGES_MAX, REQUESTS_MAX, asker_of
from headgate.facade.protocol import AtPosition, AtTime, BackupHold, OlderThan
from headgate.metadata.catalog import Catalog, Change
from headgate.metadata.errors import RefusalError, conflict, not_allowed, not_found
from headgate.metadata.memory_store import MemoryStore
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
from headgate.observe.stats.fields import (
    ConsumerStats,
    CursorStats,
    InternalStats,
    LedgerStats,
    PublisherStats,
    StatsOptions,
    SubscriptionStats,
    TopicStats,
)
from headgate.policy.access_law import Decision
from headgate.policy.expiry_table import ExpiryTable
from headgate.policy.resolver import PolicyResolver
from headgate.policy.schema_table import SchemaRules
from headgate.policy.settings import Settings
from headgate.policy.use_table import UseTable
from headgate.schema.definition import Definition
from headgate.storage.fair_slots import FairSlots
from headgate.wire.codes import CompressionType
from headgate.wire.entry import ChunkFacts, EncryptionFacts, KeyFacts
from tests.unit.admin.fake_messages import FakeMessages

LEDGER = 8
NOW_MS = 1_795_218_390_000
CONNECTED = {
    "address": "/127.0.0.1:35150",
    "connected_since": "2026-11-20T23:46:32.958Z",
    "client_version": "Pulsar-CPP-v4.2.0",
}


@dataclass
class FakeSubscription:
    """Acknowledged up to (not including) entry ``next``."""

    next: int = 0
    consumers: list[str] = field(default_factory=list)
    type: str = "Exclusive"
    properties: dict[str, str] = field(default_factory=dict)


@dataclass
class FakeTopic:
    """Entries by publish time, and who is connected."""

    entries_ms: list[int] = field(default_factory=list)
    producers: list[str] = field(default_factory=list)
    subscriptions: dict[str, FakeSubscription] = field(default_factory=dict)
    unloaded: int = 0
    accepted: int = 0
    terminated: int = 0


class FakeClock:
    """Stands still."""

    def __init__(self) -> None:
        self.now_ms = NOW_MS

    def wall_ns(self) -> int:
        return self.now_ms * 1_000_000

    def monotonic_ns(self) -> int:
        return self.now_ms * 1_000_000


ENTRY_BYTES = 1_000
"""What each stored entry is charged with."""


class FakeFacade:
    """Implements ``headgate.facade.protocol.Facade``."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.catalog = Catalog("standalone", self.store.load())
        self._policies = PolicyResolver(self.catalog, Settings())
        self.info = BrokerInfo(
            broker_id="127.0.0.1:8080",
            broker_url="pulsar://127.0.0.1:6650",
            web_url="http://127.0.0.1:8080",
            version="0.0.0",
            metadata_url="sqlite:data/metadata.db",
        )
        self.clock = FakeClock()
        self.authorizer: Authorizer = AllowAll()
        self.counts = BrokerCounts()
        self.messages = FakeMessages(self, LEDGER)
        self.shut_down_count = 0
        self.ready = True
        self.backup = ""
        """The backup that is under way."""
        self.ailment = ""
        self.unready = ""
        self.auto_partitions: int | None = 0
        self.default_retention = Retention()
        self.quota_checks = 0
        self.gave_way = 0
        self.changing = FairSlots(sys.maxsize, CHANGES_MAX)
        self.asking = FairSlots(sys.maxsize, REQUESTS_MAX)
        self.reserved_bytes = 0
        self.reserved_most = 0
        self.memory_failure: Exception | None = None
        self.kept_settings: set[str] = set()
        """Settings whose start-up value does not go with the others."""
        self.topics: dict[str, FakeTopic] = {}
        self.failures: list[Exception] = []
        self.waiting: list[str] = []
        self.roles_shown: set[str] = set()
        """The levels of which the last report on a topic may name roles."""
        """Topics that wait for the broker's limit, in a report of a partition."""
        change = self.catalog.plan_first_boot()
        assert change is not None
        self._commit(change)

    def check_allowed(
        self, identity: Identity, operation: str, resource: str, subscription: str = ""
    ) -> None:
        check_allowed(self.authorizer, self.counts, identity, operation, resource, subscription)

    def decide(
        self, identity: Identity, operation: str, resource: str, subscription: str = ""
    ) -> Decision:
        return self.authorizer.decide(identity, operation, resource, subscription)

    @property
    def expiry(self) -> ExpiryTable:
        return self._policies.expiry

    @property
    def uses(self) -> UseTable:
        return self._policies.uses

    async def commit(self, change: Change) -> None:
        self._commit(change)

    def _commit(self, change: Change) -> None:
        try:
            self.store.commit(change.writes)
        except Exception:
            self.catalog.abandon_all()
            raise
        self.catalog.apply(change)

    def topic(self, topic: TopicName) -> FakeTopic:
        if self.failures:
            raise self.failures.pop(0)
        if self.catalog.topic(topic.full) is None:
            raise not_found(f"Topic {topic} not found")
        return self.topics.setdefault(topic.full, FakeTopic())

    def _subscription(self, topic: TopicName, name: str) -> FakeSubscription:
        found = self.topic(topic).subscriptions.get(name)
        if found is None:
            raise not_found(f"Subscription {name} not found for topic {topic}")
        return found

    def turn_to_change(
        self, tenant: str, identity: Identity, address: str
    ) -> AbstractAsyncContextManager[None]:
        return self.changing.slot(f"{tenant} {asker_of(identity, address, 'anybody')}")

    def turn_to_ask(
        self, identity: Identity, address: str, *, is_read: bool
    ) -> AbstractAsyncContextManager[None]:
        kind = "reads" if is_read else "changes"
        return self.asking.slot(f"{kind} {asker_of(identity, address, 'anybody')}")

    async def give_way(self, pieces: int = 1) -> None:
        self.gave_way += pieces
        await asyncio.sleep(0)

    async def load_new_partitions(self, resource: str) -> None:
        pass

    def answer_bytes(self, topic: TopicName) -> int:
        return 1_000

    async def reserve_answer(self, size_bytes: int, owner: str = "") -> None:
        if self.memory_failure is not None:
            raise self.memory_failure
        self.reserved_bytes += size_bytes
        self.reserved_most = max(self.reserved_most, self.reserved_bytes)

    def release_answer(self, size_bytes: int, owner: str = "") -> None:
        self.reserved_bytes -= size_bytes

    def dynamic_settings(self) -> Sequence[str]:
        return ["dispatchThrottlingRatePerTopicInMsg", "allowAutoTopicCreation"]

    def runtime_settings(self) -> Mapping[str, str]:
        return {
            "clusterName": "standalone",
            "brokerServicePort": "6650",
            "maxMessageSize": "5242880",
            "dispatchThrottlingRatePerTopicInMsg": "0",
            "forceDeleteNamespaceAllowed": "false",
            "forceDeleteTenantAllowed": "false",
        } | self.catalog.settings()

    def check_setting(self, name: str, value: str | None) -> None:
        if value is None and name in self.kept_settings:
            raise not_allowed(f"{name} stays as it is")
        if name.endswith("InMsg") and value is not None and not value.isdigit():
            raise not_allowed(f"{name}={value}: an integer is allowed")

    def is_ready(self) -> bool:
        return self.ready

    def why_unready(self) -> str:
        return self.unready

    async def check_health(self) -> str:
        if not self.ready:
            raise RefusalError(503, "the broker is starting")
        return self.ailment

    def shut_down(self) -> None:
        self.shut_down_count += 1

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
        return self.default_retention

    def effective_backlog_quotas(self, topic: TopicName) -> Mapping[QuotaKind, BacklogQuota]:
        return self._policies.applied_quotas(topic)

    async def check_backlog_quotas(self) -> None:
        self.quota_checks += 1

    def schema_rules(self, topic: TopicName) -> SchemaRules:
        return self._policies.schemas.of_topic(topic)

    def namespace_schema_rules(self, namespace: NamespaceName) -> SchemaRules:
        return self._policies.schemas.of_namespace(namespace)

    def schema(self, topic: TopicName, version: int | None = None) -> SchemaRow | None:
        return self.catalog.schema(topic, version)

    async def add_schema(
        self, topic: TopicName, schema: Definition, check: Callable[[], None] = lambda: None
    ) -> int:
        if (found := await self.schema_version(topic, schema)) >= 0:
            return found
        await self.check_schema(topic, schema)
        row = SchemaRow(
            type=schema.type, data=schema.data, properties=schema.properties, created_ms=NOW_MS
        )
        latest = self.catalog.latest_schema(topic)
        self._commit(self.catalog.plan_schema(topic, row, latest, needs_topic=False))
        stored = self.catalog.schema(topic)
        assert stored is not None
        return stored.version

    async def schema_version(self, topic: TopicName, schema: Definition) -> int:
        rows = self.catalog.schemas(topic)
        return next((row.version for row in rows if row.data == schema.data), -1)

    async def check_schema(self, topic: TopicName, schema: Definition) -> CompatibilityStrategy:
        """Only a definition of the same type is compatible."""
        latest = self.catalog.schema(topic)
        if latest is not None and latest.type != schema.type:
            raise conflict("Incompatible schema")
        return self.schema_rules(topic).strategy

    async def delete_schema(
        self, topic: TopicName, *, force: bool, check: Callable[[], None] = lambda: None
    ) -> int:
        latest = self.catalog.latest_schema(topic)
        if latest is None:
            return -1
        self._commit(self.catalog.plan_delete_schema(topic, latest, force=force, now_ms=NOW_MS))
        return latest.version + (not force)

    def auto_creation_partitions(self, topic: TopicName) -> int | None:
        return self.auto_partitions if topic.is_persistent else None

    async def explain_top(self, count: int, *, timelines: bool = False) -> Any:
        more: dict[str, Any] = {"timeline": []} if timelines else {}
        return [{"topic": name} | more for name in sorted(self.topics)[:count]]

    async def explain_limits(self, count: int) -> Any:
        return {"limits": sorted(self.topics)[:count]}

    def explain_adaptive(self, count: int) -> Any:
        return {"enabled": False, "decisions": [count]}

    def explain_broker(self) -> Any:
        return {"connections": 0}

    async def explain_storage(self, count: int) -> Any:
        return {"topics": sorted(self.topics)[:count]}

    async def begin_backup(self) -> BackupHold:
        if self.backup:
            raise conflict("a backup is under way")
        self.backup = "b1"
        return BackupHold(self.backup, "/data", "/data/backup-source", 30.0)

    async def renew_backup(self, backup_id: str) -> None:
        if backup_id != self.backup:
            raise not_found("no such backup")

    async def end_backup(self, backup_id: str) -> None:
        await self.renew_backup(backup_id)
        self.backup = ""

    async def explain_topic(
        self,
        topic: TopicName,
        *,
        per_partition: bool,
        timelines: bool = False,
        roles_of: Collection[str] = (),
    ) -> Any:
        self.roles_shown = set(roles_of)
        waiting = [{"topic": name, "subscription": "s"} for name in self.waiting]
        part = {"limits": [{"longestWaiting": waiting}], "perPartition": None}
        return {
            "topic": topic.full,
            "perPartition": [part] if per_partition else None,
            "limits": [],
            "subscriptions": [{"s": 1} | ({"timeline": []} if timelines else {})],
        }

    async def delete_topic(self, topic: TopicName, *, force: bool) -> None:
        connected = 0
        found = self.topics.get(topic.full, FakeTopic())
        connected += len(found.producers)
        connected += sum(len(sub.consumers) for sub in found.subscriptions.values())
        if connected and not force:
            raise not_allowed(f"Topic has {connected} connected producers/consumers")
        self._commit(self.catalog.plan_delete_topic(topic))
        self.topics.pop(topic.full, None)

    async def unload_topic(self, topic: TopicName) -> None:
        self.topic(topic).unloaded += 1

    async def terminate_topic(self, topic: TopicName) -> Position:
        self.topic(topic).terminated += 1
        return Position(7, 41)

    async def accept_damage(self, topic: TopicName) -> None:
        self.topic(topic).accepted += 1

    async def topic_stats(self, topic: TopicName, options: StatsOptions) -> TopicStats:
        found = self.topic(topic)
        producers = [] if options.exclude_publishers else found.producers
        return TopicStats(
            msg_in_counter=len(found.entries_ms),
            storage_size=100 * len(found.entries_ms),
            publishers=[
                PublisherStats(
                    access_mode="Shared", producer_id=index, producer_name=name, metadata={},
                    **CONNECTED,
                )
                for index, name in enumerate(producers)
            ],
            subscriptions={
                name: self._subscription_stats(found, sub, options)
                for name, sub in found.subscriptions.items()
            },
            deduplication_status="Disabled",
            owner_broker=self.info.broker_id,
        )  # fmt: skip

    def _subscription_stats(
        self, topic: FakeTopic, sub: FakeSubscription, options: StatsOptions
    ) -> SubscriptionStats:
        backlog = len(topic.entries_ms) - sub.next
        consumers = [] if options.exclude_consumers else sub.consumers
        stats = SubscriptionStats(
            msg_backlog=backlog,
            backlog_size=100 * backlog if options.backlog_size else -1,
            type=sub.type,
            consumers=[
                ConsumerStats(consumer_name=name, metadata={}, **CONNECTED) for name in consumers
            ],
        )
        if sub.type == "Exclusive" and sub.consumers:
            stats.active_consumer_name = sub.consumers[0]
        if options.earliest_time:
            stats.earliest_msg_publish_time_in_backlog = (
                topic.entries_ms[sub.next] if backlog else -1
            )
        return stats

    async def internal_stats(self, topic: TopicName, *, metadata: bool) -> InternalStats:
        found = self.topic(topic)
        count = len(found.entries_ms)
        ledger = LedgerStats(ledger_id=LEDGER, entries=0, size=0)
        if metadata:
            ledger = LedgerStats(ledger_id=LEDGER, entries=0, size=0, metadata="open")
        return InternalStats(
            entries_added_counter=count,
            number_of_entries=count,
            total_size=100 * count,
            current_ledger_entries=count,
            current_ledger_size=100 * count,
            last_ledger_created_timestamp="2026-11-20T23:46:26.154Z",
            last_confirmed_entry=f"{LEDGER}:{count - 1}",
            ledgers=[ledger],
            cursors={
                name: CursorStats(
                    mark_delete_position=f"{LEDGER}:{sub.next - 1}",
                    read_position=f"{LEDGER}:{sub.next}",
                )
                for name, sub in found.subscriptions.items()
            },
        )

    async def last_message(self, topic: TopicName) -> FoundMessage:
        count = len(self.topic(topic).entries_ms)
        return FoundMessage(Position(LEDGER, count - 1), 49 if count else -1)

    async def message_at(self, topic: TopicName, publish_ms: int) -> FoundMessage:
        times_ms = self.topic(topic).entries_ms
        return FoundMessage(Position(LEDGER, bisect_left(times_ms, publish_ms)))

    async def entry(
        self, topic: TopicName, position: Position, reserve: Reserve = uncharged
    ) -> StoredEntry:
        await reserve(ENTRY_BYTES)
        if position.entry_id >= len(self.topic(topic).entries_ms):
            raise not_found("Message id not found")
        chunk = ChunkFacts("p é-1", 1, 3, 99) if position.entry_id else None
        return StoredEntry(
            b"payload",
            "p é",
            7,
            "1970-01-01T00:00:00Z",
            None if chunk else 49,
            chunk,
            KeyFacts("aWQ=", is_base64=True, is_null=False) if chunk else None,
            CompressionType.NONE if chunk else CompressionType.LZ4,
            99,
            EncryptionFacts((b"a", b"b"), b"\x01") if chunk else None,
        )

    def subscriptions(self, topic: TopicName) -> Sequence[str]:
        return list(self.topic(topic).subscriptions)

    async def create_subscription(
        self,
        topic: TopicName,
        name: str,
        at: AtPosition,
        properties: Mapping[str, str],
        check: Callable[[], None] = lambda: None,
    ) -> None:
        found = self.topic(topic)
        if name in found.subscriptions:
            raise conflict("Subscription already exists for topic")
        sub = FakeSubscription(properties=dict(properties))
        sub.next = self._entry(found, at)
        found.subscriptions[name] = sub

    def subscription_properties(self, topic: TopicName, name: str) -> Mapping[str, str]:
        return self._subscription(topic, name).properties

    async def set_subscription_properties(
        self,
        topic: TopicName,
        name: str,
        properties: Mapping[str, str],
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._subscription(topic, name).properties = dict(properties)

    async def delete_subscription(
        self, topic: TopicName, name: str, *, force: bool, check: Callable[[], None] = lambda: None
    ) -> None:
        if self._subscription(topic, name).consumers and not force:
            raise not_allowed("Subscription has active connected consumers")
        del self.topic(topic).subscriptions[name]

    async def skip_messages(
        self, topic: TopicName, name: str, count: int, check: Callable[[], None] = lambda: None
    ) -> None:
        sub = self._subscription(topic, name)
        sub.next = min(sub.next + count, len(self.topic(topic).entries_ms))

    async def clear_backlog(
        self, topic: TopicName, name: str, check: Callable[[], None] = lambda: None
    ) -> None:
        self._subscription(topic, name).next = len(self.topic(topic).entries_ms)

    async def reset_cursor(
        self,
        topic: TopicName,
        name: str,
        to: AtPosition | AtTime,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        sub = self._subscription(topic, name)
        sub.next = self._entry(self.topic(topic), to)

    async def expire_messages(
        self,
        topic: TopicName,
        name: str,
        what: OlderThan | AtPosition,
        check: Callable[[], None] = lambda: None,
    ) -> bool:
        sub, found = self._subscription(topic, name), self.topic(topic)
        before = sub.next
        if isinstance(what, OlderThan):
            limit_ms = self.clock.now_ms - what.age_s * 1_000
            sub.next = max(before, sum(time_ms < limit_ms for time_ms in found.entries_ms))
        else:
            sub.next = max(before, self._entry(found, what) + 1)
        return sub.next > before

    def _entry(self, topic: FakeTopic, at: AtPosition | AtTime) -> int:
        if isinstance(at, AtTime):
            return sum(time_ms < at.publish_ms for time_ms in topic.entries_ms)
        if at.position == LATEST:
            return len(topic.entries_ms)
        if at.position == EARLIEST:
            return 0
        return at.position.entry_id + at.excluded
