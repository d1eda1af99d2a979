"""What is known of a cluster, and what is worth a look."""

from __future__ import annotations

import gc
import tracemalloc
from dataclasses import replace
from typing import Any

import pytest

from headgate.agent import cluster_history
from headgate.agent.cluster_history import SURVEYED_POINTS, ClusterHistory
from headgate.agent.looks import ConsumerLook, LimitsLook, ProofLook
from headgate.base.units import NS_PER_HOUR, NS_PER_MINUTE, NS_PER_S
from headgate.explain.delivery import Instant
from headgate.flow.limits.precedence import NO_LIMIT
from tests.unit.agent.scenario import EMPTY, topic_look

READY = ConsumerLook("a", "/10.0.0.1:1", "monday", 100, 0, False, 0, 1.0)


def _name(place: object) -> str:
    return f"persistent://acme/ns/{place}"


def _note(history: ClusterHistory, place: object, at_s: float, *, survey: bool = False,
          **figures: Any) -> None:  # fmt: skip
    published = figures.pop("published", 0)
    look = topic_look(
        round(at_s * NS_PER_S),
        replace(EMPTY, **figures),
        topic=_name(place),
        published=published,
        is_survey=survey,
    )
    history.note_look(look)


def test_the_largest_backlog_is_suspected_first() -> None:
    history = ClusterHistory("c")
    for place, backlog in (("a", 10), ("b", 0), ("c", 900), ("d", 30)):
        _note(history, place, 1, backlog=backlog)
    assert history.suspects(2, NS_PER_S) == [_name("c"), _name("d")]
    assert history.suspects(9, NS_PER_S) == [_name("c"), _name("d"), _name("a")]


def test_a_backlog_that_lasts_comes_before_messages_in_flight() -> None:
    history = ClusterHistory("c")
    for at_s in range(6):
        _note(history, "old", at_s, backlog=50)
    _note(history, "young", 5, backlog=0)
    _note(history, "young", 5.1, backlog=900, published=900)
    assert history.suspects(2, 6 * NS_PER_S) == [_name("old"), _name("young")]


def test_a_topic_that_is_gone_is_no_suspect_after_a_minute() -> None:
    history = ClusterHistory("c")
    _note(history, "a", 1, backlog=10)
    history.note_gone(_name("a"), 2 * NS_PER_S)
    history.note_gone(_name("unknown"), 2 * NS_PER_S)
    assert history.suspects(2, 3 * NS_PER_S) == [_name("a")]
    assert history.suspects(2, 3 * NS_PER_MINUTE) == []


def test_proofs_are_wanted_where_looks_leave_it_open() -> None:
    """An Exclusive consumer that may have everything; not one whose queue is full."""
    history = ClusterHistory("c")
    holding = replace(READY, sent=50)
    _note(history, "open", 1, backlog=50, type="Exclusive", consumers=(holding,))
    _note(history, "slow", 1, backlog=90, type="Exclusive", consumers=(replace(READY, permits=0),))
    assert history.proofs_wanted(5, NS_PER_S) == [_name("open")]
    history.note_proof(ProofLook(_name("open"), 2 * NS_PER_S, None, None, ()))
    assert history.proofs_wanted(5, 3 * NS_PER_S) == []
    assert history.proofs_wanted(5, 18 * NS_PER_S) == [_name("open")]


def test_limits_are_wanted_of_suspects_and_again_after_a_minute() -> None:
    history = ClusterHistory("c")
    for place in ("a", "b"):
        _note(history, place, 1, backlog=10)
    assert sorted(history.limits_wanted(5, NS_PER_S)) == [_name("a"), _name("b")]
    history.note_limits(LimitsLook(_name("a"), 2 * NS_PER_S, (NO_LIMIT,) * 3, {}, NO_LIMIT, ()))
    assert history.limits_wanted(5, 3 * NS_PER_S) == [_name("b")]
    assert history.limits_wanted(5, 3 * NS_PER_MINUTE) == [_name("b"), _name("a")]


