"""Grants: what roles may do in a namespace, on a topic and with a subscription.

Each namespace, topic and subscription has a row of its own, so that a change writes only that row,
and a namespace with thousands of topics costs no more than one with few.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

from msgspec import Struct, field

Action = Literal["produce", "consume", "functions", "sources", "sinks"]
"""What a grant allows, by Pulsar's names. Headgate stores the last three, and has nothing that
needs them."""

ACTIONS: Final[tuple[Action, ...]] = get_args(Action)
"""All actions, in Pulsar's order."""

SubscriptionAuthMode = Literal["None", "Prefix"]
"""Whether a subscription's name must begin with the role of its consumers, by Pulsar's names."""

RoleActions = Mapping[str, tuple[Action, ...]]
"""Roles with what each of them may do; none without an action."""

ROLES_MAX: Final = 1_000
"""Most roles in one row. A change of a row writes all of it."""

ROWS_MAX: Final = 10_000
"""Most subscriptions of a namespace, and most of its topics, with roles of their own."""


class NamespaceGrants(Struct, frozen=True, kw_only=True, omit_defaults=True, weakref=True):
    """The grants on all topics of a namespace."""

    roles: RoleActions = field(default_factory=dict)
    subscription_auth_mode: SubscriptionAuthMode = "None"


class TopicGrants(Struct, frozen=True, kw_only=True, omit_defaults=True, weakref=True):
    """The grants on one topic; those on a partitioned topic are also on its partitions."""

    roles: RoleActions = field(default_factory=dict)


class SubscriptionGrants(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The roles that may use the subscriptions of one name in a namespace. Without a row every role
    that may consume from the topic may use them."""

    roles: tuple[str, ...] = ()


NO_NAMESPACE_GRANTS: Final = NamespaceGrants()
"""The grants of a namespace on which none is set."""

NO_TOPIC_GRANTS: Final = TopicGrants()
"""The grants of a topic on which none is set."""


def in_order(actions: frozenset[Action]) -> tuple[Action, ...]:
    """Each action once, in Pulsar's order."""
    return tuple(action for action in ACTIONS if action in actions)


def with_role(roles: RoleActions, role: str, actions: frozenset[Action]) -> RoleActions:
    """``roles`` with the actions of one replaced; without that role if there are none."""
    changed = {name: given for name, given in roles.items() if name != role}
    return {**changed, role: in_order(actions)} if actions else changed
