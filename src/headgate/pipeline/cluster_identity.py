"""The identity of the cluster behind an admin API: what has one set of topics and message ids.

URLs and names do not tell: all brokers are called ``standalone`` unless their settings name them,
and a broker may move to another host. A Headgate broker is a cluster of its own, whose identity is
the id of its data directory. Brokers of an Apache Pulsar cluster share topics, and are told apart
from other clusters by the cluster's name.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Protocol

from headgate.base.errors import InputError
from headgate.pipeline.options import SourceOptions
from pyspark_pulsar.admin import PARALLEL_REQUESTS_MAX, AdminClient
from pyspark_pulsar.errors import AccessError, AdminError
from pyspark_pulsar.options import parse_options

IDENTITY_PATH: Final = "headgate/identity"
"""Where a Headgate broker tells its identity, below ``/admin/v2/``."""

_OLDER_PATH: Final = "headgate/explain?count=1"
"""A cheap request that Headgate brokers of all releases answer, and no other broker."""


class UnknownClusterError(AdminError):
    """A broker does not tell which cluster it belongs to."""


class Documents(Protocol):
    """What this module uses of the admin API."""

    def document(self, path: str) -> Any: ...


def is_headgate(admin: Documents) -> bool:
    """Whether the admin API is that of a Headgate broker, of any release.

    Raises:
        AdminError, AccessError: it does not answer, or refuses.
    """
    # Every role may ask for the identity; only super users for what older releases answer.
    return any(admin.document(path) is not None for path in (IDENTITY_PATH, _OLDER_PATH))


def cluster_identity(admin: Documents) -> str:
    """``headgate:<id of the data directory>``, or ``pulsar:<name of the cluster>``.

    Raises:
        UnknownClusterError: the broker does not tell, because it is of an earlier release, or one
            of several clusters.
        AdminError, AccessError: the admin API does not answer, or refuses.
    """
    found = admin.document(IDENTITY_PATH)
    if isinstance(found, dict) and found.get("dataId"):
        return f"headgate:{found['dataId']}"
    if admin.document(_OLDER_PATH) is not None:
        raise UnknownClusterError(
            "the broker does not tell the identity of its data directory, so the job could read "
            "its telemetry twice: run this release of Headgate, or a later one"
        )
    names = [name for name in admin.document("clusters") or () if name != "global"]
    if len(names) != 1:
        names = [(admin.document("brokers/configuration/runtime") or {}).get("clusterName")]
    if not names[0]:
        raise UnknownClusterError("the broker does not tell the name of its cluster")
    return f"pulsar:{names[0]}"


def cluster_identities(source: SourceOptions) -> list[str]:
    """The identity of the cluster of each broker, in the order of the URLs.

    Raises:
        InputError: a broker does not answer, refuses, or does not tell its cluster.
    """

    def identity_at(urls: tuple[str, str]) -> str:
        connection = parse_options(source.source_options(*urls)).connection
        try:
            return cluster_identity(AdminClient(connection))
        except (AdminError, AccessError) as error:
            raise InputError(f"{urls[1]}: {error}") from error

    pairs = list(zip(source.broker_urls, source.web_urls, strict=True))
    with ThreadPoolExecutor(min(len(pairs), PARALLEL_REQUESTS_MAX)) as pool:
        return list(pool.map(identity_at, pairs))
