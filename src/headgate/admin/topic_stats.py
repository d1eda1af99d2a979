"""Statistics of topics: one, or the sum over a topic's partitions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, TypeVar

from headgate.admin.json_pieces import Encoded, emptied_pieces, pieces_of, struct_items
from headgate.admin.merge import Merging
from headgate.admin.names import existing_partitioned, existing_topic, partitions_of
from headgate.admin.operations import Operation
from headgate.admin.routing import TOPIC_PATH, Call, Query, Reply, Route
from headgate.admin.streaming import answer, answer_emptied, discard, encoded, reserve_for
from headgate.base.names import TopicName
from headgate.metadata.errors import RefusalError
from headgate.metadata.rows import PartitionedRow
from headgate.observe.stats.fields import InternalStats, StatsOptions, TopicStats

_Stats = TypeVar("_Stats")

OWNED = frozenset({"subscriptions", "consumers", "publishers", "cursors", "ledgers"})
"""Members of the statistics that may have very many items, and that belong to the answer alone."""

MERGES_PER_TURN = 8
"""Steps of a merge that are done without a pause: each has some subscriptions or clients."""

SLICE_PARTITIONS = 8
"""Partitions of one slice, between which other work has its turn: about a millisecond."""


async def stats(call: Call) -> Reply:
    """Counters, rates, producers and subscriptions of a topic."""
    topic = existing_topic(call)
    await reserve_for(call, [topic])
    return await answer_emptied(call, await call.facade.topic_stats(topic, _options(call)), OWNED)


async def partitioned_stats(call: Call) -> Reply:
    """Statistics of a partitioned topic: the sum, and with ``perPartition`` each partition."""
    topic, row = existing_partitioned(call)
    options = _options(call)
    is_split = call.flag("perPartition", default=True)
    merging = Merging()
    split: dict[str, Encoded] = {}
    parts = partitions_of(call.facade.catalog, topic)
    async for name, part in of_parts(call, parts, lambda p: call.facade.topic_stats(p, options)):
        for number, _ in enumerate(merging.add(part), start=1):
            if number % MERGES_PER_TURN == 0:
                await call.facade.give_way()
        if is_split:
            split[name] = await encoded(call, emptied_pieces(part, OWNED))
        else:
            await discard(call.facade, part, OWNED)
    merged = dict(struct_items(merging.merged)) | {"metadata": _metadata(row), "partitions": split}
    return await answer_emptied(call, merged, OWNED)


async def internal_stats(call: Call) -> Reply:
    """Ledgers and cursors of a topic."""
    topic, metadata = existing_topic(call), call.flag("metadata")
    await reserve_for(call, [topic])
    found = await call.facade.internal_stats(topic, metadata=metadata)
    return await answer_emptied(call, found, OWNED)


async def partitioned_internal_stats(call: Call) -> Reply:
    """Ledgers and cursors of each partition of a topic."""
    topic, row = existing_partitioned(call)
    parts = partitions_of(call.facade.catalog, topic)
    split: dict[str, Encoded] = {}
    async for name, part in of_parts(
        call, parts, lambda p: call.facade.internal_stats(p, metadata=False)
    ):
        split[name] = await encoded(call, emptied_pieces(part, OWNED))
    return await answer(call, pieces_of({"metadata": _metadata(row), "partitions": split}))


async def of_parts(
    call: Call, parts: Sequence[TopicName], ask: Callable[[TopicName], Awaitable[_Stats]]
) -> AsyncIterator[tuple[str, _Stats]]:
    """The statistics of each partition, in slices between which publishing continues, and charged
    together before. A partition that is deleted meanwhile is left out."""
    await reserve_for(call, parts)
    for number, part in enumerate(parts, start=1):
        if number % SLICE_PARTITIONS == 0:
            await call.facade.give_way()
        try:
            found = await ask(part)
        except RefusalError as refusal:
            if refusal.status != 404:
                raise
        else:
            yield part.full, found


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
_OPTIONS = (
    Query("getPreciseBacklog", bool, False, "Has no effect: backlogs are always exact"),
    Query("subscriptionBacklogSize", bool, True, "Show the backlogs in bytes"),
    Query("getEarliestTimeInBacklog", bool, False, "Show when the oldest message was published"),
    Query("excludePublishers", bool, False, "Leave the producers out"),
    Query("excludeConsumers", bool, False, "Leave the consumers out"),
)
_SPLIT = Query("perPartition", bool, True, "Show each partition beside the sum")
_METADATA = Query("metadata", bool, False, "Show the metadata of the ledgers")

ROUTES = (
    Route("GET", f"{TOPIC_PATH}/stats", _OP, stats, "Statistics of a topic", reply=TopicStats,
          query=_OPTIONS),
    Route("GET", f"{TOPIC_PATH}/partitioned-stats", _OP, partitioned_stats,
          "Statistics of a partitioned topic", reply=TopicStats, query=(*_OPTIONS, _SPLIT)),
    Route("GET", f"{TOPIC_PATH}/internalStats", _OP, internal_stats,
          "Ledgers and cursors of a topic", reply=InternalStats, query=(_METADATA,)),
    Route("GET", f"{TOPIC_PATH}/partitioned-internalStats", _OP, partitioned_internal_stats,
          "Ledgers and cursors of a partitioned topic", reply=dict[str, Any]),
)  # fmt: skip
