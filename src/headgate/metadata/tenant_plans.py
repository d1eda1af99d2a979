"""Changes of tenants and namespaces, validated and staged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from headgate.base.names import NamespaceName, TopicName
from headgate.metadata.bundles import split_bundles
from headgate.metadata.checks import (
    NAMESPACE_QUOTA_TOO_LARGE,
    check_quotas_fit,
    check_retention,
)
from headgate.metadata.errors import conflict, not_allowed, not_found
from headgate.metadata.expiry_checks import NAMESPACE_TTL_REFUSED, check_expiry
from headgate.metadata.grant_plans import grants_of_namespace, new_grants
from headgate.metadata.grants import (
    NO_NAMESPACE_GRANTS,
    NamespaceGrants,
    SubscriptionGrants,
    TopicGrants,
)
from headgate.metadata.namespace_contents import ROWS_TOGETHER, contents_of_namespace
from headgate.metadata.policies import NamespacePolicies
from headgate.metadata.property_plans import checked_properties
from headgate.metadata.rows import Bundles, ClusterRow, Kind, NamespaceRow, TenantRow
from headgate.metadata.schema_plans import schemas_of_namespace
from headgate.metadata.staged_rows import NO_PROPERTIES, RowValues, staged_namespace
from headgate.metadata.state import Change, RowState

_BUNDLES_DEFAULT = 4

NO_TOPIC_GRANTS_SET: Mapping[TopicName, TopicGrants] = {}
NO_SUBSCRIPTION_GRANTS_SET: Mapping[str, SubscriptionGrants] = {}
"""The grants in a new namespace without any."""


class TenantPlans:
    """Plans changes of the tenants and namespaces of one cluster."""

    def __init__(self, state: RowState, cluster: str) -> None:
        self._state = state
        self._cluster = cluster
        self._namespaces_max: Callable[[], int] = lambda: 0

    def limit_namespaces(self, namespaces_max: Callable[[], int]) -> None:
        """Limit the namespaces of each tenant to ``namespaces_max()``; 0 or less is no limit."""
        self._namespaces_max = namespaces_max

    def plan_first_boot(self, *, system_namespaces: Iterable[NamespaceName] = ()) -> Change | None:
        """Create what every broker has: its cluster, ``public/default``, Pulsar's system tenant.

        Returns ``None`` if all of it exists, so each start can call it.
        """
        rows: RowValues = []
        if self._state.staged(Kind.CLUSTER, self._cluster) is None:
            rows.append((Kind.CLUSTER, self._cluster, ClusterRow()))
            namespaces = [NamespaceName("public", "default"), NamespaceName("pulsar", "system")]
        else:
            namespaces = []
        for namespace in [*namespaces, *system_namespaces]:
            if self._state.staged(Kind.TENANT, namespace.tenant) is None and not any(
                key == namespace.tenant for kind, key, _ in rows if kind is Kind.TENANT
            ):
                tenant = TenantRow(allowed_clusters=(self._cluster,))
                rows.append((Kind.TENANT, namespace.tenant, tenant))
            if self._state.staged(Kind.NAMESPACE, str(namespace)) is None:
                rows.append((Kind.NAMESPACE, str(namespace), self._new_namespace(None)))
        return self._state.stage(rows) if rows else None

    def plan_create_tenant(self, name: str, tenant: TenantRow) -> Change:
        """Create a tenant.

        Raises:
            RefusalError: 412 unless its clusters exist, 409 if the tenant exists.
        """
        self._check_clusters(tenant.allowed_clusters)
        if self._state.staged(Kind.TENANT, name) is not None:
            raise conflict("Tenant already exist")
        return self._state.stage([(Kind.TENANT, name, tenant)])

    def plan_update_tenant(self, name: str, tenant: TenantRow) -> Change:
        """Replace a tenant's roles and clusters.

        Raises:
            RefusalError: 412 unless its clusters exist, 404 without the tenant.
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
        properties: Mapping[str, str] = NO_PROPERTIES,
        grants: NamespaceGrants = NO_NAMESPACE_GRANTS,
        topic_grants: Mapping[TopicName, TopicGrants] = NO_TOPIC_GRANTS_SET,
        subscription_grants: Mapping[str, SubscriptionGrants] = NO_SUBSCRIPTION_GRANTS_SET,
    ) -> Change:
        """Create a namespace; by default with four bundles, as in a Pulsar standalone.

        Raises:
            RefusalError: 404 without its tenant, 409 if it exists, 400 for a bad policy, 412 for
                a quota that its retention does not cover, a role that is not allowed, for too
                many bytes of properties, or if the tenant has too many namespaces.
        """
        if self._state.staged(Kind.TENANT, name.tenant) is None:
            raise not_found("Tenant does not exist")
        if self._state.staged(Kind.NAMESPACE, str(name)) is not None:
            raise conflict("Namespace already exists")
        count_max = self._namespaces_max()
        if 0 < count_max <= self._state.staged_count(Kind.NAMESPACE, name.tenant):
            raise not_allowed(f"Exceed the maximum number of namespace in tenant :{name.tenant}")
        row = self._new_namespace(bundles)
        if policies is not None:
            check_retention(policies.retention)
            check_expiry(msgspec.structs.asdict(policies), NAMESPACE_TTL_REFUSED)
            check_quotas_fit(policies.backlog_quotas, policies.retention, NAMESPACE_QUOTA_TOO_LARGE)
            row = msgspec.structs.replace(row, policies=policies)
        row = msgspec.structs.replace(row, properties=checked_properties(properties))
        more = new_grants(name, grants, topic_grants, subscription_grants)
        return self._state.stage([(Kind.NAMESPACE, str(name), row), *more])

    def plan_delete_namespace(self, name: NamespaceName) -> Change:
        """Delete a namespace that has no topics, and the grants and schemas in it.

        Raises:
            RefusalError: 404 or 409.
        """
        self._check_empty(name)
        grants = grants_of_namespace(self._state, name)
        schemas = schemas_of_namespace(self._state, name)
        return self._state.stage([(Kind.NAMESPACE, str(name), None), *grants, *schemas])

    def plan_begin_namespace_deletion(
        self, name: NamespaceName, *, only_empty: bool = False
    ) -> Change:
        """Create no topic in a namespace any more, because it is deleted next with those it has.

        Raises:
            RefusalError: 404; with ``only_empty`` also 409, it has topics.
        """
        if only_empty:
            self._check_empty(name)
        row = staged_namespace(self._state, name)
        marked = msgspec.structs.replace(row, deleted=True)
        return self._state.stage([(Kind.NAMESPACE, str(name), marked)])

    def has_much(self, name: NamespaceName) -> bool:
        """Whether a namespace has so many grants and schemas that :meth:`plan_empty_namespace`
        removes some of them."""
        return len(contents_of_namespace(self._state, name)) > ROWS_TOGETHER

    def plan_empty_namespace(self, name: NamespaceName) -> Change | None:
        """Remove some of the grants and schemas of a namespace that is being deleted and has very
        many. None for one that has not: they go with it.

        Raises:
            RefusalError: 404 without the namespace, 409 if it is not being deleted.
        """
        if not staged_namespace(self._state, name).deleted:
            raise conflict(f"Namespace {name} is not being deleted")
        rows = contents_of_namespace(self._state, name)
        return self._state.stage(rows) if len(rows) > ROWS_TOGETHER else None

    def _check_empty(self, name: NamespaceName) -> None:
        """Return if a namespace has no topics.

        Raises:
            RefusalError: 404 without the namespace, 409 if it has.
        """
        staged_namespace(self._state, name)
        for domain in ("persistent", "non-persistent"):
            for kind in (Kind.TOPIC, Kind.PARTITIONED):
                if any(True for _ in self._state.staged_children(kind, f"{domain}://{name}")):
                    raise conflict("Cannot delete non empty namespace")

    def _new_namespace(self, bundles: Bundles | None) -> NamespaceRow:
        return NamespaceRow(
            bundles=bundles or split_bundles(_BUNDLES_DEFAULT), clusters=(self._cluster,)
        )

    def _check_clusters(self, clusters: Iterable[str]) -> None:
        names = list(clusters)
        if not names or any(not name.strip() for name in names):
            raise not_allowed("Clusters cannot be empty or blank")
        if any(self._state.staged(Kind.CLUSTER, name) is None for name in names):
            raise not_allowed("Clusters do not exist")
