"""Policies about what use creates and allows, and about storing."""

from __future__ import annotations

import pytest

from headgate.metadata.catalog import Catalog
from tests.unit.admin.conftest import Ask
from tests.unit.admin.fake_facade import FakeFacade

N = "/admin/v2/namespaces/public/default"
T = "/admin/v2/persistent/public/default/orders"
ONE_COPY = {
    "bookkeeperEnsemble": 1,
    "bookkeeperWriteQuorum": 1,
    "bookkeeperAckQuorum": 1,
    "managedLedgerMaxMarkDeleteRate": 0.0,
}


@pytest.fixture
def topic(api: Ask) -> str:
    assert api("PUT", T).status == 204
    return T


@pytest.mark.parametrize(
    ("policy", "value"),
    [
        ("autoTopicCreation", {"allowAutoTopicCreation": True, "topicType": "partitioned",
                               "defaultNumPartitions": 2}),
        ("autoTopicCreation", {"allowAutoTopicCreation": False}),
        ("autoSubscriptionCreation", {"allowAutoSubscriptionCreation": False}),
        ("persistence", ONE_COPY),
        ("maxUnackedMessagesPerConsumer", 10),
        ("maxUnackedMessagesPerSubscription", 0),
    ],
)  # fmt: skip
def test_of_a_namespace(api: Ask, policy: str, value: object) -> None:
    path = f"{N}/{policy}"
    unset = api("GET", path)
    assert (unset.status, unset.content_type, unset.body) == (200, "", b"")
    assert api("POST", path, value).status == 204
    assert api("GET", path).json() == value
    assert api("DELETE", path).status == 204
    assert api("GET", path).body == b""


def test_what_go_sends_for_no_automatic_creation(api: Ask) -> None:
    body = {"allowAutoTopicCreation": False, "topicType": "", "defaultNumPartitions": None}
    assert api("POST", f"{N}/autoTopicCreation", body).status == 204
    assert api("GET", f"{N}/autoTopicCreation").json() == {"allowAutoTopicCreation": False}
    answer = api("POST", f"{N}/autoTopicCreation", body | {"allowAutoTopicCreation": True})
    assert (answer.status, answer.reason) == (
        412, "Invalid configuration for autoTopicCreationOverride. the detail is "
             "Unknown topic type [null]",
    )  # fmt: skip


def test_a_list_of_types_names_each_once_at_most(api: Ask, topic: str) -> None:
    """Each SUBSCRIBE looks through it: 100,000 of them were a policy."""
    ns = "/admin/v2/namespaces/public/ns"
    for path in (f"{N}/subscriptionTypesEnabled", f"{topic}/subscriptionTypesEnabled"):
        assert api("POST", path, ["Shared"] * 5).status == 400
        assert api("POST", path, ["Shared", "Failover", "Exclusive", "Key_Shared"]).status == 204
    assert api("PUT", ns, {"subscription_types_enabled": ["Shared"] * 5}).status == 400


def test_types_of_subscriptions(api: Ask, topic: str) -> None:
    assert api("GET", f"{N}/subscriptionTypesEnabled").json() == []
    assert api("GET", f"{topic}/subscriptionTypesEnabled").status == 204
    every = ["Exclusive", "Shared", "Failover", "Key_Shared"]
    assert api("GET", f"{topic}/subscriptionTypesEnabled?applied=true").json() == every
    assert api("POST", f"{N}/subscriptionTypesEnabled", ["Shared"]).status == 204
    assert api("GET", f"{N}/subscriptionTypesEnabled").json() == ["Shared"]
    assert api("GET", f"{topic}/subscriptionTypesEnabled?applied=true").json() == ["Shared"]
    assert api("POST", f"{topic}/subscriptionTypesEnabled", ["Failover"]).status == 204
    assert api("GET", f"{topic}/subscriptionTypesEnabled").json() == ["Failover"]
    assert api("POST", f"{topic}/subscriptionTypesEnabled", ["Other"]).status == 400
    assert api("DELETE", f"{topic}/subscriptionTypesEnabled").status == 204
    assert api("DELETE", f"{N}/subscriptionTypesEnabled").status == 204
    assert api("GET", f"{topic}/subscriptionTypesEnabled?applied=true").json() == every


def test_of_a_topic(api: Ask, topic: str) -> None:
    for policy, default, value in (
        ("autoSubscriptionCreation", {"allowAutoSubscriptionCreation": True},
         {"allowAutoSubscriptionCreation": False}),
        ("persistence", ONE_COPY, ONE_COPY | {"managedLedgerMaxMarkDeleteRate": 1.5}),
        ("maxUnackedMessagesOnConsumer", 50_000, 7),
        ("maxUnackedMessagesOnSubscription", 200_000, 7),
    ):  # fmt: skip
        path = f"{topic}/{policy}"
        assert api("GET", path).body == b""
        assert api("GET", f"{path}?applied=true").json() == default
        assert api("POST", path, value).status == 204
        assert api("GET", path).json() == value
        assert api("GET", f"{path}?applied=true").json() == value
        assert api("DELETE", path).status == 204
        assert api("GET", path).body == b""


def test_more_copies_are_refused_in_words(api: Ask, topic: str) -> None:
    two = {"bookkeeperEnsemble": 2, "bookkeeperWriteQuorum": 2, "bookkeeperAckQuorum": 2}
    for path in (f"{N}/persistence", f"{topic}/persistence"):
        answer = api("POST", path, two)
        assert (answer.status, "one copy" in answer.reason) == (412, True)


@pytest.mark.parametrize("text", ["inf", "Infinity", "+inf", "-inf", "nan", "1e999"])
def test_a_rate_that_no_start_could_read_is_refused(
    api: Ask, broker: FakeFacade, topic: str, text: str
) -> None:
    """Texts that hold a number are read as numbers, as Jackson does. One request with ``inf`` by
    the administrator of a tenant kept the broker from starting again."""
    endless = ONE_COPY | {"managedLedgerMaxMarkDeleteRate": text}
    for path in (f"{N}/persistence", f"{topic}/persistence"):
        assert api("POST", path, endless).status == 400
        assert api("GET", path).body == b""
    created = api("PUT", "/admin/v2/namespaces/public/other", {"persistence": endless})
    assert created.status == 400
    Catalog("standalone", broker.store.load())
    assert api("POST", f"{N}/persistence", ONE_COPY | {"managedLedgerMaxMarkDeleteRate": "2"})
    assert api("GET", f"{N}/persistence").json()["managedLedgerMaxMarkDeleteRate"] == 2.0
    Catalog("standalone", broker.store.load())


def test_a_row_with_an_infinite_rate_of_before_can_be_read(api: Ask, broker: FakeFacade) -> None:
    """Else no start would succeed, and a repair would lose the names of all topics."""
    stored = ONE_COPY | {"managedLedgerMaxMarkDeleteRate": None}
    assert api("POST", f"{N}/persistence", stored).status == 204
    Catalog("standalone", broker.store.load())
    assert api("GET", f"{N}/persistence").json() == stored
    assert api("DELETE", f"{N}/persistence").status == 204
