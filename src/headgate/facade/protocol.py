"""The broker as the admin API uses it: one Protocol, with the types of its arguments.

Rules:

* Metadata is read from ``facade.catalog`` (always durable state). A change is planned there
  (``catalog.plan_...``, which validates and raises :class:`RefusalError`) and committed by
  ``await facade.commit(change)``; there must be no ``await`` between the two.
* The other methods are about *topics that hold messages*: a partition, or a topic without
  partitions. The admin API resolves a partitioned topic and asks for each partition. Only
  :meth:`Facade.delete_topic` and :meth:`Facade.explain_topic` take a partitioned topic's name.
* A method that cannot do its work raises :class:`RefusalError` with Pulsar's status and text. The
  caller checks names, and that topics exist; a topic that vanished meanwhile is a 404.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from msgspec import Struct

from headgate.base.identity import Identity
from headgate.base.names import NamespaceName, TopicName
from headgate.base.positions import Position
from headgate.base.schema_types import CompatibilityStrategy
from headgate.broker.entries import FoundMessage, Reserve, StoredEntry, uncharged
from headgate.broker.info import BrokerInfo
from headgate.facade.message_protocol import MessageOperations
from headgate.metadata.catalog import Catalog, Change
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
from headgate.observe.stats.fields import InternalStats, StatsOptions, TopicStats
from headgate.policy.access_law import Decision
from headgate.policy.expiry_table import ExpiryTable
from headgate.policy.schema_table import SchemaRules
from headgate.policy.use_table import UseTable
from headgate.schema.definition import Definition


@dataclass(frozen=True, slots=True)
class AtPosition:
    """A place in a topic: the entry at ``position`` (or EARLIEST, LATEST)."""

    position: Position
    excluded: bool = False
    """True: just after it rather than at it."""
    batch_index: int = -1


@dataclass(frozen=True, slots=True)
class AtTime:
    """A place in a topic: the first message published at or after ``publish_ms``."""

    publish_ms: int


@dataclass(frozen=True, slots=True)
class OlderThan:
    """Messages older than ``age_s`` seconds when the request is carried out."""

    age_s: int


class BackupHold(Struct, frozen=True, rename="camel"):
    """A state of the data directory that the broker holds for a backup."""

    id: str
    """For renewing and ending it."""
    data_directory: str
    """Path on the broker's host."""
    source_directory: str
    """Path of the folder in it that has what the broker copied."""
    lease_s: float
    """The hold ends if it is not renewed for so many seconds."""


