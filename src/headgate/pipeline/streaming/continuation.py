"""Where a query over telemetry goes on, before Spark starts it.

A run may have other brokers than the run before. What that run planned and did not finish may then
be of a cluster that is not read now. If nothing of that batch is in the tables, the plan is
discarded: positions are as before it, and no message is lost or read twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headgate.base.errors import InputError
from headgate.pipeline.options import SourceOptions
from headgate.pipeline.store.folder import checkpoint_id, checkpoint_path
from headgate.pipeline.streaming.bronze_state import BatchState, batch_state
from headgate.pipeline.streaming.cluster_offsets import (
    ClusterOffsets,
    changed_partitions,
    is_of_topic,
    of_topic,
    offsets_from_json,
)
from headgate.pipeline.streaming.earlier_checkpoints import starting_positions
from headgate.pipeline.streaming.offset_log import PlannedBatch, discard_batch, newest_batch
from pyspark_pulsar.errors import OffsetError


@dataclass(frozen=True, slots=True)
class Continuation:
    """What the source must know of earlier runs, besides Spark's checkpoint."""

    starts: ClusterOffsets
    """Positions with which clusters begin that the checkpoint does not have."""
    absent: tuple[str, ...]
    """Clusters whose part of the planned batch is left out."""


def prepare_continuation(
    source: SourceOptions, clusters: Sequence[str], say: Callable[[str], None]
) -> Continuation:
    """Prepare the checkpoint for a run over these clusters, under the leases of the tables.

    ``clusters``: the identity of each broker of ``source``. ``say`` gets a sentence about two
    brokers of one cluster, and about telemetry that cannot be completed.

    Raises:
        InputError: the last run ended amid a batch of another cluster and ``fail_on_data_loss`` is
            set, or as :func:`starting_positions`.
        OSError: a file cannot be read or written.
    """
    checkpoint = checkpoint_path(source)
    _say_same_clusters(source, clusters, say)
    batch = newest_batch(checkpoint)
    starts, ends = _offsets(checkpoint, batch)
    is_known = any(of_topic(positions, source.topic) for positions in ends.values())
    begins = starting_positions(source, checkpoint, clusters, is_known=is_known)
    if batch is None or batch.is_committed:
        return Continuation(begins, ())
    missing = {
        cluster
        for cluster, partition in changed_partitions(starts, ends)
        if cluster not in clusters or not is_of_topic(partition, source.topic)
    }
    if not missing:
        return Continuation(begins, ())
    return Continuation(begins, _settled(source, checkpoint, batch.number, missing, say))


def _settled(
    source: SourceOptions,
    checkpoint: str,
    number: int,
    missing: set[str],
    say: Callable[[str], None],
) -> tuple[str, ...]:
    """Settle a planned batch with messages that are not read now; the clusters to leave out."""
    state = batch_state(source.out, checkpoint_id(checkpoint), number)
    if state is BatchState.ABSENT:
        discard_batch(checkpoint, number)
        return ()
    if state is BatchState.PARTIAL:
        text = (
            f"the last run was stopped while it wrote telemetry of {', '.join(sorted(missing))}, "
            "which this run does not read: some of these rows may be missing"
        )
        if source.fail_on_data_loss:
            raise InputError(f"{text}. Run once with the brokers and the topic of that run")
        say(f"{text[0].upper()}{text[1:]}.")
    return tuple(sorted(missing))


def _offsets(checkpoint: str, batch: PlannedBatch | None) -> tuple[ClusterOffsets, ClusterOffsets]:
    """Where the newest batch begins and ends."""
    if batch is None:
        return {}, {}
    try:
        starts = offsets_from_json(batch.starts[0]) if batch.starts else {}
        return starts, offsets_from_json(batch.ends[0])
    except OffsetError as error:
        raise InputError(f"{checkpoint} cannot be used: {error}") from error


def _say_same_clusters(
    source: SourceOptions, clusters: Sequence[str], say: Callable[[str], None]
) -> None:
    for broker, cluster in enumerate(clusters):
        first = clusters.index(cluster)
        if first != broker:
            say(
                f"{source.web_urls[first]} and {source.web_urls[broker]} have the same topics "
                f"({cluster}), which are read once."
            )
