"""What a cluster stores, as far as looks tell it."""

from __future__ import annotations

import json

import msgspec

from headgate.agent.inferred_topic import InferredTopic
from headgate.agent.storage_reports import storage_report
from headgate.explain.reports import StorageHolder, StorageReport
from tests.unit.agent.known import NOW, known_topic
from tests.unit.agent.looks import TOPIC, S, backlog, look


def names(kind: type[msgspec.Struct]) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(kind)}


def stored(
    name: str, storage: int | None, *subscriptions: object, **fields: object
) -> InferredTopic:
    topic = InferredTopic(name, "b1:8080")
    topic.note_look(look(1, *subscriptions, topic=name, storage_bytes=storage, **fields))  # type: ignore[arg-type]
    return topic


def test_the_fields_are_the_brokers_and_what_a_cluster_does_not_tell_is_null() -> None:
    report = storage_report("east", [known_topic(storage_bytes=5)], 10, NOW)
    json.dumps(report)
    assert set(report) == names(StorageReport) | {"evidence", "notSeen"}
    assert report["logs"] is report["forecast"] is report["started"] is None
    (holder,) = report["topics"]
    assert set(holder) == names(StorageHolder)
    assert holder["pinnedBytes"] is holder["freesBytes"] is holder["lastPublish"] is None


def test_the_topics_that_store_most_come_first() -> None:
    topics = [stored(f"persistent://a/b/t{size}", size) for size in (5, 0, 9, 7)]
    topics.append(stored("persistent://a/b/untold", None))
    report = storage_report("east", topics, 2, NOW)
    assert [holder["heldBytes"] for holder in report["topics"]] == [9, 7]
    assert (report["topicsTotal"], report["broker"]) == (3, "east")
    assert report["notSeen"][-1] == "what 1 of the topics and partitions store"


def test_a_subscription_keeps_what_it_has_not_acknowledged() -> None:
    slow = backlog("slow", backlog=80, backlog_bytes=800, last_acked_ms=1_763_719_200_000)
    reader = backlog("reader", backlog=99, backlog_bytes=990, is_durable=False)
    (holder,) = storage_report("e", [stored(TOPIC, 1_000, slow, reader)], 5, NOW)["topics"]
    assert (holder["cause"], holder["subscription"]) == ("subscription", "slow")
    assert (holder["waitingBytes"], holder["acknowledgedBytes"]) == (800, 200)
    assert holder["lastAcked"] == "2025-11-21T10:00:00.000Z"
    assert holder["sentence"] == "subscription slow has not acknowledged 80 messages (800 B)"


def test_what_else_keeps_messages_is_not_known() -> None:
    def of(*subscriptions: object, **fields: object) -> tuple[str, str]:
        (holder,) = storage_report("e", [stored(TOPIC, 1_000, *subscriptions, **fields)], 5, NOW)[
            "topics"
        ]
        assert holder["subscription"] is None
        return holder["cause"], holder["sentence"]

    cause, sentence = of(backlog(backlog=0))
    assert (cause, sentence[:27]) == ("unknown", "most of it is acknowledged:")
    assert of()[1].startswith("no durable subscription was seen")
    sentence = of(backlog(backlog=5), backlog_bytes=None)[1]
    assert sentence == "how much of it waits for a subscription is not known"


def test_a_topic_that_was_deleted_stores_nothing() -> None:
    topic = stored(TOPIC, 5)
    topic.note_gone(1 * S)
    later = NOW._replace(now_ns=100 * S)
    assert storage_report("e", [topic], 5, later)["topicsTotal"] == 0