def test_events_that_contradict_the_limits_want_them_soon() -> None:
    history = ClusterHistory("c")
    _note(history, "a", 1, backlog=10, consumers=(READY,))
    history.note_limits(LimitsLook(_name("a"), NS_PER_S, (NO_LIMIT,) * 3, {}, NO_LIMIT, ()))
    _note(history, "a", 5, backlog=20, consumers=(READY,), events=(0, 0, 3, 0, 0, 0))
    assert history.limits_wanted(5, 10 * NS_PER_S) == []
    assert history.limits_wanted(5, 17 * NS_PER_S) == [_name("a")]


def test_partitions_are_one_topic() -> None:
    history = ClusterHistory("c")
    for partition in (10, 2, 0):
        _note(history, f"t-partition-{partition}", 1)
    _note(history, "odd-partition-x", 1)
    parts = history.parts(_name("t"))
    assert [part.name.rpartition("-")[2] for part in parts] == ["0", "2", "10"]
    assert history.base_of(_name("t-partition-2")) == _name("t")
    assert history.base_of(_name("odd-partition-x")) == _name("odd-partition-x")
    assert len(history.parts(_name("odd-partition-x"))) == 1
    history.forget(2 * NS_PER_S)
    assert (history.parts(_name("t")), history.topics) == ([], {})


def test_a_name_like_that_of_a_partition_does_not_hide_the_topic_itself() -> None:
    """Whoever may create topics in a namespace chooses the name."""
    history = ClusterHistory("c")
    _note(history, "t", 1, backlog=900)
    for name in ("t-partition-0", "t-partition-01", "t-partition-\u0663"):
        _note(history, name, 2)
    assert [part.name for part in history.parts(_name("t"))] == [_name("t")]
    assert history.base_of(_name("t-partition-0")) == _name("t-partition-0")
    assert history.topic(_name("t"), Instant(NS_PER_S, 0))["subscriptions"][0]["backlogMessages"]
    assert history.top(9, Instant(NS_PER_S, 0))["subscriptionsTotal"] == 4


def test_a_topic_that_became_a_partitioned_one_gives_way_to_its_partitions() -> None:
    history = ClusterHistory("c")
    _note(history, "t", 1)
    _note(history, "t-partition-0", 300)
    assert [part.name for part in history.parts(_name("t"))] == [_name("t")]
    _note(history, "t-partition-0", 301)
    _note(history, "t-partition-1", 301)
    assert len(history.parts(_name("t"))) == 2
    history.note_gone(_name("t"), 302 * NS_PER_S)
    _note(history, "t-partition-2", 2)
    assert len(history.parts(_name("t"))) == 3


def test_a_broker_that_answers_again_is_reachable() -> None:
    history = ClusterHistory("c")
    history.note_unreachable("b1", NS_PER_S, "it does not answer")
    history.note_unreachable("b2", NS_PER_S, "it does not answer")
    _note(history, "a", 2)
    assert list(history.unreachable) == ["b2"]
    history.forget(3 * NS_PER_S)
    assert history.unreachable == {}


def test_totals_are_cumulative() -> None:
    history = ClusterHistory("c")
    _note(history, "a", 1, published=5)
    _note(history, "a", 4, published=9, backlog=4)
    (totals,) = history.totals()
    assert (totals.topic, totals.subscription, totals.opened_ns) == (_name("a"), "s", NS_PER_S)
    assert (totals.point.appended, totals.owner) == (4, "b1")
    assert sum(totals.point.cells_ns) == 3 * NS_PER_S


