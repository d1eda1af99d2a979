"""Explain over HTTP."""

from __future__ import annotations

from headgate.base.identity import Identity
from headgate.explain.changes import LEVELS
from headgate.policy.access_law import Decision
from tests.unit.admin.conftest import Ask
from tests.unit.admin.fake_facade import FakeFacade, FakeTopic

E = "/admin/v2/headgate/explain"


def test_the_worst(api: Ask) -> None:
    assert api("GET", E).json() == []
    assert api("GET", f"{E}?count=3").status == 200
    for count in ("0", "x", "1001", "-1", ""):
        answer = api("GET", f"{E}?count={count}")
        assert (answer.status, "1 to 1000 is allowed" in answer.reason) == (400, True)


def test_the_last_hour_is_there_on_request(api: Ask) -> None:
    api("PUT", "/admin/v2/persistent/public/default/t")
    path = f"{E}/persistent/public/default/t?timeline=true"
    assert api("GET", path).json()["subscriptions"] == [{"s": 1, "timeline": []}]


def test_those_of_the_worst_too(api: Ask, broker: FakeFacade) -> None:
    broker.topics["t"] = FakeTopic()
    assert api("GET", E).json() == [{"topic": "t"}]
    assert api("GET", f"{E}?timeline=true").json() == [{"topic": "t", "timeline": []}]


def test_limits_and_the_broker_itself(api: Ask, broker: FakeFacade) -> None:
    broker.topics["t"] = FakeTopic()
    assert api("GET", "/admin/v2/headgate/limits?count=1").json() == {"limits": ["t"]}
    assert api("GET", "/admin/v2/headgate/limits?count=0").status == 400
    assert api("GET", "/admin/v2/headgate/adaptive?count=7").json()["decisions"] == [7]
    assert api("GET", "/admin/v2/headgate/broker").json() == {"connections": 0}


def test_one_topic(api: Ask) -> None:
    path = f"{E}/persistent/public/default/t"
    assert api("GET", path).status == 404
    api("PUT", "/admin/v2/persistent/public/default/t")
    assert api("GET", path).json() == {
        "topic": "persistent://public/default/t", "perPartition": None,
        "limits": [], "subscriptions": [{"s": 1}],
    }  # fmt: skip
    assert api("GET", f"{path}?perPartition=true").json()["perPartition"]
    assert api("GET", f"{E}/persistent/public/default").status == 404


class AllowsAllBut:
    """Allows everything but some operations."""

    def __init__(self, *operations: str) -> None:
        self._operations = operations

    def decide(
        self, identity: Identity, operation: str, resource: str, subscription: str = ""
    ) -> Decision:
        return Decision(operation not in self._operations, f"{identity} {resource} {subscription}")


def test_who_made_a_change_is_for_those_who_may_see_roles_there(
    api: Ask, broker: FakeFacade
) -> None:
    api("PUT", "/admin/v2/persistent/public/default/t")
    path = f"{E}/persistent/public/default/t?timeline=true"
    api("GET", path)
    assert broker.roles_shown == LEVELS
    broker.authorizer = AllowsAllBut("settings.read")
    api("GET", path)
    assert broker.roles_shown == LEVELS - {"broker"}
    broker.authorizer = AllowsAllBut("namespace.policy.read", "topic.policy.read")
    api("GET", path)
    assert broker.roles_shown == {"broker"}
    broker.authorizer = AllowsAllBut("namespace.permissions.read", "settings.read")
    api("GET", path)
    assert broker.roles_shown == {"topic", "subscription"}
    broker.authorizer = AllowsAllBut(
        "topic.permissions.read", "namespace.permissions.read", "settings.read"
    )
    assert api("GET", path).status == 200
    assert broker.roles_shown == set()


class SeesOneNamespace:
    """Allows what concerns the topics of one namespace."""

    def decide(
        self, identity: Identity, operation: str, resource: str, subscription: str = ""
    ) -> Decision:
        return Decision("://public/default/" in resource, f"{identity} {operation} {subscription}")


def test_a_report_names_other_waiting_topics_only_to_who_may_see_them(
    api: Ask, broker: FakeFacade
) -> None:
    api("PUT", "/admin/v2/persistent/public/default/t")
    broker.waiting = [
        f"persistent://{rest}" for rest in ("public/default/a", "public/b/c", "x/y/z")
    ]
    broker.authorizer = SeesOneNamespace()
    report = api("GET", f"{E}/persistent/public/default/t?perPartition=true").json()
    assert report["perPartition"][0]["limits"][0]["longestWaiting"] == [
        {"topic": "persistent://public/default/a", "subscription": "s"},
        {"topic": "another topic", "subscription": ""},
        {"topic": "another topic of another tenant", "subscription": ""},
    ]
