"""Changes of grants, validated and staged."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import cast

import msgspec

from headgate.base.names import NAME_CHARACTERS_MAX, NamespaceName, TopicName, is_short_line
from headgate.metadata.errors import not_allowed, not_found
from headgate.metadata.grants import (
    NO_NAMESPACE_GRANTS,
    NO_TOPIC_GRANTS,
    ROLES_MAX,
    ROWS_MAX,
    Action,
    NamespaceGrants,
    SubscriptionAuthMode,
    SubscriptionGrants,
    TopicGrants,
    with_role,
)
from headgate.metadata.rows import Kind
from headgate.metadata.staged_rows import RowValues, staged_namespace, topic_exists
from headgate.metadata.state import Change, RowState


class GrantPlans:
    """Plans changes of grants."""

    def __init__(self, state: RowState) -> None:
        self._state = state
        self._need_topics = True

    def allow_grants_without_topics(self, allowed: bool) -> None:
        """Whether something may be granted on a topic that does not exist; False at first."""
        self._need_topics = not allowed

    def plan_namespace_grant(
        self, name: NamespaceName, role: str, actions: frozenset[Action]
    ) -> Change:
        """Replace what ``role`` may do on all topics of a namespace; nothing without an action.

        Raises:
            RefusalError: 404 without the namespace, 412 for a role that is not allowed or one too
                many.
        """
        present = self._namespace_grants(name)
        changed = with_role(present.roles, check_role(role), actions)
        _check_count(changed, f"namespace {name}")
        return self._stage_namespace(name, msgspec.structs.replace(present, roles=changed))

    def plan_subscription_auth_mode(
        self, name: NamespaceName, mode: SubscriptionAuthMode
    ) -> Change:
        """Set whether the names of subscriptions must begin with the role of their consumers.

        Raises:
            RefusalError: 404 without the namespace.
        """
        present = self._namespace_grants(name)
        changed = msgspec.structs.replace(present, subscription_auth_mode=mode)
        return self._stage_namespace(name, changed)

    def plan_topic_grant(self, topic: TopicName, role: str, actions: frozenset[Action]) -> Change:
        """Replace what ``role`` may do on one topic; nothing without an action.

        Raises:
            RefusalError: 404 without the namespace, or without the topic unless grants need none;
                412 for a role that is not allowed or one too many.
        """
        staged_namespace(self._state, topic.namespace)
        if self._need_topics and not topic_exists(self._state, topic.full):
            raise not_found(f"Topic {topic} not found")
        changed = with_role(self._topic_grants(topic).roles, check_role(role), actions)
        _check_count(changed, f"topic {topic}")
        row = TopicGrants(roles=changed) if changed else None
        if row is not None:
            parent = f"{topic.domain}://{topic.namespace}"
            self._check_rows(Kind.TOPIC_GRANTS, topic.full, parent, "topics")
        return self._state.stage([(Kind.TOPIC_GRANTS, topic.full, row)])

    def plan_topic_revoke(self, topic: TopicName, role: str) -> Change:
        """Remove what is granted to ``role`` on one topic, which need not exist any more.

        Raises:
            RefusalError: 404 without the namespace, 412 if nothing is granted on the topic itself.
        """
        staged_namespace(self._state, topic.namespace)
        present = self._topic_grants(topic).roles
        if role not in present:
            raise not_allowed("Permissions are not set at the topic level")
        changed = with_role(present, role, frozenset())
        row = TopicGrants(roles=changed) if changed else None
        return self._state.stage([(Kind.TOPIC_GRANTS, topic.full, row)])

    def plan_subscription_grant(
        self, name: NamespaceName, subscription: str, roles: Iterable[str]
    ) -> Change:
        """Let only ``roles`` use the subscriptions of that name; with none of them, all may again.

        Raises:
            RefusalError: 404 without the namespace, 412 for a role that is not allowed or one too
                many.
        """
        staged_namespace(self._state, name)
        distinct = set(roles)
        _check_count(distinct, f"subscription {subscription} of namespace {name}")
        wanted = tuple(sorted(map(check_role, distinct)))
        row = SubscriptionGrants(roles=wanted) if wanted else None
        key = subscription_key(name, subscription)
        if row is not None:
            self._check_rows(Kind.SUBSCRIPTION_GRANTS, key, str(name), "subscriptions")
        return self._state.stage([(Kind.SUBSCRIPTION_GRANTS, key, row)])

    def plan_subscription_revoke(self, name: NamespaceName, subscription: str, role: str) -> Change:
        """Remove one of the roles that may use a subscription. Without the last one, all may.

        Raises:
            RefusalError: 404 without the namespace, 412 if no role is set for the subscription.
        """
        staged_namespace(self._state, name)
        key = subscription_key(name, subscription)
        row = cast(SubscriptionGrants | None, self._state.staged(Kind.SUBSCRIPTION_GRANTS, key))
        if row is None:
            raise not_allowed("couldn't find subscription")
        return self.plan_subscription_grant(
            name, subscription, [each for each in row.roles if each != role]
        )

    def _namespace_grants(self, name: NamespaceName) -> NamespaceGrants:
        staged_namespace(self._state, name)
        row = self._state.staged(Kind.NAMESPACE_GRANTS, str(name))
        return cast(NamespaceGrants | None, row) or NO_NAMESPACE_GRANTS

    def _topic_grants(self, topic: TopicName) -> TopicGrants:
        row = self._state.staged(Kind.TOPIC_GRANTS, topic.full)
        return cast(TopicGrants | None, row) or NO_TOPIC_GRANTS

    def _check_rows(self, kind: Kind, key: str, parent: str, what: str) -> None:
        is_new = self._state.staged(kind, key) is None
        if is_new and self._state.staged_count(kind, parent) >= ROWS_MAX:
            raise not_allowed(f"{parent} has grants on {ROWS_MAX} {what}: more are not allowed")

    def _stage_namespace(self, name: NamespaceName, grants: NamespaceGrants) -> Change:
        row = None if grants == NO_NAMESPACE_GRANTS else grants
        return self._state.stage([(Kind.NAMESPACE_GRANTS, str(name), row)])


def check_role(role: str) -> str:
    """Return ``role`` if it may be the name of a role.

    Raises:
        RefusalError: 412.
    """
    if not role or not is_short_line(role):
        raise not_allowed(
            f"Role {role[:80]!r} is not valid: 1 to {NAME_CHARACTERS_MAX} characters, none of them "
            "a control character, are allowed"
        )
    return role


def subscription_key(name: NamespaceName, subscription: str) -> str:
    """The key of the row with the grants on a subscription."""
    return f"{name}/{subscription}"


def grants_of_namespace(state: RowState, name: NamespaceName) -> RowValues:
    """Rows that remove all grants on a namespace and in it."""
    rows: RowValues = [
        (Kind.TOPIC_GRANTS, key, None)
        for domain in ("persistent", "non-persistent")
        for key in state.staged_children(Kind.TOPIC_GRANTS, f"{domain}://{name}")
    ]
    subscriptions = state.staged_children(Kind.SUBSCRIPTION_GRANTS, str(name))
    rows += [(Kind.SUBSCRIPTION_GRANTS, key, None) for key in subscriptions]
    if state.staged(Kind.NAMESPACE_GRANTS, str(name)) is not None:
        rows.append((Kind.NAMESPACE_GRANTS, str(name), None))
    return rows


def new_grants(
    name: NamespaceName,
    namespace: NamespaceGrants,
    topics: Mapping[TopicName, TopicGrants],
    subscriptions: Mapping[str, SubscriptionGrants],
) -> RowValues:
    """Rows with the grants of a new namespace.

    Raises:
        RefusalError: 412 for a role that is not allowed or one too many.
    """
    for what, roles in (
        (f"namespace {name}", namespace.roles),
        *((f"topic {topic}", grants.roles) for topic, grants in topics.items()),
        *((f"subscription {key}", grants.roles) for key, grants in subscriptions.items()),
    ):
        _check_count(roles, what)
        for role in roles:
            check_role(role)
    rows: RowValues = []
    if namespace != NO_NAMESPACE_GRANTS:
        rows.append((Kind.NAMESPACE_GRANTS, str(name), namespace))
    rows += [(Kind.TOPIC_GRANTS, topic.full, row) for topic, row in topics.items() if row.roles]
    rows += [
        (Kind.SUBSCRIPTION_GRANTS, subscription_key(name, key), row)
        for key, row in subscriptions.items()
        if row.roles
    ]
    return rows


def _check_count(roles: Collection[str], what: str) -> None:
    if len(roles) > ROLES_MAX:
        raise not_allowed(f"{what} would have {len(roles)} roles: {ROLES_MAX} are allowed")
