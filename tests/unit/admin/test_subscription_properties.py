"""Properties and replication of subscriptions over HTTP."""

from __future__ import annotations

import pytest

from headgate.base.names import parse_topic
from tests.unit.admin.conftest import Ask
from tests.unit.admin.fake_facade import FakeFacade

P = "/admin/v2/persistent/public/default"
S = f"{P}/t/subscription/s"
PS = f"{P}/pt/subscription/s"


@pytest.fixture(autouse=True)
def topics(api: Ask) -> None:
    """``t`` and ``pt`` with two partitions, both with the subscription ``s``."""
    api("PUT", f"{P}/t")
    api("PUT", f"{P}/pt/partitions", 2)
    api("PUT", S)
    api("PUT", PS)


def test_properties_are_replaced(api: Ask) -> None:
    assert api("GET", f"{S}/properties").json() == {}
    assert api("PUT", f"{S}/properties", {"a": "1", "b": "2"}).status == 204
    assert api("GET", f"{S}/properties").json() == {"a": "1", "b": "2"}
    assert api("PUT", f"{S}/properties", {"c": "3"}).status == 204
    assert api("GET", f"{S}/properties").json() == {"c": "3"}
    assert api("PUT", f"{S}/properties").status == 204
    assert api("GET", f"{S}/properties").json() == {}
    assert api("PUT", f"{S}/properties", ["x"]).status == 400


def test_a_partitioned_topic_has_those_of_all_partitions(api: Ask, broker: FakeFacade) -> None:
    assert api("PUT", f"{PS}/properties", {"a": "1"}).status == 204
    parts = [broker.topic(parse_topic(f"pt-partition-{index}")) for index in range(2)]
    assert [part.subscriptions["s"].properties for part in parts] == [{"a": "1"}] * 2
    parts[1].subscriptions["s"].properties = {"b": "2"}
    assert api("GET", f"{PS}/properties").json() == {"a": "1", "b": "2"}
    del parts[0].subscriptions["s"]
    assert api("GET", f"{PS}/properties").json() == {"b": "2"}


def test_a_subscription_is_not_replicated(api: Ask) -> None:
    full = "persistent://public/default"
    assert api("GET", f"{S}/replicatedSubscriptionStatus").json() == {f"{full}/t": False}
    assert api("GET", f"{PS}/replicatedSubscriptionStatus").json() == {
        f"{full}/pt-partition-0": False, f"{full}/pt-partition-1": False,
    }  # fmt: skip
    assert api("POST", f"{S}/replicatedSubscriptionStatus", False).status == 204
    answer = api("POST", f"{S}/replicatedSubscriptionStatus", True)
    assert answer.status == 405
    assert answer.reason.startswith("Replicated subscriptions are not supported")


@pytest.mark.parametrize(
    ("method", "what"),
    [
        ("GET", "properties"), ("PUT", "properties"),
        ("GET", "replicatedSubscriptionStatus"), ("POST", "replicatedSubscriptionStatus"),
    ],
)  # fmt: skip
def test_what_is_not_there(api: Ask, method: str, what: str) -> None:
    answer = api(method, f"{P}/t/subscription/other/{what}")
    assert (answer.status, answer.reason) == (
        404, "Subscription other not found for topic persistent://public/default/t",
    )  # fmt: skip
    assert api(method, f"{P}/absent/subscription/s/{what}").status == 404
