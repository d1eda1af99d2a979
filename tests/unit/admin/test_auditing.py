"""Which requests of the admin API have an entry in the audit log."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headgate.admin.app import AdminApp
from headgate.admin.auditing import QUESTIONS, READS, RENEWALS, is_change
from headgate.admin.table import ROUTES
from headgate.base.audit_entry import AuditEntry, AuditResult
from headgate.metadata.catalog import Change
from tests.unit.admin.client import ask, ask_async
from tests.unit.admin.fake_facade import FakeFacade
from tests.unit.denying import Deny

RATE = "/admin/v2/namespaces/public/default/dispatchRate"
TOPIC = "/admin/v2/persistent/public/default/orders"


class _Audit:
    def __init__(self) -> None:
        self.found: list[tuple[AuditEntry, bool]] = []

    def note(self, entry: AuditEntry, *, is_bounded: bool) -> None:
        self.found.append((entry, is_bounded))


class _Asked:
    """An admin API with its audit log."""

    def __init__(self) -> None:
        self.broker, self.audit = FakeFacade(), _Audit()
        self.app = AdminApp(self.broker, self.broker.clock, self.audit)

    def __call__(self, method: str, path: str, body: Any = None) -> list[tuple[AuditEntry, bool]]:
        self.audit.found.clear()
        ask(self.app, method, path, body)
        return self.audit.found


@pytest.fixture
def asked() -> _Asked:
    return _Asked()


def test_a_change_has_an_entry_with_what_was_set(asked: _Asked) -> None:
    ((entry, is_bounded),) = asked("POST", RATE, {"dispatchThrottlingRateInMsg": 7})
    assert (entry.operation, entry.resource) == ("namespace.policy.write", "public/default")
    assert (entry.result, entry.status) == (AuditResult.ALLOWED, 204)
    assert entry.change == '{"dispatchThrottlingRateInMsg": 7}'
    assert entry.request == "POST /admin/v2/namespaces/{tenant}/{namespace}/dispatchRate"
    assert not is_bounded


def test_a_change_that_is_refused_has_one_with_the_reason(asked: _Asked) -> None:
    ((entry, is_bounded),) = asked("DELETE", TOPIC)
    assert (entry.result, entry.status) == (AuditResult.REFUSED, 404)
    assert "not found" in entry.reason
    assert entry.resource == "persistent://public/default/orders"
    assert is_bounded
    assert asked("POST", RATE, b"{")[0][0].change == ""


def test_reads_have_one_only_if_they_are_not_allowed(asked: _Asked) -> None:
    assert not asked("GET", RATE)
    assert not asked("GET", f"{TOPIC}/stats")  # 404
    asked.broker.authorizer = Deny()
    ((entry, _),) = asked("GET", RATE)
    assert (entry.operation, entry.status) == ("namespace.policy.read", 403)
    assert asked("GET", "/admin/v2/brokers/backlog-quota-check")


def test_a_read_that_creates_its_topic_has_an_entry(asked: _Asked) -> None:
    asked.broker.auto_partitions = 2
    assert not asked("GET", f"{TOPIC}/partitions")  # 404
    ((entry, is_bounded),) = asked("GET", f"{TOPIC}/partitions?checkAllowAutoCreation=true")
    assert (entry.operation, entry.result, entry.status) == ("topic.read", AuditResult.ALLOWED, 200)
    assert entry.resource == "persistent://public/default/orders"
    assert not is_bounded
    assert not asked("GET", f"{TOPIC}/partitions?checkAllowAutoCreation=true")


def test_what_no_route_has_is_not_noted(asked: _Asked) -> None:
    assert not asked("DELETE", "/admin/v2/nothing")
    assert not asked("PATCH", RATE)


def test_the_value_of_a_setting_is_not_shown(asked: _Asked) -> None:
    """A setting may be a secret, and its value is part of the path."""
    path = "/admin/v2/brokers/configuration/dispatchThrottlingRateInMsg/4711"
    ((entry, _),) = asked("POST", path)
    assert entry.resource == "dispatchThrottlingRateInMsg"
    assert "4711" not in repr(entry)


def test_every_route_that_is_no_read_is_a_change_but_for_renewals() -> None:
    rows = {(route.method, route.path) for route in ROUTES}
    assert rows >= RENEWALS | QUESTIONS
    for route in ROUTES:
        renews = (route.method, route.path) in RENEWALS | QUESTIONS
        assert is_change(route) or route.method in READS or renews


def test_a_change_that_is_given_up_has_an_entry_because_it_may_be_there(
    asked: _Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def commit(change: Change) -> None:
        await asyncio.Event().wait()

    async def given_up() -> None:
        request = asyncio.ensure_future(ask_async(asked.app, "POST", RATE, b"{}"))
        read = asyncio.ensure_future(ask_async(asked.app, "GET", f"{TOPIC}/stats"))
        await asyncio.sleep(0)
        read.cancel()
        assert not asked.audit.found
        request.cancel("enough")
        with pytest.raises(asyncio.CancelledError, match="enough"):
            await request

    monkeypatch.setattr(asked.broker, "commit", commit)
    asyncio.run(given_up())
    ((entry, is_bounded),) = asked.audit.found
    assert (entry.operation, entry.result) == ("namespace.policy.write", AuditResult.FAILED)
    assert entry.resource == "public/default"
    assert entry.reason == "The connection ended before the request did"
    assert not is_bounded
