"""Families of admin routes that Pulsar has and Headgate lacks, with the answer that a client gets.

Every method of such a path is answered alike and at once: with the status and the sentence of its
family instead of "no such resource". The guide ``docs/guide/admin-coverage.md`` has the same list.
Requests that a single cluster can answer although it lacks the feature (the status of a compaction,
the clusters of a topic) are routes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from headgate.metadata.errors import RefusalError

_N: Final = "/admin/v2/namespaces/*/*"
_T: Final = "/admin/v2/persistent/*/*/*"

NO_COMPACTION: Final = "Compaction is not supported by this broker"
NO_OFFLOADING: Final = "Tiered storage is not supported by this broker"
NO_REPLICATION: Final = "Geo-replication is not supported by this broker"
"""Reasons that routes have, too."""


@dataclass(frozen=True, slots=True)
class AbsentFamily:
    """Routes of one feature."""

    name: str
    """For people."""
    paths: tuple[str, ...]
    """Their paths; ``*`` is any one segment, ``**`` at the end any number of them, or none."""
    reason: str
    """What a client is told."""
    status: int = 405

    def has(self, segments: Sequence[str]) -> bool:
        """Whether a path, split at its slashes, is one of this family."""
        return any(_matches(path.strip("/").split("/"), segments) for path in self.paths)


def _matches(pattern: list[str], segments: Sequence[str]) -> bool:
    if pattern[-1] == "**":
        pattern, segments = pattern[:-1], segments[: len(pattern) - 1]
    return len(pattern) == len(segments) and all(
        want in ("*", found) for want, found in zip(pattern, segments, strict=True)
    )


def _policies(*names: str) -> tuple[str, ...]:
    """The paths of policies of namespaces and topics."""
    return tuple(f"{level}/{name}" for name in names for level in (_N, _T))


def _figures(*names: str) -> tuple[str, ...]:
    return tuple(f"/admin/v2/broker-stats/{name}" for name in names)


ABSENT: Final = (
    AbsentFamily(
        "functions",
        ("/admin/v3/functions/**", "/admin/v2/functions/**", "/admin/v2/worker/**",
         "/admin/v2/worker-stats/**"),
        "Pulsar Function Worker is not enabled: functions are not supported",
    ),
    AbsentFamily(
        "IO: sources", ("/admin/v3/sources/**", "/admin/v3/source/**"),
        "Pulsar Function Worker is not enabled: sources are not supported",
    ),
    AbsentFamily(
        "IO: sinks", ("/admin/v3/sinks/**", "/admin/v3/sink/**"),
        "Pulsar Function Worker is not enabled: sinks are not supported",
    ),
    AbsentFamily(
        "packages", ("/admin/v3/packages/**",), "Package management is not supported by this broker"
    ),
    AbsentFamily(
        "transactions", ("/admin/v3/transactions/**",),
        "This Broker is not configured with transactionCoordinatorEnabled=true: transactions are "
        "not supported",
        503,
    ),
    AbsentFamily(
        "scalable topics", ("/admin/v2/scalable/**", "/admin/v2/segments/**"),
        "Scalable topics are not supported by this broker",
    ),
    AbsentFamily(
        "resource groups and quotas",
        ("/admin/v2/resourcegroups/**", "/admin/v2/resource-quotas/**", f"{_N}/resourcegroup/**"),
        "Resource groups are not supported by this broker",
    ),
    AbsentFamily(
        "non-persistent topics; lists of them are empty", ("/admin/v2/non-persistent/*/*/*/**",),
        "Non-persistent topics are not supported", 404,
    ),
    AbsentFamily("compaction", _policies("compactionThreshold"), NO_COMPACTION),
    AbsentFamily(
        "tiered storage",
        (
            *_policies("offloadPolicies"), f"{_N}/removeOffloadPolicies", f"{_N}/offloadThreshold",
            f"{_N}/offloadThresholdInSeconds", f"{_N}/offloadDeletionLagMs",
        ),
        NO_OFFLOADING,
    ),
    AbsentFamily(
        "geo-replication",
        (*_policies("replicatorDispatchRate"), f"{_N}/allowedClusters", f"{_N}/migration",
         "/admin/v2/clusters/*/migrate"),
        NO_REPLICATION,
    ),
    AbsentFamily(
        "bookies",
        ("/admin/v2/bookies/**", f"{_N}/persistence/bookieAffinity"),
        "Bookies are not supported: messages are in the broker's own log",
    ),
    AbsentFamily(
        "isolation and anti-affinity",
        (
            "/admin/v2/clusters/*/namespaceIsolationPolicies/*",
            "/admin/v2/clusters/*/namespaceIsolationPolicies/brokers/*", f"{_N}/antiAffinity",
            "/admin/v2/namespaces/*/antiAffinity/*", "/admin/v2/clusters/*/failureDomains/*",
        ),
        "Isolation and anti-affinity are not supported: one broker serves all namespaces",
    ),
    AbsentFamily(
        "positions of topics in bundles", (f"{_N}/*/topicHashPositions",),
        "Hash positions are not supported: one broker owns all bundles",
    ),
    AbsentFamily(
        "entry filters", _policies("entryFilters"),
        "Entry filters are not supported: they are Java classes, and the broker is no Java program",
    ),
    AbsentFamily(
        "limits on the rate of SUBSCRIBE", _policies("subscribeRate"),
        "Subscribe rates are not supported: commands are bounded for every client alike",
    ),
    AbsentFamily(
        "pauses while acknowledgements cannot be stored",
        _policies("dispatcherPauseOnAckStatePersistent"),
        "Such pauses are not supported: the broker stores every acknowledgement",
    ),
    AbsentFamily(
        "backlogs of topics that are not loaded", (f"{_T}/backlog",),
        "Estimates of backlogs are not supported: all topics are loaded, and their stats are exact",
    ),
    AbsentFamily(
        "figures of a JVM, of buffers and of bookies",
        _figures("mbeans", "allocator-stats/*", "bookieops", "pending-bookie-client-ops",
                 "broker-resource-availability/**"),
        "Figures of a JVM are not supported: the broker is no Java program; /metrics has its own",
    ),
    AbsentFamily(
        "figures of a proxy", ("/proxy-stats/**",),
        "Figures of a proxy are not supported: clients connect to the broker",
    ),
)  # fmt: skip
"""All families that are known to be absent."""


def refusal_of(raw_path: str, segments: Sequence[str]) -> RefusalError:
    """The refusal of a path that no route has, cut into its segments."""
    for family in ABSENT:
        if family.has(segments):
            return RefusalError(family.status, family.reason)
    return RefusalError(404, f"No such resource: {raw_path[:200]}")
