"""The cluster: this broker is all of it, so there is little to ask and nothing to change."""

from __future__ import annotations

from typing import Any

from headgate.admin.absent import NO_REPLICATION
from headgate.admin.names import existing_namespace, existing_parts
from headgate.admin.operations import Operation
from headgate.admin.queries import APPLIED
from headgate.admin.routing import (
    NAMESPACE_PATH,
    NO_CONTENT,
    TOPIC_PATH,
    Call,
    Reply,
    Route,
    as_json,
)
from headgate.metadata.errors import RefusalError, conflict, not_found


async def list_clusters(call: Call) -> Reply:
    """Names of the clusters."""
    return as_json(call.facade.catalog.clusters())


async def get_cluster(call: Call) -> Reply:
    """A cluster's addresses: the present ones of this broker."""
    check_cluster(call)
    info = call.facade.info
    urls = {
        "serviceUrl": info.web_url,
        "serviceUrlTls": info.web_url_tls,
        "brokerServiceUrl": info.broker_url,
        "brokerServiceUrlTls": info.broker_url_tls,
    }
    reply: dict[str, Any] = {
        **{name: url for name, url in urls.items() if url},
        "brokerClientTlsEnabled": False,
        "tlsAllowInsecureConnection": False,
        "brokerClientTlsEnabledWithKeyStore": False,
        "brokerClientTlsTrustStoreType": "JKS",
        "brokerClientTlsKeyStoreType": "JKS",
        "brokerClientSslFactoryPlugin": ("org.apache.pulsar.common.util.DefaultPulsarSslFactory"),
    }
    return as_json(reply)


async def create_cluster(call: Call) -> Reply:
    """Refuse to create a cluster: the only one is this broker's."""
    name = call.params["cluster"]
    clusters = call.facade.catalog.clusters()
    if name in clusters:
        raise conflict("Cluster already exists")
    raise RefusalError(
        405, f"Cluster {name[:80]!r} cannot be created: this broker is all of cluster {clusters[0]}"
    )


async def update_cluster(call: Call) -> Reply:
    """Refuse to change a cluster's addresses."""
    check_cluster(call)
    raise RefusalError(
        405,
        "The addresses of a cluster are those of its broker: advertisedAddress and the settings of "
        "the ports change them",
    )


async def delete_cluster(call: Call) -> Reply:
    """Refuse to delete the cluster."""
    check_cluster(call)
    raise RefusalError(405, f"This broker is all of cluster {call.params['cluster']}")


async def nothing_of_cluster(call: Call) -> Reply:
    """The failure domains of a cluster: there are none."""
    check_cluster(call)
    return as_json({})


async def no_peers(call: Call) -> Reply:
    """The peers of a cluster: there are none."""
    check_cluster(call)
    return as_json([])


async def no_isolation(call: Call) -> Reply:
    """The isolation policies of a cluster: there are none."""
    check_cluster(call)
    raise not_found(
        f"NamespaceIsolationPolicies for cluster {call.params['cluster']} does not exist"
    )


async def namespace_clusters(call: Call) -> Reply:
    """The clusters to which a namespace is replicated: this one."""
    _, row = existing_namespace(call)
    return as_json(row.clusters)


async def set_namespace_clusters(call: Call) -> Reply:
    """Accept this cluster as the only one of a namespace."""
    existing_namespace(call)
    _check_own(call)
    return NO_CONTENT


async def topic_clusters(call: Call) -> Reply:
    """The clusters to which a topic is replicated by a policy of its own: none is ever set."""
    existing_parts(call)
    return as_json(call.facade.catalog.clusters()) if call.flag("applied") else NO_CONTENT


async def set_topic_clusters(call: Call) -> Reply:
    """Accept this cluster as the only one of a topic, which changes nothing."""
    existing_parts(call)
    _check_own(call)
    return NO_CONTENT


async def remove_topic_clusters(call: Call) -> Reply:
    """Remove the clusters of a topic, which are never set."""
    existing_parts(call)
    return NO_CONTENT


