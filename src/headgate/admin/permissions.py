"""Permissions of roles: grants on namespaces, topics and subscriptions, and why something is
allowed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from functools import partial
from typing import Any, Final, Literal, TypeVar, get_args

from msgspec import Struct

from headgate.admin.json_pieces import object_pieces, pieces_of
from headgate.admin.names import existing_namespace, subscription_name, topic_name
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
)
from headgate.admin.streaming import answer, pages
from headgate.base.identity import Identity
from headgate.base.names import (
    InvalidNameError,
    NamespaceName,
    TopicName,
    check_subscription,
    parse_topic,
)
from headgate.metadata.errors import RefusalError, not_allowed, not_found
from headgate.metadata.grants import (
    Action,
    NamespaceGrants,
    RoleActions,
    SubscriptionAuthMode,
    SubscriptionGrants,
    TopicGrants,
    in_order,
)

Grants = dict[str, list[Action]]
"""Roles with what each of them may do."""

_Asked = list[Action | Literal["packages"]]
_Value = TypeVar("_Value")


NEW_GRANTS_MAX: Final = 2_000
"""Most roles, topics and subscriptions in the grants of a new namespace, all together: they are one
change, which is checked and applied without a pause. Single requests may add more."""

GRANT_BYTES: Final = 512
"""About what the grants on a topic or subscription take in an answer in the making."""


class AuthPolicies(Struct):
    """The grants in a new namespace, as clients send them."""

    namespace_auth: dict[str, _Asked] | None = None
    destination_auth: dict[str, dict[str, _Asked]] | None = None
    """By topic."""
    subscription_auth_roles: dict[str, list[str]] | None = None
    """The roles that may use each subscription."""


class PermissionAnswer(Struct, frozen=True):
    """Whether a role may perform an operation."""

    allowed: bool
    reason: str
    """Why, as a clause."""


class OwnPermissions(Struct, frozen=True):
    """Which operations the client that asks may perform."""

    role: str
    """Its role, of a client behind a proxy the client's; empty if the broker authenticates
    nobody."""
    allowed: list[str]
    """Those of the operations asked about, in their order, each once."""


async def get_namespace_permissions(call: Call) -> Reply:
    """What is granted on a namespace."""
    name, _ = existing_namespace(call)
    return await answer(call, pieces_of(call.facade.catalog.namespace_grants(name).roles))


async def grant_on_namespace(call: Call) -> Reply:
    """Replace what a role may do in a namespace."""
    name, _ = existing_namespace(call)
    plan = call.facade.catalog.plan_namespace_grant
    await call.commit(plan(name, call.params["role"], _asked_actions(call)))
    return NO_CONTENT


async def revoke_on_namespace(call: Call) -> Reply:
    """Remove what is granted to a role on a namespace."""
    name, _ = existing_namespace(call)
    plan = call.facade.catalog.plan_namespace_grant
    await call.commit(plan(name, call.params["role"], frozenset()))
    return NO_CONTENT


async def get_subscription_permissions(call: Call) -> Reply:
    """The roles that may use subscriptions of a namespace. Those that are not listed, all may."""
    name, _ = existing_namespace(call)
    return await answer(call, pieces_of(await _subscription_roles(call, name)))


async def grant_on_subscription(call: Call) -> Reply:
    """Let only some roles use a subscription."""
    name, _ = existing_namespace(call)
    roles = call.decoded(list[str])
    if roles is None:
        raise RefusalError(400, "A list of roles is needed in the body")
    plan = call.facade.catalog.plan_subscription_grant
    await call.commit(plan(name, subscription_name(call), roles))
    return NO_CONTENT


async def revoke_on_subscription(call: Call) -> Reply:
    """Remove one of the roles that may use a subscription."""
    name, _ = existing_namespace(call)
    plan = call.facade.catalog.plan_subscription_revoke
    await call.commit(plan(name, subscription_name(call), call.params["role"]))
    return NO_CONTENT


async def get_auth_mode(call: Call) -> Reply:
    """Whether the names of subscriptions must begin with the role of their consumers."""
    name, _ = existing_namespace(call)
    return as_json(call.facade.catalog.namespace_grants(name).subscription_auth_mode)


async def set_auth_mode(call: Call) -> Reply:
    """Set whether the names of subscriptions must begin with the role of their consumers."""
    name, _ = existing_namespace(call)
    text = call.decoded(str)
    for mode in get_args(SubscriptionAuthMode):
        if text == mode:
            await call.commit(call.facade.catalog.plan_subscription_auth_mode(name, mode))
            return NO_CONTENT
    raise RefusalError(
        400, f"The subscription authorization mode is {text!r:.80}: None and Prefix are allowed"
    )


async def get_topic_permissions(call: Call) -> Reply:
    """What is granted on a topic or on its namespace."""
    topic = topic_name(call)
    catalog = call.facade.catalog
    if catalog.namespace(topic.namespace) is None:
        raise not_found("Namespace does not exist")
    grants = [
        catalog.namespace_grants(topic.namespace).roles,
        *(catalog.topic_grants(name).roles for name in {topic.full, catalog.own_name(topic)}),
    ]
    roles = sorted(set[str]().union(*grants))
    await call.facade.give_way()
    merged = ((role, in_order(_actions_of(role, grants))) for role in roles)
    return await answer(call, object_pieces(merged))


def _actions_of(role: str, grants: Sequence[RoleActions]) -> frozenset[Action]:
    return frozenset(action for each in grants for action in each.get(role, ()))


async def grant_on_topic(call: Call) -> Reply:
    """Replace what a role may do on a topic, besides what its namespace grants."""
    topic = topic_name(call)
    plan = call.facade.catalog.plan_topic_grant
    await call.commit(plan(topic, call.params["role"], _asked_actions(call)))
    return NO_CONTENT


async def revoke_on_topic(call: Call) -> Reply:
    """Remove what is granted to a role on a topic; 412 if that is only granted on its namespace."""
    plan = call.facade.catalog.plan_topic_revoke
    await call.commit(plan(topic_name(call), call.params["role"]))
    return NO_CONTENT


async def check_permission(call: Call) -> Reply:
    """Whether a role may perform an operation, and why."""
    role, proxy = call.query.get("role", ""), call.query.get("proxy", "")
    resource, subscription = call.query.get("resource", ""), call.query.get("subscription", "")
    _check_full_name(resource)
    identity = Identity(proxy, role) if proxy else Identity(role)
    found = call.facade.decide(identity, call.query.get("operation", ""), resource, subscription)
    return as_json(PermissionAnswer(found.allowed, found.reason))


async def own_permissions(call: Call) -> Reply:
    """Who the client is, and which of the operations it asks about it may perform."""
    resource, subscription = call.query.get("resource", ""), call.query.get("subscription", "")
    _check_full_name(resource)
    identity = call.identity
    names = dict.fromkeys(name.strip() for name in call.query.get("operations", "").split(","))
    # Their number is bounded by those that exist.
    allowed = [
        name
        for name in names
        if name in _OPERATIONS
        and call.facade.decide(identity, name, resource, subscription).allowed
    ]
    return as_json(OwnPermissions(identity.original_role or identity.role, allowed))


def _check_full_name(resource: str) -> None:
    """Check that a resource is named in full, so that the check of the client's own permission was
    about the same one.

    Raises:
        RefusalError: 412.
    """
    try:
        if "://" in resource and parse_topic(resource).full == resource:
            return
        if resource.count("/") < 2 and "://" not in resource:
            return
    except InvalidNameError as error:
        raise not_allowed(str(error)) from error
    raise not_allowed(
        f"{resource[:80]!r} is not a resource: persistent://tenant/namespace/topic, "
        "tenant/namespace and tenant are allowed, and nothing for the broker"
    )


async def auth_policies_of(call: Call, name: NamespaceName) -> dict[str, Any]:
    """All grants in a namespace, as Pulsar's policies object has them."""
    catalog = call.facade.catalog

    def on_topic(full_name: str) -> RoleActions:
        return catalog.topic_grants(full_name).roles

    topics = await _listed(call, partial(catalog.topic_grants_after, name), on_topic)
    return {
        "namespace_auth": catalog.namespace_grants(name).roles,
        "destination_auth": topics,
        "subscription_auth_roles": await _subscription_roles(call, name),
    }