def test_an_hour_of_surveys_of_healthy_topics_takes_little_memory() -> None:
    """Busy topics without backlog, in a survey each minute, for two hours."""
    topics, history = 40, ClusterHistory("c")

    def hour(first: int) -> None:
        for minute in range(first, first + 60):
            for place in range(topics):
                figures = {"published": minute * 1_000, "sent": minute * 1_000}
                _note(history, place, 60 * minute + place / 1_000, survey=True, **figures)
        gc.collect()

    tracemalloc.start()
    hour(1)
    before, _ = tracemalloc.get_traced_memory()
    hour(61)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 0.1 * before
    assert before / topics < 10_000
    tracks = [
        each.track for topic in history.topics.values() for each in topic.subscriptions.values()
    ]
    assert all(track is not None and 2 <= len(track) <= SURVEYED_POINTS + 1 for track in tracks)
    history.forget(2 * NS_PER_HOUR + 2 * NS_PER_MINUTE)
    assert history.topics == {}


def test_topics_that_come_and_go_are_kept_in_a_bounded_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever may create topics chooses how many there were within an hour: the agent kept all."""
    monkeypatch.setattr(cluster_history, "ABSENT_MAX", 10)
    history = ClusterHistory("c")
    for minute in range(30):
        _note(history, "stays", 60 * minute, survey=True)
        for place in range(8):
            _note(history, f"t{minute}-{place}", 60 * minute, survey=True)
        history.forget((60 * minute - 3_600) * NS_PER_S)
    # Six surveys of the last five minutes, and those that were seen last before.
    assert len(history.topics) == 1 + 6 * 8 + 10
    assert _name("stays") in history.topics
    assert {_name(f"t{minute}-0") for minute in range(23, 30)} <= {*history.topics}
    # Of a broker that answers nothing it is not known what is there.
    history.forget(0)
    for minute in range(30, 50):
        history.note_unreachable("b1", 60 * minute * NS_PER_S, "it does not answer")
        history.forget(0)
    assert len(history.topics) == 1 + 6 * 8 + 10


def test_an_unreachable_broker_is_so_since_it_first_did_not_answer() -> None:
    history = ClusterHistory("c")
    for at_s in range(10, 7_210, 60):
        history.note_unreachable("b1", at_s * NS_PER_S, "it does not answer")
        history.forget((at_s - 3_600) * NS_PER_S)
    (told,) = history.top(1, Instant(7_210 * NS_PER_S, 0))["notSeen"]
    assert told == "b1, for 7200 s: it does not answer"


def test_a_backlog_that_is_no_number_is_never_none() -> None:
    history = ClusterHistory("c")
    _note(history, "new", 1, backlog=None)
    _note(history, "old", 1, backlog=500)
    for at_s in (2, 3, 4):
        _note(history, "old", at_s, backlog=None)
    report = history.top(5, Instant(4 * NS_PER_S, 0))
    assert [(each["topic"], each["backlogMessages"]) for each in report["subscriptions"]] == [
        (_name("old"), 500)
    ]
    assert f"the backlog of {_name('new')} s, {_name('old')} s" in report["notSeen"][0]
    topic = history.topic(_name("new"), Instant(4 * NS_PER_S, 0))
    assert (topic["subscriptions"], topic["sentence"]) == (
        [],
        "the state of its subscriptions is not known.",
    )
    _note(history, "old", 5, backlog=400)
    assert history.topic(_name("old"), Instant(5 * NS_PER_S, 0))["notSeen"] == []


def test_a_deleted_topic_has_no_backlog_any_more() -> None:
    history = ClusterHistory("c")
    for partition in (0, 1):
        _note(history, f"t-partition-{partition}", 1, backlog=500)
    history.note_gone(_name("t-partition-1"), 2 * NS_PER_S)
    at = Instant(63 * NS_PER_S, 0)
    report = history.top(5, at)
    assert (report["withBacklog"], report["subscriptions"][0]["backlogMessages"]) == (1, 500)
    assert history.topic(_name("t"), at)["subscriptions"][0]["backlogMessages"] == 500
    history.note_gone(_name("t-partition-0"), 2 * NS_PER_S)
    assert history.top(5, at)["subscriptionsTotal"] == 0
    assert "no broker has it now" in " ".join(history.topic(_name("t"), at)["notSeen"])
