"""Policies of a namespace, one route each: GET, POST (replaces the policy), DELETE.

A policy is one line of the table at the end: its path, its field of ``NamespacePolicies`` and its
type. An empty body on POST removes it, as in Pulsar. Backlog quotas have paths of their own: all
types are read at once and set one by one.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

from headgate.admin.backlog_quotas import (
    QUOTA_TYPE,
    BacklogQuotaBody,
    BacklogQuotaMap,
    decoded_quota,
    quota_kind,
    shown_quotas,
)
from headgate.admin.names import existing_namespace
from headgate.admin.operations import Operation
from headgate.admin.policy_routes import PolicyHandlers, policy_routes
from headgate.admin.routing import (
    EMPTY,
    NAMESPACE_PATH,
    NO_CONTENT,
    Call,
    Handler,
    Reply,
    Route,
    as_json,
)
from headgate.metadata.policies import (
    COUNT_NAMES,
    DelayedDeliveryPolicy,
    DispatchRate,
    JavaInt,
    PublishRate,
    Retention,
)


def getter(field: str) -> Handler:
    """A handler that shows one policy; an empty 200 if it is not set."""

    async def get(call: Call) -> Reply:
        _, row = existing_namespace(call)
        value = getattr(row.policies, field)
        return EMPTY if value is None else as_json(value)

    return get


def setter(field: str, type_: Any) -> Handler:
    """A handler that replaces one policy."""

    async def post(call: Call) -> Reply:
        name, _ = existing_namespace(call)
        value = call.decoded(type_)
        catalog = call.facade.catalog
        await call.commit(catalog.plan_namespace_policies(name, **{field: value}))
        return NO_CONTENT

    return post


def remover(field: str) -> Handler:
    """A handler that removes one policy."""

    async def delete(call: Call) -> Reply:
        name, _ = existing_namespace(call)
        catalog = call.facade.catalog
        await call.commit(catalog.plan_namespace_policies(name, **{field: None}))
        return NO_CONTENT

    return delete


async def get_quotas(call: Call) -> Reply:
    """The backlog quotas that are set, by type."""
    _, row = existing_namespace(call)
    return as_json(shown_quotas(row.policies.backlog_quotas))


async def set_quota(call: Call) -> Reply:
    """Replace the backlog quota of one type."""
    name, _ = existing_namespace(call)
    kind, quota = quota_kind(call), decoded_quota(call, f"namespace[{name}]")
    await call.commit(call.facade.catalog.plan_namespace_quota(name, kind, quota))
    return NO_CONTENT


async def remove_quota(call: Call) -> Reply:
    """Remove the backlog quota of one type."""
    name, _ = existing_namespace(call)
    catalog = call.facade.catalog
    await call.commit(catalog.plan_namespace_quota(name, quota_kind(call), None))
    return NO_CONTENT


_READ, _WRITE = Operation.NAMESPACE_POLICY_READ, Operation.NAMESPACE_POLICY_WRITE


def _routes(segment: str, field: str, type_: Any) -> tuple[Route, ...]:
    path, name = f"{NAMESPACE_PATH}/{segment}", f"{segment} of a namespace"
    handlers = PolicyHandlers(getter(field), setter(field, type_), remover(field))
    return policy_routes(path, name, type_, handlers, _READ, _WRITE)


ROUTES = (
    *_routes("dispatchRate", "dispatch_rate", DispatchRate),
    *_routes("subscriptionDispatchRate", "subscription_dispatch_rate", DispatchRate),
    *_routes("publishRate", "publish_rate", PublishRate),
    *_routes("retention", "retention", Retention),
    *_routes("delayedDelivery", "delayed_delivery", DelayedDeliveryPolicy),
    *chain.from_iterable(
        _routes(segment, field, JavaInt) for field, segment in COUNT_NAMES.items()
    ),
    *_routes("deduplication", "deduplication", bool),
    Route("GET", f"{NAMESPACE_PATH}/backlogQuotaMap", _READ, get_quotas,
          "Get backlog quotas of a namespace", reply=BacklogQuotaMap),
    Route("POST", f"{NAMESPACE_PATH}/backlogQuota", _WRITE, set_quota,
          "Set backlogQuota of a namespace", body=BacklogQuotaBody, query=(QUOTA_TYPE,)),
    Route("DELETE", f"{NAMESPACE_PATH}/backlogQuota", _WRITE, remove_quota,
          "Remove backlogQuota of a namespace", query=(QUOTA_TYPE,)),
)  # fmt: skip
