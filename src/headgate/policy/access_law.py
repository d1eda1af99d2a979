"""The law of authorization: whether a client may perform an operation, and why.

A decision is a few look-ups in the metadata and in sets of roles. It has a reason in words, for
``permissions check`` and for the log; clients get Pulsar's texts instead.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from headgate.base.identity import Identity
from headgate.base.names import (
    InvalidNameError,
    NamespaceName,
    TopicName,
    parse_topic,
    tenant_of,
)
from headgate.metadata.catalog import Catalog
from headgate.metadata.grants import Action
from headgate.policy.access_rules import RULES, Access, Rule, Scope
from headgate.policy.authorization_settings import EVERYBODY, AuthorizationSettings
from headgate.policy.setting_info import names_of
from headgate.policy.wildcard_grants import GrantsRow, WildcardGrants

_ACTIONS: Final[dict[Access, tuple[Action, ...]]] = {
    Access.PRODUCE: ("produce",),
    Access.CONSUME: ("consume",),
    Access.EITHER: ("produce", "consume"),
}


class Decision(NamedTuple):
    """Whether something is allowed, and why, as a clause."""

    allowed: bool
    reason: str


class AccessLaw:
    """Decides by the metadata and the settings of one broker."""

    def __init__(
        self,
        catalog: Catalog,
        settings: AuthorizationSettings,
        proxy_roles: Collection[str] = (),
    ) -> None:
        """``proxy_roles`` are those of proxies (``proxyRoles``)."""
        self._catalog = catalog
        self._super_users = frozenset(names_of(settings.superUserRoles))
        self._metrics_roles = frozenset(names_of(settings.headgateMetricsRoles))
        allows_wildcards = settings.authorizationAllowWildcardsMatching
        self._wildcards = WildcardGrants() if allows_wildcards else None
        self._proxies = frozenset(proxy_roles)

    def decide(
        self, identity: Identity, operation: str, resource: str, subscription: str = ""
    ) -> Decision:
        """Whether ``identity`` may perform ``operation`` on ``resource``: a topic's full name, a
        namespace, a tenant, or empty for the broker.

        Of a client behind a proxy both roles must be allowed, so what a proxy may do never decides
        alone.
        """
        rule = RULES.get(operation)
        if rule is None:
            return Decision(False, f"no rule allows {operation}")
        if rule.access is Access.EVERYBODY:
            return Decision(True, "everybody may do that, also without credentials")
        if rule.access is Access.METRICS and EVERYBODY in self._metrics_roles:
            return Decision(True, "headgateMetricsRoles has *")
        if not identity.original_role:
            if identity.role in self._proxies:
                return Decision(False, f"proxy {identity.role} does not name its client")
            return self._of_role(identity.role, rule, resource, subscription)
        original = self._of_role(identity.original_role, rule, resource, subscription)
        if not original.allowed:
            return original
        proxy = self._of_role(identity.role, rule, resource, subscription)
        if not proxy.allowed:
            return Decision(False, f"its proxy may not: {proxy.reason}")
        return original

    def _of_role(self, role: str, rule: Rule, resource: str, subscription: str) -> Decision:
        if not role:
            return Decision(False, "it has no role")
        if role in self._super_users:
            return Decision(True, f"role {role} is a super user (superUserRoles)")
        access = rule.access
        if access is Access.ANY_ROLE:
            return Decision(True, "every role may do that")
        if access is Access.SUPER_USER:
            return Decision(False, f"only super users may do that, and role {role} is none")
        if access is Access.METRICS:
            return self._of_metrics(role)
        tenant = tenant_of(resource)
        row = self._catalog.tenant(tenant)
        if row is not None and role in row.admin_roles:
            return Decision(True, f"role {role} administers tenant {tenant}")
        if access is Access.TENANT_ADMIN:
            return Decision(
                False, f"role {role} is neither a super user nor administers tenant {tenant}"
            )
        try:
            if rule.scope is Scope.NAMESPACE:
                return self._of_namespace(role, access, NamespaceName.parse(resource))
            if "://" not in resource:
                raise InvalidNameError(f"{resource[:80]!r} is not the full name of a topic")
            return self._of_topic(role, access, parse_topic(resource), subscription)
        except InvalidNameError as error:
            return Decision(False, str(error))

    def _of_metrics(self, role: str) -> Decision:
        if role in self._metrics_roles:
            return Decision(True, f"headgateMetricsRoles has role {role}")
        return Decision(
            False, f"role {role} is neither a super user nor one of headgateMetricsRoles"
        )

    def _of_namespace(self, role: str, access: Access, namespace: NamespaceName) -> Decision:
        found = self._granted(role, access, self._catalog.namespace_grants(namespace))
        if found:
            return Decision(True, f"{found} is granted on namespace {namespace}")
        return Decision(False, f"role {role} has no {access.value} on namespace {namespace}")

    def _of_topic(self, role: str, access: Access, topic: TopicName, subscription: str) -> Decision:
        catalog = self._catalog
        namespace = topic.namespace
        grants = catalog.namespace_grants(namespace)
        if subscription:
            is_prefixed = grants.subscription_auth_mode == "Prefix"
            refused = self._why_not_subscription(role, topic, subscription, is_prefixed)
            if refused:
                return Decision(False, refused)
        found = self._granted(role, access, grants)
        if found:
            return Decision(True, f"{found} is granted on namespace {namespace}")
        found = self._granted(role, access, catalog.topic_grants(topic.full))
        if found:
            return Decision(True, f"{found} is granted on topic {topic}")
        whole = catalog.own_name(topic)
        if whole != topic.full:
            found = self._granted(role, access, catalog.topic_grants(whole))
            if found:
                return Decision(True, f"{found} is granted on the partitioned topic {whole}")
        return Decision(
            False,
            f"role {role} has no {access.value} on topic {topic} or namespace {namespace}",
        )

    def _why_not_subscription(
        self, role: str, topic: TopicName, subscription: str, is_prefixed: bool
    ) -> str:
        """Why a role may not use a subscription at all; empty if it may consume where it can."""
        namespace = topic.namespace
        only = self._catalog.subscription_grants(namespace, subscription)
        if only is not None and role not in only.roles:
            return (
                f"role {role} is not among the roles that may use subscription {subscription} in "
                f"namespace {namespace}"
            )
        if is_prefixed and not subscription.startswith(role):
            return (
                f"the name of a subscription in namespace {namespace} must begin with the role of "
                f"its consumers, as {role}-xxxx"
            )
        return ""

    def _granted(self, role: str, access: Access, row: GrantsRow) -> str:
        """The grant that allows ``access``, in words; empty if there is none."""
        if not row.roles:
            return ""
        own = row.roles.get(role, ())
        for action in _ACTIONS[access]:
            if action in own:
                return f"{action} of role {role}"
        if self._wildcards is not None:
            for action in _ACTIONS[access]:
                if pattern := self._wildcards.find(row, role, action):
                    return f"{action} of role {pattern}"
        return ""
