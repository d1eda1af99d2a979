"""Tenants."""

from __future__ import annotations

from msgspec import Struct

from headgate.admin.forced_deletion import (
    TENANTS,
    check_force_allowed,
    delete_tenant_with_namespaces,
)
from headgate.admin.names import refuse_resolved, tenant_name
from headgate.admin.operations import Operation
from headgate.admin.queries import FORCE_CONTENTS
from headgate.admin.routing import NO_CONTENT, Call, Reply, Route, as_json
from headgate.metadata.errors import not_found
from headgate.metadata.rows import TenantRow


class TenantInfo(Struct, rename="camel"):
    """A tenant as clients send it; some send ``null`` for an empty list."""

    admin_roles: list[str] | None = None
    allowed_clusters: list[str] | None = None


async def list_tenants(call: Call) -> Reply:
    """Names of all tenants."""
    return as_json(call.facade.catalog.tenants())


async def get_tenant(call: Call) -> Reply:
    """A tenant's roles and clusters."""
    row = call.facade.catalog.tenant(tenant_name(call))
    if row is None:
        raise not_found("Tenant does not exist")
    return as_json(row)


async def create_tenant(call: Call) -> Reply:
    """Create a tenant."""
    name, row = tenant_name(call), _row(call)
    refuse_resolved(name, "Tenant")
    await call.commit(call.facade.catalog.plan_create_tenant(name, row))
    return NO_CONTENT


async def update_tenant(call: Call) -> Reply:
    """Replace a tenant's roles and clusters."""
    name, row = tenant_name(call), _row(call)
    await call.commit(call.facade.catalog.plan_update_tenant(name, row))
    return NO_CONTENT


async def delete_tenant(call: Call) -> Reply:
    """Delete a tenant without namespaces, or (``force``) with them."""
    if call.flag("force"):
        check_force_allowed(call, TENANTS)
        await delete_tenant_with_namespaces(call, tenant_name(call))
        return NO_CONTENT
    await call.commit(call.facade.catalog.plan_delete_tenant(tenant_name(call)))
    return NO_CONTENT


def _row(call: Call) -> TenantRow:
    info = call.decoded(TenantInfo) or TenantInfo()
    return TenantRow(
        admin_roles=tuple(sorted(set(info.admin_roles or ()))),
        allowed_clusters=tuple(sorted(set(info.allowed_clusters or ()))),
    )


_ONE = "/admin/v2/tenants/{tenant}"

ROUTES = (
    Route("GET", "/admin/v2/tenants", Operation.TENANT_LIST, list_tenants,
          "List the tenants", reply=list[str]),
    Route("GET", _ONE, Operation.TENANT_READ, get_tenant, "A tenant", reply=TenantRow),
    Route("PUT", _ONE, Operation.TENANT_CREATE, create_tenant, "Create a tenant", body=TenantInfo),
    Route("POST", _ONE, Operation.TENANT_UPDATE, update_tenant, "Update a tenant", body=TenantInfo),
    Route("DELETE", _ONE, Operation.TENANT_DELETE, delete_tenant, "Delete a tenant",
          query=(FORCE_CONTENTS,)),
)  # fmt: skip