class Facade(Protocol):
    """The broker, as the admin API uses it."""

    @property
    def catalog(self) -> Catalog:
        """The metadata. Reads are immediate; the module's text has the rules for changes."""

    @property
    def info(self) -> BrokerInfo:
        """The identity of this broker."""

    @property
    def expiry(self) -> ExpiryTable:
        """What ends by itself, by the policies and settings in force."""

    @property
    def uses(self) -> UseTable:
        """What clients' use creates, and which use is allowed, by those in force."""

    @property
    def messages(self) -> MessageOperations:
        """What is asked about stored messages."""

    def check_allowed(
        self, identity: Identity, operation: str, resource: str, subscription: str = ""
    ) -> None:
        """Return if ``identity`` may perform ``operation`` on ``resource``: a topic's full name,
        a namespace or a tenant; empty for the broker itself. ``subscription`` is empty unless the
        operation concerns one.

        Raises:
            RefusalError: 401 or 403, with Pulsar's text.
        """

    def decide(
        self, identity: Identity, operation: str, resource: str, subscription: str = ""
    ) -> Decision:
        """Whether :meth:`check_allowed` returns, and why."""

    async def commit(self, change: Change) -> None:
        """Make ``change`` durable, then visible, then effective (limits, loaded topics).

        Raises:
            StorageError: the disk refused; the change was abandoned.
        """

    # Large answers.

    def turn_to_change(
        self, tenant: str, identity: Identity, address: str
    ) -> AbstractAsyncContextManager[None]:
        """Within it a change about a tenant is carried out: few that one role, or one address
        without a role of its own, asks for at the same time. Those of a role keep nobody waiting
        who takes its rights away."""

    def turn_to_ask(
        self, identity: Identity, address: str, *, is_read: bool
    ) -> AbstractAsyncContextManager[None]:
        """Within it a request is carried out: a few of one role, or address without one, at the
        same time, and a few of its changes beside its reads."""

    async def give_way(self, pieces: int = 1) -> None:
        """Let others run, until so many quarters of a millisecond more of work may be done."""

    async def load_new_partitions(self, resource: str) -> None:
        """If ``resource`` is the full name of a topic of which new partitions get subscriptions,
        return when these may be used without a pause."""

    def answer_bytes(self, topic: TopicName) -> int:
        """About how many bytes the statistics of ``topic`` take while they are sent; 0 if there is
        no such topic."""

    async def reserve_answer(self, size_bytes: int, owner: str = "") -> None:
        """Return when there is memory for an answer of that size; :meth:`release_answer` gives it
        back. ``owner`` is the tenant that it is about, if it is about one.

        Raises:
            RefusalError: 503, others take the memory.
        """

    def release_answer(self, size_bytes: int, owner: str = "") -> None:
        """An answer is sent, or given up."""

    # Dynamic settings. Overrides are in the catalog; these know what the settings mean.

    def dynamic_settings(self) -> Sequence[str]:
        """Names of the settings that may be changed while the broker runs."""

    def runtime_settings(self) -> Mapping[str, str]:
        """Every supported setting with its present value as text; secrets are masked."""

    def check_setting(self, name: str, value: str | None) -> None:
        """Return if ``value`` (``None``: the start-up value) is allowed for the dynamic setting
        ``name``, alone and together with the present and planned values of the others.

        Raises:
            RefusalError: 412 with the name, the value and what is allowed.
        """

    # State of the broker.

    def is_ready(self) -> bool:
        """Whether recovery is done and the broker is not closing."""

    def why_unready(self) -> str:
        """Why the started broker cannot serve clients; empty if it can."""

    async def check_health(self) -> str:
        """Prove that a commit to the log works. Returns a warning if the disk is slow or
        connections are refused, otherwise the empty string.

        Raises:
            RefusalError: 503 or 500 with what is wrong.
        """

    def shut_down(self) -> None:
        """Begin to close the broker, as a signal does; connections end, everything is on disk.

        Raises:
            RefusalError: 405: the broker is part of another process.
        """

    def effective_dispatch_rate(
        self,
        scope: Literal["topic", "subscription"],
        topic: TopicName,
        subscription: str = "",
    ) -> DispatchRate:
        """The dispatch rate in force (``applied=true``), as it is stored.

        ``subscription`` names a subscription that may have its own rate. Without any rate, rates of
        0 with period 1, not relative.
        """

    def effective_publish_rate(self, topic: TopicName) -> PublishRate | None:
        """The publish rate in force on a topic, as it is stored; ``None`` without one."""

    def effective_retention(self, topic: TopicName) -> Retention:
        """The retention in force: the topic's, the namespace's or the broker's."""

    def effective_delayed_delivery(self, topic: TopicName) -> DelayedDeliveryPolicy:
        """The policy of delayed delivery in force: the topic's, the namespace's or the broker's."""

    def effective_count(self, topic: TopicName, field: CountField) -> int:
        """The limit in force on a number of a topic's clients or subscriptions; 0 for none."""

    def effective_deduplication(self, topic: TopicName) -> bool:
        """Whether a topic has message deduplication: by its policy, the namespace's or the
        broker's setting."""

    def broker_retention(self) -> Retention:
        """The retention of topics without a policy."""

    def effective_backlog_quotas(self, topic: TopicName) -> Mapping[QuotaKind, BacklogQuota]:
        """The backlog quotas in force, by type."""

    async def check_backlog_quotas(self) -> None:
        """Verify the backlog quotas of all topics now. Returns when it is done."""

    def schema_rules(self, topic: TopicName) -> SchemaRules:
        """What is in force for the schema of ``topic``."""

    def namespace_schema_rules(self, namespace: NamespaceName) -> SchemaRules:
        """What is in force for the schemas of the topics of a namespace without policies."""

    def auto_creation_partitions(self, topic: TopicName) -> int | None:
        """How many partitions ``topic`` would get if a client's first use created it now.

        0: it would not be partitioned. ``None``: topics are not created by using them here.
        """

    async def explain_top(self, count: int, *, timelines: bool = False) -> Any:
        """The ``count`` largest backlogs with the cause of each, as plain values for JSON;
        ``timelines`` adds the last hour of each."""

    async def explain_limits(self, count: int) -> Any:
        """The ``count`` limits at which most waits, as plain values for JSON."""

    def explain_adaptive(self, count: int) -> Any:
        """The adaptive controller and its latest ``count`` decisions, as plain values for JSON."""

    def explain_broker(self) -> Any:
        """How the broker itself is, as plain values for JSON."""

    async def explain_storage(self, count: int) -> Any:
        """What takes the disk, and the ``count`` topics that keep most of it, as plain values for
        JSON."""

    async def explain_topic(
        self,
        topic: TopicName,
        *,
        per_partition: bool,
        timelines: bool = False,
        roles_of: Collection[str] = (),
    ) -> Any:
        """The causes of the backlog of ``topic``, partitioned or not, as plain values for JSON;
        ``timelines`` adds the last hour of each subscription and what changed, with who did it and
        all values at the levels ``roles_of``."""

    # Schemas. A topic need not exist to have one. The methods that take a definition raise
    # RefusalError 422 if it is not well formed.

    def schema(self, topic: TopicName, version: int | None = None) -> SchemaRow | None:
        """A version of a topic's schema, by default the latest; None if it does not exist."""

    async def add_schema(
        self, topic: TopicName, schema: Definition, check: Callable[[], None] = lambda: None
    ) -> int:
        """Add a version to a topic's schema, unless it has that definition; returns its number.

        Raises:
            RefusalError: 409 if it is not compatible, 404 without the namespace.
        """

    async def schema_version(self, topic: TopicName, schema: Definition) -> int:
        """The version of a definition; -1 if the topic does not have it."""

    async def check_schema(self, topic: TopicName, schema: Definition) -> CompatibilityStrategy:
        """Return the strategy in force if a definition could be added.

        Raises:
            RefusalError: 409 if it could not.
        """

    async def delete_schema(
        self, topic: TopicName, *, force: bool, check: Callable[[], None] = lambda: None
    ) -> int:
        """Delete all versions; returns the version that stands for the deletion, -1 if there is no
        schema. ``force`` also forgets the numbers, and returns the last one."""

    # Backups.

    async def begin_backup(self) -> BackupHold:
        """Hold the present state of the data directory until :meth:`end_backup`.

        Raises:
            RefusalError: 409: a backup is under way, or the disk is full.
            StorageError: the disk refused.
        """

    async def renew_backup(self, backup_id: str) -> None:
        """Extend the lease of a backup.

        Raises:
            RefusalError: 404 if it is unknown, 409 with the reason if the state was not held.
        """

    async def end_backup(self, backup_id: str) -> None:
        """End a backup; returns if the state was held until now. Raises as :meth:`renew_backup`."""

    # Topics.

    async def delete_topic(self, topic: TopicName, *, force: bool) -> None:
        """Delete a topic, or a partitioned topic with all its partitions: all or nothing.

        Raises:
            RefusalError: 412 ``Topic has N connected producers/consumers`` unless ``force``.
        """

    async def unload_topic(self, topic: TopicName) -> None:
        """Disconnect its producers and consumers, which reconnect, and drop it from memory."""

    async def terminate_topic(self, topic: TopicName) -> Position:
        """Have it take no more messages, for good; returns the id of its last message, with the
        entry -1 if it has none. Consumers may read what it has.

        Raises:
            RefusalError: 412 for the broker's own topic.
        """

    async def accept_damage(self, topic: TopicName) -> None:
        """Serve a damaged topic without its lost data: its subscriptions skip lost entries and
        continue at their last known positions."""

    async def topic_stats(self, topic: TopicName, options: StatsOptions) -> TopicStats:
        """Its counters, rates, producers and subscriptions."""

    async def internal_stats(self, topic: TopicName, *, metadata: bool) -> InternalStats:
        """Its ledgers and cursors; ``metadata`` adds each ledger's description."""

    async def last_message(self, topic: TopicName) -> FoundMessage:
        """Its last durable message; position ``(ledger, -1)`` or ``(-1, -1)`` if it has none."""

    async def message_at(self, topic: TopicName, publish_ms: int) -> FoundMessage:
        """The first message published at or after ``publish_ms``.

        After the last one, this is the position that the next message takes.

        Raises:
            RefusalError: 404 if the topic never held a message.
        """

    async def entry(
        self, topic: TopicName, position: Position, reserve: Reserve = uncharged, /
    ) -> StoredEntry:
        """The entry at exactly ``position``, once ``reserve`` has the memory for it.

        Raises:
            RefusalError: 404 if the topic does not hold it, 503 if there is no memory.
        """

    # Subscriptions. A missing one is 404 ``Subscription S not found for topic T``.

    def subscriptions(self, topic: TopicName) -> Sequence[str]:
        """Names of its durable subscriptions and of readers that are connected now."""

    async def create_subscription(
        self,
        topic: TopicName,
        name: str,
        at: AtPosition,
        properties: Mapping[str, str],
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Create a durable subscription.

        Raises:
            RefusalError: 409 ``Subscription already exists for topic``; 412 if the topic has as
                many as it may.
        """

    def subscription_properties(self, topic: TopicName, name: str) -> Mapping[str, str]:
        """The properties of a subscription."""

    async def set_subscription_properties(
        self,
        topic: TopicName,
        name: str,
        properties: Mapping[str, str],
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Replace the properties of a durable subscription.

        Raises:
            RefusalError: 412 if they are too long, or the subscription is a reader's.
        """

    async def delete_subscription(
        self, topic: TopicName, name: str, *, force: bool, check: Callable[[], None] = lambda: None
    ) -> None:
        """Delete a subscription.

        Raises:
            RefusalError: 412 ``Subscription has active connected consumers`` unless ``force``.
        """

    async def skip_messages(
        self, topic: TopicName, name: str, count: int, check: Callable[[], None] = lambda: None
    ) -> None:
        """Acknowledge the ``count`` oldest unacknowledged entries of a subscription."""

    async def clear_backlog(
        self, topic: TopicName, name: str, check: Callable[[], None] = lambda: None
    ) -> None:
        """Acknowledge everything."""

    async def reset_cursor(
        self,
        topic: TopicName,
        name: str,
        to: AtPosition | AtTime,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Move a subscription; its consumers are disconnected and reconnect."""

    async def expire_messages(
        self,
        topic: TopicName,
        name: str,
        what: OlderThan | AtPosition,
        check: Callable[[], None] = lambda: None,
    ) -> bool:
        """Acknowledge the messages that are older than an age, or up to a position.

        Returns whether there was anything to expire (the admin API answers 409 if not).
        """
