"""The verbs that terminate topics print the last message ids as ``pulsar-admin`` does."""

from __future__ import annotations

from tests.unit.cli.admin.fake_server import FakeServer, admin

TOPIC = "/admin/v2/persistent/t/n/x"


def test_a_topic_is_terminated(server: FakeServer) -> None:
    server.answer({"ledgerId": 7, "entryId": 41, "partitionIndex": -1})
    result = admin("topics", "terminate", "t/n/x")
    assert result.output == "Topic successfully terminated at 7:41:-1\n"
    assert server.asked == [("POST", f"{TOPIC}/terminate", "")]


def test_partitions_are_terminated(server: FakeServer) -> None:
    server.answer({"0": {"ledgerId": 7, "entryId": 41, "partitionIndex": 0}})
    result = admin("topics", "partitioned-terminate", "t/n/x")
    assert result.output == (
        "Topic persistent://t/n/x-partition-0 is successfully terminated at 7:41:0\n"
    )
    assert server.asked == [("POST", f"{TOPIC}/terminate/partitions", "")]
