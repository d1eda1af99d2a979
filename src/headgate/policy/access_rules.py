"""One rule for each operation: which roles may perform it, and how a refusal is worded.

The broker refuses an operation without a rule, and ``tests/unit/policy/test_access_rules.py`` fails
while a command, a route or another operation has none. The rules follow Pulsar's
``PulsarAuthorizationProvider``; ``docs/decisions/0054-authorization.md`` has the differences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from headgate.base.names import without_domain


class Access(Enum):
    """Which roles may perform an operation, beside the super users; the value is for people."""

    EVERYBODY = "everybody, also without credentials"
    ANY_ROLE = "every role"
    PRODUCE = "produce"
    CONSUME = "consume"
    EITHER = "produce or consume"
    TENANT_ADMIN = "administrators of the tenant"
    METRICS = "roles of headgateMetricsRoles"
    SUPER_USER = "only super users"


class Scope(Enum):
    """What an operation is performed on; the value is for people."""

    BROKER = "the broker"
    TENANT = "a tenant"
    NAMESPACE = "a namespace"
    TOPIC = "a topic"
    SUBSCRIPTION = "a subscription of a topic"


class Family(Enum):
    """Pulsar's family of an operation, which decides the status and the text of a refusal."""

    SUPER = 401
    TENANT = "validateTenantOperation"
    NAMESPACE = "validateNamespaceOperation"
    NAMESPACE_POLICY = "validateNamespacePolicyOperation"
    TOPIC = "validateTopicOperation"
    TOPIC_POLICY = "validateTopicPolicyOperation"


_FORBIDDEN: Final = (Family.NAMESPACE, Family.NAMESPACE_POLICY, Family.TOPIC_POLICY)
"""Their refusals have status 403, all others 401."""


METRICS_REFUSED: Final = (
    "This operation requires super-user access, or a role of headgateMetricsRoles (* is everybody)"
)
"""The text for a scrape that is not allowed: scrapers often have no credentials."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule of one operation."""

    access: Access
    scope: Scope
    family: Family
    pulsar_name: str
    """Pulsar's name of the operation in the text of a refusal."""


def _super(name: str, scope: Scope = Scope.BROKER) -> Rule:
    return Rule(Access.SUPER_USER, scope, Family.SUPER, name)


def _tenant(name: str, scope: Scope = Scope.TENANT) -> Rule:
    return Rule(Access.TENANT_ADMIN, scope, Family.TENANT, name)


def _namespace(
    access: Access, name: str, family: Family = Family.NAMESPACE, scope: Scope = Scope.NAMESPACE
) -> Rule:
    return Rule(access, scope, family, name)


def _topic(access: Access, name: str, family: Family = Family.TOPIC) -> Rule:
    return Rule(access, Scope.TOPIC, family, name)


def _subscription(name: str) -> Rule:
    return Rule(Access.CONSUME, Scope.SUBSCRIPTION, Family.TOPIC, name)


_ADMIN: Final = Access.TENANT_ADMIN

