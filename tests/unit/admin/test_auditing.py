"""Which requests of the admin API have an entry in the audit log."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headgate.admin.app import AdminApp
from headgate.admin.auditing import QUESTIONS, READS, RENEWALS, is_change
from headgate.admin.table import ROUTES
from headgate.base.audit_entry import AuditEntry, AuditResult
from headgate.base.names import NamespaceName, parse_topic
from headgate.metadata.catalog import Change
from tests.unit.admin.client import ask, ask_async
from tests.unit.admin.fake_facade import FakeFacade
from tests.unit.denying import Deny

RATE = "/admin/v2/namespaces/public/default/dispatchRate"
TOPIC = "/admin/v2/persistent/public/default/orders"
ORDERS = "persistent://public/default/orders"


class _Audit:
    def __init__(self) -> None:
        self.found: list[tuple[AuditEntry, bool]] = []

    def note(self, entry: AuditEntry, *, is_bounded: bool) -> None:
        self.found.append((entry, is_bounded))


class _Asked:
    """An admin API with its audit log."""

    def __init__(self) -> None:
        self.broker, self.audit = FakeFacade(), _Audit()
        self._app = AdminApp(self.broker, self.broker.clock, self.audit)

    def __call__(self, method: str, path: str, body: Any = None) -> list[tuple[AuditEntry, bool]]:
        self.audit.found.clear()
        ask(self._app, method, path, body)
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


@pytest.mark.parametrize("padding", [" " * 400, '{"note": "' + "x" * 400 + '", '])
def test_what_is_set_behind_much_text_is_shown(asked: _Asked, padding: str) -> None:
    """A line is cut at 300 characters."""
    body = f'{padding or ""}{"" if "{" in padding else "{"}"dispatchThrottlingRateInMsg": 7}}'
    ((entry, _),) = asked("POST", RATE, body.encode())
    assert entry.change.startswith("dispatch_rate=")
    assert '"dispatchThrottlingRateInMsg":7' in entry.change


@pytest.mark.parametrize("path", [TOPIC, "/admin/v2/namespaces/public/default"])
def test_it_says_who_gets_and_loses_rights(asked: _Asked, path: str) -> None:
    asked("PUT", TOPIC)
    ((entry, _),) = asked("POST", f"{path}/permissions/mole", b'["consume"]')
    assert entry.change == 'mole ["consume"]'
    ((entry, _),) = asked("DELETE", f"{path}/permissions/mole")
    assert (entry.result, entry.change) == (AuditResult.ALLOWED, "mole")


def test_it_says_who_may_use_a_subscription(asked: _Asked) -> None:
    path = "/admin/v2/namespaces/public/default/permissions"
    ((entry, _),) = asked("POST", f"{path}/subscription/s", b'["mole"]')
    assert (entry.subscription, entry.change) == ("s", '["mole"]')
    ((entry, _),) = asked("DELETE", f"{path}/s/mole")
    assert (entry.subscription, entry.change) == ("s", "mole")


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


class _NeverReturns(FakeFacade):
    """Carries each change out, and does not say so until its caller is cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.is_committed = asyncio.Event()

    async def commit(self, change: Change) -> None:
        await super().commit(change)
        self.is_committed.set()
        await asyncio.Event().wait()


def _given_up(broker: _NeverReturns, method: str, path: str, body: bytes) -> _Audit:
    audit = _Audit()
    app = AdminApp(broker, broker.clock, audit)

    async def story() -> None:
        asked = asyncio.ensure_future(ask_async(app, method, path, body))
        await broker.is_committed.wait()
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked

    asyncio.run(story())
    return audit


def test_a_change_that_is_given_up_has_an_entry_because_it_may_be_there() -> None:
    broker = _NeverReturns()
    path = "/admin/v2/namespaces/public/default/permissions/mole"
    ((entry, is_bounded),) = _given_up(broker, "POST", path, b'["produce"]').found
    assert (entry.operation, entry.result) == ("namespace.permissions.write", AuditResult.FAILED)
    assert (entry.resource, entry.status) == ("public/default", 503)
    assert entry.change == 'mole ["produce"]'
    assert entry.reason == "The broker gave the request up before its end"
    assert not is_bounded
    assert "mole" in broker.catalog.namespace_grants(NamespaceName("public", "default")).roles


def test_what_is_given_up_before_it_is_allowed_has_none() -> None:
    audit, broker = _Audit(), FakeFacade()
    app = AdminApp(broker, broker.clock, audit)

    async def story() -> None:
        never = asyncio.Event()
        scope = {
            "type": "http", "method": "DELETE", "path": TOPIC, "raw_path": TOPIC.encode(),
            "query_string": b"", "headers": [], "scheme": "http", "server": ("test", 80),
        }  # fmt: skip

        async def receive() -> Any:
            await never.wait()

        async def send(_: Any) -> None:
            raise AssertionError("nobody reads an answer")

        asked = asyncio.ensure_future(app(scope, receive, send))
        await asyncio.sleep(0)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked

    asyncio.run(story())
    assert not audit.found


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", f"{TOPIC}/subscription/s"),
        ("POST", "/admin/v2/namespaces/public/default/unsubscribe/s"),
    ],
)
def test_a_change_of_which_one_part_is_refused_is_not_called_refused(
    asked: _Asked, method: str, path: str
) -> None:
    """Else who may consume would delete subscriptions unseen: a consumer on the last partition has
    the request refused."""
    asked("PUT", f"{TOPIC}/partitions", 2)
    asked("PUT", f"{TOPIC}/subscription/s")
    parts = [parse_topic(f"{ORDERS}-partition-{number}") for number in (0, 1)]
    asked.broker.topic(parts[1]).subscriptions["s"].consumers.append("c")
    ((entry, is_bounded),) = asked(method, path)
    assert not asked.broker.subscriptions(parts[0])
    assert (entry.result, entry.status) == (AuditResult.FAILED, 412)
    assert not is_bounded
    ((entry, is_bounded),) = asked("DELETE", f"{TOPIC}-partition-1/subscription/s")
    assert (entry.result, entry.status) == (AuditResult.REFUSED, 412)
    assert is_bounded


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
