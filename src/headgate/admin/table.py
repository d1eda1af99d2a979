"""All routes of the admin API; every other request gets 404 or 405."""

from __future__ import annotations

from typing import Final

from headgate.admin import (
    backup,
    broker_stats,
    brokers,
    bundles,
    clusters,
    expiry_policies,
    explain,
    lookup,
    metric_policies,
    namespace_backlogs,
    namespace_policies,
    namespaces,
    permissions,
    producer_policies,
    properties,
    schema_policies,
    schemas,
    subscription_properties,
    subscriptions,
    tenants,
    termination,
    topic_messages,
    topic_policies,
    topic_stats,
    topic_storage,
    topics,
    use_policies,
)
from headgate.admin.openapi import description_route
from headgate.admin.routing import Route

_SUBJECTS: Final[tuple[Route, ...]] = (
    *clusters.ROUTES,
    *brokers.ROUTES,
    *broker_stats.ROUTES,
    *tenants.ROUTES,
    *namespaces.ROUTES,
    *bundles.ROUTES,
    *namespace_backlogs.ROUTES,
    *properties.ROUTES,
    *namespace_policies.ROUTES,
    *schema_policies.ROUTES,
    *schemas.ROUTES,
    *permissions.ROUTES,
    *topics.ROUTES,
    *topic_messages.ROUTES,
    *topic_storage.ROUTES,
    *termination.ROUTES,
    *topic_stats.ROUTES,
    *topic_policies.ROUTES,
    *expiry_policies.ROUTES,
    *use_policies.ROUTES,
    *metric_policies.ROUTES,
    *producer_policies.ROUTES,
    *subscriptions.ROUTES,
    *subscription_properties.ROUTES,
    *lookup.ROUTES,
    *explain.ROUTES,
    *backup.ROUTES,
)

ROUTES: Final[tuple[Route, ...]] = (*_SUBJECTS, description_route(_SUBJECTS))
"""Every route."""
