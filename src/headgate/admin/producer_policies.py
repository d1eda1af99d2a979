"""The policies about what producers send: encryption and the largest message."""

from __future__ import annotations

from headgate.admin import topic_policies
from headgate.admin.names import existing_namespace
from headgate.admin.operations import Operation
from headgate.admin.policy_routes import PolicyHandlers, policy_routes
from headgate.admin.routing import (
    NAMESPACE_PATH,
    NO_CONTENT,
    TOPIC_PATH,
    Call,
    Reply,
    Route,
    as_json,
)
from headgate.metadata.errors import not_allowed
from headgate.metadata.policies import JavaInt


async def get_encryption(call: Call) -> Reply:
    """Whether producers of a namespace must encrypt messages."""
    _, row = existing_namespace(call)
    return as_json(row.policies.encryption_required)


async def set_encryption(call: Call) -> Reply:
    """Set whether producers of a namespace must encrypt messages."""
    name, _ = existing_namespace(call)
    required = bool(call.decoded(bool))
    catalog = call.facade.catalog
    await call.commit(catalog.plan_namespace_policies(name, encryption_required=required))
    return NO_CONTENT


async def get_message_size(call: Call) -> Reply:
    """The largest message of a topic; 204 if it is not set."""
    topic = topic_policies.policy_topic(call)
    size_bytes = call.facade.catalog.topic_policies(topic).max_message_size
    return NO_CONTENT if size_bytes is None else as_json(size_bytes)


async def set_message_size(call: Call) -> Reply:
    """Set the largest message of a topic; an empty body removes it."""
    topic = topic_policies.policy_topic(call)
    size_bytes = call.decoded(JavaInt)
    of_broker = int(call.facade.runtime_settings()["maxMessageSize"])
    if size_bytes is not None and not 0 <= size_bytes <= of_broker:
        raise not_allowed(
            "topic-level maxMessageSize must be greater than or equal to 0 and must be smaller "
            f"than that in the broker-level, {of_broker}"
        )
    catalog = call.facade.catalog
    await call.commit(catalog.plan_topic_policies(topic, max_message_size=size_bytes))
    return NO_CONTENT


_ENCRYPTION = f"{NAMESPACE_PATH}/encryptionRequired"
_SIZE = PolicyHandlers(
    get_message_size, set_message_size, topic_policies.remover("max_message_size")
)

ROUTES = (
    Route("GET", _ENCRYPTION, Operation.NAMESPACE_POLICY_READ, get_encryption,
          "Get encryptionRequired of a namespace", reply=bool),
    Route("POST", _ENCRYPTION, Operation.NAMESPACE_POLICY_WRITE, set_encryption,
          "Set encryptionRequired of a namespace", body=bool),
    *policy_routes(f"{TOPIC_PATH}/maxMessageSize", "maxMessageSize of a topic", JavaInt, _SIZE,
                   Operation.TOPIC_POLICY_READ, Operation.TOPIC_POLICY_WRITE),
)  # fmt: skip
