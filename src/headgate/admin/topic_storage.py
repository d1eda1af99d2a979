"""What a topic stores: its ledgers, their removal, and what Pulsar would do with them elsewhere.

Compaction and offloading are not there. Their status is that of a topic that never began either.
"""

from __future__ import annotations

from typing import Any, Final

from headgate.admin.absent import NO_COMPACTION, NO_OFFLOADING
from headgate.admin.json_pieces import pieces_of
from headgate.admin.names import existing_parts, topic_name
from headgate.admin.operations import Operation
from headgate.admin.partition_batches import results_of
from headgate.admin.routing import NO_CONTENT, TOPIC_PATH, Call, Reply, Route, as_json
from headgate.admin.streaming import answer, encoded, reserve_for
from headgate.admin.topic_stats import of_parts
from headgate.base.instants import iso_time
from headgate.base.names import TopicName
from headgate.metadata.errors import RefusalError
from headgate.observe.stats.fields import InternalStats

NOT_RUN: Final = {"status": "NOT_RUN", "lastError": ""}
"""The status of a long-running process that never began."""


async def trim(call: Call) -> Reply:
    """Remove what neither a subscription nor retention needs, now."""
    await results_of(call, existing_parts(call), call.facade.messages.trim)
    return NO_CONTENT


async def truncate(call: Call) -> Reply:
    """Skip all messages of all subscriptions, and remove them whatever retention says."""
    for part in existing_parts(call):
        await call.facade.messages.truncate(part)
    return NO_CONTENT


async def internal_info(call: Call) -> Reply:
    """The ledgers and cursors of a topic as they are stored; of each partition."""
    topic, catalog = topic_name(call), call.facade.catalog
    parts = existing_parts(call)
    if catalog.partitioned(topic.full) is None:
        await reserve_for(call, parts)
        return await answer(call, pieces_of(await _info(call, topic)))
    infos = {}
    async for name, info in of_parts(call, parts, lambda part: _info(call, part)):
        infos[name] = await encoded(call, pieces_of(info))
    return await answer(call, pieces_of({"version": 0, "partitions": infos}))


async def _info(call: Call, topic: TopicName) -> dict[str, Any]:
    row = call.facade.catalog.topic(topic.full)
    stats = await call.facade.internal_stats(topic, metadata=False)
    created = iso_time(0 if row is None else row.created_ms)
    return {
        "version": 0,
        "creationDate": created,
        "modificationDate": stats.last_ledger_created_timestamp,
        "ledgers": _ledgers(stats),
        "cursors": {
            name: {
                "version": 0,
                "creationDate": cursor.last_ledger_switch_timestamp,
                "modificationDate": cursor.last_ledger_switch_timestamp,
                "cursorsLedgerId": cursor.cursor_ledger,
                "markDelete": _position(cursor.mark_delete_position),
            }
            for name, cursor in stats.cursors.items()
        },
    }


def _ledgers(stats: InternalStats) -> list[dict[str, Any]]:
    """The ledgers without the figures of the open one, which Pulsar leaves out, too."""
    last = len(stats.ledgers) - 1
    return [
        {"ledgerId": ledger.ledger_id}
        if place == last
        else {
            "ledgerId": ledger.ledger_id,
            "entries": ledger.entries,
            "size": ledger.size,
            "isOffloaded": False,
        }
        for place, ledger in enumerate(stats.ledgers)
    ]


def _position(text: str) -> dict[str, int]:
    ledger_id, _, entry_id = text.partition(":")
    return {"ledgerId": int(ledger_id), "entryId": int(entry_id)}


async def process_status(call: Call) -> Reply:
    """The status of compaction or offloading, which never began."""
    existing_parts(call)
    return as_json(NOT_RUN)


async def compact(call: Call) -> Reply:
    """Refuse to compact a topic."""
    existing_parts(call)
    raise RefusalError(405, NO_COMPACTION)


async def offload(call: Call) -> Reply:
    """Refuse to offload the ledgers of a topic."""
    existing_parts(call)
    raise RefusalError(405, NO_OFFLOADING)


_COMPACT, _OFFLOAD = Operation.TOPIC_COMPACT, Operation.TOPIC_OFFLOAD

ROUTES = (
    Route("POST", f"{TOPIC_PATH}/trim", Operation.TOPIC_TRIM, trim,
          "Remove what nothing needs any longer"),
    Route("DELETE", f"{TOPIC_PATH}/truncate", Operation.TOPIC_TRUNCATE, truncate,
          "Skip and remove all messages"),
    Route("GET", f"{TOPIC_PATH}/internal-info", Operation.TOPIC_STATS, internal_info,
          "Stored ledgers and cursors of a topic", reply=dict[str, Any]),
    Route("GET", f"{TOPIC_PATH}/compaction", _COMPACT, process_status,
          "Status of a compaction: there was none", reply=dict[str, str]),
    Route("PUT", f"{TOPIC_PATH}/compaction", _COMPACT, compact, "Always refused: no compaction"),
    Route("GET", f"{TOPIC_PATH}/offload", _OFFLOAD, process_status,
          "Status of an offload: there was none", reply=dict[str, str]),
    Route("PUT", f"{TOPIC_PATH}/offload", _OFFLOAD, offload, "Always refused: no offloading"),
)  # fmt: skip
