"""Subscriptions: their properties, and whether they are replicated.

A request for a partitioned topic is carried out on every partition.
"""

from __future__ import annotations

from headgate.admin.names import existing_parts, subscription_name, topic_name
from headgate.admin.operations import Operation
from headgate.admin.partition_batches import results_of, subscriptions_of
from headgate.admin.routing import NO_CONTENT, Call, Reply, Route, as_json
from headgate.admin.subscriptions import SUBSCRIPTION_PATH
from headgate.base.names import TopicName
from headgate.metadata.errors import RefusalError, not_found


async def read_properties(call: Call) -> Reply:
    """The properties of a subscription; of all partitions together."""
    name = subscription_name(call)
    found: dict[str, str] = {}
    for part in await _parts_with(call, name):
        found |= call.facade.subscription_properties(part, name)
    return as_json(found)


async def write_properties(call: Call) -> Reply:
    """Replace the properties of a subscription; none in the body removes them all."""
    name = subscription_name(call)
    properties = call.decoded(dict[str, str]) or {}

    async def write(part: TopicName) -> None:
        await call.facade.set_subscription_properties(part, name, properties, call.check)

    await results_of(call, await _parts_with(call, name), write)
    return NO_CONTENT


async def read_replicated(call: Call) -> Reply:
    """Whether a subscription is replicated, by topic: none is."""
    parts = await _parts_with(call, subscription_name(call))
    return as_json({part.full: False for part in parts})


async def write_replicated(call: Call) -> Reply:
    """Switch the replication of a subscription off, which it is; on is refused."""
    enabled = call.decoded(bool)
    await _parts_with(call, subscription_name(call))
    if enabled:
        raise RefusalError(
            405,
            "Replicated subscriptions are not supported: this broker is a cluster of its own, "
            "without geo-replication",
        )
    return NO_CONTENT


async def _parts_with(call: Call, name: str) -> list[TopicName]:
    """The partitions of the topic that have the subscription, or the topic itself.

    Raises:
        RefusalError: 404, none has it.
    """
    parts = existing_parts(call)
    found = [part async for part, names in subscriptions_of(call, parts) if name in names]
    if not found:
        topic = topic_name(call)
        raise not_found(f"Subscription {name} not found for topic {topic}")
    return found


_READ, _UPDATE = Operation.SUBSCRIPTION_READ, Operation.SUBSCRIPTION_UPDATE

ROUTES = (
    Route("GET", f"{SUBSCRIPTION_PATH}/properties", _READ, read_properties,
          "Properties of a subscription", reply=dict[str, str]),
    Route("PUT", f"{SUBSCRIPTION_PATH}/properties", _UPDATE, write_properties,
          "Replace the properties of a subscription", body=dict[str, str]),
    Route("GET", f"{SUBSCRIPTION_PATH}/replicatedSubscriptionStatus", _READ, read_replicated,
          "Whether a subscription is replicated", reply=dict[str, bool]),
    Route("POST", f"{SUBSCRIPTION_PATH}/replicatedSubscriptionStatus", _UPDATE, write_replicated,
          "Switch the replication of a subscription off", body=bool),
)  # fmt: skip