RULES: Final[Mapping[str, Rule]] = {
    # The binary protocol.
    "connection.open": Rule(Access.ANY_ROLE, Scope.BROKER, Family.SUPER, "CONNECT"),
    "connection.keep_alive": Rule(Access.EVERYBODY, Scope.BROKER, Family.SUPER, "PING"),
    "topic.produce": _topic(Access.PRODUCE, "PRODUCE"),
    "topic.consume": _subscription("CONSUME"),
    "schema.read": _topic(Access.EITHER, "GET_METADATA"),
    "schema.write": _topic(Access.PRODUCE, "PRODUCE"),
    "transaction.use": _super("TRANSACTION"),
    # Both.
    "topic.lookup": _topic(Access.EITHER, "LOOKUP"),
    "namespace.topics": _namespace(Access.EITHER, "GET_TOPICS"),
    "subscription.delete": _subscription("UNSUBSCRIBE"),
    "subscription.reset": _subscription("RESET_CURSOR"),
    # The broker.
    "cluster.read": Rule(Access.ANY_ROLE, Scope.BROKER, Family.SUPER, "GET_CLUSTER"),
    "cluster.create": _super("CREATE_CLUSTER"),
    "cluster.update": _super("UPDATE_CLUSTER"),
    "cluster.delete": _super("DELETE_CLUSTER"),
    "broker.read": _super("LIST_BROKERS"),
    "broker.identity": Rule(Access.ANY_ROLE, Scope.BROKER, Family.SUPER, "GET_VERSION"),
    "broker.ready": Rule(Access.EVERYBODY, Scope.BROKER, Family.SUPER, "READY"),
    "broker.health": _super("HEALTH_CHECK"),
    "broker.quotas": _super("CHECK_BACKLOG_QUOTA"),
    "broker.backup": _super("BACKUP"),
    "broker.stats": _super("GET_BROKER_STATS"),
    "broker.shutdown": _super("SHUTDOWN"),
    "settings.read": _super("LIST_DYNAMIC_CONFIGURATIONS"),
    "settings.write": _super("UPDATE_DYNAMIC_CONFIGURATION"),
    "page.sign-in": Rule(Access.EVERYBODY, Scope.BROKER, Family.SUPER, "SIGN_IN"),
    "metrics.read": Rule(Access.METRICS, Scope.BROKER, Family.SUPER, "METRICS"),
    "api.description": Rule(Access.ANY_ROLE, Scope.BROKER, Family.SUPER, "DESCRIPTION"),
    # Tenants and namespaces.
    "tenant.list": _super("LIST_TENANTS"),
    "tenant.read": _tenant("GET_TENANT"),
    "tenant.create": _super("CREATE_TENANT", Scope.TENANT),
    "tenant.update": _super("UPDATE_TENANT", Scope.TENANT),
    "tenant.delete": _super("DELETE_TENANT", Scope.TENANT),
    "namespace.list": _tenant("LIST_NAMESPACES"),
    "namespace.create": _tenant("CREATE_NAMESPACE", Scope.NAMESPACE),
    "namespace.delete": _tenant("DELETE_NAMESPACE", Scope.NAMESPACE),
    "namespace.read": _namespace(_ADMIN, "READ", Family.NAMESPACE_POLICY),
    "namespace.bundles": _namespace(Access.EITHER, "GET_BUNDLE"),
    "namespace.bundles.change": _super("UNLOAD", Scope.NAMESPACE),
    "namespace.properties.write": _namespace(_ADMIN, "WRITE", Family.NAMESPACE_POLICY),
    "namespace.clear-backlog": _namespace(Access.CONSUME, "CLEAR_BACKLOG"),
    "namespace.unsubscribe": _namespace(Access.CONSUME, "UNSUBSCRIBE"),
    "namespace.policy.read": _namespace(_ADMIN, "READ", Family.NAMESPACE_POLICY),
    "namespace.policy.write": _namespace(_ADMIN, "WRITE", Family.NAMESPACE_POLICY),
    "namespace.permissions.read": _namespace(_ADMIN, "GET_PERMISSION"),
    "namespace.permissions.write": _namespace(_ADMIN, "GRANT_PERMISSION"),
    # Topics.
    "topic.create": _namespace(_ADMIN, "CREATE_TOPIC", scope=Scope.TOPIC),
    "topic.delete": _namespace(_ADMIN, "DELETE_TOPIC", scope=Scope.TOPIC),
    "topic.update": _namespace(_ADMIN, "CREATE_TOPIC", scope=Scope.TOPIC),
    "topic.permissions.read": _namespace(_ADMIN, "GET_PERMISSION", scope=Scope.TOPIC),
    "topic.permissions.write": _namespace(_ADMIN, "GRANT_PERMISSION", scope=Scope.TOPIC),
    "topic.read": _topic(Access.EITHER, "LOOKUP"),
    "topic.unload": _topic(_ADMIN, "UNLOAD"),
    "topic.accept-damage": _topic(_ADMIN, "ACCEPT_DAMAGE"),
    "topic.trim": _topic(_ADMIN, "TRIM_TOPIC"),
    "topic.truncate": _topic(_ADMIN, "TRUNCATE"),
    "topic.compact": _topic(_ADMIN, "COMPACT"),
    "topic.offload": _topic(_ADMIN, "OFFLOAD"),
    "topic.backlog-size": _topic(Access.CONSUME, "GET_BACKLOG_SIZE"),
    "topic.properties.read": _topic(Access.EITHER, "GET_METADATA"),
    "topic.properties.write": _topic(_ADMIN, "UPDATE_METADATA"),
    "topic.properties.remove": _topic(_ADMIN, "DELETE_METADATA"),
    "topic.terminate": _topic(_ADMIN, "TERMINATE"),
    "topic.stats": _topic(Access.EITHER, "GET_STATS"),
    "topic.messages": _topic(Access.CONSUME, "PEEK_MESSAGES"),
    "topic.policy.read": _topic(_ADMIN, "READ", Family.TOPIC_POLICY),
    "topic.policy.write": _topic(_ADMIN, "WRITE", Family.TOPIC_POLICY),
    "subscription.list": _topic(Access.CONSUME, "GET_SUBSCRIPTIONS"),
    "subscription.read": _subscription("CONSUME"),
    "subscription.update": _subscription("CONSUME"),
    "subscription.create": _subscription("SUBSCRIBE"),
    "subscription.skip": _subscription("SKIP"),
    "subscription.expire": _subscription("EXPIRE_MESSAGES"),
    "schema.update": _topic(_ADMIN, "UPDATE_SCHEMA"),
    "subscription.analyze": _subscription("CONSUME"),
    "subscription.peek": _subscription("PEEK_MESSAGES"),
    # Explain and permissions.
    "explain.read": _topic(Access.EITHER, "GET_STATS"),
    "explain.broker": _super("EXPLAIN"),
    "permissions.check": Rule(_ADMIN, Scope.TENANT, Family.TENANT, "GET_PERMISSION"),
    "permissions.own": Rule(Access.ANY_ROLE, Scope.BROKER, Family.SUPER, "GET_OWN_PERMISSIONS"),
}  # fmt: skip
"""The rule of each operation by its name."""


def refusal_of(operation: str, resource: str) -> tuple[int, str]:
    """Status and text of the admin API's answer to a request that is not allowed; Pulsar's. It says
    nothing of what exists."""
    rule = RULES.get(operation)
    if rule is None or rule.family is Family.SUPER:
        if rule is not None and rule.access in (Access.ANY_ROLE, Access.EVERYBODY):
            return 401, "This operation requires authentication"
        if rule is not None and rule.access is Access.METRICS:
            return 401, METRICS_REFUSED
        return 401, "This operation requires super-user access"
    family = rule.family
    if family in (Family.TENANT, Family.NAMESPACE):
        wide = "namespace" if family is Family.NAMESPACE else "tenant"
        where = f"{wide} [{_wide(resource, wide)}]"
    elif family is Family.NAMESPACE_POLICY:
        where = f"namespace [{resource}]"
    else:
        where = f"topic [{resource}]"
    status = 403 if family in _FORBIDDEN else 401
    return status, (f"Unauthorized to {family.value} for operation [{rule.pulsar_name}] on {where}")


def _wide(resource: str, what: str) -> str:
    parts = without_domain(resource).split("/")
    return "/".join(parts[: 2 if what == "namespace" else 1])
