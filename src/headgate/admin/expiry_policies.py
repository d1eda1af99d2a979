"""Policies of namespaces and topics about what ends by itself: messages, subscriptions, topics.

The path, JSON and statuses are Pulsar's. A topic's TTL and expiration time are query parameters,
and one that is left out removes the policy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from headgate.admin import namespace_policies
from headgate.admin.operations import Operation
from headgate.admin.policy_routes import PolicyHandlers, policy_routes
from headgate.admin.queries import APPLIED
from headgate.admin.routing import (
    EMPTY,
    NAMESPACE_PATH,
    NO_CONTENT,
    TOPIC_PATH,
    Call,
    Handler,
    Query,
    Reply,
    Route,
    as_json,
)
from headgate.admin.topic_policies import policy_topic, remover, setter
from headgate.base.names import TopicName
from headgate.facade.protocol import Facade
from headgate.metadata.errors import RefusalError, not_allowed
from headgate.metadata.policies import InactiveTopicPolicies, JavaInt

InForce = Callable[[Facade, TopicName], Any]
"""Finds the policy in force on a topic."""


def topic_getter(field: str, in_force: InForce, unset: Reply = EMPTY) -> Handler:
    """A handler that shows a topic's policy, or (``applied=true``) the one in force. It answers
    ``unset`` if the topic has none."""

    async def get(call: Call) -> Reply:
        topic = policy_topic(call)
        if call.flag("applied"):
            return as_json(in_force(call.facade, topic))
        value = getattr(call.facade.catalog.topic_policies(topic), field)
        return unset if value is None else as_json(value)

    return get


def _number_setter(field: str, parameter: str) -> Handler:
    """A handler that sets a number from a query parameter, or removes it without one."""

    async def post(call: Call) -> Reply:
        topic = policy_topic(call)
        text = call.query.get(parameter, "")
        value: int | None = None
        if text:
            try:
                value = msgspec.convert(text, JavaInt, strict=False)
            except msgspec.ValidationError as error:
                raise RefusalError(
                    400, f"{parameter} is {text[:80]!r}: a 32-bit integer is allowed"
                ) from error
        catalog = call.facade.catalog
        await call.commit(catalog.plan_topic_policies(topic, **{field: value}))
        return NO_CONTENT

    return post


_TTL: Final = "message_ttl_in_seconds"
_EXPIRATION: Final = "subscription_expiration_time_minutes"
_INACTIVE: Final = "inactive_topic_policies"


def _namespace_number_setter(field: str, what: str) -> Handler:
    """A handler that sets a number of a namespace; the body must have it, as in Pulsar."""
    set_number = namespace_policies.setter(field, JavaInt)

    async def post(call: Call) -> Reply:
        if call.decoded(JavaInt) is None:
            raise not_allowed(f"Invalid value for {what}: the body must be a number")
        return await set_number(call)

    return post


async def remove_all(call: Call) -> Reply:
    """Remove all policies of a topic (PIP-422)."""
    topic = policy_topic(call)
    await call.commit(call.facade.catalog.plan_remove_topic_policies(topic))
    return NO_CONTENT


_NS_READ, _NS_WRITE = Operation.NAMESPACE_POLICY_READ, Operation.NAMESPACE_POLICY_WRITE
_READ, _WRITE = Operation.TOPIC_POLICY_READ, Operation.TOPIC_POLICY_WRITE


def _namespace_routes(segment: str, field: str, type_: Any, post: Handler) -> tuple[Route, ...]:
    handlers = PolicyHandlers(
        namespace_policies.getter(field), post, namespace_policies.remover(field)
    )
    name = f"{segment} of a namespace"
    return policy_routes(f"{NAMESPACE_PATH}/{segment}", name, type_, handlers, _NS_READ, _NS_WRITE)


def _number_routes(segment: str, field: str, in_force: InForce, unit: str) -> tuple[Route, ...]:
    """The routes of a topic's number."""
    path, name = f"{TOPIC_PATH}/{segment}", f"{segment} of a topic"
    query = (Query(segment, int, None, f"{unit}; left out: remove the policy"),)
    return (
        Route("GET", path, _READ, topic_getter(field, in_force), f"Get {name}", reply=int,
              query=(APPLIED,)),
        Route("POST", path, _WRITE, _number_setter(field, segment), f"Set {name}", query=query),
        Route("DELETE", path, _WRITE, remover(field), f"Remove {name}"),
    )  # fmt: skip


_INACTIVE_HANDLERS: Final = PolicyHandlers(
    topic_getter(_INACTIVE, lambda facade, topic: facade.expiry.inactive_topic(topic)),
    setter(_INACTIVE, InactiveTopicPolicies),
    remover(_INACTIVE),
)


def _ttl_in_force(facade: Facade, topic: TopicName) -> int:
    ttl = facade.expiry.message_ttl(topic)
    return 0 if ttl is None else ttl.ttl_s


ROUTES = (
    *_namespace_routes("messageTTL", _TTL, JavaInt,
                       _namespace_number_setter(_TTL, "message TTL")),
    *_namespace_routes("subscriptionExpirationTime", _EXPIRATION, JavaInt,
                       _namespace_number_setter(_EXPIRATION, "subscription expiration time")),
    *_namespace_routes("inactiveTopicPolicies", _INACTIVE, InactiveTopicPolicies,
                       namespace_policies.setter(_INACTIVE, InactiveTopicPolicies)),
    *_number_routes("messageTTL", _TTL, _ttl_in_force, "Seconds"),
    *_number_routes(
        "subscriptionExpirationTime", _EXPIRATION,
        lambda facade, topic: facade.expiry.subscription_expiration_min(topic), "Minutes"),
    *policy_routes(f"{TOPIC_PATH}/inactiveTopicPolicies", "inactiveTopicPolicies of a topic",
                   InactiveTopicPolicies, _INACTIVE_HANDLERS, _READ, _WRITE, (APPLIED,)),
    Route("DELETE", f"{TOPIC_PATH}/policies", _WRITE, remove_all, "Remove all policies of a topic"),
)  # fmt: skip
