"""What the agent's history gives to several threads, with the quotas beside it."""

from __future__ import annotations

import json
import threading

import pytest

from headgate.agent.cluster_history import ClusterHistory
from headgate.agent.looks import ProofLook
from headgate.agent.reading import survey_looks
from headgate.agent.records import Instants, RecordWindows
from headgate.agent.shared_history import SharedHistory, UnknownTopicError
from headgate.explain.delivery import Instant
from headgate.record.codec import decode
from headgate.record.fields import Kind
from tests.unit.agent.fake_history import FakeHistory
from tests.unit.agent.looks import TOPIC, S, backlog, look
from tests.unit.work_meter import bytecodes

NOW = Instant(60 * S, 1_763_719_260_000)


def test_looks_reach_the_history_and_are_counted() -> None:
    inner = FakeHistory()
    shared = SharedHistory(inner)
    assert shared.last_look_ns is None
    shared.note_look(look(5))
    shared.note_look(look(4))
    shared.note_proof(ProofLook(TOPIC, 0, None, None, ()))
    shared.note_unreachable("b1", 0, "why")
    shared.note_gone(TOPIC, 6 * S)
    shared.forget(3)
    assert [call[0] for call in inner.calls] == [
        "look", "look", "proof", "unreachable", "gone", "forget",
    ]  # fmt: skip
    assert (shared.looks, shared.unreachable, shared.last_look_ns) == (2, 1, 5 * S)
    assert (shared.suspects(1, 0), shared.proofs_wanted(1, 0), shared.limits_wanted(1, 0)) == (
        ["suspect"], ["proof"], ["limits"],
    )  # fmt: skip


def test_reports_have_the_quotas() -> None:
    shared = SharedHistory(FakeHistory())
    for partition, size in ((0, 10), (1, 90)):
        shared.note_look(
            look(
                1, backlog(backlog_bytes=size), topic=f"{TOPIC}-partition-{partition}",
                quota_size_bytes=100,
            )
        )  # fmt: skip
    shared.note_look(
        look(1, backlog(backlog_bytes=7), topic="persistent://a/b/full", quota_size_bytes=7)
    )
    (quota,) = shared.topic(TOPIC, NOW)["quotas"]
    assert (quota["topic"], quota["used"], quota["subscription"]) == (
        f"{TOPIC}-partition-1", 90.0, "billing",
    )  # fmt: skip
    (nearest,) = shared.top(3, NOW)["quotas"]
    assert (nearest["topic"], nearest["quota"]["secondsToBreach"]) == ("persistent://a/b/full", 0.0)
    # What a quota did, a broker alone counts.
    assert nearest["quota"]["policy"] is nearest["quota"]["source"] is None
    assert nearest["quota"]["stoppedS"] is nearest["quota"]["evictedMessages"] is None
    assert shared.top(3, NOW)["count"] == 3
    with pytest.raises(UnknownTopicError):
        shared.topic("persistent://a/b/other", NOW)


def test_figures_of_a_topic_have_its_quotas() -> None:
    shared = SharedHistory(FakeHistory())
    shared.note_look(
        look(1, backlog(), backlog_bytes=5, quota_size_bytes=100, quota_age_s=60, oldest_age_s=60.0)
    )
    of_topic, of_subscription = shared.figures()
    assert of_topic.values["quota_size_limit_bytes"] == 100
    assert of_topic.values["quota_size_breach_ns"] is None
    assert of_topic.values["quota_time_limit_ns"] == 60 * S
    assert of_topic.values["quota_time_breach_ns"] == 0
    assert "quota_time_breach_ns" not in of_subscription.values
    assert [level.type.label for level in shared.levels()] == ["size", "time"]


def test_looks_go_on_while_figures_are_read() -> None:
    shared = SharedHistory(FakeHistory())
    shared.note_look(look(1, backlog()))
    figures = shared.figures()
    assert next(figures).subscription is None
    done = threading.Thread(target=shared.note_look, args=(look(5),))
    done.start()
    done.join(timeout=10)
    assert not done.is_alive()


def test_a_survey_that_may_be_older_than_a_close_look_counts_nothing() -> None:
    shared = SharedHistory(ClusterHistory("c"))
    shared.note_look(look(1, published=1_000))
    shared.note_look(look(31, published=4_000))
    shared.note_look(look(32, published=500, is_survey=True))
    shared.note_look(look(36, published=4_500))
    (topic,) = shared.figures()
    assert topic.values["msgs_in"] == 3_500


def test_brokers_that_do_not_answer_and_the_backlogs_of_all_topics() -> None:
    shared = SharedHistory(FakeHistory())
    shared.note_unreachable("b2", 5 * S, "refused")
    shared.note_unreachable("b1", 6 * S, "timed out")
    assert shared.unreachable_brokers() == [("b1", 6 * S, "timed out"), ("b2", 5 * S, "refused")]
    assert shared.backlogs(NOW.now_ns) == (0, 0)
    shared.note_look(look(1, backlog(backlog=7), published=9, backlog_bytes=70))
    assert shared.backlogs(NOW.now_ns) == (7, 70)
    for ask in (shared.limits, shared.storage):
        assert ask("east", 5, NOW)["broker"] == "east"
    assert set(shared.stats(TOPIC)["subscriptions"]) == {"billing"}
    with pytest.raises(UnknownTopicError):
        shared.stats("persistent://a/b/other")


def test_a_topic_costs_no_look_at_the_quotas_of_all_others() -> None:
    """A report on each of a thousand partitions went through all topics for each."""

    def cost(others: int) -> int:
        shared = SharedHistory(ClusterHistory("c"))
        for number in range(others):
            name = f"persistent://acme/orders/other-{number}"
            shared.note_look(look(1, backlog(), topic=name, quota_size_bytes=9))
        part = f"{TOPIC}-partition-0"
        shared.note_look(look(1, backlog(), topic=part))
        shared.topic(part, NOW)
        return bytecodes(lambda: (shared.topic(part, NOW), shared.topic(TOPIC, NOW)))

    assert cost(100) == cost(10)


def test_a_topic_with_an_age_of_any_number_hides_no_other() -> None:
    """A producer to one topic names its publish time, by which Pulsar may tell the age."""
    shared = SharedHistory(ClusterHistory("prod"))
    windows = RecordWindows("agent:prod", "prod", "boot", Instants(10**18, 0))
    for minute in (1, 2):
        stats = {"msgInCounter": 9, "subscriptions": {"s": {"type": "Shared", "msgBacklog": 5}}}
        odd = json.loads(json.dumps(stats)) | {"oldestBacklogMessageAgeSeconds": 10**13}
        odd["subscriptions"]["s"]["oldestBacklogMessageAgeSeconds"] = 10**13
        topics = {"persistent://a/b/odd": odd, "persistent://a/b/other": stats}
        survey = {"a/b": {"0x00000000_0xffffffff": {"persistent": topics}}}
        for each in survey_looks(json.dumps(survey).encode(), 60 * minute * S):
            shared.note_look(each)
        assert set(shared.topics()) == set(topics)
        end = Instants(10**18 + 61 * minute * S, 61 * minute * S)
        (record,) = windows.window(shared.figures(), end)
        windows.commit()
        assert decode(record.data).rows == {Kind.TOPIC: 2, Kind.SUBSCRIPTION: 2}
