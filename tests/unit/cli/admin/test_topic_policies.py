"""Requests about the policies of topics."""

from __future__ import annotations

import json

import pytest

from headgate.cli.admin.topic_policies import GROUP, OLDER_VERBS
from tests.unit.cli.admin.fake_server import FakeServer, admin

TOPIC = "/admin/v2/persistent/t/n/x"


@pytest.mark.parametrize(
    ("words", "method", "path"),
    [
        (["get-dispatch-rate", "t/n/x"], "GET", "dispatchRate?applied=false"),
        (["get-retention", "t/n/x", "-g", "-ap"], "GET", "retention?isGlobal=true&applied=true"),
        (["remove-dispatch-rate", "t/n/x", "--global"], "DELETE", "dispatchRate?isGlobal=true"),
        (
            ["get-subscription-dispatch-rate", "t/n/x", "--subscription", "s/1"],
            "GET",
            "s%2F1/dispatchRate?applied=false",
        ),
        (["remove-subscription-dispatch-rate", "t/n/x"], "DELETE", "subscriptionDispatchRate"),
        (["get-deduplication", "t/n/x", "-ap"], "GET", "deduplicationEnabled?applied=true"),
        (["remove-deduplication", "t/n/x", "-g"], "DELETE", "deduplicationEnabled?isGlobal=true"),
        (["get-publish-rate", "t/n/x"], "GET", "publishRate"),
        (["get-publish-rate", "t/n/x", "-ap"], "GET", "publishRate?applied=true"),
        (["get-publish-rate", "t/n/x", "--global"], "GET", "publishRate?isGlobal=true"),
        (["remove-publish-rate", "t/n/x", "-g"], "DELETE", "publishRate?isGlobal=true"),
        (["get-backlog-quota", "t/n/x"], "GET", "backlogQuotaMap?applied=false"),
        (
            ["get-backlog-quota", "t/n/x", "-g", "-ap"],
            "GET",
            "backlogQuotaMap?isGlobal=true&applied=true",
        ),
        (
            ["remove-backlog-quota", "t/n/x", "-t", "message_age", "-g"],
            "DELETE",
            "backlogQuota?backlogQuotaType=message_age&isGlobal=true",
        ),
        (
            ["remove-subscription-dispatch-rate", "t/n/x", "-s", "sub"],
            "DELETE",
            "sub/dispatchRate",
        ),
    ],
)
def test_which_policy_is_meant(
    server: FakeServer, words: list[str], method: str, path: str
) -> None:
    assert admin("topicPolicies", *words).exit_code == 0
    assert server.asked == [(method, f"{TOPIC}/{path}", "")]


def test_a_limit_may_be_lifted_for_one_subscription(server: FakeServer) -> None:
    words = ["set-subscription-dispatch-rate", "t/n/x", "-s", "sub", "--unlimited", "-dt", "2"]
    assert admin("topicPolicies", *words).exit_code == 0
    method, path, body = server.asked[0]
    assert (method, path) == ("POST", f"{TOPIC}/sub/dispatchRate")
    assert json.loads(body)["unlimited"] is True
    refused = admin("topicPolicies", *words, "-md", "5")
    assert refused.exit_code == 1
    assert refused.stderr.startswith("--unlimited excludes")
    assert len(server.asked) == 1


def test_the_older_verbs_are_the_same_without_the_newer_options(server: FakeServer) -> None:
    older_names = {verb.name for verb in OLDER_VERBS}
    newer_names = set(GROUP.commands)
    oldest = {"get-deduplication-enabled", "enable-deduplication", "disable-deduplication"}
    assert older_names - newer_names - oldest == {"get-backlog-quotas"} | {
        f"{verb}-{name}"
        for verb in ("get", "set", "remove")
        for name in (
            "maxProducers",
            "max-subscriptions",
            "max-unacked-messages-on-consumer",
            "max-unacked-messages-on-subscription",
        )
    }
    assert newer_names - older_names == {"get-backlog-quota", "delete"} | {
        f"{verb}-{name}"
        for verb in ("get", "set", "remove")
        for name in (
            "max-subscriptions-per-topic",
            "auto-subscription-creation",
            "schema-compatibility-strategy",
        )
    }
    words = ["set-dispatch-rate", "t/n/x", "--msg-dispatch-rate=10", "-bd=5"]
    admin("topics", *words)
    admin("topicPolicies", *words)
    older, newer = server.asked
    assert older == newer
    server.asked.clear()
    for words in (
        ["set-publish-rate", "t/n/x", "--msg-publish-rate=10", "-b", "5"],
        ["set-publish-rate", "t/n/x", "-m", "10", "--byte-publish-rate", "5", "-g"],
    ):
        admin("topicPolicies" if "-g" in words else "topics", *words)
    body = '{"publishThrottlingRateInMsg":10,"publishThrottlingRateInByte":5}'
    assert server.asked == [
        ("POST", f"{TOPIC}/publishRate", body),
        ("POST", f"{TOPIC}/publishRate?isGlobal=true", body),
    ]
    refused = admin("topics", "get-dispatch-rate", "t/n/x", "-g")
    assert (refused.exit_code, refused.stderr.splitlines()[0]) == (1, "Unknown option: '-g'")


