"""Statistics of topics: one, or the sum over a topic's partitions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import msgspec

from headgate.admin.merge import Merging
from headgate.admin.names import existing_partitioned, existing_topic, partitions_of
from headgate.admin.operations import Operation
from headgate.admin.routing import TOPIC_PATH, Call, Reply, Route, as_json, encoded_in_pieces
from headgate.base.names import TopicName
from headgate.metadata.errors import RefusalError
from headgate.metadata.rows import PartitionedRow
from headgate.observe.stats.fields import InternalStats, StatsOptions, TopicStats

_Stats = TypeVar("_Stats", TopicStats, InternalStats)

SLICE_PARTITIONS = 8
"""Partitions of one slice, between which other work has its turn: about a millisecond."""


async def stats(call: Call) -> Reply:
    """Counters, rates, producers and subscriptions of a topic."""
    found = await call.facade.topic_stats(existing_topic(call), _options(call))
    found.subscriptions = await _encoded_values(found.subscriptions)
    return as_json(found)


async def partitioned_stats(call: Call) -> Reply:
    """Statistics of a partitioned topic: the sum, and with ``perPartition`` each partition."""
    topic, row = existing_partitioned(call)
    options = _options(call)
    is_split = call.flag("perPartition", default=True)
    merging = Merging()
    split: dict[str, msgspec.Raw] = {}
    parts = partitions_of(call.facade.catalog, topic)
    async for name, part in _of_parts(parts, lambda p: call.facade.topic_stats(p, options)):
        merging.add(part)
        if is_split:
            split[name] = _encoded(part)
    merged = msgspec.to_builtins(merging.merged)
    merged["metadata"] = _metadata(row)
    merged["partitions"] = split
    return as_json(merged)


async def internal_stats(call: Call) -> Reply:
    """Ledgers and cursors of a topic."""
    metadata = call.flag("metadata")
    found = await call.facade.internal_stats(existing_topic(call), metadata=metadata)
    found.cursors = await _encoded_values(found.cursors)
    return as_json(found)


async def partitioned_internal_stats(call: Call) -> Reply:
    """Ledgers and cursors of each partition of a topic."""
    topic, row = existing_partitioned(call)
    parts = partitions_of(call.facade.catalog, topic)
    split: dict[str, msgspec.Raw] = {}
    async for name, part in _of_parts(
        parts, lambda p: call.facade.internal_stats(p, metadata=False)
    ):
        split[name] = _encoded(part)
    return as_json({"metadata": _metadata(row), "partitions": split})


async def _of_parts(
    parts: list[TopicName], ask: Callable[[TopicName], Awaitable[_Stats]]
) -> AsyncIterator[tuple[str, _Stats]]:
    """The statistics of each partition, in slices between which publishing continues. A partition
    that is deleted meanwhile is left out."""
    for number, part in enumerate(parts, start=1):
        if number % SLICE_PARTITIONS == 0:
            await asyncio.sleep(0)
        try:
            found = await ask(part)
        except RefusalError as refusal:
            if refusal.status != 404:
                raise
        else:
            yield part.full, found


async def _encoded_values(values: dict[str, Any]) -> dict[str, Any]:
    """The values as JSON, in pieces between which publishing continues."""
    return dict(zip(values, await encoded_in_pieces(values.values()), strict=True))


def _encoded(stats: TopicStats | InternalStats) -> msgspec.Raw:
    """Encode one partition, so that the whole reply is not encoded at once."""
    return msgspec.Raw(msgspec.json.encode(stats))


def _metadata(row: PartitionedRow) -> dict[str, Any]:
    view: dict[str, Any] = {"partitions": row.partitions, "deleted": False}
    if row.properties:
        view["properties"] = row.properties
    return view


def _options(call: Call) -> StatsOptions:
    return StatsOptions(
        precise_backlog=call.flag("getPreciseBacklog"),
        backlog_size=call.flag("subscriptionBacklogSize", default=True),
        earliest_time=call.flag("getEarliestTimeInBacklog"),
        exclude_publishers=call.flag("excludePublishers"),
        exclude_consumers=call.flag("excludeConsumers"),
    )


_OP = Operation.TOPIC_STATS

ROUTES = (
    Route("GET", f"{TOPIC_PATH}/stats", _OP, stats, "Statistics of a topic", reply=TopicStats),
    Route("GET", f"{TOPIC_PATH}/partitioned-stats", _OP, partitioned_stats,
          "Statistics of a partitioned topic", reply=TopicStats),
    Route("GET", f"{TOPIC_PATH}/internalStats", _OP, internal_stats,
          "Ledgers and cursors of a topic", reply=InternalStats),
    Route("GET", f"{TOPIC_PATH}/partitioned-internalStats", _OP, partitioned_internal_stats,
          "Ledgers and cursors of a partitioned topic", reply=dict[str, Any]),
)  # fmt: skip
