"""Policies of a namespace, each by itself: GET, POST (replaces it whole), DELETE.

A policy is one line of the table at the end: its path, its field of ``NamespacePolicies`` and its
type. An empty body on POST removes it, as in Pulsar.
"""

from __future__ import annotations

from typing import Any

from headgate.admin.names import existing_namespace
from headgate.admin.operations import Operation
from headgate.admin.routing import EMPTY, NO_CONTENT, Call, Handler, Reply, Route, as_json
from headgate.metadata.policies import DispatchRate, Retention


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
        await call.facade.commit(catalog.plan_namespace_policies(name, **{field: value}))
        return NO_CONTENT

    return post


def remover(field: str) -> Handler:
    """A handler that removes one policy."""

    async def delete(call: Call) -> Reply:
        name, _ = existing_namespace(call)
        catalog = call.facade.catalog
        await call.facade.commit(catalog.plan_namespace_policies(name, **{field: None}))
        return NO_CONTENT

    return delete


def _routes(segment: str, field: str, type_: Any) -> tuple[Route, ...]:
    path = f"/admin/v2/namespaces/{{tenant}}/{{namespace}}/{segment}"
    read, write = Operation.NAMESPACE_POLICY_READ, Operation.NAMESPACE_POLICY_WRITE
    what = f"{segment} of a namespace"
    return (
        Route("GET", path, read, getter(field), f"Get {what}", reply=type_),
        Route("POST", path, write, setter(field, type_), f"Set {what}", body=type_),
        Route("DELETE", path, write, remover(field), f"Remove {what}"),
    )


ROUTES = (
    *_routes("dispatchRate", "dispatch_rate", DispatchRate),
    *_routes("subscriptionDispatchRate", "subscription_dispatch_rate", DispatchRate),
    *_routes("retention", "retention", Retention),
)
