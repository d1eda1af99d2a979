"""Single messages of topics and subscriptions, and what a subscription has not acknowledged."""

from __future__ import annotations

from typing import Final

from headgate.admin.names import single_topic, subscription_name
from headgate.admin.operations import Operation
from headgate.admin.routing import TOPIC_PATH, Call, Query, Reply, Route, as_json
from headgate.admin.subscriptions import (
    PLACE,
    SUBSCRIPTION_PATH,
    ResetCursorData,
    place_body,
    place_of,
)
from headgate.admin.topics import entry_reply
from headgate.base.positions import EARLIEST, Position
from headgate.facade.message_protocol import BacklogAnalysis
from headgate.metadata.errors import not_allowed, not_found

_PLACES: Final = ("latest", "earliest")


async def examine(call: Call) -> Reply:
    """One entry of a topic, counted from its first or its last one."""
    topic = single_topic(
        call,
        "Examine messages on a partitioned topic is not allowed, please try examine message on "
        "specific topic partition",
    )
    initial = call.query.get("initialPosition") or "latest"
    if initial not in _PLACES:
        raise not_allowed(
            f"initialPosition is {initial[:80]!r}: {' and '.join(_PLACES)} are allowed"
        )
    number = max(call.query_number("messagePosition", 1), 1)
    messages = call.facade.messages
    return entry_reply(
        await messages.examine(topic, number, call.reserve, from_end=initial == "latest")
    )


async def peek(call: Call) -> Reply:
    """One entry that a subscription has not acknowledged, counted from its oldest one."""
    number = max(call.number("number"), 1)
    topic = single_topic(call, "Peek messages on a partitioned topic is not allowed")
    name = subscription_name(call)
    return entry_reply(await call.facade.messages.peek(topic, name, number, call.reserve))


async def id_by_index(call: Call) -> Reply:
    """Refuse to find a message by its index: entries have none."""
    single_topic(
        call,
        "Get message ID by index on a partitioned topic is not allowed, please try do it on "
        "specific topic partition",
    )
    if call.query_number("index", -1) < 0:
        raise not_found(f"Invalid message index: {call.query.get('index', '')[:80]!r}")
    raise not_allowed(
        "GetMessageIdByIndex is not allowed when broker entry metadata is disabled: this broker "
        "writes none"
    )


async def analyze_backlog(call: Call) -> Reply:
    """Count what a subscription has not acknowledged, in entries and messages."""
    topic = single_topic(call, "Analyze backlog on a partitioned topic is not allowed")
    name, data = subscription_name(call), place_body(call)
    place = None if data is None else place_of(data)
    found = await call.facade.messages.analyze_backlog(
        topic,
        name,
        None if place is None else place.position,
        excluded=place is not None and place.excluded,
    )
    return as_json(found)


async def backlog_size(call: Call) -> Reply:
    """Bytes of a topic from a message on."""
    topic = single_topic(call, "calculate backlog size is not allowed for partitioned-topic")
    data = call.decoded(ResetCursorData)
    position = EARLIEST if data is None else Position(data.ledger_id, data.entry_id)
    return as_json(await call.facade.messages.bytes_from(topic, position))


_MESSAGES = Operation.TOPIC_MESSAGES
_INITIAL = Query("initialPosition", str, "latest", "Where to count from: latest or earliest")
_POSITION = Query("messagePosition", int, 1, "Which entry from there, from 1 on")
_INDEX = Query("index", int, -1, "The index of a message")

ROUTES = (
    Route("GET", f"{TOPIC_PATH}/examinemessage", _MESSAGES, examine,
          "An entry by its place in the topic", reply=bytes, query=(_INITIAL, _POSITION)),
    Route("GET", f"{TOPIC_PATH}/getMessageIdByIndex", _MESSAGES, id_by_index,
          "Always refused: entries have no index", reply=dict[str, int], query=(_INDEX,)),
    Route("PUT", f"{TOPIC_PATH}/backlogSize", Operation.TOPIC_BACKLOG_SIZE, backlog_size,
          "Bytes of a topic from a message on", body=ResetCursorData, reply=int),
    Route("GET", f"{SUBSCRIPTION_PATH}/position/{{number}}", Operation.SUBSCRIPTION_PEEK, peek,
          "An entry of a subscription's backlog", reply=bytes),
    Route("POST", f"{SUBSCRIPTION_PATH}/analyzeBacklog", Operation.SUBSCRIPTION_ANALYZE,
          analyze_backlog, "Count a subscription's backlog", body=PLACE, reply=BacklogAnalysis),
)  # fmt: skip
