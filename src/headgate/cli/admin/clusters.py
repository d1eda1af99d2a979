"""The verbs of ``headgate admin clusters``."""

from __future__ import annotations

from typing import Final

from headgate.cli.admin.command import VerbGroup
from headgate.cli.admin.output import as_lines
from headgate.cli.admin.verbs import (
    CLUSTER_NAME,
    Server,
    Values,
    Verb,
    echo,
    option,
    send,
    show,
    switch,
)


def list_clusters(server: Server, values: Values) -> None:
    """Print the names; the broker's settings contain its cluster."""
    names = server.get("/admin/v2/clusters")
    settings = server.get("/admin/v2/brokers/configuration/runtime") or {}
    if values["current"]:
        own = settings.get("clusterName")
        names = [f"{name}(*)" if name == own else name for name in names]
    echo(as_lines(names))


_ONE: Final = "/admin/v2/clusters/{cluster}"
_URLS: Final = {
    "--url": "serviceUrl",
    "--url-secure": "serviceUrlTls",
    "--broker-url": "brokerServiceUrl",
    "--broker-url-secure": "brokerServiceUrlTls",
}


def _addresses(values: Values) -> dict[str, str]:
    return {name: values[name] for name in _URLS.values() if values[name] is not None}


_ADDRESSES: Final = tuple(
    option(flag, name, str, "An address of the cluster.") for flag, name in _URLS.items()
)

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
            (CLUSTER_NAME,),
            show(_ONE),
        ),
        Verb("create", "Always refused: the broker is all of its cluster.",
             (CLUSTER_NAME, *_ADDRESSES), send("PUT", _ONE, body=_addresses)),
        Verb("update", "Always refused: the addresses are the broker's.",
             (CLUSTER_NAME, *_ADDRESSES), send("POST", _ONE, body=_addresses)),
        Verb("delete", "Always refused: the broker is all of its cluster.", (CLUSTER_NAME,),
             send("DELETE", _ONE)),
        Verb("list-failure-domains", "Show the failure domains of a cluster: none.",
             (CLUSTER_NAME,), show(f"{_ONE}/failureDomains")),
        Verb("get-peer-clusters", "List the peers of a cluster: none.", (CLUSTER_NAME,),
             show(f"{_ONE}/peers", as_lines)),
    ),
)  # fmt: skip
