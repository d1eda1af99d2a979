"""Policies of a topic, one by one, and what is enforced."""

from __future__ import annotations

import pytest

from tests.unit.admin.conftest import Ask

NS = "/admin/v2/namespaces/public/default"
P = "/admin/v2/persistent/public/default"


def rate(messages: int) -> dict[str, object]:
    return {
        "dispatchThrottlingRateInMsg": messages,
        "dispatchThrottlingRateInByte": -1,
        "relativeToPublishRate": False,
        "ratePeriodInSecond": 1,
    }


def publish_rate(messages: int, **more: object) -> dict[str, object]:
    return {"publishThrottlingRateInMsg": messages, "publishThrottlingRateInByte": -1, **more}


RETENTION = {"retentionTimeInMinutes": 10, "retentionSizeInMB": -1}


@pytest.mark.parametrize(
    ("policy", "own", "namespaces"),
    [
        ("dispatchRate", rate(5), rate(7)),
        ("subscriptionDispatchRate", rate(5), rate(7)),
        ("retention", RETENTION, {"retentionTimeInMinutes": 1, "retentionSizeInMB": 1}),
    ],
)
def test_set_get_applied_remove(
    api: Ask, policy: str, own: dict[str, object], namespaces: dict[str, object]
) -> None:
    api("PUT", f"{P}/t")
    path = f"{P}/t/{policy}"
    assert (api("GET", path).status, api("GET", path).body) == (200, b"")
    assert api("GET", f"{path}?applied=true").status == 200
    api("POST", f"{NS}/{policy}", namespaces)
    assert api("GET", f"{path}?applied=true").json() == namespaces
    assert api("POST", f"{path}?isGlobal=false", own).status == 204
    assert api("GET", path).json() == own
    assert api("GET", f"{path}?applied=true").json() == own
    assert api("DELETE", path).status == 204
    assert api("GET", path).body == b""
    api("POST", path, own)
    assert api("POST", path).status == 204
    assert api("GET", path).json() == own


def test_a_partitioned_topic_has_policies_and_its_partitions_have_not(api: Ask) -> None:
    api("PUT", f"{P}/pt/partitions", 2)
    assert api("POST", f"{P}/pt/dispatchRate", rate(5)).status == 204
    assert api("POST", f"{P}/pt/publishRate", publish_rate(5)).status == 204
    for method in ("GET", "POST", "DELETE"):
        for policy, body in (("dispatchRate", rate(5)), ("publishRate", publish_rate(5))):
            answer = api(method, f"{P}/pt-partition-0/{policy}", body)
            assert (answer.status, answer.reason) == (
                412, "Not allowed to set/get topic policy for a partition",
            )  # fmt: skip


def test_a_topic_must_exist(api: Ask) -> None:
    for method in ("GET", "POST", "DELETE"):
        for path in ("none/dispatchRate", "none/sub/dispatchRate", "none/publishRate"):
            assert api(method, f"{P}/{path}", rate(5)).reason == (
                "Topic persistent://public/default/none not found"
            )


def test_single_subscriptions(api: Ask) -> None:
    api("PUT", f"{P}/t")
    path = f"{P}/t/my%2Fsub/dispatchRate"
    assert api("GET", path).body == b""
    api("POST", f"{P}/t/subscriptionDispatchRate", rate(9))
    assert api("GET", f"{path}?applied=true").json() == rate(9)
    assert api("POST", path, rate(5)).status == 204
    assert api("POST", path, rate(-1)).status == 204
    assert api("POST", path).status == 204
    assert api("GET", path).json() == rate(5)
    assert api("GET", f"{path}?applied=true").json() == rate(5)
    assert api("DELETE", path).status == 204
    assert api("GET", path).body == b""
    assert api("GET", f"{P}/t/subscriptionDispatchRate").json() == rate(9)


def test_unlimited_is_shown_as_set_and_wins(api: Ask) -> None:
    """Law 1.8: Pulsar's -1 and 0 keep meaning "inherit"; this does not inherit."""
    api("PUT", f"{P}/t")
    unlimited = {**rate(-1), "unlimited": True}
    for policy in ("dispatchRate", "subscriptionDispatchRate", "sub/dispatchRate"):
        path = f"{P}/t/{policy}"
        if not policy.startswith("sub/"):
            api("POST", f"{NS}/{policy}", rate(7))
        assert api("GET", f"{path}?applied=true").json()["dispatchThrottlingRateInMsg"] == 7
        assert api("POST", path, unlimited).status == 204
        assert api("GET", path).json() == unlimited
        assert api("GET", f"{path}?applied=true").json() == unlimited
        assert api("DELETE", path).status == 204
        assert api("GET", f"{path}?applied=true").json() == rate(7)


def test_unlimited_with_a_rate_is_refused_and_changes_nothing(api: Ask) -> None:
    api("PUT", f"{P}/t")
    path = f"{P}/t/dispatchRate"
    answer = api("POST", path, {**rate(5), "unlimited": True})
    assert answer.status == 400
    assert "unlimited excludes rates above 0" in answer.reason
    assert api("GET", path).body == b""
    wrong = api("POST", path, {"unlimited": "perhaps"})
    assert wrong.status == 400
    assert api("POST", path, {**rate(5), "unlimited": False}).status == 204


