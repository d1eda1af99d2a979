"""Namespaces: create, delete, list, and the object that shows all their policies at once."""

from __future__ import annotations

from functools import partial
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from headgate.admin.backlog_quotas import BacklogQuotaMap, decoded_quotas, shown_quotas
from headgate.admin.forced_deletion import (
    NAMESPACES,
    check_force_allowed,
    delete_empty_namespace,
    delete_namespace_with_topics,
)
from headgate.admin.json_pieces import pieces_of
from headgate.admin.metric_policies import stored_keys
from headgate.admin.names import existing_namespace, namespace_name, refuse_resolved, tenant_name
from headgate.admin.operations import Operation
from headgate.admin.permissions import AuthPolicies, auth_policies_of, new_grants
from headgate.admin.queries import FORCE_CONTENTS, SYSTEM_TOPICS
from headgate.admin.routing import NAMESPACE_PATH, NO_CONTENT, Call, Query, Reply, Route, as_json
from headgate.admin.schema_policies import defined
from headgate.admin.streaming import answer, answer_names, pages
from headgate.admin.use_policies import AutoTopicCreationBody, stored_creation
from headgate.base.schema_types import AutoUpdateStrategy, CompatibilityStrategy
from headgate.metadata.bundles import check_boundaries, split_bundles
from headgate.metadata.errors import RefusalError, not_found
from headgate.metadata.grants import SubscriptionAuthMode
from headgate.metadata.policies import (
    COUNT_NAMES,
    AutoSubscriptionCreation,
    DelayedDeliveryPolicy,
    DispatchRate,
    InactiveTopicPolicies,
    JavaInt,
    NamespacePolicies,
    Persistence,
    PublishRate,
    Retention,
    SubscriptionTypes,
)
from headgate.metadata.rows import Bundles, NamespaceRow

_TIMES: Final = ("message_ttl_in_seconds", "subscription_expiration_time_minutes")
"""The fields of policies that are times after which something ends."""

_Rate = TypeVar("_Rate", DispatchRate, PublishRate)


class BundlesBody(Struct, rename="camel"):
    """Bundles as clients send them: a count, or boundaries, or both."""

    boundaries: tuple[str, ...] | None = None
    num_bundles: int = 0


class PoliciesBody(Struct):
    """The accepted fields of a new namespace. Other fields of Pulsar's object are ignored."""

    auth_policies: AuthPolicies | None = None
    subscription_auth_mode: SubscriptionAuthMode | None = None
    bundles: BundlesBody | None = None
    replication_clusters: list[str] | None = None
    retention_policies: Retention | None = None
    backlog_quota_map: BacklogQuotaMap | None = None
    topic_dispatch_rate: dict[str, DispatchRate] | None = msgspec.field(
        default=None, name="topicDispatchRate"
    )
    subscription_dispatch_rate: dict[str, DispatchRate] | None = msgspec.field(
        default=None, name="subscriptionDispatchRate"
    )
    publish_rate: dict[str, PublishRate] | None = msgspec.field(
        default=None, name="publishMaxMessageRate"
    )
    properties: dict[str, str] | None = None
    max_producers_per_topic: JavaInt | None = None
    """A limit on a number; one below 0 is not set, as in Pulsar."""
    max_consumers_per_topic: JavaInt | None = None
    max_consumers_per_subscription: JavaInt | None = None
    max_subscriptions_per_topic: JavaInt | None = None
    max_topics_per_namespace: JavaInt | None = None
    delayed_delivery_policies: DelayedDeliveryPolicy | None = None
    schema_compatibility_strategy: CompatibilityStrategy | None = None
    schema_auto_update_compatibility_strategy: AutoUpdateStrategy | None = None
    is_allow_auto_update_schema: bool | None = None
    schema_validation_enforced: bool = False
    deduplication: bool | None = msgspec.field(default=None, name="deduplicationEnabled")
    max_unacked_messages_per_consumer: JavaInt | None = None
    max_unacked_messages_per_subscription: JavaInt | None = None
    message_ttl_in_seconds: JavaInt | None = None
    """One below 0 is not set, as in Pulsar."""
    subscription_expiration_time_minutes: JavaInt | None = None
    inactive_topic_policies: InactiveTopicPolicies | None = None
    auto_topic_creation: AutoTopicCreationBody | None = msgspec.field(
        default=None, name="autoTopicCreationOverride"
    )
    auto_subscription_creation: AutoSubscriptionCreation | None = msgspec.field(
        default=None, name="autoSubscriptionCreationOverride"
    )
    subscription_types_enabled: SubscriptionTypes | None = None
    persistence: Persistence | None = None
    encryption_required: bool = False
    allowed_topic_property_keys_for_metrics: tuple[str, ...] | None = None


