"""What one tenant may have of a memory that all share, when it is used up.

At the bound those that have little go on, up to twice the bound, so that few that have much hold up
no others. Each new subscription has little. So one client with very many of them would get there
alone, and nobody else would have anything: the tenants with most stop before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

TENANT_PART: Final = 4
"""Beyond the bound, tenants share one and a half of it. Each may have this part of it in any
case."""


def has_its_share(by_tenant: Mapping[str, int], tenant: str, bound: int) -> bool:
    """Whether a tenant has what it may have beyond ``bound``. ``by_tenant`` has what each tenant
    takes that takes something, in the unit of the bound."""
    taken = by_tenant.get(tenant, 0)
    tenants_count = len(by_tenant) + (not taken)
    return taken >= max(3 * bound // (2 * tenants_count), bound // TENANT_PART)
