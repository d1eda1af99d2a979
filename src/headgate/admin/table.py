"""All routes of the admin API; every other request gets 404 or 405."""

from __future__ import annotations

from typing import Final

from headgate.admin import (
    backup,
    brokers,
    expiry_policies,
    explain,
    lookup,
    namespace_policies,
    namespaces,
    permissions,
    producer_policies,
    schema_policies,
    schemas,
    subscription_properties,
    subscriptions,
    tenants,
    termination,
    topic_policies,
    topic_stats,
    topics,
    use_policies,
)
from headgate.admin.openapi import description_route
from headgate.admin.routing import Route

_SUBJECTS: Final[tuple[Route, ...]] = (
    *brokers.ROUTES,
    *tenants.ROUTES,
    *namespaces.ROUTES,
    *namespace_policies.ROUTES,
    *schema_policies.ROUTES,
    *schemas.ROUTES,
    *permissions.ROUTES,
    *topics.ROUTES,
    *termination.ROUTES,
    *topic_stats.ROUTES,
    *topic_policies.ROUTES,
    *expiry_policies.ROUTES,
    *use_policies.ROUTES,
    *producer_policies.ROUTES,
    *subscriptions.ROUTES,
    *subscription_properties.ROUTES,
    *lookup.ROUTES,
    *explain.ROUTES,
    *backup.ROUTES,
)

ROUTES: Final[tuple[Route, ...]] = (*_SUBJECTS, description_route(_SUBJECTS))
"""Every route."""
