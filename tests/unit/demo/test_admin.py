"""The demo's requests to admin REST."""

from __future__ import annotations

import json
import shlex

from headgate.demo.admin import HttpCall, limit_calls, quota_calls, topic_calls
from tests.unit.demo.made import scene

_BASE = "/admin/v2/persistent/public/default"


def test_limits_are_set_at_the_scope_of_the_scene() -> None:
    (topic,) = limit_calls(scene("topic-limit"), 80)
    assert (topic.method, topic.path) == ("POST", f"{_BASE}/clicks/dispatchRate")
    assert topic.body["dispatchThrottlingRateInMsg"] == 80
    assert topic.body["dispatchThrottlingRateInByte"] == -1
    (subscription,) = limit_calls(scene("subscription-limit"), 50)
    assert subscription.path == f"{_BASE}/payments/subscriptionDispatchRate"
    (broker,) = limit_calls(scene("broker-limit"), 120)
    assert broker.path == "/admin/v2/brokers/configuration/dispatchThrottlingRateInMsg/120"
    assert broker.body is None
    assert limit_calls(scene("healthy"), 1) == []


def test_a_relative_limit_of_a_scene_is_set() -> None:
    (plain,) = limit_calls(scene("topic-limit"), 80)
    assert plain.body["relativeToPublishRate"] is False
    (moving,) = limit_calls(scene("relative-limit"), 50)
    assert (moving.path, moving.body["dispatchThrottlingRateInMsg"]) == (
        f"{_BASE}/parcels/dispatchRate",
        50,
    )
    assert moving.body["relativeToPublishRate"] is True


def test_quotas_of_a_scene_are_set() -> None:
    slowed = scene("adaptive-limit")
    (call,) = quota_calls(slowed, 60)
    assert (call.method, call.path) == ("POST", f"{_BASE}/videos/backlogQuota")
    assert call.body == {"limitSize": slowed.quota_bytes(60), "policy": "producer_request_hold"}
    assert limit_calls(slowed, 1) == []
    assert quota_calls(scene("adaptive-neighbour"), 60) == []


def test_topics_are_created_before_their_subscriptions() -> None:
    calls = topic_calls(scene("topic-limit"))
    assert [(call.method, call.path.removeprefix(_BASE)) for call in calls] == [
        ("PUT", "/clicks"),
        ("PUT", "/clicks/subscription/search"),
        ("PUT", "/clicks/subscription/reports"),
    ]
    assert len(topic_calls(scene("broker-limit"))) == 6


def test_a_call_can_be_pasted() -> None:
    call = HttpCall("POST", "/admin/v2/x", {"rate": 5, "why": "slow"})
    words = shlex.split(call.curl("http://127.0.0.1:8080"))
    assert words[:4] == ["curl", "-X", "POST", "http://127.0.0.1:8080/admin/v2/x"]
    assert words[4:6] == ["-H", "Content-Type: application/json"]
    assert json.loads(words[7]) == {"rate": 5, "why": "slow"}
    assert HttpCall("PUT", "/y").curl("http://h") == "curl -X PUT http://h/y"


def test_a_call_with_credentials_names_their_file() -> None:
    words = shlex.split(HttpCall("PUT", "/y").curl("http://h", "/tmp/my demo/admin.header"))
    assert words == ["curl", "-X", "PUT", "http://h/y", "-H", "@/tmp/my demo/admin.header"]