async def _subscription_roles(call: Call, name: NamespaceName) -> dict[str, tuple[str, ...]]:
    catalog = call.facade.catalog

    def roles_of(subscription: str) -> tuple[str, ...]:
        row = catalog.subscription_grants(name, subscription)
        return () if row is None else row.roles

    return await _listed(call, partial(catalog.subscription_grants_after, name), roles_of)


async def _listed(
    call: Call, after: Callable[[str, int], list[str]], value_of: Callable[[str], _Value]
) -> dict[str, _Value]:
    """The values of all names that ``after`` gives, in pieces, each charged before."""
    found: dict[str, _Value] = {}
    for page in pages(after):
        if page:
            await call.reserve(GRANT_BYTES * len(page))
        found |= {name: value for name in page if (value := value_of(name))}
        await call.facade.give_way()
    return found


def new_grants(
    name: NamespaceName, policies: AuthPolicies | None, mode: SubscriptionAuthMode | None
) -> dict[str, Any]:
    """The grants of a new namespace, as its plan takes them.

    Raises:
        RefusalError: 412 for packages, a topic of another namespace, the name of a subscription
            that is not allowed, or too many grants.
    """
    asked = policies or AuthPolicies()
    topics = asked.destination_auth or {}
    only = asked.subscription_auth_roles or {}
    lists: tuple[Sized, ...] = (
        asked.namespace_auth or {}, topics, only, *topics.values(), *only.values(),
    )  # fmt: skip
    if (count := sum(map(len, lists))) > NEW_GRANTS_MAX:
        raise not_allowed(
            f"The grants of a new namespace have {count} roles, topics and subscriptions: "
            f"{NEW_GRANTS_MAX} are allowed, and more by further requests"
        )
    roles = _role_actions(asked.namespace_auth or {})
    return {
        "grants": NamespaceGrants(roles=roles, subscription_auth_mode=mode or "None"),
        "topic_grants": {
            _topic_in(name, topic): TopicGrants(roles=_role_actions(given))
            for topic, given in topics.items()
        },
        "subscription_grants": {
            _checked_subscription(each): SubscriptionGrants(roles=tuple(sorted(set(given))))
            for each, given in only.items()
        },
    }