def test_publish_rates_answer_204_where_nothing_is_set(api: Ask) -> None:
    """As Pulsar does; ``applied``, which it does not know there, shows what is in force."""
    api("PUT", f"{P}/t")
    path = f"{P}/t/publishRate"
    applied = f"{path}?applied=true"
    for asked in (path, applied):
        assert (api("GET", asked).status, api("GET", asked).body) == (204, b"")
    api("POST", f"{NS}/publishRate", publish_rate(7))
    assert api("GET", path).status == 204
    assert api("GET", applied).json() == publish_rate(7)
    assert api("POST", f"{path}?isGlobal=false", publish_rate(5)).status == 204
    assert api("POST", path).status == 204
    for asked in (path, applied):
        assert api("GET", asked).json() == publish_rate(5)
    assert api("POST", path, publish_rate(0)).status == 204
    assert api("GET", path).json() == publish_rate(0)
    assert api("GET", applied).json() == publish_rate(7)
    assert api("DELETE", path).status == 204
    assert api("GET", path).status == 204


def test_an_unlimited_publish_rate_is_shown_as_set_and_wins(api: Ask) -> None:
    api("PUT", f"{P}/t")
    path = f"{P}/t/publishRate"
    unlimited = publish_rate(-1, unlimited=True)
    api("POST", f"{NS}/publishRate", publish_rate(7))
    assert api("POST", path, unlimited).status == 204
    assert api("GET", path).json() == api("GET", f"{path}?applied=true").json() == unlimited
    answer = api("POST", path, publish_rate(5, unlimited=True))
    assert (answer.status, "unlimited excludes rates above 0" in answer.reason) == (400, True)
    assert api("GET", path).json() == unlimited


def test_relative_is_shown_as_set(api: Ask) -> None:
    api("PUT", f"{P}/t")
    path = f"{P}/t/dispatchRate"
    relative = {**rate(200), "relativeToPublishRate": True, "ratePeriodInSecond": 10}
    assert api("POST", path, relative).status == 204
    assert api("GET", f"{path}?applied=true").json() == relative


@pytest.mark.parametrize(
    ("policy", "of_namespace", "unset"),
    [
        ("maxProducers", "maxProducersPerTopic", 200),
        ("maxConsumers", "maxConsumersPerTopic", 200),
        ("maxConsumersPerSubscription", "maxConsumersPerSubscription", 204),
        ("maxSubscriptionsPerTopic", "maxSubscriptionsPerTopic", 204),
    ],
)
def test_limits_on_numbers(api: Ask, policy: str, of_namespace: str, unset: int) -> None:
    api("PUT", f"{P}/t")
    path, wider = f"{P}/t/{policy}", f"{NS}/{of_namespace}"
    assert (api("GET", path).status, api("GET", path).body) == (unset, b"")
    assert api("GET", f"{path}?applied=true").json() == 0
    assert (api("GET", wider).status, api("GET", wider).body) == (200, b"")
    assert api("POST", wider, 7).status == 204
    assert (api("GET", wider).json(), api("GET", f"{path}?applied=true").json()) == (7, 7)
    for _ in range(2):
        assert api("POST", path, 0).status == 204
        assert (api("GET", path).json(), api("GET", f"{path}?applied=true").json()) == (0, 0)
    for method, name, where in (("POST", policy, path), ("POST", of_namespace, wider)):
        refused = api(method, where, -1)
        assert (refused.status, refused.reason) == (412, f"{name} must be 0 or more")
        assert api(method, where, "many").status == 400
        assert api(method, where, 1 << 31).status == 400
    assert api("GET", wider).json() == 7
    for _ in range(2):
        assert api("DELETE", path).status == 204
    assert (api("GET", path).status, api("GET", f"{path}?applied=true").json()) == (unset, 7)
    assert api("DELETE", wider).status == 204
    assert api("GET", f"{path}?applied=true").json() == 0


def test_deduplication_of_topic_namespace_and_broker(api: Ask) -> None:
    api("PUT", f"{P}/t")
    path = f"{P}/t/deduplicationEnabled"
    assert (api("GET", path).status, api("GET", path).body) == (200, b"")
    assert api("GET", f"{path}?applied=true").json() is False
    assert api("POST", f"{NS}/deduplication", True).status == 204
    assert api("GET", f"{path}?applied=true").json() is True
    assert api("POST", path, False).status == 204
    assert api("GET", path).json() is False
    assert api("GET", f"{path}?applied=true").json() is False
    assert api("POST", path, "never").status == 400
    assert api("DELETE", path).status == 204
    assert api("GET", f"{path}?applied=true").json() is True
    assert api("DELETE", f"{NS}/deduplication").status == 204
    assert api("GET", f"{NS}/deduplication").body == b""