async def no_shadows(call: Call) -> Reply:
    """The shadow topics of a topic: there are none. An empty list, because pulsar-admin cannot show
    nothing."""
    existing_parts(call)
    return as_json([])


async def remove_shadows(call: Call) -> Reply:
    """Remove the shadow topics of a topic, of which there are none."""
    existing_parts(call)
    return NO_CONTENT


async def refuse_shadows(call: Call) -> Reply:
    """Refuse shadow topics."""
    existing_parts(call)
    raise RefusalError(405, NO_REPLICATION)


def check_cluster(call: Call) -> None:
    """Return if the path names this cluster.

    Raises:
        RefusalError: 404.
    """
    if call.params["cluster"] not in call.facade.catalog.clusters():
        raise not_found("Cluster does not exist")


def _check_own(call: Call) -> None:
    """Return if the clusters of the body are this one, in Pulsar's words else."""
    clusters = call.facade.catalog.clusters()
    wanted = call.decoded(list[str]) or []
    if not wanted:
        raise RefusalError(412, "ClusterIds should not be null or empty")
    for name in wanted:
        if name not in clusters:
            raise RefusalError(403, f"Invalid cluster id: {name[:80]}")


_A = "/admin/v2/clusters"
_ONE = f"{_A}/{{cluster}}"
_READ, _SUPER = Operation.CLUSTER_READ, Operation.BROKER_READ
_POLICY, _SET_POLICY = Operation.TOPIC_POLICY_READ, Operation.TOPIC_POLICY_WRITE
_T = f"{TOPIC_PATH}/replication"
_SHADOWS = f"{TOPIC_PATH}/shadowTopics"

ROUTES = (
    Route("GET", _A, _READ, list_clusters, "List the clusters", reply=list[str]),
    Route("GET", _ONE, _READ, get_cluster, "Addresses of a cluster", reply=dict[str, Any]),
    Route("PUT", _ONE, Operation.CLUSTER_CREATE, create_cluster,
          "Always refused: there is one cluster"),
    Route("POST", _ONE, Operation.CLUSTER_UPDATE, update_cluster,
          "Always refused: its addresses are the broker's"),
    Route("DELETE", _ONE, Operation.CLUSTER_DELETE, delete_cluster,
          "Always refused: there is one cluster"),
    Route("GET", f"{_ONE}/failureDomains", _SUPER, nothing_of_cluster,
          "Failure domains of a cluster: none", reply=dict[str, Any]),
    Route("GET", f"{_ONE}/peers", _SUPER, no_peers, "Peers of a cluster: none", reply=list[str]),
    Route("GET", f"{_ONE}/namespaceIsolationPolicies", _SUPER, no_isolation,
          "Always refused: there are no isolation policies", reply=dict[str, Any]),
    Route("GET", f"{NAMESPACE_PATH}/replication", Operation.NAMESPACE_POLICY_READ,
          namespace_clusters, "Clusters of a namespace: this one", reply=list[str]),
    Route("POST", f"{NAMESPACE_PATH}/replication", Operation.NAMESPACE_POLICY_WRITE,
          set_namespace_clusters, "Accepts this cluster alone", body=list[str]),
    Route("GET", _T, _POLICY, topic_clusters, "Clusters of a topic by its own policy: none",
          reply=list[str], query=(APPLIED,)),
    Route("POST", _T, _SET_POLICY, set_topic_clusters, "Accepts this cluster alone",
          body=list[str]),
    Route("DELETE", _T, _SET_POLICY, remove_topic_clusters, "Has no effect"),
    Route("GET", _SHADOWS, _POLICY, no_shadows, "Shadow topics: none", reply=list[str]),
    Route("PUT", _SHADOWS, _SET_POLICY, refuse_shadows, "Always refused: no shadow topics"),
    Route("DELETE", _SHADOWS, _SET_POLICY, remove_shadows, "Has no effect"),
)  # fmt: skip
