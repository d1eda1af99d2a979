"""Terminating topics."""

from __future__ import annotations

from typing import Any

from headgate.admin.names import existing_topic, partitions_of, topic_name
from headgate.admin.operations import Operation
from headgate.admin.routing import Call, Reply, Route, as_json
from headgate.base.names import TopicName
from headgate.metadata.errors import RefusalError, not_found


async def terminate_topic(call: Call) -> Reply:
    """Terminate a topic, or one partition: it takes no more messages."""
    topic = topic_name(call)
    if call.facade.catalog.partitioned(topic.full) is not None:
        raise RefusalError(405, "Termination of a partitioned topic is not allowed")
    return as_json(await _terminate(call, existing_topic(call)))


async def terminate_partitioned(call: Call) -> Reply:
    """Terminate all partitions of a partitioned topic."""
    topic = topic_name(call)
    catalog = call.facade.catalog
    if catalog.partitioned(topic.full) is None:
        if catalog.topic(topic.full) is None:
            raise not_found(f"Partitioned Topic {topic} not found")
        raise RefusalError(
            405,
            "Termination of a non-partitioned topic is not allowed using partitioned-terminate, "
            "please use terminate commands",
        )
    found = {str(p.partition): await _terminate(call, p) for p in partitions_of(catalog, topic)}
    return as_json(found)


async def _terminate(call: Call, topic: TopicName) -> dict[str, int]:
    last = await call.facade.terminate_topic(topic)
    call.progress.is_partly_done = True
    return {
        "ledgerId": last.ledger_id,
        "entryId": last.entry_id,
        "partitionIndex": topic.partition,
    }


_TERMINATE = "/admin/v2/persistent/{tenant}/{namespace}/{topic}/terminate"

ROUTES = (
    Route("POST", _TERMINATE, Operation.TOPIC_TERMINATE, terminate_topic,
          "Terminate a topic: it takes no more messages", reply=dict[str, int]),
    Route("POST", f"{_TERMINATE}/partitions", Operation.TOPIC_TERMINATE, terminate_partitioned,
          "Terminate all partitions of a topic", reply=dict[str, Any]),
)  # fmt: skip
