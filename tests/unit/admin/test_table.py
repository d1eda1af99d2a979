"""The list of routes as a whole."""

from __future__ import annotations

from collections import Counter

from headgate.admin.operations import Operation
from headgate.admin.table import ROUTES

ACTS_ALTHOUGH_GET = {"/admin/v2/brokers/backlog-quota-check"}
"""Pulsar's choice."""


def test_no_two_routes_answer_the_same_request() -> None:
    def shape(path: str) -> str:
        return "/".join("{}" if part.startswith("{") else part for part in path.split("/"))

    counts = Counter((route.method, shape(route.path)) for route in ROUTES)
    assert [key for key, count in counts.items() if count > 1] == []


_TERMINATE = "/admin/v2/persistent/{tenant}/{namespace}/{topic}/terminate"
_SCHEMAS = "/admin/v2/schemas/{tenant}/{namespace}/{topic}"
REPLIES_TO_CHANGE = {
    ("POST", "/admin/v2/headgate/backup"),
    ("POST", _TERMINATE),
    ("POST", f"{_TERMINATE}/partitions"),
    ("POST", f"{_SCHEMAS}/schema"),
    ("DELETE", f"{_SCHEMAS}/schema"),
    ("POST", f"{_SCHEMAS}/compatibility"),
    ("POST", f"{_SCHEMAS}/version"),
}
"""What begins something that the client then names, and requests that Pulsar answers: about
schemas, and with the last message of a terminated topic."""


def test_every_operation_is_performed_by_some_route() -> None:
    assert {route.operation for route in ROUTES} == set(Operation)


def test_reads_are_gets_and_have_replies() -> None:
    for route in ROUTES:
        assert route.summary
        is_read = route.method == "GET" and route.path not in ACTS_ALTHOUGH_GET
        has_reply = is_read or (route.method, route.path) in REPLIES_TO_CHANGE
        assert (route.reply is not None) == has_reply, route.path
