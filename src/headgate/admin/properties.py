"""Properties of namespaces and topics."""

from __future__ import annotations

from headgate.admin.names import existing_namespace, missing_topic, namespace_name, topic_name
from headgate.admin.operations import Operation
from headgate.admin.routing import (
    NAMESPACE_PATH,
    NO_CONTENT,
    TOPIC_PATH,
    Call,
    Query,
    Reply,
    Route,
    as_json,
    as_text,
)
from headgate.base.names import TopicName
from headgate.metadata.errors import not_allowed, not_found


async def of_namespace(call: Call) -> Reply:
    """All properties of a namespace."""
    _, row = existing_namespace(call)
    return as_json(dict(row.properties))


async def one_of_namespace(call: Call) -> Reply:
    """The value of one property of a namespace; nothing if it is not set."""
    _, row = existing_namespace(call)
    value = row.properties.get(call.params["key"])
    return NO_CONTENT if value is None else as_text(value)


async def add_to_namespace(call: Call) -> Reply:
    """Add or replace properties of a namespace."""
    name, added = namespace_name(call), call.decoded(dict[str, str])
    if not added:
        raise not_allowed("The body has no properties: an object of texts is allowed")
    await call.commit(call.facade.catalog.plan_namespace_properties(name, added))
    return NO_CONTENT


async def set_in_namespace(call: Call) -> Reply:
    """Set one property of a namespace."""
    added = {call.params["key"]: call.params["value"]}
    plan = call.facade.catalog.plan_namespace_properties
    await call.commit(plan(namespace_name(call), added))
    return NO_CONTENT


async def remove_from_namespace(call: Call) -> Reply:
    """Remove one property of a namespace; the answer is its value."""
    name, row = existing_namespace(call)
    key = call.params["key"]
    value = row.properties.get(key)
    await call.commit(call.facade.catalog.plan_namespace_properties(name, {}, [key]))
    return NO_CONTENT if value is None else as_text(value)


async def clear_namespace(call: Call) -> Reply:
    """Remove all properties of a namespace."""
    plan = call.facade.catalog.plan_namespace_properties
    await call.commit(plan(namespace_name(call), {}, None))
    return NO_CONTENT


async def of_topic(call: Call) -> Reply:
    """The properties of a topic, partitioned or not, or of one partition."""
    topic = _existing(call)
    catalog = call.facade.catalog
    row = catalog.partitioned(topic.full) or catalog.topic(topic.full)
    return as_json({} if row is None else dict(row.properties))


async def add_to_topic(call: Call) -> Reply:
    """Add or replace properties of a topic."""
    topic, added = _existing(call), call.decoded(dict[str, str])
    if not added:
        raise not_allowed("The body has no properties: an object of texts is allowed")
    await call.commit(call.facade.catalog.plan_topic_properties(topic, added))
    return NO_CONTENT


async def remove_from_topic(call: Call) -> Reply:
    """Remove one property of a topic, if it has it."""
    topic, key = _existing(call), call.query.get("key", "")
    if not key:
        raise not_found("Remove which property? The query has no key")
    await call.commit(call.facade.catalog.plan_topic_properties(topic, removed=[key]))
    return NO_CONTENT


def _existing(call: Call) -> TopicName:
    topic, catalog = topic_name(call), call.facade.catalog
    if catalog.partitioned(topic.full) is None and catalog.topic(topic.full) is None:
        raise missing_topic(catalog, topic)
    return topic


_N = f"{NAMESPACE_PATH}/properties"
_ONE = f"{NAMESPACE_PATH}/property/{{key}}"
_T = f"{TOPIC_PATH}/properties"
_READ, _WRITE = Operation.NAMESPACE_READ, Operation.NAMESPACE_PROPERTIES_WRITE
_KEY = Query("key", str, "", "The property to remove")

ROUTES = (
    Route("GET", _N, _READ, of_namespace, "Properties of a namespace", reply=dict[str, str]),
    Route("PUT", _N, _WRITE, add_to_namespace, "Add properties to a namespace",
          body=dict[str, str]),
    Route("DELETE", _N, _WRITE, clear_namespace, "Remove all properties of a namespace"),
    Route("GET", _ONE, _READ, one_of_namespace, "A property of a namespace", reply=str),
    Route("PUT", f"{_ONE}/{{value}}", _WRITE, set_in_namespace, "Set a property of a namespace"),
    Route("DELETE", _ONE, _WRITE, remove_from_namespace, "Remove a property of a namespace",
          reply=str),
    Route("GET", _T, Operation.TOPIC_PROPERTIES_READ, of_topic, "Properties of a topic",
          reply=dict[str, str]),
    Route("PUT", _T, Operation.TOPIC_PROPERTIES_WRITE, add_to_topic, "Add properties to a topic",
          body=dict[str, str]),
    Route("DELETE", _T, Operation.TOPIC_PROPERTIES_REMOVE, remove_from_topic,
          "Remove a property of a topic", query=(_KEY,)),
)  # fmt: skip
