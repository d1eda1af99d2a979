"""Policies of namespaces and topics about their use: what it creates, which types of subscriptions
it may have, and how entries are stored. Paths, JSON and statuses are Pulsar's."""

from __future__ import annotations

from typing import Any, Final, get_args

from msgspec import Struct

from headgate.admin import namespace_policies, topic_policies
from headgate.admin.expiry_policies import topic_getter
from headgate.admin.names import existing_namespace
from headgate.admin.operations import Operation
from headgate.admin.policy_routes import PolicyHandlers, policy_routes
from headgate.admin.queries import APPLIED
from headgate.admin.routing import NAMESPACE_PATH, NO_CONTENT, TOPIC_PATH, Call, Reply, as_json
from headgate.base.names import TopicName
from headgate.facade.protocol import Facade
from headgate.metadata.errors import not_allowed
from headgate.metadata.policies import (
    AutoSubscriptionCreation,
    AutoTopicCreation,
    JavaInt,
    Persistence,
    SubscriptionTypes,
    TopicType,
)

_CREATION: Final = "auto_topic_creation"
_SUBSCRIPTION_CREATION: Final = "auto_subscription_creation"
_TYPES: Final = "subscription_types_enabled"
_PERSISTENCE: Final = "persistence"

ONE_COPY: Final = Persistence(1, 1, 1, 0.0)
"""How entries are stored in any case."""


class AutoTopicCreationBody(Struct, rename="camel"):
    """A policy as clients send it."""

    allow_auto_topic_creation: bool = False
    topic_type: str | None = None
    default_num_partitions: JavaInt | None = None


def stored_creation(body: AutoTopicCreationBody | None) -> AutoTopicCreation | None:
    """The policy of a body; None removes it.

    Raises:
        RefusalError: 412 for an unknown type of topic.
    """
    if body is None:
        return None
    if not body.allow_auto_topic_creation:
        return AutoTopicCreation(False)
    if body.topic_type not in get_args(TopicType):
        raise not_allowed(
            "Invalid configuration for autoTopicCreationOverride. the detail is Unknown topic type "
            f"[{(body.topic_type or 'null')[:80]}]"
        )
    return AutoTopicCreation(True, body.topic_type, body.default_num_partitions)  # type: ignore[arg-type]


async def set_creation(call: Call) -> Reply:
    """Replace the policy on the topics that a client's first use creates."""
    name, _ = existing_namespace(call)
    creation = stored_creation(call.decoded(AutoTopicCreationBody))
    catalog = call.facade.catalog
    await call.commit(catalog.plan_namespace_policies(name, auto_topic_creation=creation))
    return NO_CONTENT


def persistence_in_force(facade: Facade, topic: TopicName) -> Persistence:
    """The policy of a topic or its namespace, which both describe what the log does."""
    catalog = facade.catalog
    return (
        catalog.topic_policies(topic).persistence
        or catalog.namespace_policies(topic.namespace).persistence
        or ONE_COPY
    )


async def get_types(call: Call) -> Reply:
    """The types of subscriptions that are allowed in a namespace; none if that is not set."""
    _, row = existing_namespace(call)
    return as_json(row.policies.subscription_types_enabled or ())


_NS_READ, _NS_WRITE = Operation.NAMESPACE_POLICY_READ, Operation.NAMESPACE_POLICY_WRITE
_READ, _WRITE = Operation.TOPIC_POLICY_READ, Operation.TOPIC_POLICY_WRITE
_TYPE_LIST: Any = SubscriptionTypes

_OF_NAMESPACE: Final = (
    ("autoTopicCreation", AutoTopicCreationBody, PolicyHandlers(
        namespace_policies.getter(_CREATION), set_creation, namespace_policies.remover(_CREATION))),
    ("autoSubscriptionCreation", AutoSubscriptionCreation, PolicyHandlers(
        namespace_policies.getter(_SUBSCRIPTION_CREATION),
        namespace_policies.setter(_SUBSCRIPTION_CREATION, AutoSubscriptionCreation),
        namespace_policies.remover(_SUBSCRIPTION_CREATION))),
    ("subscriptionTypesEnabled", _TYPE_LIST, PolicyHandlers(
        get_types, namespace_policies.setter(_TYPES, _TYPE_LIST),
        namespace_policies.remover(_TYPES))),
    ("persistence", Persistence, PolicyHandlers(
        namespace_policies.getter(_PERSISTENCE),
        namespace_policies.setter(_PERSISTENCE, Persistence),
        namespace_policies.remover(_PERSISTENCE))),
)  # fmt: skip

_OF_TOPIC: Final = (
    ("autoSubscriptionCreation", AutoSubscriptionCreation, PolicyHandlers(
        topic_getter(_SUBSCRIPTION_CREATION, lambda facade, topic: AutoSubscriptionCreation(
            facade.uses.creates_subscriptions(topic))),
        topic_policies.setter(_SUBSCRIPTION_CREATION, AutoSubscriptionCreation),
        topic_policies.remover(_SUBSCRIPTION_CREATION))),
    ("subscriptionTypesEnabled", _TYPE_LIST, PolicyHandlers(
        topic_getter(_TYPES, lambda facade, topic: facade.uses.subscription_types(topic),
                     NO_CONTENT),
        topic_policies.setter(_TYPES, _TYPE_LIST),
        topic_policies.remover(_TYPES))),
    ("persistence", Persistence, PolicyHandlers(
        topic_getter(_PERSISTENCE, persistence_in_force),
        topic_policies.setter(_PERSISTENCE, Persistence),
        topic_policies.remover(_PERSISTENCE))),
)  # fmt: skip

ROUTES = (
    *(
        route
        for segment, type_, handlers in _OF_NAMESPACE
        for route in policy_routes(
            f"{NAMESPACE_PATH}/{segment}", f"{segment} of a namespace", type_, handlers,
            _NS_READ, _NS_WRITE,
        )
    ),
    *(
        route
        for segment, type_, handlers in _OF_TOPIC
        for route in policy_routes(
            f"{TOPIC_PATH}/{segment}", f"{segment} of a topic", type_, handlers, _READ, _WRITE,
            (APPLIED,),
        )
    ),
)  # fmt: skip
