"""Policies about what ends by itself, at both levels."""

from __future__ import annotations

import pytest

from tests.unit.admin.conftest import Ask

N = "/admin/v2/namespaces/public/default"
T = "/admin/v2/persistent/public/default/orders"
INACTIVE = {
    "inactiveTopicDeleteMode": "delete_when_subscriptions_caught_up",
    "maxInactiveDurationSeconds": 5,
    "deleteWhileInactive": True,
}


@pytest.fixture
def topic(api: Ask) -> str:
    assert api("PUT", T).status == 204
    return T


@pytest.mark.parametrize(
    ("policy", "value", "refused", "status"),
    [
        ("messageTTL", 120, -1, 412),
        ("subscriptionExpirationTime", 5, -1, 412),
        ("inactiveTopicPolicies", INACTIVE, INACTIVE | {"inactiveTopicDeleteMode": "x"}, 400),
    ],
)
def test_of_a_namespace(api: Ask, policy: str, value: object, refused: object, status: int) -> None:
    path = f"{N}/{policy}"
    unset = api("GET", path)
    assert (unset.status, unset.content_type, unset.body) == (200, "", b"")
    assert api("POST", path, value).status == 204
    assert api("GET", path).json() == value
    assert api("POST", path, refused).status == status
    assert api("GET", path).json() == value
    assert api("DELETE", path).status == 204
    assert api("GET", path).body == b""
    assert api("GET", "/admin/v2/namespaces/public/none/" + policy).status == 404


def test_texts_of_refusals(api: Ask, topic: str) -> None:
    assert api("POST", f"{N}/messageTTL", -5).reason == (
        "Invalid value for message TTL, message TTL must >= 0"
    )
    assert api("POST", f"{N}/messageTTL").status == 412
    assert api("POST", f"{topic}/messageTTL?messageTTL=-5").reason == (
        "Invalid value for message TTL"
    )
    many = api("POST", f"{topic}/messageTTL?messageTTL=soon")
    assert (many.status, "messageTTL is 'soon'" in many.reason) == (400, True)


@pytest.mark.parametrize("policy", ["messageTTL", "subscriptionExpirationTime"])
def test_a_number_of_a_topic_is_in_the_query(api: Ask, topic: str, policy: str) -> None:
    path = f"{topic}/{policy}"
    assert api("GET", path).body == b""
    assert api("GET", f"{path}?applied=true").json() == 0
    api("POST", f"{N}/{policy}", 7)
    assert api("GET", f"{path}?applied=true").json() == 7
    assert api("POST", f"{path}?{policy}=0").status == 204
    assert api("GET", path).json() == 0
    assert api("GET", f"{path}?applied=true").json() == 0
    assert api("POST", path).status == 204  # removes it
    assert api("GET", path).body == b""
    api("POST", f"{path}?{policy}=9")
    assert api("DELETE", path).status == 204
    assert api("GET", f"{path}?applied=true").json() == 7


def test_inactive_topic_policies_of_a_topic(api: Ask, topic: str) -> None:
    path = f"{topic}/inactiveTopicPolicies"
    assert api("GET", path).body == b""
    assert api("GET", f"{path}?applied=true").json() == {
        "inactiveTopicDeleteMode": "delete_when_no_subscriptions",
        "maxInactiveDurationSeconds": 60,
        "deleteWhileInactive": True,
    }
    assert api("POST", path, INACTIVE).status == 204
    assert api("GET", path).json() == INACTIVE
    assert api("DELETE", path).status == 204
    assert api("GET", path).body == b""


def test_all_policies_of_a_topic_go_at_once(api: Ask, topic: str) -> None:
    api("POST", f"{topic}/messageTTL?messageTTL=5")
    api("POST", f"{topic}/retention", {"retentionTimeInMinutes": 10, "retentionSizeInMB": 10})
    assert api("DELETE", f"{topic}/policies").status == 204
    assert api("GET", f"{topic}/messageTTL").body == b""
    assert api("GET", f"{topic}/retention").body == b""
    assert api("DELETE", f"{topic}/policies").status == 204
    assert api("DELETE", f"{topic}-none/policies").status == 404


def test_a_new_namespace_may_have_them(api: Ask) -> None:
    made = {
        "message_ttl_in_seconds": 60,
        "subscription_expiration_time_minutes": 3,
        "inactive_topic_policies": INACTIVE,
        "max_unacked_messages_per_consumer": 9,
        "subscription_types_enabled": ["Shared"],
        "autoTopicCreationOverride": {"allowAutoTopicCreation": False},
        "autoSubscriptionCreationOverride": {"allowAutoSubscriptionCreation": False},
    }
    assert api("PUT", "/admin/v2/namespaces/public/new", made).status == 204
    shown = api("GET", "/admin/v2/namespaces/public/new").json()
    assert {name: shown[name] for name in made} == made
    refused = api("PUT", "/admin/v2/namespaces/public/no", {
        "persistence": {"bookkeeperEnsemble": 3, "bookkeeperWriteQuorum": 3,
                        "bookkeeperAckQuorum": 2}})  # fmt: skip
    assert refused.status == 412