async def list_namespaces(call: Call) -> Reply:
    """Full names of a tenant's namespaces."""
    tenant = tenant_name(call)
    if call.facade.catalog.tenant(tenant) is None:
        raise not_found("Tenant not found")
    after = partial(call.facade.catalog.namespaces_after, tenant)
    return await answer_names(call, pages(after))


async def get_policies(call: Call) -> Reply:
    """Everything that is set on a namespace."""
    name, row = existing_namespace(call)
    catalog = call.facade.catalog
    view = policies_view(catalog.cluster, row)
    view["auth_policies"] = await auth_policies_of(call, name)
    view["subscription_auth_mode"] = catalog.namespace_grants(name).subscription_auth_mode
    return await answer(call, pieces_of(view))


async def create_namespace(call: Call) -> Reply:
    """Create a namespace."""
    name = namespace_name(call)
    refuse_resolved(name.local, "Namespace")
    body = call.decoded(PoliciesBody) or PoliciesBody()
    catalog = call.facade.catalog
    for cluster in body.replication_clusters or ():
        if cluster not in catalog.clusters():
            raise RefusalError(403, f"Invalid cluster id: {cluster[:80]}")
    policies = NamespacePolicies(
        dispatch_rate=(body.topic_dispatch_rate or {}).get(catalog.cluster),
        subscription_dispatch_rate=(body.subscription_dispatch_rate or {}).get(catalog.cluster),
        publish_rate=(body.publish_rate or {}).get(catalog.cluster),
        retention=body.retention_policies,
        backlog_quotas=decoded_quotas(
            call, "backlog_quota_map", body.backlog_quota_map, f"namespace[{name}]"
        ),
        delayed_delivery=body.delayed_delivery_policies,
        schema_compatibility_strategy=defined(body.schema_compatibility_strategy),
        schema_auto_update_compatibility_strategy=body.schema_auto_update_compatibility_strategy,
        is_allow_auto_update_schema=body.is_allow_auto_update_schema,
        schema_validation_enforced=body.schema_validation_enforced,
        deduplication=body.deduplication,
        **{field: _count(getattr(body, field)) for field in (*COUNT_NAMES, *_TIMES)},
        inactive_topic_policies=body.inactive_topic_policies,
        auto_topic_creation=stored_creation(body.auto_topic_creation),
        auto_subscription_creation=body.auto_subscription_creation,
        subscription_types_enabled=body.subscription_types_enabled,
        persistence=body.persistence,
        encryption_required=body.encryption_required,
        allowed_topic_property_keys_for_metrics=stored_keys(
            body.allowed_topic_property_keys_for_metrics
        ),
    )
    bundles = _bundles(body.bundles)
    await call.commit(
        catalog.plan_create_namespace(
            name,
            bundles=bundles,
            policies=policies,
            properties=body.properties or {},
            **new_grants(name, body.auth_policies, body.subscription_auth_mode),
        )
    )
    return NO_CONTENT


async def delete_namespace(call: Call) -> Reply:
    """Delete a namespace without topics, or (``force``) with them."""
    name = namespace_name(call)
    if call.flag("force"):
        row = call.facade.catalog.namespace(name)
        if row is None or not row.deleted:  # else a forced deletion has begun: it may end
            check_force_allowed(call, NAMESPACES)
        await delete_namespace_with_topics(call, name)
        return NO_CONTENT
    await delete_empty_namespace(call, name)
    return NO_CONTENT


async def list_topics(call: Call) -> Reply:
    """Full names of a namespace's topics; each partition is one."""
    name, _ = existing_namespace(call)
    if call.query.get("mode", "PERSISTENT").upper() == "NON_PERSISTENT":
        return as_json([])
    return await answer_names(call, pages(partial(call.facade.catalog.topics_after, name)))


