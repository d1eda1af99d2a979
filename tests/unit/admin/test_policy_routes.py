"""A policy has three routes on one path: reading needs another operation than writing."""

from __future__ import annotations

from headgate.admin.operations import Operation
from headgate.admin.policy_routes import PolicyHandlers, policy_routes
from headgate.admin.routing import NO_CONTENT, Call, Reply
from headgate.metadata.policies import Retention

READ, WRITE = Operation.TOPIC_POLICY_READ, Operation.TOPIC_POLICY_WRITE


async def get(_: Call) -> Reply:
    return NO_CONTENT


async def post(_: Call) -> Reply:
    return NO_CONTENT


async def delete(_: Call) -> Reply:
    return NO_CONTENT


def test_each_request_has_its_handler_its_operation_and_its_type() -> None:
    handlers = PolicyHandlers(get, post, delete)
    routes = policy_routes("/a/retention", "retention of a", Retention, handlers, READ, WRITE)
    assert [(r.method, r.operation, r.handler, r.body, r.reply, r.summary) for r in routes] == [
        ("GET", READ, get, None, Retention, "Get retention of a"),
        ("POST", WRITE, post, Retention, None, "Set retention of a"),
        ("DELETE", WRITE, delete, None, None, "Remove retention of a"),
    ]
    assert {route.path for route in routes} == {"/a/retention"}
