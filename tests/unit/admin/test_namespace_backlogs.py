"""Backlogs and subscriptions of whole namespaces."""

from __future__ import annotations

from headgate.base.identity import Identity
from headgate.base.names import parse_topic
from headgate.metadata.bundles import bundle_of, split_bundles
from tests.unit.admin.conftest import Ask
from tests.unit.admin.fake_facade import FakeFacade, FakeSubscription
from tests.unit.denying import Deny

N = "/admin/v2/namespaces/public/default"
P = "/admin/v2/persistent/public/default"
NAMES = [f"t{number}" for number in range(12)]


def furnish(api: Ask, broker: FakeFacade) -> None:
    for name in NAMES:
        api("PUT", f"{P}/{name}")
        topic = broker.topic(parse_topic(name))
        topic.entries_ms += [1, 2]
        topic.subscriptions |= {"s": FakeSubscription(), "other": FakeSubscription()}


def backlogs(broker: FakeFacade, subscription: str) -> list[int]:
    topics = [broker.topic(parse_topic(name)) for name in NAMES]
    return [2 - topic.subscriptions[subscription].next for topic in topics]


def test_all_backlogs_of_a_namespace_are_cleared(api: Ask, broker: FakeFacade) -> None:
    furnish(api, broker)
    assert api("POST", f"{N}/clearBacklog/s").status == 204
    assert (set(backlogs(broker, "s")), set(backlogs(broker, "other"))) == ({0}, {2})
    assert api("POST", f"{N}/clearBacklog").status == 204
    assert set(backlogs(broker, "other")) == {0}
    assert api("POST", f"{N}/clearBacklog/none").status == 204
    assert api("POST", "/admin/v2/namespaces/public/none/clearBacklog").status == 404


def test_one_bundle(api: Ask, broker: FakeFacade) -> None:
    furnish(api, broker)
    bundle = "0x00000000_0x40000000"
    assert api("POST", f"{N}/{bundle}/clearBacklog/s").status == 204
    inside = [
        bundle_of(split_bundles(4), f"persistent://public/default/{name}") == bundle
        for name in NAMES
    ]
    assert backlogs(broker, "s") == [0 if is_in else 2 for is_in in inside]
    assert api("POST", f"{N}/{bundle}/unsubscribe/s").status == 204
    left = ["s" in broker.topic(parse_topic(name)).subscriptions for name in NAMES]
    assert left == [not is_in for is_in in inside]
    assert api("POST", f"{N}/none/clearBacklog").status == 412


def test_a_subscription_goes_from_all_topics(api: Ask, broker: FakeFacade) -> None:
    furnish(api, broker)
    assert api("POST", f"{N}/unsubscribe/s").status == 204
    assert all("s" not in broker.topic(parse_topic(name)).subscriptions for name in NAMES)
    broker.topic(parse_topic("t3")).subscriptions["other"].consumers.append("c")
    answer = api("POST", f"{N}/unsubscribe/other")
    assert (answer.status, answer.reason) == (
        412, "Subscription has active connected consumers",
    )  # fmt: skip


def test_a_right_that_ends_meanwhile_deletes_no_more(api: Ask, broker: FakeFacade) -> None:
    furnish(api, broker)
    checked = broker.check_allowed

    def last_check(
        identity: Identity, operation: str, resource: str, subscription: str = ""
    ) -> None:
        checked(identity, operation, resource, subscription)
        if resource.endswith("/t9"):
            broker.authorizer = Deny()

    broker.check_allowed = last_check  # type: ignore[method-assign]
    assert api("POST", f"{N}/unsubscribe/s").status == 204
    assert all("s" in broker.topic(parse_topic(name)).subscriptions for name in NAMES)
