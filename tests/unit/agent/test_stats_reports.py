"""The last look at a topic in the form of Pulsar's statistics."""

from __future__ import annotations

from dataclasses import replace

from headgate.agent.inferred_topic import InferredTopic
from headgate.agent.looks import ConsumerLook
from headgate.agent.stats_reports import stats_report
from tests.unit.agent.known import READY
from tests.unit.agent.looks import TOPIC, backlog, look


def seen(*consumers: ConsumerLook, waiting: int = 3) -> InferredTopic:
    topic = InferredTopic(TOPIC, "b1:8080")
    topic.note_look(look(1, backlog(backlog=waiting, consumers=consumers)))
    return topic


def test_consumers_have_pulsars_names() -> None:
    found = stats_report([seen(replace(READY, unacked=None))])["subscriptions"]["billing"]
    assert (found["type"], found["msgBacklog"]) == ("Shared", 3)
    assert found["consumers"] == [
        {
            "consumerName": "c-0", "address": "/10.0.0.1:1", "connectedSince": "monday",
            "availablePermits": 1_000, "unackedMessages": None,
            "blockedConsumerOnUnackedMsgs": False, "msgOutCounter": 0,
        }
    ]  # fmt: skip


def test_partitions_are_added_up() -> None:
    parts = [seen(READY), seen(replace(READY, name="c-1"), READY, waiting=4)]
    found = stats_report(parts)["subscriptions"]["billing"]
    assert found["msgBacklog"] == 7
    assert [each["consumerName"] for each in found["consumers"]] == ["c-0", "c-1", "c-0"]


def test_a_topic_without_subscriptions() -> None:
    assert stats_report([InferredTopic(TOPIC, "b1:8080")]) == {"subscriptions": {}}