def _checked_subscription(name: str) -> str:
    try:
        return check_subscription(name)
    except InvalidNameError as error:
        raise not_allowed(str(error)) from error


def _topic_in(namespace: NamespaceName, text: str) -> TopicName:
    try:
        topic = parse_topic(text)
    except InvalidNameError as error:
        raise not_allowed(str(error)) from error
    if topic.namespace != namespace or not topic.is_persistent:
        raise not_allowed(f"{text[:80]!r} is not a persistent topic of namespace {namespace}")
    return topic


def _role_actions(given: Mapping[str, _Asked]) -> RoleActions:
    return {role: in_order(found) for role, asked in given.items() if (found := _actions(asked))}


def _asked_actions(call: Call) -> frozenset[Action]:
    asked: _Asked | None = call.decoded(_Asked)
    if asked is None:
        raise RefusalError(400, "A list of actions is needed in the body")
    return _actions(asked)


def _actions(asked: Iterable[Action | Literal["packages"]]) -> frozenset[Action]:
    """The actions that a client asks for.

    Raises:
        RefusalError: 412 for packages.
    """
    found: set[Action] = set()
    for action in asked:
        if action == "packages":
            raise not_allowed(
                "packages cannot be granted, because Headgate has no packages: produce, consume, "
                "functions, sources and sinks are allowed"
            )
        found.add(action)
    return frozenset(found)


