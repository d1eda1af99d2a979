"""The offset of the query that reads telemetry: positions by cluster and by partition of a topic.

Spark's checkpoint stores ``{"v": 1, "clusters": {"<identity>": {"<partition>": "L:E:P:B"}}}``.
No URL is in it, and no order of brokers. A cluster that the job does not read now keeps its
positions, and so do other topics. Spark compares offsets as texts, so all keys are sorted.

Pure: no I/O, no Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pyspark_pulsar.errors import OffsetError
from pyspark_pulsar.resolve import topic_of

CLUSTER_OFFSET_VERSION: Final = 1

Positions = Mapping[str, str]
"""Position ``L:E:P:B`` by the full name of a partition."""
ClusterOffsets = Mapping[str, Positions]
"""Positions by the identity of a cluster."""


def offsets_to_json(offsets: ClusterOffsets) -> dict[str, Any]:
    """The offset that Spark stores; equal positions always give the same text."""
    clusters = {name: dict(sorted(offsets[name].items())) for name in sorted(offsets)}
    return {"v": CLUSTER_OFFSET_VERSION, "clusters": clusters}


def offsets_from_json(offset: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The positions of :func:`offsets_to_json`.

    Raises:
        OffsetError: for any other value.
    """
    clusters = offset.get("clusters")
    if offset.get("v") != CLUSTER_OFFSET_VERSION or not isinstance(clusters, Mapping):
        raise OffsetError(
            f"the checkpoint's offset has version {offset.get('v')!r}; this release reads version "
            f"{CLUSTER_OFFSET_VERSION}"
        )
    return {str(name): dict(positions) for name, positions in clusters.items()}


def is_of_topic(partition: str, topic: str) -> bool:
    """Whether ``partition`` is a topic, or one of its partitions."""
    return partition == topic or topic_of(partition) == topic


def of_topic(positions: Positions, topic: str) -> dict[str, str]:
    """The positions in the partitions of one topic."""
    return {name: text for name, text in positions.items() if is_of_topic(name, topic)}


def with_topic(
    offsets: ClusterOffsets, cluster: str, topic: str, own: Positions
) -> dict[str, Positions]:
    """``offsets`` with ``own`` as the positions of a cluster in ``topic``."""
    others = {
        partition: text
        for partition, text in offsets.get(cluster, {}).items()
        if not is_of_topic(partition, topic)
    }
    return {**offsets, cluster: {**others, **own}}


def changed_partitions(start: ClusterOffsets, end: ClusterOffsets) -> set[tuple[str, str]]:
    """The pairs of a cluster and a partition whose positions differ between two offsets."""
    return {
        (cluster, partition)
        for cluster, positions in end.items()
        for partition, text in positions.items()
        if start.get(cluster, {}).get(partition) != text
    }
