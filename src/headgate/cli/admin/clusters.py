"""The verbs of ``headgate admin clusters``."""

from __future__ import annotations

from typing import Final

from headgate.cli.admin.command import VerbGroup
from headgate.cli.admin.output import as_lines
from headgate.cli.admin.verbs import Server, Values, Verb, argument, echo, show, switch


def list_clusters(server: Server, values: Values) -> None:
    """Print the names; the broker's settings contain its cluster."""
    names = server.get("/admin/v2/clusters")
    settings = server.get("/admin/v2/brokers/configuration/runtime") or {}
    if values["current"]:
        own = settings.get("clusterName")
        names = [f"{name}(*)" if name == own else name for name in names]
    echo(as_lines(names))


GROUP: Final = VerbGroup(
    "clusters",
    "Show the cluster's name and addresses.",
    (
        Verb(
            "list",
            "List the clusters.",
            (switch("--current -c", "current", "Mark the broker's cluster with (*)."),),
            list_clusters,
        ),
        Verb(
            "get",
            "Show a cluster's addresses.",
            (argument("cluster", str, "cluster-name"),),
            show("/admin/v2/clusters/{cluster}"),
        ),
    ),
)