_NAMESPACE_ROLE = f"{NAMESPACE_PATH}/permissions/{{role}}"
_SUBSCRIPTIONS = f"{NAMESPACE_PATH}/permissions/subscription"
_TOPIC_ROLE = f"{TOPIC_PATH}/permissions/{{role}}"
_READ, _WRITE = Operation.NAMESPACE_PERMISSIONS_READ, Operation.NAMESPACE_PERMISSIONS_WRITE
_TOPIC_WRITE = Operation.TOPIC_PERMISSIONS_WRITE
_CHECKED = (
    Query("role", str, "", "The role of the client"),
    Query("proxy", str, "", "The role of the proxy before it, if there is one"),
    Query("operation", str, "", "The operation, as docs/reference/permissions.md lists it"),
    Query("resource", str, "", "Full name of a topic, tenant/namespace or tenant; empty: broker"),
    Query("subscription", str, "", "The subscription that the operation concerns"),
)

_OPERATIONS: Final = frozenset(Operation)
_OWN = (
    Query("operations", str, "", "Operations of docs/reference/permissions.md, commas between"),
    *(query for query in _CHECKED if query.name in ("resource", "subscription")),
)

ROUTES = (
    Route("GET", f"{NAMESPACE_PATH}/permissions", _READ, get_namespace_permissions,
          "Permissions on a namespace", reply=Grants),
    Route("POST", _NAMESPACE_ROLE, _WRITE, grant_on_namespace,
          "Grant a role permissions on a namespace", body=_Asked),
    Route("DELETE", _NAMESPACE_ROLE, _WRITE, revoke_on_namespace,
          "Revoke the permissions of a role on a namespace"),
    Route("GET", _SUBSCRIPTIONS, _READ, get_subscription_permissions,
          "Roles that may use subscriptions of a namespace", reply=dict[str, list[str]]),
    Route("POST", f"{_SUBSCRIPTIONS}/{{subscription}}", _WRITE, grant_on_subscription,
          "Let only some roles use a subscription", body=list[str]),
    Route("DELETE", f"{NAMESPACE_PATH}/permissions/{{subscription}}/{{role}}", _WRITE,
          revoke_on_subscription, "Remove one of the roles that may use a subscription"),
    Route("GET", f"{NAMESPACE_PATH}/subscriptionAuthMode", _READ, get_auth_mode,
          "Whether names of subscriptions begin with a role", reply=SubscriptionAuthMode),
    Route("POST", f"{NAMESPACE_PATH}/subscriptionAuthMode", _WRITE, set_auth_mode,
          "Set whether names of subscriptions begin with a role", body=SubscriptionAuthMode),
    Route("GET", f"{TOPIC_PATH}/permissions", Operation.TOPIC_PERMISSIONS_READ,
          get_topic_permissions, "Permissions on a topic", reply=Grants),
    Route("POST", _TOPIC_ROLE, _TOPIC_WRITE, grant_on_topic,
          "Grant a role permissions on a topic", body=_Asked),
    Route("DELETE", _TOPIC_ROLE, _TOPIC_WRITE, revoke_on_topic,
          "Revoke the permissions of a role on a topic"),
    Route("GET", "/admin/v2/headgate/permissions", Operation.PERMISSIONS_CHECK, check_permission,
          "Whether a role may perform an operation, and why", reply=PermissionAnswer,
          query=_CHECKED, resource_in="resource"),
    Route("GET", "/admin/v2/headgate/permissions/own", Operation.PERMISSIONS_OWN, own_permissions,
          "Who the client is, and which operations it may perform", reply=OwnPermissions,
          query=_OWN),
)  # fmt: skip
