"""Requests about topics and their partitions."""

from __future__ import annotations

import json

from tests.unit.cli.admin.fake_server import FakeServer, Reply, admin

TOPIC = "/admin/v2/persistent/t/n/x"
BROKER = {"brokerUrl": "pulsar://b:6650", "httpUrl": "http://b:8080"}


def test_both_domains_are_listed_together(server: FakeServer) -> None:
    server.answer(["persistent://t/n/x"], ["non-persistent://t/n/y"])
    assert admin("topics", "list", "t/n").output == "persistent://t/n/x\nnon-persistent://t/n/y\n"
    server.answer([])
    result = admin("topics", "list", "t/n", "-td", "persistent", "-b", "0x0_0xf")
    assert result.output == ""
    assert server.asked[2:] == [
        ("GET", "/admin/v2/persistent/t/n?bundle=0x0_0xf&includeSystemTopic=false", "")
    ]


def test_partitioned_topics_are_listed(server: FakeServer) -> None:
    server.answer(["persistent://t/n/x"], [])
    result = admin("topics", "list-partitioned-topics", "t/n")
    assert result.output == "persistent://t/n/x\n"


def test_properties_go_with_a_new_topic(server: FakeServer) -> None:
    admin("topics", "create", "t/n/x")
    admin("topics", "create", "t/n/x", "-m", "a=1,b=2")
    path = f"{TOPIC}/partitions?createLocalTopicOnly=false"
    admin("topics", "create-partitioned-topic", "t/n/x", "-p", "3")
    assert server.asked == [
        ("PUT", TOPIC, "{}"),
        ("PUT", TOPIC, '{"a":"1","b":"2"}'),
        ("PUT", path, "3"),
    ]
    admin("topics", "create-partitioned-topic", "t/n/x", "-p", "3", "-m", "a=1")
    assert json.loads(server.asked[-1][2]) == {
        "partitions": 3, "deleted": False, "properties": {"a": "1"},
    }  # fmt: skip
    assert server.headers["Content-Type"] == "application/vnd.partitioned-topic-metadata+json"


def test_a_topic_is_looked_up(server: FakeServer) -> None:
    server.answer(BROKER)
    assert admin("topics", "lookup", "x").output == "pulsar://b:6650\n"
    assert server.asked == [("GET", "/lookup/v2/topic/persistent/public/default/x", "")]


def test_partitions_are_looked_up_one_by_one(server: FakeServer) -> None:
    server.answer({"partitions": 2}, BROKER)
    assert admin("topics", "partitioned-lookup", "t/n/x").output == (
        "persistent://t/n/x-partition-0    pulsar://b:6650\n"
        "persistent://t/n/x-partition-1    pulsar://b:6650\n"
    )
    server.answer({"partitions": 2}, BROKER)
    assert admin("topics", "partitioned-lookup", "t/n/x", "-s").output == (
        "pulsar://b:6650    [persistent://t/n/x-partition-0, persistent://t/n/x-partition-1]\n"
    )
    server.answer({"partitions": 0})
    result = admin("topics", "partitioned-lookup", "t/n/x")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Topic persistent://t/n/x is not a partitioned topic\n")


def test_a_number_of_partitions_without_end_takes_no_memory(server: FakeServer) -> None:
    server.replies = [Reply(200, b'{"partitions": 1000000000000}'), Reply(404, reason="Gone")]
    result = admin("topics", "partitioned-lookup", "t/n/x")
    assert (result.exit_code, len(server.asked)) == (1, 2)


def test_a_failed_delete_fails(server: FakeServer) -> None:
    server.answer({"reason": "Topic persistent://t/n/x not found"}, status=404)
    result = admin("topics", "delete", "t/n/x")
    assert result.exit_code == 1
    assert result.stderr == (
        "Topic persistent://t/n/x not found\n\nReason: Topic persistent://t/n/x not found\n"
    )
    assert server.asked == [("DELETE", f"{TOPIC}?force=false&deleteSchema=true", "")]
