"""Families of Pulsar's admin routes that Headgate does not have, with what a client is told.

Each request to one of them is answered 404 with a sentence instead of "no such resource". The guide
``docs/guide/admin-coverage.md`` has the same list. Requests that a single cluster can answer
although it lacks the feature (the status of a compaction, the clusters of a topic) are routes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_N: Final = "/admin/v2/namespaces/*/*"
_T: Final = "/admin/v2/persistent/*/*/*"
_BOTH: Final = (_N, _T)


@dataclass(frozen=True, slots=True)
class AbsentFamily:
    """Routes of one feature."""

    name: str
    """For people, in the plural."""
    paths: tuple[str, ...]
    """Their paths; ``*`` is any one segment, ``**`` at the end any number of them, or none."""
    why: str
    """What to know instead, as a clause."""

    @property
    def reason(self) -> str:
        """What a client is told."""
        return f"{self.name} are not supported: {self.why}"

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
    return tuple(f"{level}/{name}" for name in names for level in _BOTH)


ABSENT: Final = (
    AbsentFamily(
        "Functions, sinks and sources",
        (
            "/admin/v2/functions/**", "/admin/v2/worker/**", "/admin/v2/worker-stats/**",
            "/admin/v3/functions/**", "/admin/v3/sinks/**", "/admin/v3/sources/**",
            "/admin/v3/sink/**", "/admin/v3/source/**",
        ),
        "there is no functions worker",
    ),
    AbsentFamily(
        "Packages", ("/admin/v3/packages/**",), "nothing runs code of users"
    ),
    AbsentFamily(
        "Transactions", ("/admin/v3/transactions/**",), "there is no coordinator of transactions"
    ),
    AbsentFamily(
        "Bookies and their groups",
        ("/admin/v2/bookies/**", f"{_N}/persistence/bookieAffinity"),
        "messages are in the broker's own log",
    ),
    AbsentFamily(
        "Figures of a JVM, of Netty's buffers and of bookies",
        tuple(
            f"/admin/v2/broker-stats/{name}"
            for name in ("mbeans", "allocator-stats/*", "bookieops", "pending-bookie-client-ops",
                         "broker-resource-availability/**")
        ),
        "the broker is no Java program; /metrics has its figures",
    ),
    AbsentFamily(
        "Resource groups and resource quotas",
        ("/admin/v2/resourcegroups/**", "/admin/v2/resource-quotas/**", f"{_N}/resourcegroup/**"),
        "limits are set on topics, subscriptions, namespaces and the broker",
    ),
    AbsentFamily(
        "Isolation policies, anti-affinity groups and the positions of topics in bundles",
        (
            "/admin/v2/clusters/*/namespaceIsolationPolicies/*",
            "/admin/v2/clusters/*/namespaceIsolationPolicies/brokers/*", f"{_N}/antiAffinity",
            "/admin/v2/namespaces/*/antiAffinity/*", f"{_N}/*/topicHashPositions",
        ),
        "one broker serves all namespaces",
    ),
    AbsentFamily(
        "Failure domains and the migration of clusters",
        ("/admin/v2/clusters/*/failureDomains/*", "/admin/v2/clusters/*/migrate",
         f"{_N}/migration"),
        "there is one cluster of one broker",
    ),
    AbsentFamily(
        "Policies of replication",
        (*_policies("replicatorDispatchRate"), f"{_N}/allowedClusters"),
        "there is one cluster",
    ),
    AbsentFamily(
        "Policies of offloading",
        (
            *_policies("offloadPolicies"), f"{_N}/removeOffloadPolicies", f"{_N}/offloadThreshold",
            f"{_N}/offloadThresholdInSeconds", f"{_N}/offloadDeletionLagMs",
        ),
        "all messages are on the broker's disk",
    ),
    AbsentFamily(
        "Policies of compaction", _policies("compactionThreshold"), "no topic is compacted"
    ),
    AbsentFamily(
        "Entry filters",
        _policies("entryFilters"),
        "they are Java classes, and the broker is no Java program",
    ),
    AbsentFamily(
        "Limits on the rate of SUBSCRIBE",
        _policies("subscribeRate"),
        "connections and commands are bounded for every client alike",
    ),
    AbsentFamily(
        "Pauses of dispatchers while acknowledgements cannot be stored",
        _policies("dispatcherPauseOnAckStatePersistent"),
        "the broker stores every acknowledgement",
    ),
    AbsentFamily(
        "Allowed properties for metrics of single namespaces",
        (f"{_N}/allowedTopicPropertiesForMetrics",),
        "the setting allowedTopicPropertiesForMetrics holds for all",
    ),
    AbsentFamily(
        "Estimates of backlogs of topics that are not loaded",
        (f"{_T}/backlog",),
        "all topics are loaded: their stats are exact",
    ),
    AbsentFamily(
        "Scalable topics",
        ("/admin/v2/scalable/**", "/admin/v2/segments/**"),
        "topics have partitions",
    ),
    AbsentFamily(
        "Figures of a proxy", ("/proxy-stats/**",), "clients connect to the broker"
    ),
    AbsentFamily(
        "Non-persistent topics", ("/admin/v2/non-persistent/*/*/*/**",), "every topic is persistent"
    ),
)  # fmt: skip
"""All families that are known to be absent."""


def absent_reason(segments: Sequence[str]) -> str:
    """What a client is told whose path is of an absent family; empty if it is of none."""
    return next((family.reason for family in ABSENT if family.has(segments)), "")
