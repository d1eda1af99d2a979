"""Namespaces."""

from __future__ import annotations

from tests.unit.admin.conftest import Ask

N = "/admin/v2/namespaces"
RATE = {
    "dispatchThrottlingRateInMsg": 5,
    "dispatchThrottlingRateInByte": -1,
    "relativeToPublishRate": False,
    "ratePeriodInSecond": 1,
}
PUBLISH_RATE = {"publishThrottlingRateInMsg": 5, "publishThrottlingRateInByte": -1}


def test_a_namespaces_life(api: Ask) -> None:
    assert api("PUT", f"{N}/public/ns").status == 204
    assert api("GET", f"{N}/public").json() == ["public/default", "public/ns"]
    assert api("PUT", f"{N}/public/ns").reason == "Namespace already exists"
    assert api("DELETE", f"{N}/public/ns?force=true").status == 405
    assert api("DELETE", f"{N}/public/ns").status == 204
    assert (api("GET", f"{N}/public/ns").status, api("GET", f"{N}/public/ns").reason) == (
        404, "Namespace does not exist",
    )  # fmt: skip


def test_a_name_that_a_url_resolves_is_not_created(api: Ask) -> None:
    """In ``public/../shop/subscription/s``, which deletes a subscription of the topic ``shop``, a
    proxy sees the topic ``s`` of the namespace ``shop/subscription``."""
    for name in (".", ".."):
        answer = api("PUT", f"{N}/public/{name}")
        assert (answer.status, answer.reason) == (412, "Namespace name is not valid")
    assert api("PUT", f"{N}/public/...").status == 204


def test_policies_can_be_given_at_once_and_are_shown(api: Ask) -> None:
    body = {
        "bundles": {"numBundles": 2},
        "replication_clusters": ["standalone"],
        "topicDispatchRate": {"standalone": RATE, "other": {}},
        "subscriptionDispatchRate": {"standalone": RATE},
        "publishMaxMessageRate": {"standalone": PUBLISH_RATE},
        "retention_policies": {"retentionTimeInMinutes": 1, "retentionSizeInMB": -1},
        "delayed_delivery_policies": {
            "tickTime": 9,
            "active": False,
            "maxDeliveryDelayInMillis": 8,
        },
        "properties": {"a": "b"},
        "max_producers_per_topic": None,
        "max_consumers_per_topic": -1,
        "max_consumers_per_subscription": 0,
        "max_topics_per_namespace": 9,
        "deduplicationEnabled": True,
    }
    assert api("PUT", f"{N}/public/ns", body).status == 204
    shown = api("GET", f"{N}/public/ns").json()
    assert shown["deduplicationEnabled"] is True
    counts = {name: value for name, value in shown.items() if name.startswith("max_")}
    assert counts == {"max_consumers_per_subscription": 0, "max_topics_per_namespace": 9}
    assert shown["clusterDispatchRate"] == shown["topicDispatchRate"] == {"standalone": RATE}
    assert shown["subscriptionDispatchRate"] == {"standalone": RATE}
    assert shown["publishMaxMessageRate"] == {"standalone": PUBLISH_RATE}
    assert shown["retention_policies"] == body["retention_policies"]
    assert shown["delayed_delivery_policies"] == body["delayed_delivery_policies"]
    assert api("GET", f"{N}/public/ns/bundles").json()["numBundles"] == 2
    assert api("GET", f"{N}/public/ns/properties").json() == {"a": "b"}
    assert api("GET", f"{N}/public/ns/permissions").json() == {}


def test_bad_policies_create_nothing(api: Ask) -> None:
    for body, status in [
        ({"replication_clusters": ["x"]}, 403),
        ({"bundles": {"numBundles": -3}}, 400),
        ({"bundles": {"boundaries": ["0x0"]}}, 400),
        ({"retention_policies": {"retentionTimeInMinutes": 5}}, 400),
    ]:
        assert api("PUT", f"{N}/public/ns", body).status == status
    assert api("GET", f"{N}/public").json() == ["public/default"]
    assert api("PUT", f"{N}/public/ns", {"bundles": {"boundaries": None}}).status == 204


def test_topics_by_mode(api: Ask) -> None:
    api("PUT", "/admin/v2/persistent/public/default/t")
    topics = ["persistent://public/default/t"]
    assert api("GET", f"{N}/public/default/topics").json() == topics
    assert api("GET", f"{N}/public/default/topics?mode=ALL").json() == topics
    assert api("GET", f"{N}/public/default/topics?mode=NON_PERSISTENT").json() == []
    assert api("GET", f"{N}/public/none/topics").status == 404
