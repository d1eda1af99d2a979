"""The domain model: what exists in a broker, with every change that is allowed.

Reads answer from durable state. ``plan_...`` methods validate a request against the staged view
(see ``state``), raise :class:`RefusalError` with Pulsar's status and text, or stage a
:class:`Change` and return it. The owner then either makes it durable (``store.commit`` of
``change.writes``) and calls :meth:`Catalog.apply`, in the order of planning, or calls
:meth:`Catalog.abandon_all`. A planned change must not be dropped silently: the name that it
creates would stay taken.

Rules of the domain that other modules rely on:

* a topic's number is never given twice, not even if its creation was abandoned;
* a partition is a topic row of its own, made together with its partitioned topic;
* topic policies belong to the base name and go when it goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import cast

import msgspec

from headgate.base.errors import InputError
from headgate.base.names import PERSISTENT, NamespaceName, TopicName
from headgate.metadata.bundles import split_bundles
from headgate.metadata.checks import (
    NAMESPACE_QUOTA_TOO_LARGE,
    NAMESPACE_RETENTION_TOO_SMALL,
    TOPIC_QUOTA_TOO_LARGE,
    TOPIC_RETENTION_TOO_SMALL,
    check_partition_count,
    check_partition_name,
    check_quotas_fit,
    check_retention,
)
from headgate.metadata.errors import conflict, not_allowed, not_found
from headgate.metadata.own_rows import TOPIC_NUMBER, OwnRows
from headgate.metadata.policies import (
    NO_TOPIC_POLICIES,
    BacklogQuota,
    DispatchRate,
    NamespacePolicies,
    QuotaKind,
    Retention,
    TopicPolicies,
    retention_policy,
    with_quota,
)
from headgate.metadata.rows import (
    Bundles,
    ClusterRow,
    CounterRow,
    Kind,
    NamespaceRow,
    PartitionedRow,
    Row,
    SchemaRow,
    TenantRow,
    TopicRow,
)
from headgate.metadata.state import Change, RowChange

__all__ = ["Catalog", "Change", "RowChange"]

_BUNDLES_DEFAULT = 4
_NO_PROPERTIES: Mapping[str, str] = {}

_Rows = list[tuple[Kind, str, Row | None]]


class Catalog(OwnRows):
    """Tenants, namespaces, topics, policies and dynamic settings of one cluster."""

    def __init__(self, cluster: str, stored: Mapping[tuple[str, str], bytes]) -> None:
        """Start from what a store holds (``store.load()``).

        Raises:
            CorruptionError: a row cannot be read.
            InputError: the rows are of a cluster of another name.
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
        self._log_by_name: dict[str, str] = {}
        """Where topics of these names are made; all others in the main log."""
        for row in self._state.rows(Kind.TOPIC).values():
            topic = cast(TopicRow, row)
            self._by_number[topic.number] = topic
            self._number_last = max(self._number_last, topic.number)

    # Reads: durable state.

    def clusters(self) -> list[str]:
        """Names of the clusters: this one."""
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

    def namespace(self, name: NamespaceName) -> NamespaceRow | None:
        """One namespace."""
        return cast(NamespaceRow | None, self._state.get(Kind.NAMESPACE, str(name)))

    def topics(self, namespace: NamespaceName, domain: str = PERSISTENT) -> list[str]:
        """Full names of a namespace's topics, each partition by itself, sorted."""
        return self._state.children(Kind.TOPIC, f"{domain}://{namespace}")

    def topic(self, full_name: str) -> TopicRow | None:
        """One topic that holds messages."""
        return cast(TopicRow | None, self._state.get(Kind.TOPIC, full_name))

    def topic_by_number(self, number: int) -> TopicRow | None:
        """The topic that the commit log knows by ``number``."""
        return self._by_number.get(number)

    def topic_numbers(self) -> set[int]:
        """Numbers of all topics."""
        return set(self._by_number)

    def topic_numbers_in(self, log: str) -> set[int]:
        """Numbers of the topics that a log holds. Its records of other numbers are garbage."""
        return {number for number, row in self._by_number.items() if row.log == log}

    def keep_in(self, topic: TopicName, log: str) -> None:
        """From now on a topic of that name is made in a log of its own."""
        self._log_by_name[topic.full] = log

    def partitioned_topics(self, namespace: NamespaceName, domain: str = PERSISTENT) -> list[str]:
        """Full names of a namespace's partitioned topics, sorted."""
        return self._state.children(Kind.PARTITIONED, f"{domain}://{namespace}")

    def partitioned(self, full_name: str) -> PartitionedRow | None:
        """One partitioned topic."""
        return cast(PartitionedRow | None, self._state.get(Kind.PARTITIONED, full_name))

    def topic_policies(self, topic: TopicName) -> TopicPolicies:
        """What is set on a topic; a partition has its partitioned topic's."""
        row = self._state.get(Kind.TOPIC_POLICIES, self.own_name(topic))
        return NO_TOPIC_POLICIES if row is None else cast(TopicPolicies, row)

    def own_name(self, topic: TopicName) -> str:
        """The name under which a topic's policies and schema are kept: for a partition that of its
        partitioned topic. A topic that is only named like a partition has its own."""
        return self._own_name(topic, self._state.get)

    def schema(self, topic: TopicName) -> SchemaRow | None:
        """What a topic's messages are; a partition has its partitioned topic's schema."""
        return cast(SchemaRow | None, self._state.get(Kind.SCHEMA, self.own_name(topic)))

    def namespace_policies(self, namespace: NamespaceName) -> NamespacePolicies:
        """What is set on a namespace; nothing if it does not exist."""
        row = self.namespace(namespace)
        return NamespacePolicies() if row is None else row.policies

    # The life of a change.

    @property
    def in_flight_count(self) -> int:
        """Changes that are planned and neither applied nor abandoned."""
        return self._state.in_flight_count

    def apply(self, change: Change) -> None:
        """Make a change visible that is durable now. Must be called in the order of planning."""
        self._state.apply(change)
        for row in change.rows:
            if row.kind is not Kind.TOPIC:
                continue
            if row.after is None:
                self._by_number.pop(cast(TopicRow, row.before).number, None)
            else:
                topic = cast(TopicRow, row.after)
                self._by_number[topic.number] = topic

    def abandon_all(self) -> None:
        """A commit failed: forget everything in flight. Numbers given out stay used."""
        self._state.abandon_all()

    # Plans.

    def plan_first_boot(self, *, system_namespaces: Iterable[NamespaceName] = ()) -> Change | None:
        """What every broker has: its cluster, ``public/default``, Pulsar's system tenant.

        Returns ``None`` if all of it exists, which makes it safe to call at each start.
        """
        rows: _Rows = []
        if self._state.staged(Kind.CLUSTER, self.cluster) is None:
            rows.append((Kind.CLUSTER, self.cluster, ClusterRow()))
            namespaces = [NamespaceName("public", "default"), NamespaceName("pulsar", "system")]
        else:
            namespaces = []
        for namespace in [*namespaces, *system_namespaces]:
            if self._state.staged(Kind.TENANT, namespace.tenant) is None and not any(
                key == namespace.tenant for kind, key, _ in rows if kind is Kind.TENANT
            ):
                tenant = TenantRow(allowed_clusters=(self.cluster,))
                rows.append((Kind.TENANT, namespace.tenant, tenant))
            if self._state.staged(Kind.NAMESPACE, str(namespace)) is None:
                rows.append((Kind.NAMESPACE, str(namespace), self._new_namespace(None)))
        return self._state.stage(rows) if rows else None

    def plan_create_tenant(self, name: str, tenant: TenantRow) -> Change:
        """Create a tenant.

        Raises:
            RefusalError: 412 unless its clusters exist, 409 if it does.
        """
        self._check_clusters(tenant.allowed_clusters)
        if self._state.staged(Kind.TENANT, name) is not None:
            raise conflict("Tenant already exist")
        return self._state.stage([(Kind.TENANT, name, tenant)])

    def plan_update_tenant(self, name: str, tenant: TenantRow) -> Change:
        """Replace a tenant's roles and clusters.

        Raises:
            RefusalError: 412 unless its clusters exist, 404 if it does not.
        """
        self._check_clusters(tenant.allowed_clusters)
        if self._state.staged(Kind.TENANT, name) is None:
            raise not_found(f"Tenant {name} not found")
        return self._state.stage([(Kind.TENANT, name, tenant)])

    def plan_delete_tenant(self, name: str) -> Change:
        """Delete a tenant that has no namespaces.

        Raises:
            RefusalError: 404 or 409.
        """
        if self._state.staged(Kind.TENANT, name) is None:
            raise not_found("Tenant doesn't exist")
        if any(True for _ in self._state.staged_children(Kind.NAMESPACE, name)):
            raise conflict("The tenant still has active namespaces")
        return self._state.stage([(Kind.TENANT, name, None)])

    def plan_create_namespace(
        self,
        name: NamespaceName,
        *,
        bundles: Bundles | None = None,
        policies: NamespacePolicies | None = None,
        properties: Mapping[str, str] = _NO_PROPERTIES,
    ) -> Change:
        """Create a namespace; without ``bundles`` it has four, as a Pulsar standalone's.

        Raises:
            RefusalError: 404 without its tenant, 409 if it exists, 400 for a bad policy, 412 for
                a quota that its retention does not cover.
        """
        if self._state.staged(Kind.TENANT, name.tenant) is None:
            raise not_found("Tenant does not exist")
        if self._state.staged(Kind.NAMESPACE, str(name)) is not None:
            raise conflict("Namespace already exists")
        row = self._new_namespace(bundles)
        if policies is not None:
            check_retention(policies.retention)
            check_quotas_fit(policies.backlog_quotas, policies.retention, NAMESPACE_QUOTA_TOO_LARGE)
            row = msgspec.structs.replace(row, policies=policies)
        row = msgspec.structs.replace(row, properties=dict(properties))
        return self._state.stage([(Kind.NAMESPACE, str(name), row)])

    def plan_delete_namespace(self, name: NamespaceName) -> Change:
        """Delete a namespace that has no topics.

        Raises:
            RefusalError: 404 or 409.
        """
        self._staged_namespace(name)
        for domain in ("persistent", "non-persistent"):
            for kind in (Kind.TOPIC, Kind.PARTITIONED):
                if any(True for _ in self._state.staged_children(kind, f"{domain}://{name}")):
                    raise conflict("Cannot delete non empty namespace")
        return self._state.stage([(Kind.NAMESPACE, str(name), None)])

    def plan_namespace_policies(self, name: NamespaceName, **policies: object) -> Change:
        """Set some fields of :class:`NamespacePolicies` (``None`` removes one), leave the others.

        Raises:
            RefusalError: 404 without the namespace, 400 for a retention that is not allowed, 412
                for one that does not cover the backlog quotas.
        """
        row = self._staged_namespace(name)
        replaced = msgspec.structs.replace(row.policies, **policies)
        check_retention(replaced.retention)
        for field, refusal in (
            ("backlog_quotas", NAMESPACE_QUOTA_TOO_LARGE),
            ("retention", NAMESPACE_RETENTION_TOO_SMALL),
        ):
            if field in policies:
                check_quotas_fit(replaced.backlog_quotas, replaced.retention, refusal)
        return self._state.stage(
            [(Kind.NAMESPACE, str(name), msgspec.structs.replace(row, policies=replaced))]
        )

    def plan_namespace_quota(
        self, name: NamespaceName, kind: QuotaKind, quota: BacklogQuota | None
    ) -> Change:
        """Set or remove (``None``) the backlog quota of one type.

        Raises:
            RefusalError: 404 without the namespace, 412 if its retention does not cover it.
        """
        present = self._staged_namespace(name).policies.backlog_quotas
        return self.plan_namespace_policies(name, backlog_quotas=with_quota(present, kind, quota))

    def plan_create_topic(
        self, topic: TopicName, *, now_ms: int, properties: Mapping[str, str] = _NO_PROPERTIES
    ) -> Change:
        """Create a topic that holds messages. The new row is the change's ``TOPIC`` row.

        Raises:
            RefusalError: 404 without its namespace, 409 if it exists, 412 for a partition that
                its partitioned topic does not have.
        """
        self._staged_namespace(topic.namespace)
        base = None
        if topic.partition >= 0:
            base = self._state.staged(Kind.PARTITIONED, topic.base.full)
            check_partition_name(topic, cast(PartitionedRow | None, base))
        if self._exists(topic.full):
            raise conflict("This topic already exists")
        lacks_subscriptions = base is not None
        return self._state.stage(
            self._new_topics([topic], now_ms, properties, lacks_subscriptions=lacks_subscriptions)
        )

    def plan_move_topic(self, topic: TopicName, log: str) -> Change:
        """Note that another log holds a topic's messages from now on.

        Raises:
            RefusalError: 404 if there is no such topic.
        """
        row = self._state.staged(Kind.TOPIC, topic.full)
        if row is None:
            raise not_found(f"Topic {topic} not found")
        moved = msgspec.structs.replace(cast(TopicRow, row), log=log)
        return self._state.stage([(Kind.TOPIC, topic.full, moved)])

    def plan_create_partitioned(
        self,
        topic: TopicName,
        partitions: int,
        *,
        now_ms: int,
        properties: Mapping[str, str] = _NO_PROPERTIES,
    ) -> Change:
        """Create a partitioned topic and all its partitions.

        Raises:
            RefusalError: 404 without its namespace, 406 for the count, 409 if it exists, 412 if
                it is named like a partition.
        """
        if topic.partition >= 0:
            raise not_allowed("Partitioned Topic Name should not contain '-partition-'")
        check_partition_count(partitions)
        self._staged_namespace(topic.namespace)
        if self._exists(topic.full):
            raise conflict("This topic already exists")
        row = PartitionedRow(partitions=partitions, created_ms=now_ms, properties=dict(properties))
        names = [topic.partition_name(index) for index in range(partitions)]
        missing = [name for name in names if self._state.staged(Kind.TOPIC, name.full) is None]
        lacks_subscriptions = len(missing) < partitions
        new = self._new_topics(missing, now_ms, {}, lacks_subscriptions=lacks_subscriptions)
        schemas = self._schemas_taken_over(topic, names)
        return self._state.stage([(Kind.PARTITIONED, topic.full, row), *new, *schemas])

    def plan_grow_partitioned(self, topic: TopicName, partitions: int, *, now_ms: int) -> Change:
        """Add partitions up to a new count; also makes partitions again that are missing.

        Raises:
            RefusalError: 406 for the count, 409 if not partitioned, 422 for fewer than now.
        """
        check_partition_count(partitions)
        row = cast(PartitionedRow | None, self._state.staged(Kind.PARTITIONED, topic.full))
        if row is None:
            raise conflict(f"Topic {topic} is not the partitioned topic.")
        check_partition_count(partitions, at_least=row.partitions)
        names = [topic.partition_name(index) for index in range(partitions)]
        missing = [name for name in names if self._state.staged(Kind.TOPIC, name.full) is None]
        grown = msgspec.structs.replace(row, partitions=partitions)
        new = self._new_topics(missing, now_ms, {}, lacks_subscriptions=True)
        return self._state.stage([(Kind.PARTITIONED, topic.full, grown), *new])

    def plan_subscriptions_complete(self, numbers: Iterable[int]) -> Change | None:
        """Note that these new partitions, by number, have all subscriptions of the older ones.
        ``None`` if each of them was noted before."""
        rows: _Rows = []
        for number in numbers:
            topic = self._by_number.get(number)
            row = None if topic is None else self._state.staged(Kind.TOPIC, topic.name)
            if isinstance(row, TopicRow) and row.number == number and row.lacks_subscriptions:
                rows.append(
                    (Kind.TOPIC, row.name, msgspec.structs.replace(row, lacks_subscriptions=False))
                )
        return self._state.stage(rows) if rows else None

    def plan_delete_topic(self, topic: TopicName) -> Change:
        """Delete a topic, or a partitioned topic with all its partitions, and its policies.

        Deleting one partition of a partitioned topic leaves the others and the policies.

        Raises:
            RefusalError: 404.
        """
        rows: _Rows = []
        partitioned = cast(PartitionedRow | None, self._state.staged(Kind.PARTITIONED, topic.full))
        if partitioned is not None:
            rows.append((Kind.PARTITIONED, topic.full, None))
            names = [topic.partition_name(i).full for i in range(partitioned.partitions)]
        else:
            names = [topic.full]
        rows += [(Kind.TOPIC, n, None) for n in names if self._state.staged(Kind.TOPIC, n)]
        if not rows:
            raise not_found(f"Topic {topic} not found")
        for kind in (Kind.TOPIC_POLICIES, Kind.SCHEMA):
            own = {topic.full: None} | dict.fromkeys(names)
            rows += [(kind, n, None) for n in own if self._state.staged(kind, n) is not None]
        return self._state.stage(rows)

    def plan_schema(self, topic: TopicName, schema: SchemaRow) -> Change:
        """Note what a topic's messages are.

        Raises:
            RefusalError: 404 without the topic, 409 if that is said already.
        """
        name = self._staged_own_name(topic)
        if not self._exists(topic.full):
            raise not_found(f"Topic {topic} not found")
        if self._state.staged(Kind.SCHEMA, name) is not None:
            raise conflict(f"{name} has a schema")
        return self._state.stage([(Kind.SCHEMA, name, schema)])

    def plan_topic_policies(self, topic: TopicName, **policies: object) -> Change:
        """Set some fields of :class:`TopicPolicies` (``None`` removes one), leave the others.

        Raises:
            RefusalError: 412 for a partition, or a retention that does not cover the backlog
                quotas of topic and namespace; 404 without the topic, 400 for a bad retention.
        """
        replaced = msgspec.structs.replace(self._staged_policies(topic), **policies)
        check_retention(replaced.retention)
        if "retention" in policies:
            namespace = self._staged_namespace(topic.namespace).policies
            quotas = {**namespace.backlog_quotas, **replaced.backlog_quotas}
            check_quotas_fit(quotas, replaced.retention, TOPIC_RETENTION_TOO_SMALL)
        row = None if replaced == NO_TOPIC_POLICIES else replaced
        return self._state.stage([(Kind.TOPIC_POLICIES, topic.full, row)])

    def plan_topic_quota(
        self,
        topic: TopicName,
        kind: QuotaKind,
        quota: BacklogQuota | None,
        *,
        broker_retention: Retention,
    ) -> Change:
        """Set or remove (``None``) the backlog quota of one type.

        It is compared with the retention that is in force: the topic's, else the namespace's,
        else ``broker_retention``.

        Raises:
            RefusalError: 412 for a partition or a quota that the retention does not cover, 404
                without the topic.
        """
        present = self._staged_policies(topic)
        if quota is not None:
            policy = retention_policy(present, self._staged_namespace(topic.namespace).policies)
            check_quotas_fit({kind: quota}, policy or broker_retention, TOPIC_QUOTA_TOO_LARGE)
        quotas = with_quota(present.backlog_quotas, kind, quota)
        return self.plan_topic_policies(topic, backlog_quotas=quotas)

    def plan_subscription_rate(
        self, topic: TopicName, subscription: str, rate: DispatchRate | None
    ) -> Change:
        """Set or remove the dispatch rate of one subscription (which need not exist yet).

        Raises:
            RefusalError: as :meth:`plan_topic_policies`.
        """
        rates = dict(self._staged_policies(topic).dispatch_rate_by_subscription)
        rates.pop(subscription, None)
        if rate is not None:
            rates[subscription] = rate
        return self.plan_topic_policies(topic, dispatch_rate_by_subscription=rates)

    # Helpers.

    def _exists(self, full_name: str) -> bool:
        return (
            self._state.staged(Kind.TOPIC, full_name) is not None
            or self._state.staged(Kind.PARTITIONED, full_name) is not None
        )

    def _own_name(self, topic: TopicName, look: Callable[[Kind, str], Row | None]) -> str:
        if topic.partition < 0:
            return topic.full
        base = topic.base.full
        return base if look(Kind.PARTITIONED, base) is not None else topic.full

    def _staged_own_name(self, topic: TopicName) -> str:
        return self._own_name(topic, self._state.staged)

    def _staged_policies(self, topic: TopicName) -> TopicPolicies:
        """What will be set on a topic that has policies of its own.

        Raises:
            RefusalError: 412 for a partition, 404 without the topic.
        """
        if self._staged_own_name(topic) != topic.full:
            raise not_allowed("Not allowed to set/get topic policy for a partition")
        if not self._exists(topic.full):
            raise not_found(f"Topic {topic} not found")
        present = cast(TopicPolicies | None, self._state.staged(Kind.TOPIC_POLICIES, topic.full))
        return present or NO_TOPIC_POLICIES

    def _staged_namespace(self, name: NamespaceName) -> NamespaceRow:
        row = self._state.staged(Kind.NAMESPACE, str(name))
        if row is None:
            raise not_found("Namespace not found")
        return cast(NamespaceRow, row)

    def _new_namespace(self, bundles: Bundles | None) -> NamespaceRow:
        return NamespaceRow(
            bundles=bundles or split_bundles(_BUNDLES_DEFAULT), clusters=(self.cluster,)
        )

    def _new_topics(
        self,
        names: list[TopicName],
        now_ms: int,
        properties: Mapping[str, str],
        *,
        lacks_subscriptions: bool = False,
    ) -> _Rows:
        """Rows for new topics, and the counter that keeps their numbers from being reused."""
        if not names:
            return []
        rows: _Rows = []
        for name in names:
            self._number_last += 1
            row = TopicRow(
                name=name.full,
                number=self._number_last,
                created_ms=now_ms,
                properties=dict(properties),
                lacks_subscriptions=lacks_subscriptions,
                log=self._log_by_name.get(name.full, ""),
            )
            rows.append((Kind.TOPIC, name.full, row))
        rows.append((Kind.COUNTER, TOPIC_NUMBER, CounterRow(self._number_last)))
        return rows

    def _schemas_taken_over(self, topic: TopicName, names: list[TopicName]) -> _Rows:
        """Rows by which a new partitioned topic takes over the schema of the first topic that is
        one of its partitions from now on."""
        found = [(n.full, self._state.staged(Kind.SCHEMA, n.full)) for n in names]
        said = [(name, row) for name, row in found if row is not None]
        rows: _Rows = [(Kind.SCHEMA, name, None) for name, _ in said]
        return [(Kind.SCHEMA, topic.full, said[0][1]), *rows] if said else []

    def _check_clusters(self, clusters: Iterable[str]) -> None:
        names = list(clusters)
        if not names or any(not name.strip() for name in names):
            raise not_allowed("Clusters cannot be empty or blank")
        if any(self._state.staged(Kind.CLUSTER, name) is None for name in names):
            raise not_allowed("Clusters do not exist")
