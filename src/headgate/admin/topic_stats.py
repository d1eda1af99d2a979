"""Statistics of topics: one, or the sum over a topic's partitions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any, TypeVar

import msgspec

from headgate.admin.merge import merge_topic_stats
from headgate.admin.names import existing_partitioned, existing_topic, partitions_of
from headgate.admin.operations import Operation
from headgate.admin.routing import Call, Reply, Route, as_json
from headgate.base.names import TopicName
from headgate.broker.facade import StatsOptions
from headgate.broker.stats import InternalStats, TopicStats
from headgate.metadata.errors import RefusalError
from headgate.metadata.rows import PartitionedRow

_Stats = TypeVar("_Stats", TopicStats, InternalStats)


async def stats(call: Call) -> Reply:
    """Counters, rates, producers and subscriptions of a topic."""
    return as_json(await call.facade.topic_stats(existing_topic(call), _options(call)))


async def partitioned_stats(call: Call) -> Reply:
    """The same for a partitioned topic: summed, and (``perPartition``) one by one."""
    topic, row = existing_partitioned(call)
    options = _options(call)
    parts = partitions_of(call.facade.catalog, topic)
    found = await _of_parts(parts, [call.facade.topic_stats(part, options) for part in parts])
    merged = msgspec.to_builtins(merge_topic_stats(found.values()))
    merged["metadata"] = _metadata(row)
    merged["partitions"] = found if call.flag("perPartition", default=True) else {}
    return as_json(merged)


async def internal_stats(call: Call) -> Reply:
    """How a topic lies on disk."""
    metadata = call.flag("metadata")
    return as_json(await call.facade.internal_stats(existing_topic(call), metadata=metadata))


async def partitioned_internal_stats(call: Call) -> Reply:
    """How each partition of a topic lies on disk."""
    topic, row = existing_partitioned(call)
    parts = partitions_of(call.facade.catalog, topic)
    calls = [call.facade.internal_stats(part, metadata=False) for part in parts]
    return as_json({"metadata": _metadata(row), "partitions": await _of_parts(parts, calls)})


async def _of_parts(
    parts: list[TopicName], calls: Sequence[Awaitable[_Stats]]
) -> dict[str, _Stats]:
    """What was found for each part. One that is deleted meanwhile is left out."""
    answers = await asyncio.gather(*calls, return_exceptions=True)
    found: dict[str, _Stats] = {}
    for part, answer in zip(parts, answers, strict=True):
        if isinstance(answer, RefusalError) and answer.status == 404:
            continue
        if isinstance(answer, BaseException):
            raise answer
        found[part.full] = answer
    return found


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


_T = "/admin/v2/persistent/{tenant}/{namespace}/{topic}"
_OP = Operation.TOPIC_STATS

ROUTES = (
    Route("GET", f"{_T}/stats", _OP, stats, "Statistics of a topic", reply=TopicStats),
    Route("GET", f"{_T}/partitioned-stats", _OP, partitioned_stats,
          "Statistics of a partitioned topic", reply=TopicStats),
    Route("GET", f"{_T}/internalStats", _OP, internal_stats,
          "Ledgers and cursors of a topic", reply=InternalStats),
    Route("GET", f"{_T}/partitioned-internalStats", _OP, partitioned_internal_stats,
          "Ledgers and cursors of a partitioned topic", reply=dict[str, Any]),
)  # fmt: skip
