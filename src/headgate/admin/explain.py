"""Routes of explain: the causes of backlogs."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import Meta

from headgate.admin.names import missing_topic, partitions_of, topic_name
from headgate.admin.operations import Operation
from headgate.admin.routing import Call, Query, Reply, Route, as_json
from headgate.admin.streaming import answer_emptied, answer_shared, reserve_for
from headgate.base.names import TopicName, parse_topic
from headgate.explain.reports import (
    COUNT_DEFAULT,
    COUNT_MAX,
    EXPLAIN_PATH,
    AdaptiveReport,
    BrokerReport,
    LimitsReport,
    StorageReport,
    TopicReport,
    TopReport,
)
from headgate.metadata.errors import RefusalError

OWNED = frozenset({"subscriptions", "perPartition"})
"""Members of a report that may have very many items."""

PARTS_PER_PAUSE: Final = 64
"""Reports on partitions in which names are hidden without a pause."""

ANOTHER: Final = "another topic"
ANOTHER_TENANTS: Final = "another topic of another tenant"
"""Instead of the names of topics that the client may not see."""

_OF_TOPIC: Final = (Operation.TOPIC_PERMISSIONS_READ, Operation.TOPIC_POLICY_READ)
_OF_NAMESPACE: Final = (Operation.NAMESPACE_PERMISSIONS_READ, Operation.NAMESPACE_POLICY_READ)
_OF_BROKER: Final = (Operation.SETTINGS_READ,)
"""What a client must be allowed to see who changed what there, and to which values."""


async def explain_top(call: Call) -> Reply:
    """The largest backlogs: ``count`` of them, by default ten."""
    count, timelines = _count(call), call.flag("timeline")
    return await answer_shared(
        call,
        f"explain {count} {timelines}",
        lambda: call.facade.explain_top(count, timelines=timelines),
    )


async def explain_storage(call: Call) -> Reply:
    """What takes the disk, and the topics that keep most of it: ``count``, by default ten."""
    count = _count(call)
    return await answer_shared(call, f"storage {count}", lambda: call.facade.explain_storage(count))


async def explain_limits(call: Call) -> Reply:
    """The limits in force at which most waits: ``count`` of them, by default ten."""
    count = _count(call)
    return await answer_shared(call, f"limits {count}", lambda: call.facade.explain_limits(count))


async def explain_adaptive(call: Call) -> Reply:
    """The adaptive controller and its latest decisions: ``count`` of them, by default ten."""
    return as_json(call.facade.explain_adaptive(_count(call)))


async def explain_broker(call: Call) -> Reply:
    """How the broker itself is: memory of clients, threads, the event loop."""
    return as_json(call.facade.explain_broker())


def _count(call: Call) -> int:
    text = call.query.get("count", str(COUNT_DEFAULT))
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(COUNT_MAX))
    if not is_number or not 1 <= int(text) <= COUNT_MAX:
        raise RefusalError(400, f"count is {text[:80]!r}: 1 to {COUNT_MAX} is allowed")
    return int(text)


async def explain_topic(call: Call) -> Reply:
    """What holds one topic back; with ``perPartition`` also each partition of a partitioned one."""
    topic = topic_name(call)
    catalog = call.facade.catalog
    if catalog.topic(topic.full) is None and catalog.partitioned(topic.full) is None:
        raise missing_topic(catalog, topic)
    per_partition = call.flag("perPartition")
    await reserve_for(call, partitions_of(catalog, topic) or [topic])
    report = await call.facade.explain_topic(
        topic,
        per_partition=per_partition,
        timelines=call.flag("timeline"),
        roles_of=_levels_of_roles(call, topic),
    )
    hide_others(call, topic, report)
    for number, part in enumerate(report["perPartition"] or ()):
        if number % PARTS_PER_PAUSE == 0:
            await call.facade.give_way()
        hide_others(call, topic, part)
    return await answer_emptied(call, report, OWNED)


def _levels_of_roles(call: Call, topic: TopicName) -> frozenset[str]:
    """The levels at which the client may see who made a change, and the values of policies: where
    it may see the roles and policies of the topic or namespace, or the settings of the broker."""
    asked = (
        (_OF_TOPIC, topic.full, ("topic", "subscription")),
        (_OF_NAMESPACE, str(topic.namespace), ("namespace",)),
        (_OF_BROKER, "", ("broker",)),
    )
    levels = (
        found
        for operations, what, found in asked
        if all(call.may(each, what) for each in operations)
    )
    return frozenset(level for found in levels for level in found)


def hide_others(call: Call, topic: TopicName, report: dict[str, Any]) -> None:
    """Hide the names of other topics in a report, but for its parts, unless the client may have
    them explained, too: they wait for the same limit of the broker."""
    for limit in report["limits"]:
        for waiter in limit["longestWaiting"]:
            name = waiter["topic"]
            if not call.may(Operation.EXPLAIN, name):
                tenant = parse_topic(name).tenant
                is_near = tenant == topic.tenant
                waiter["topic"] = ANOTHER if is_near else ANOTHER_TENANTS
                waiter["subscription"] = ""


_TOPICS = Query(
    "count", Annotated[int, Meta(ge=1, le=COUNT_MAX)], COUNT_DEFAULT, "How many topics to list"
)
_LIMITS = Query(
    "count", Annotated[int, Meta(ge=1, le=COUNT_MAX)], COUNT_DEFAULT, "How many limits to list"
)
_DECISIONS = Query(
    "count", Annotated[int, Meta(ge=1, le=COUNT_MAX)], COUNT_DEFAULT, "How many decisions to list"
)
_COUNT = Query(
    "count", Annotated[int, Meta(ge=1, le=COUNT_MAX)], COUNT_DEFAULT, "How many backlogs to list"
)
_PER_PARTITION = Query(
    "perPartition", bool, False, "Add a report for each partition of a partitioned topic"
)
_TIMELINE = Query(
    "timeline", bool, False, "Add the last hour: a verdict for each minute, and what changed"
)

ROUTES = (
    Route("GET", EXPLAIN_PATH, Operation.EXPLAIN_BROKER, explain_top, "The largest backlogs",
          reply=TopReport, query=(_COUNT, _TIMELINE)),
    Route("GET", f"{EXPLAIN_PATH}/{{domain}}/{{tenant}}/{{namespace}}/{{topic}}", Operation.EXPLAIN,
          explain_topic, "What holds a topic back", reply=TopicReport,
          query=(_PER_PARTITION, _TIMELINE)),
    Route("GET", "/admin/v2/headgate/limits", Operation.EXPLAIN_BROKER, explain_limits,
          "The limits in force", reply=LimitsReport, query=(_LIMITS,)),
    Route("GET", "/admin/v2/headgate/adaptive", Operation.EXPLAIN_BROKER, explain_adaptive,
          "The adaptive controller and its decisions", reply=AdaptiveReport, query=(_DECISIONS,)),
    Route("GET", "/admin/v2/headgate/broker", Operation.EXPLAIN_BROKER, explain_broker,
          "How the broker itself is", reply=BrokerReport),
    Route("GET", "/admin/v2/headgate/storage", Operation.EXPLAIN_BROKER, explain_storage,
          "What takes the disk", reply=StorageReport, query=(_TOPICS,)),
)  # fmt: skip
