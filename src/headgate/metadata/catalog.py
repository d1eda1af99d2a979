"""The domain model: what exists in a broker, and every change that is allowed.

Reads return durable state. A ``plan_...`` method validates a request against the staged view (see
``state``). It stages a :class:`Change` and returns it, or raises :class:`RefusalError` with
Pulsar's status and text. The caller then makes the change durable (``store.commit`` of
``change.writes``) and calls :meth:`Catalog.apply`, in the order of planning. If that fails, it
calls :meth:`Catalog.abandon_all`. It must not drop a planned change: the name that it creates would
stay taken.

Rules of the domain that other modules rely on:

* A topic's number is never assigned twice, not even if its creation was abandoned.
* A partition is a topic row like any other, created together with its partitioned topic.
* Topic policies belong to the base name and are deleted with it.
* Grants on a topic belong to the name, and may be kept when the topic is deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from headgate.base.errors import CorruptionError, InputError
from headgate.base.memory_room import MemoryRoom
from headgate.base.names import PERSISTENT, NamespaceName, TopicName
from headgate.base.sparse_counter import SparseCounter
from headgate.metadata.grant_plans import GrantPlans, subscription_key
from headgate.metadata.grants import (
    NO_NAMESPACE_GRANTS,
    NO_TOPIC_GRANTS,
    NamespaceGrants,
    SubscriptionGrants,
    TopicGrants,
)
from headgate.metadata.own_rows import OwnRows
from headgate.metadata.policies import NO_TOPIC_POLICIES, NamespacePolicies, TopicPolicies
from headgate.metadata.policy_plans import PolicyPlans
from headgate.metadata.property_plans import PropertyPlans
from headgate.metadata.rows import (
    IdleSubscriptionsRow,
    Kind,
    NamespaceRow,
    PartitionedRow,
    Row,
    SchemaRow,
    TenantRow,
    TopicRow,
)
from headgate.metadata.schema_plans import SchemaPlans, earlier_keys, version_key
from headgate.metadata.staged_rows import own_name
from headgate.metadata.state import Change, RowChange
from headgate.metadata.tenant_plans import TenantPlans
from headgate.metadata.topic_plans import TopicPlans

NONE_IDLE = IdleSubscriptionsRow()
"""The row of a topic about whose subscriptions nothing is stored."""

__all__ = ["NONE_IDLE", "Catalog", "Change", "RowChange"]

_SCHEMA_KINDS: Final = (Kind.SCHEMA, Kind.SCHEMA_VERSION)


class Catalog(OwnRows):
    """Tenants, namespaces, topics, policies and dynamic settings of one cluster."""

    def __init__(self, cluster: str, stored: Mapping[tuple[str, str], bytes]) -> None:
        """Decode the rows of a store (``store.load()``).

        Raises:
            CorruptionError: a row cannot be read.
            InputError: the rows belong to a cluster with another name.
        """
        self.cluster = cluster
        super().__init__(stored)
        others = [name for name in self._state.rows(Kind.CLUSTER) if name != cluster]
        if others:
            raise InputError(
                f"clusterName is {cluster!r}, but the data directory belongs to cluster "
                f"{others[0]!r}: use that name, or another data directory"
            )
        self._by_number: dict[int, TopicRow] = {}
        self._take_numbers()
        self.schema_bytes = 0
        """Bytes of all versions of all topics."""
        self.tenant_schema_bytes: SparseCounter[str] = SparseCounter()
        """The same by tenant, without tenants that have none."""
        self.topic_schema_bytes: SparseCounter[str] = SparseCounter()
        """The same by the name that has the schema."""
        self._count_schemas()
        tenants = TenantPlans(self._state, cluster)
        self.limit_namespaces = tenants.limit_namespaces
        self.plan_first_boot = tenants.plan_first_boot
        self.plan_create_tenant = tenants.plan_create_tenant
        self.plan_update_tenant = tenants.plan_update_tenant
        self.plan_delete_tenant = tenants.plan_delete_tenant
        self.plan_create_namespace = tenants.plan_create_namespace
        self.plan_delete_namespace = tenants.plan_delete_namespace
        self.plan_begin_namespace_deletion = tenants.plan_begin_namespace_deletion
        self.has_much, self.plan_empty_namespace = tenants.has_much, tenants.plan_empty_namespace
        topics = TopicPlans(self._state, self._numbers, self.topic_by_number)
        self.keep_in = topics.keep_in
        self.limit_topics, self.limit_partitions = topics.limit_topics, topics.limit_partitions
        self.plan_create_topic = topics.plan_create_topic
        self.plan_move_topic = topics.plan_move_topic
        self.plan_topic_epoch, self.plan_terminate = topics.plan_topic_epoch, topics.plan_terminate
        self.plan_create_partitioned = topics.plan_create_partitioned
        self.plan_grow_partitioned = topics.plan_grow_partitioned
        self.plan_subscriptions_complete = topics.plan_subscriptions_complete
        self.plan_delete_topic = topics.plan_delete_topic
        schemas = SchemaPlans(self._state)
        self.plan_schema = schemas.plan_schema
        self.plan_delete_schema = schemas.plan_delete_schema
        self.plan_idle_subscriptions = topics.plan_idle_subscriptions
        self.plan_subscriptions_used = topics.plan_subscriptions_used
        policies = PolicyPlans(self._state)
        self.plan_namespace_policies = policies.plan_namespace_policies
        self.plan_namespace_quota = policies.plan_namespace_quota
        self.plan_topic_policies = policies.plan_topic_policies
        self.plan_remove_topic_policies = policies.plan_remove_topic_policies
        self.plan_topic_quota = policies.plan_topic_quota
        self.plan_subscription_rate = policies.plan_subscription_rate
        properties = PropertyPlans(self._state)
        self.plan_namespace_properties = properties.plan_namespace_properties
        self.plan_topic_properties = properties.plan_topic_properties
        grants = GrantPlans(self._state)
        self.allow_grants_without_topics = grants.allow_grants_without_topics
        self.plan_namespace_grant = grants.plan_namespace_grant
        self.plan_subscription_auth_mode = grants.plan_subscription_auth_mode
        self.plan_topic_grant = grants.plan_topic_grant
        self.plan_topic_revoke = grants.plan_topic_revoke
        self.plan_subscription_grant = grants.plan_subscription_grant
        self.plan_subscription_revoke = grants.plan_subscription_revoke

    def limit_memory(self, room: MemoryRoom) -> None:
        """Have tenants store more only as far as the memory of the process has room."""
        self._state.memory_room = room

    @property
    def memory_room(self) -> MemoryRoom:
        """What the memory of the process leaves to tenants."""
        return self._state.memory_room

    @property
    def bounded_bytes(self) -> int:
        """What schemas take, and those parts of other rows that have a bound for each tenant."""
        return self.schema_bytes + self._state.bounded_bytes

    def are_partitions_settled(self, base: TopicName) -> bool:
        """Whether no partition of a topic is being created or deleted, and each has all
        subscriptions of the others."""
        state = self._state
        row = state.staged(Kind.PARTITIONED, base.full)
        if row is not state.get(Kind.PARTITIONED, base.full):
            return False
        for index in range(cast(PartitionedRow, row).partitions if row is not None else 0):
            name = base.partition_name(index).full
            partition = cast(TopicRow | None, state.staged(Kind.TOPIC, name))
            if partition is not state.get(Kind.TOPIC, name):
                return False
            if partition is not None and partition.lacks_subscriptions:
                return False
        return True

    # Reads: durable state.

    def clusters(self) -> list[str]:
        """The name of this cluster, in a list."""
        return self._state.children(Kind.CLUSTER, "")

    def tenants(self) -> list[str]:
        """Names of all tenants, sorted."""
        return self._state.children(Kind.TENANT, "")

    def tenant(self, name: str) -> TenantRow | None:
        """One tenant."""
        return cast(TenantRow | None, self._state.get(Kind.TENANT, name))

    def namespaces(self, tenant: str) -> list[str]:
        """``tenant/namespace`` of each namespace of a tenant, sorted."""
        return self._state.children(Kind.NAMESPACE, tenant)

    def namespaces_after(self, tenant: str, after: str, count_max: int) -> list[str]:
        """The next ``count_max`` of :meth:`namespaces`, of those behind the name ``after``."""
        return self._state.children_after(Kind.NAMESPACE, tenant, after, count_max)

    def namespace(self, name: NamespaceName) -> NamespaceRow | None:
        """One namespace."""
        return cast(NamespaceRow | None, self._state.get(Kind.NAMESPACE, name.full))

    def topics(self, namespace: NamespaceName, domain: str = PERSISTENT) -> list[str]:
        """Full names of a namespace's topics and of each partition, sorted."""
        return self._state.children(Kind.TOPIC, f"{domain}://{namespace}")

    def topics_after(self, namespace: NamespaceName, after: str, count_max: int) -> list[str]:
        """The next ``count_max`` of :meth:`topics`, of those behind the name ``after``."""
        parent = f"{PERSISTENT}://{namespace}"
        return self._state.children_after(Kind.TOPIC, parent, after, count_max)

    def topic(self, full_name: str) -> TopicRow | None:
        """One topic that holds messages."""
        return cast(TopicRow | None, self._state.get(Kind.TOPIC, full_name))

    def topic_by_number(self, number: int) -> TopicRow | None:
        """The topic with this number in the commit log."""
        return self._by_number.get(number)

    def topic_numbers(self) -> set[int]:
        """Numbers of all topics."""
        return set(self._by_number)

    def topic_numbers_in(self, log: str) -> set[int]:
        """Numbers of the topics in a log. Its records of other numbers are garbage."""
        return {number for number, row in self._by_number.items() if row.log == log}

    def partitioned_topics(self, namespace: NamespaceName, domain: str = PERSISTENT) -> list[str]:
        """Full names of a namespace's partitioned topics, sorted."""
        return self._state.children(Kind.PARTITIONED, f"{domain}://{namespace}")

    def partitioned_after(self, namespace: NamespaceName, after: str, count_max: int) -> list[str]:
        """The next ``count_max`` of :meth:`partitioned_topics`, of those behind ``after``."""
        parent = f"{PERSISTENT}://{namespace}"
        return self._state.children_after(Kind.PARTITIONED, parent, after, count_max)

    def partitioned(self, full_name: str) -> PartitionedRow | None:
        """One partitioned topic."""
        return cast(PartitionedRow | None, self._state.get(Kind.PARTITIONED, full_name))

    def topic_policies(self, topic: TopicName) -> TopicPolicies:
        """The policies set on a topic; for a partition, those of its partitioned topic."""
        # Crowds of consumers ask this several times each: no call more than needed.
        name = topic.full if topic.partition < 0 else self.own_name(topic)
        row = self._state.get(Kind.TOPIC_POLICIES, name)
        return NO_TOPIC_POLICIES if row is None else cast(TopicPolicies, row)

    def topic_properties(self, topic: TopicName) -> Mapping[str, str]:
        """The properties of a topic; a partition also has those of its partitioned topic, its own
        first. Empty if it does not exist."""
        row = self.topic(topic.full) or self.partitioned(topic.full)
        own = {} if row is None else row.properties
        if topic.partition < 0:
            return own
        whole = self.partitioned(topic.base.full)
        return own if whole is None or not whole.properties else {**whole.properties, **own}

    def own_name(self, topic: TopicName) -> str:
        """The name under which a topic's policies and schema are stored: for a partition, that of
        its partitioned topic."""
        return own_name(topic, self._state.get)

    def latest_schema(self, topic: TopicName) -> SchemaRow | None:
        """The row of the latest version of a topic's schema, also of a deletion; for a partition,
        that of its partitioned topic."""
        return cast(SchemaRow | None, self._state.get(Kind.SCHEMA, self.own_name(topic)))

    def schema(self, topic: TopicName, version: int | None = None) -> SchemaRow | None:
        """The latest version of a topic's schema, or the given one, unless it was deleted."""
        latest = self.latest_schema(topic)
        if latest is None or latest.is_deleted:
            return None
        if version is None or version == latest.version:
            return latest
        key = version_key(self.own_name(topic), version)
        return cast(SchemaRow | None, self._state.get(Kind.SCHEMA_VERSION, key))

    def schemas(self, topic: TopicName) -> list[SchemaRow]:
        """All versions of a topic's schema that were not deleted, from the oldest on."""
        latest = self.schema(topic)
        if latest is None:
            return []
        keys = earlier_keys(self.own_name(topic), latest)
        earlier = [self._state.get(Kind.SCHEMA_VERSION, key) for key in keys]
        return [*(cast(SchemaRow, row) for row in earlier if row is not None), latest]

    def idle_subscriptions(self, full_name: str) -> IdleSubscriptionsRow:
        """The subscriptions of a topic that have no consumers, as far as that is stored."""
        row = self._state.get(Kind.IDLE_SUBSCRIPTIONS, full_name)
        return NONE_IDLE if row is None else cast(IdleSubscriptionsRow, row)

    def is_idle_subscription(self, full_name: str, subscription: str) -> bool:
        """Whether it is stored since when a subscription of a topic has no consumers, or is being
        stored."""
        staged = cast(
            IdleSubscriptionsRow | None, self._state.staged(Kind.IDLE_SUBSCRIPTIONS, full_name)
        )
        return subscription in self.idle_subscriptions(full_name).since_ms or (
            staged is not None and subscription in staged.since_ms
        )

    def namespace_policies(self, namespace: NamespaceName) -> NamespacePolicies:
        """The policies set on a namespace; empty if it does not exist."""
        row = self.namespace(namespace)
        return NamespacePolicies() if row is None else row.policies

    def namespace_grants(self, namespace: NamespaceName) -> NamespaceGrants:
        """The grants on a namespace."""
        row = self._state.get(Kind.NAMESPACE_GRANTS, str(namespace))
        return NO_NAMESPACE_GRANTS if row is None else cast(NamespaceGrants, row)

    def topic_grants(self, full_name: str) -> TopicGrants:
        """The grants on that topic itself, not those on its namespace or partitioned topic."""
        row = self._state.get(Kind.TOPIC_GRANTS, full_name)
        return NO_TOPIC_GRANTS if row is None else cast(TopicGrants, row)

    def topic_grants_after(self, namespace: NamespaceName, after: str, count_max: int) -> list[str]:
        """Full names of the next ``count_max`` topics of a namespace that have grants of their own,
        of those behind ``after``."""
        parent = f"{PERSISTENT}://{namespace}"
        return self._state.children_after(Kind.TOPIC_GRANTS, parent, after, count_max)

    def subscription_grants(
        self, namespace: NamespaceName, subscription: str
    ) -> SubscriptionGrants | None:
        """The roles that may use a subscription; None if all may."""
        row = self._state.get(Kind.SUBSCRIPTION_GRANTS, subscription_key(namespace, subscription))
        return cast(SubscriptionGrants | None, row)

    def subscription_grants_after(
        self, namespace: NamespaceName, after: str, count_max: int
    ) -> list[str]:
        """The next ``count_max`` subscriptions of a namespace that only some roles may use, of
        those behind ``after``."""
        key = subscription_key(namespace, after)
        parent = str(namespace)
        keys = self._state.children_after(Kind.SUBSCRIPTION_GRANTS, parent, key, count_max)
        return [key.split("/", 2)[2] for key in keys]

    # The life of a change.

    @property
    def in_flight_count(self) -> int:
        """Number of changes that are planned and neither applied nor abandoned."""
        return self._state.in_flight_count

    def apply(self, change: Change) -> None:
        """Make a durable change visible. Call it in the order of planning."""
        self._state.apply(change)
        for row in change.rows:
            if row.kind is Kind.TOPIC:
                self._set_number(row)
            elif row.kind in _SCHEMA_KINDS:
                self._count_schema(row.kind, row.key, row.before, row.after)

    def _take_numbers(self) -> None:
        for row in self._state.rows(Kind.TOPIC).values():
            topic = cast(TopicRow, row)
            other = self._by_number.setdefault(topic.number, topic)
            if other is not topic:
                raise CorruptionError(
                    f"the topics {other.name} and {topic.name} of the metadata have the same "
                    f"number {topic.number}: it is not known whose the messages are"
                )
            self._numbers.skip_to(topic.number)

    def _count_schemas(self) -> None:
        for kind in _SCHEMA_KINDS:
            for key, schema in self._state.rows(kind).items():
                self._count_schema(kind, key, None, schema)

    def _count_schema(self, kind: Kind, key: str, before: Row | None, after: Row | None) -> None:
        grown = _schema_bytes(after) - _schema_bytes(before)
        self.schema_bytes += grown
        tenant = key.split("/", 3)[2]  # persistent://TENANT/NAMESPACE/...
        self.tenant_schema_bytes[tenant] += grown
        name = key if kind is Kind.SCHEMA else key.rpartition("/")[0]
        self.topic_schema_bytes[name] += grown

    def _set_number(self, row: RowChange) -> None:
        if row.after is None:
            self._by_number.pop(cast(TopicRow, row.before).number, None)
        else:
            topic = cast(TopicRow, row.after)
            self._by_number[topic.number] = topic

    def abandon_all(self) -> None:
        """Forget all changes in flight, after a failed commit. Assigned numbers stay used."""
        self._state.abandon_all()


def _schema_bytes(row: Row | None) -> int:
    return 0 if row is None else cast(SchemaRow, row).size_bytes
