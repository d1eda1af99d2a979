"""The bodies of policies about what ends by itself and what a client's use creates."""

from __future__ import annotations

import json

import pytest

from tests.unit.cli.admin.fake_server import FakeServer, admin

NAMESPACE = "/admin/v2/namespaces/acme/ns"
TOPIC = "/admin/v2/persistent/acme/ns/t1"


@pytest.mark.parametrize(
    ("words", "path", "body"),
    [
        ("set-message-ttl -ttl 2h", "messageTTL", 7_200),
        ("set-subscription-expiration-time -t 5", "subscriptionExpirationTime", 5),
        ("set-inactive-topic-policies -e -t 2m -m delete_when_subscriptions_caught_up",
         "inactiveTopicPolicies",
         {"inactiveTopicDeleteMode": "delete_when_subscriptions_caught_up",
          "maxInactiveDurationSeconds": 120, "deleteWhileInactive": True}),
        ("set-auto-topic-creation --enable --type partitioned --num-partitions 2",
         "autoTopicCreation",
         {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 2}),
        ("set-auto-topic-creation -e -t non-partitioned", "autoTopicCreation",
         {"allowAutoTopicCreation": True, "topicType": "non-partitioned"}),
        ("set-auto-topic-creation -d", "autoTopicCreation", {"allowAutoTopicCreation": False}),
        ("set-auto-subscription-creation -d", "autoSubscriptionCreation",
         {"allowAutoSubscriptionCreation": False}),
        ("set-subscription-types-enabled -t Shared,Failover", "subscriptionTypesEnabled",
         ["Shared", "Failover"]),
        ("set-persistence -e 1 -w 1 -a 1 -r 0.5", "persistence",
         {"bookkeeperEnsemble": 1, "bookkeeperWriteQuorum": 1, "bookkeeperAckQuorum": 1,
          "managedLedgerMaxMarkDeleteRate": 0.5}),
        ("set-max-unacked-messages-per-consumer -c 10", "maxUnackedMessagesPerConsumer", 10),
    ],
)  # fmt: skip
def test_what_is_sent_for_a_namespace(
    server: FakeServer, words: str, path: str, body: object
) -> None:
    verb, *options = words.split()
    assert admin("namespaces", verb, "acme/ns", *options).exit_code == 0
    (method, sent_path, sent_body), = server.asked  # fmt: skip
    assert (method, sent_path, json.loads(sent_body)) == ("POST", f"{NAMESPACE}/{path}", body)


def test_a_topics_ttl_is_in_the_query(server: FakeServer) -> None:
    for words in ("topicPolicies set-message-ttl acme/ns/t1 -t 60",
                  "topicPolicies set-message-ttl acme/ns/t1 --ttl 1m -g",
                  "topics set-message-ttl acme/ns/t1 -t 60",
                  "topicPolicies get-message-ttl acme/ns/t1 -ap",
                  "topicPolicies delete acme/ns/t1"):  # fmt: skip
        admin(*words.split())
    assert server.asked == [
        ("POST", f"{TOPIC}/messageTTL?messageTTL=60", ""),
        ("POST", f"{TOPIC}/messageTTL?messageTTL=60&isGlobal=true", ""),
        ("POST", f"{TOPIC}/messageTTL?messageTTL=60", ""),
        ("GET", f"{TOPIC}/messageTTL?applied=true", ""),
        ("DELETE", f"{TOPIC}/policies", ""),
    ]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("set-inactive-topic-policies acme/ns -t 1 -m delete_when_no_subscriptions",
         "Need to specify either enable-delete-while-inactive or disable-delete-while-inactive"),
        ("set-inactive-topic-policies acme/ns -e -t 1 -m never", "delete mode can only be set to"),
        ("set-auto-subscription-creation acme/ns -e -d", "Need to specify either enable or dis"),
        ("set-auto-topic-creation acme/ns -e", "Must specify type"),
        ("set-auto-topic-creation acme/ns -e -t partitioned", "Must specify num-partitions"),
        ("set-auto-topic-creation acme/ns -e -t round", "Topic type can only be one of"),
        ("set-subscription-types-enabled acme/ns -t Sharde", "Illegal subscription type Sharde"),
        ("set-persistence acme/ns -r -1", "is not a number of 0 or more"),
        ("set-persistence acme/ns -r nan", "is not a number of 0 or more"),
    ],
)  # fmt: skip
def test_what_is_refused(server: FakeServer, words: str, text: str) -> None:
    result = admin("namespaces", *words.split())
    assert result.exit_code == 1
    assert text in result.stderr
    assert server.asked == []