def policies_view(cluster: str, row: NamespaceRow) -> dict[str, Any]:
    """Pulsar's policies object, in its order, without the grants; rates are under the local
    cluster's name."""
    policies = row.policies
    topic_rate = _by_cluster(cluster, policies.dispatch_rate)
    view: dict[str, Any] = {
        "auth_policies": {},
        "replication_clusters": row.clusters,
        "allowed_clusters": [],
        "bundles": row.bundles,
        "backlog_quota_map": shown_quotas(policies.backlog_quotas),
        "clusterDispatchRate": topic_rate,
        "topicDispatchRate": topic_rate,
        "subscriptionDispatchRate": _by_cluster(cluster, policies.subscription_dispatch_rate),
        "replicatorDispatchRate": {},
        "clusterSubscribeRate": {},
        **_if_set("deduplicationEnabled", policies.deduplication),
        "publishMaxMessageRate": _by_cluster(cluster, policies.publish_rate),
        "latency_stats_sample_rate": {},
    }
    others = {
        "persistence": policies.persistence,
        "autoTopicCreationOverride": policies.auto_topic_creation,
        "autoSubscriptionCreationOverride": policies.auto_subscription_creation,
        **{field: getattr(policies, field) for field in _TIMES},
        "retention_policies": policies.retention,
        "delayed_delivery_policies": policies.delayed_delivery,
        "inactive_topic_policies": policies.inactive_topic_policies,
        **{field: getattr(policies, field) for field in COUNT_NAMES},
        "allowed_topic_property_keys_for_metrics": policies.allowed_topic_property_keys_for_metrics,
    }
    view |= {field: policy for field, policy in others.items() if policy is not None}
    view |= {"deleted": row.deleted, "encryption_required": policies.encryption_required}
    view["subscription_auth_mode"] = "None"
    older = policies.schema_auto_update_compatibility_strategy
    auto_update = policies.is_allow_auto_update_schema
    return view | {
        "offload_threshold": -1,
        "offload_threshold_in_seconds": -1,
        **({} if older is None else {"schema_auto_update_compatibility_strategy": older}),
        "schema_compatibility_strategy": policies.schema_compatibility_strategy or "UNDEFINED",
        "is_allow_auto_update_schema": True if auto_update is None else auto_update,
        "schema_validation_enforced": policies.schema_validation_enforced,
        "subscription_types_enabled": policies.subscription_types_enabled or (),
        "properties": row.properties,
        "migrated": False,
        "clusterThatCanDeleteNamespace": cluster,
    }


def _by_cluster(cluster: str, rate: _Rate | None) -> dict[str, _Rate]:
    return {} if rate is None else {cluster: rate}


def _if_set(name: str, value: bool | None) -> dict[str, bool]:
    return {} if value is None else {name: value}


def _count(value: int | None) -> int | None:
    return None if value is None or value < 0 else value


def _bundles(body: BundlesBody | None) -> Bundles | None:
    if body is None:
        return None
    if body.boundaries:
        return check_boundaries(body.boundaries)
    return split_bundles(body.num_bundles) if body.num_bundles else None


_READ = Operation.NAMESPACE_READ
_MODE = Query("mode", str, "PERSISTENT", "NON_PERSISTENT lists none, every other value all topics")

ROUTES = (
    Route("GET", "/admin/v2/namespaces/{tenant}", Operation.NAMESPACE_LIST, list_namespaces,
          "List a tenant's namespaces", reply=list[str]),
    Route("GET", NAMESPACE_PATH, _READ, get_policies,
          "All policies of a namespace", reply=dict[str, Any]),
    Route("PUT", NAMESPACE_PATH, Operation.NAMESPACE_CREATE, create_namespace,
          "Create a namespace", body=PoliciesBody),
    Route("DELETE", NAMESPACE_PATH, Operation.NAMESPACE_DELETE, delete_namespace,
          "Delete a namespace", query=(FORCE_CONTENTS,)),
    Route("GET", f"{NAMESPACE_PATH}/topics", Operation.NAMESPACE_TOPICS, list_topics,
          "List a namespace's topics", reply=list[str], query=(_MODE, SYSTEM_TOPICS)),
)  # fmt: skip
