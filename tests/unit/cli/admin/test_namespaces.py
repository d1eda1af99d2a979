"""Requests about namespaces and their topics."""

from __future__ import annotations

import json

import pytest

from headgate.cli.admin.namespaces import new_policies
from tests.unit.cli.admin.fake_server import FakeServer, admin


def test_a_new_namespace_is_sent_with_empty_policies() -> None:
    policies = new_policies({"clusters": None, "numBundles": 0})
    assert policies["replication_clusters"] == []
    assert not {"bundles", "clusterThatCanDeleteNamespace"} & policies.keys()
    policies = new_policies({"clusters": ["a", "b"], "numBundles": 4})
    assert policies["bundles"] == {"numBundles": 4}
    assert policies["replication_clusters"] == ["a", "b"]
    assert "clusterThatCanDeleteNamespace" not in policies
    alone = new_policies({"clusters": ["a"], "numBundles": 0})
    assert alone["clusterThatCanDeleteNamespace"] == "a"


def test_topics_of_one_mode(server: FakeServer) -> None:
    server.answer(["persistent://t/n/x"])
    result = admin("namespaces", "topics", "t/n", "-m", "persistent", "-ist")
    assert result.output == "persistent://t/n/x\n"
    assert server.asked[0][1] == (
        "/admin/v2/namespaces/t/n/topics?mode=PERSISTENT&includeSystemTopic=true"
    )


def test_an_unset_policy_is_null(server: FakeServer) -> None:
    assert admin("namespaces", "get-dispatch-rate", "t/n").output == "null\n"


def test_publish_rates(server: FakeServer) -> None:
    path = "/admin/v2/namespaces/t/n/publishRate"
    admin("namespaces", "set-publish-rate", "t/n", "-m", "50", "--byte-publish-rate=1000")
    admin("namespaces", "set-publish-rate", "t/n", "--unlimited")
    admin("namespaces", "remove-publish-rate", "t/n")
    assert server.asked == [
        ("POST", path, '{"publishThrottlingRateInMsg":50,"publishThrottlingRateInByte":1000}'),
        (
            "POST",
            path,
            '{"publishThrottlingRateInMsg":-1,"publishThrottlingRateInByte":-1,"unlimited":true}',
        ),
        ("DELETE", path, ""),
    ]
    assert admin("namespaces", "get-publish-rate", "t/n").output == "null\n"


def test_quotas_are_shown_under_either_name(server: FakeServer) -> None:
    server.answer({"message_age": {"limitTime": 60, "policy": "producer_exception"}})
    said = {
        admin("namespaces", verb, "t/n").output
        for verb in ("get-backlog-quotas", "get-backlog-quota")
    }
    assert said == {"message_age    BacklogQuotaImpl(limitTime=60, policy=producer_exception)\n"}
    assert server.asked == [("GET", "/admin/v2/namespaces/t/n/backlogQuotaMap", "")] * 2


def test_retention_may_be_without_end(server: FakeServer) -> None:
    result = admin("namespaces", "set-retention", "t/n", "-t", "-1", "-s", "-1")
    assert result.exit_code == 0
    assert server.asked[0][2] == '{"retentionTimeInMinutes":-1,"retentionSizeInMB":-1}'


def test_delayed_delivery_has_a_tick_and_a_longest_delay(server: FakeServer) -> None:
    admin("namespaces", "set-delayed-delivery", "t/n", "--enable", "-t", "2s", "-md", "3d")
    admin("namespaces", "set-delayed-delivery", "t/n", "-d")
    assert [body for _, _, body in server.asked] == [
        '{"tickTime":2000,"active":true,"maxDeliveryDelayInMillis":259200000}',
        '{"tickTime":1000,"active":false,"maxDeliveryDelayInMillis":0}',
    ]


def test_deleting(server: FakeServer) -> None:
    admin("namespaces", "delete", "t/n", "--force")
    assert server.asked == [("DELETE", "/admin/v2/namespaces/t/n?force=true", "")]


