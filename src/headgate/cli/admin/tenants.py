"""The verbs of ``headgate admin tenants``."""

from __future__ import annotations

from typing import Any, Final

from headgate.cli.admin.command import VerbGroup
from headgate.cli.admin.output import as_lines
from headgate.cli.admin.values import names
from headgate.cli.admin.verbs import (
    Action,
    Server,
    Values,
    Verb,
    argument,
    option,
    send,
    show,
    switch,
    target,
)

_TENANT: Final = argument("tenant", str, "tenant-name")
_PATH: Final = "/admin/v2/tenants/{tenant}"
_WHAT: Final = (
    _TENANT,
    option("--admin-roles -r", "adminRoles", names, "Roles that may administer the tenant; a,b."),
    option(
        "--allowed-clusters -c", "allowedClusters", names,
        "Clusters that the tenant may use; all by default.",
    ),
)  # fmt: skip


def write_tenant(method: str) -> Action:
    """Send a tenant; asks for the clusters first unless they are given."""

    def run(server: Server, values: Values) -> None:
        clusters = values["allowedClusters"] or server.get("/admin/v2/clusters")
        body: dict[str, Any] = {
            "adminRoles": values["adminRoles"] or [],
            "allowedClusters": clusters,
        }
        server.ask(method, target(_PATH, values), body)

    return run


GROUP: Final = VerbGroup(
    "tenants",
    "Create, change and delete tenants.",
    (
        Verb("list", "List the tenants.", (), show("/admin/v2/tenants", as_lines)),
        Verb("get", "Show a tenant's roles and clusters.", (_TENANT,), show(_PATH)),
        Verb("create", "Create a tenant.", _WHAT, write_tenant("PUT")),
        Verb("update", "Replace a tenant's roles and clusters.", _WHAT, write_tenant("POST")),
        Verb(
            "delete",
            "Delete a tenant without namespaces.",
            (
                _TENANT,
                switch("--force -f", "force", "Delete its content too; always refused."),
            ),
            send("DELETE", _PATH, ("force={force}",)),
        ),
    ),
)