def test_the_older_verb_sends_both_limits_of_a_quota(server: FakeServer) -> None:
    words = ["set-backlog-quota", "t/n/x", "-l", "1K", "-lt", "1m", "-p", "producer_exception"]
    assert admin("topics", *words).exit_code == 0
    assert admin("topicPolicies", *words).exit_code == 0
    path = f"{TOPIC}/backlogQuota?backlogQuotaType=destination_storage"
    assert [asked[:2] for asked in server.asked] == [("POST", path)] * 2
    both, one = (json.loads(body) for _, _, body in server.asked)
    assert both == {
        "limit": 1_024, "limitSize": 1_024, "limitTime": 60, "policy": "producer_exception",
    }  # fmt: skip
    assert one == both | {"limitTime": -1}


@pytest.mark.parametrize(
    ("group", "verb"), [("topics", "get-backlog-quotas"), ("topicPolicies", "get-backlog-quota")]
)
def test_quotas_are_printed_one_a_line(server: FakeServer, group: str, verb: str) -> None:
    server.answer({"message_age": {"limitTime": 60, "policy": "producer_exception"}})
    assert admin(group, verb, "t/n/x", "-ap").output == (
        "message_age    BacklogQuotaImpl(limitTime=60, policy=producer_exception)\n"
    )
    assert server.asked == [("GET", f"{TOPIC}/backlogQuotaMap?applied=true", "")]


@pytest.mark.parametrize(
    ("group", "name", "flag", "segment", "query"),
    [
        ("topicPolicies", "max-producers", "-p", "maxProducers", "?applied=false"),
        ("topicPolicies", "max-consumers", "-c", "maxConsumers", "?applied=false"),
        (
            "topicPolicies",
            "max-consumers-per-subscription",
            "-c",
            "maxConsumersPerSubscription",
            "",
        ),
        ("topicPolicies", "max-subscriptions-per-topic", "-s", "maxSubscriptionsPerTopic", ""),
        ("topics", "maxProducers", "-p", "maxProducers", "?applied=false"),
        ("topics", "max-consumers", "-c", "maxConsumers", "?applied=false"),
        ("topics", "max-subscriptions", "-m", "maxSubscriptionsPerTopic", ""),
    ],
)
def test_limits_on_numbers(
    server: FakeServer, group: str, name: str, flag: str, segment: str, query: str
) -> None:
    server.answer(7)
    assert admin(group, f"get-{name}", "t/n/x").output == "7\n"
    admin(group, f"set-{name}", "t/n/x", flag, "3")
    admin(group, f"remove-{name}", "t/n/x")
    path = f"{TOPIC}/{segment}"
    assert server.asked == [("GET", path + query, ""), ("POST", path, "3"), ("DELETE", path, "")]


def test_the_limit_on_a_number_in_force(server: FakeServer) -> None:
    admin("topicPolicies", "get-max-subscriptions-per-topic", "t/n/x", "-ap", "-g")
    assert server.asked[0][1] == f"{TOPIC}/maxSubscriptionsPerTopic?isGlobal=true&applied=true"


@pytest.mark.parametrize(
    ("words", "sent"),
    [
        (["topicPolicies", "set-deduplication", "t/n/x", "-e"], "true"),
        (["topicPolicies", "set-deduplication", "t/n/x", "--disable"], "false"),
        (["topics", "set-deduplication", "t/n/x", "--enable"], "true"),
        (["topics", "enable-deduplication", "t/n/x"], "true"),
        (["topics", "disable-deduplication", "t/n/x"], "false"),
    ],
)
def test_deduplication_is_turned_on_and_off(
    server: FakeServer, words: list[str], sent: str
) -> None:
    assert admin(*words).exit_code == 0
    assert server.asked == [("POST", f"{TOPIC}/deduplicationEnabled", sent)]


@pytest.mark.parametrize("options", [[], ["--enable", "--disable"]])
def test_deduplication_is_either_on_or_off(server: FakeServer, options: list[str]) -> None:
    refused = admin("topicPolicies", "set-deduplication", "t/n/x", *options)
    assert refused.exit_code == 1
    assert "Need to specify either --enable or --disable" in refused.stderr
    assert not server.asked