@pytest.mark.parametrize(
    ("words", "query", "limits"),
    [
        (["-l", "1k"], "destination_storage", (1 << 10, -1)),
        (["--limit=2T"], "destination_storage", (2 << 40, -1)),
        (["--limit", "-1"], "destination_storage", (-1, -1)),
        (["-lt", "2d", "-t", "message_age"], "message_age", (-1, 172_800)),
        (["--limitTime=90", "--type=message_age", "-l", "5G"], "message_age", (-1, 90)),
    ],
)
def test_backlog_quotas_have_units(
    server: FakeServer, words: list[str], query: str, limits: tuple[int, int]
) -> None:
    line = ["namespaces", "set-backlog-quota", "t/n", "-p", "producer_request_hold", *words]
    assert admin(*line).exit_code == 0
    method, path, body = server.asked[0]
    assert (method, path) == (
        "POST", f"/admin/v2/namespaces/t/n/backlogQuota?backlogQuotaType={query}",
    )  # fmt: skip
    sent = json.loads(body)
    assert (sent["limitSize"], sent["limitTime"]) == limits


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["-p", "producer_exception"], "Quota type of 'destination_storage' needs a size limit"),
        (["-p", "producer_exception", "-t", "message_age", "-l", "5"],
         "Quota type of 'message_age' needs a time limit"),
        (["-l", "5"], "Missing required option: '--policy=<policyStr>'"),
        (["-l", "5", "-p", "x"], "Invalid retention policy type 'x'. Valid options are: "
         "[producer_request_hold, producer_exception, consumer_backlog_eviction]"),
        (["-l", "5", "-p", "producer_exception", "-t", "x"],
         "Invalid backlog quota type 'x'. Valid options are: [destination_storage, message_age]"),
        (["-l", "5X", "-p", "producer_exception"], "Invalid value for option '--limit': '5X' is "
         "not a size such as 4096, 100K, 10M, 16G, 2T"),
        (["-lt", "5x", "-p", "producer_exception"], "Invalid value for option '--limitTime': '5x' "
         "is not a time such as 90, 90s, 10m, 3h, 2d, 5w, 1y"),
    ],
)  # fmt: skip
def test_wrong_backlog_quotas_are_not_sent(server: FakeServer, words: list[str], text: str) -> None:
    result = admin("namespaces", "set-backlog-quota", "t/n", *words)
    assert (result.exit_code, result.stderr.splitlines()[0], server.asked) == (1, text, [])
    assert "Usage: headgate admin namespaces set-backlog-quota" in result.stderr


def test_backlog_quotas_are_printed_and_removed(server: FakeServer) -> None:
    quota = {"limit": 10, "limitSize": 10, "limitTime": -1, "policy": "producer_exception"}
    server.answer({"destination_storage": quota})
    assert admin("namespaces", "get-backlog-quotas", "t/n").output == (
        "destination_storage    BacklogQuotaImpl(limit=10, limitSize=10, limitTime=-1, "
        "policy=producer_exception)\n"
    )
    admin("namespaces", "remove-backlog-quota", "t/n")
    path = "/admin/v2/namespaces/t/n/backlogQuota"
    assert server.asked == [
        ("GET", f"{path}Map", ""),
        ("DELETE", f"{path}?backlogQuotaType=destination_storage", ""),
    ]
    assert admin("namespaces", "remove-backlog-quota", "t/n", "-t", "x").exit_code == 1
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("name", "flag", "segment"),
    [
        ("max-topics-per-namespace", "-t", "maxTopicsPerNamespace"),
        ("max-producers-per-topic", "-p", "maxProducersPerTopic"),
        ("max-consumers-per-topic", "-c", "maxConsumersPerTopic"),
        ("max-consumers-per-subscription", "-c", "maxConsumersPerSubscription"),
        ("max-subscriptions-per-topic", "-m", "maxSubscriptionsPerTopic"),
    ],
)
def test_limits_on_numbers(server: FakeServer, name: str, flag: str, segment: str) -> None:
    path = f"/admin/v2/namespaces/t/n/{segment}"
    admin("namespaces", f"set-{name}", "t/n", flag, "3")
    admin("namespaces", f"set-{name}", "t/n", f"--{name}", "0")
    admin("namespaces", f"remove-{name}", "t/n")
    assert admin("namespaces", f"get-{name}", "t/n").output == "null\n"
    assert server.asked == [
        ("POST", path, "3"), ("POST", path, "0"), ("DELETE", path, ""), ("GET", path, ""),
    ]  # fmt: skip
    assert admin("namespaces", f"set-{name}", "t/n").exit_code == 1
