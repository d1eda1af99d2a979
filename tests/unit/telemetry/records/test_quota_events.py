"""What quotas do is told by windows: one pair of turns, one sum of evictions (rule 4.6)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.base.sliced import at_once
from headgate.engine.eviction import Eviction
from headgate.flow.quota.backlog_quota import Quota, QuotaType
from headgate.telemetry.records import quota_events
from headgate.telemetry.records.events import EVENTS_MAX, EVENTS_PER_YIELD, EventLog
from headgate.telemetry.records.names import PLAIN
from headgate.telemetry.records.quota_events import QuotaEvents
from tests.unit.engine.quota_rig import EVICT, QuotaRig, size_quota

TEN = b"0123456789"


class Told:
    """Events of one window, taken apart."""

    def __init__(self) -> None:
        self.log = EventLog()
        self.quotas = QuotaEvents(self.log, PLAIN)

    def window(self) -> list[dict[str, Any]]:
        at_once(self.quotas.end_window())
        columns = self.log.take()
        if columns is None:
            return []
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        for row in rows:
            row["inputs"], row["outcome"] = json.loads(row["inputs"]), json.loads(row["outcome"])
        return rows


@pytest.fixture
def rig() -> QuotaRig:
    return QuotaRig(size_quota(100))


def quota_of(rig: QuotaRig) -> Quota:
    assert rig.quotas.size is not None
    return rig.quotas.size


def test_a_quota_that_turns_over_and_over_is_reported_once_a_window(rig: QuotaRig) -> None:
    told, quota = Told(), quota_of(rig)
    for at_ns in range(10, 100, 20):
        told.quotas.quota_state_changed(rig.topic, quota, exceeded=True, at_ns=at_ns)
        told.quotas.quota_state_changed(rig.topic, quota, exceeded=False, at_ns=at_ns + 10)
    events = told.window()
    assert [(event["event"], event["time_ns"]) for event in events] == [
        ("quota_exceeded", 10),
        ("quota_released", 100),
    ]
    assert told.window() == []


def test_one_that_goes_on_is_released_in_the_window_in_which_it_ends(rig: QuotaRig) -> None:
    told, quota = Told(), quota_of(rig)
    told.quotas.quota_state_changed(rig.topic, quota, exceeded=True, at_ns=1)
    assert [event["event"] for event in told.window()] == ["quota_exceeded"]
    told.quotas.quota_state_changed(rig.topic, quota, exceeded=False, at_ns=2)
    told.quotas.quota_state_changed(rig.topic, quota, exceeded=True, at_ns=3)
    assert told.window() == []
    told.quotas.quota_state_changed(rig.topic, quota, exceeded=False, at_ns=4)
    (event,) = told.window()
    assert (event["event"], event["time_ns"]) == ("quota_released", 4)
    assert event["inputs"]["quota"] == "size"
    assert event["outcome"] == {"action": "producers_let_go_on"}


def test_acts_of_a_window_are_one_event_with_their_sums() -> None:
    rig, told = QuotaRig(size_quota(100, EVICT)), Told()
    rig.subscribe("audit"), rig.subscribe("billing")
    rig.publish(40, body=TEN)
    acts = rig.effects.evictions
    assert len(acts) > 3
    for at_ns, act in enumerate(acts):
        told.quotas.evicted(rig.topic, act, at_ns)
    (event,) = told.window()
    assert (event["event"], event["time_ns"]) == ("eviction", len(acts) - 1)
    outcome = event["outcome"]
    assert outcome["acts"] == len(acts)
    assert outcome["messages"] == sum(act.messages for act in acts)
    assert outcome["bytes"] == sum(act.bytes for act in acts)
    assert event["inputs"]["backlog_bytes"] == acts[0].backlog_bytes_before
    assert outcome["backlog_bytes"] == acts[-1].backlog_bytes
    assert {loss["subscription"] for loss in outcome["subscriptions"]} == {"audit", "billing"}
    assert sum(loss["messages"] for loss in outcome["subscriptions"]) == outcome["messages"]
    assert told.window() == []


def test_a_topic_that_goes_is_reported_at_once(rig: QuotaRig) -> None:
    told, quota = Told(), quota_of(rig)
    told.quotas.quota_state_changed(rig.topic, quota, exceeded=True, at_ns=1)
    told.quotas.quota_state_changed(rig.topic, quota, exceeded=False, at_ns=2)
    other = Quota(QuotaType.TIME, 1_000, quota.policy, "topic policy")
    told.quotas.quota_state_changed(rig.topic, other, exceeded=True, at_ns=3)
    told.quotas.topic_unloaded(rig.topic)
    assert [event["event"] for event in told.window()] == [
        "quota_exceeded", "quota_exceeded", "quota_released",
    ]  # fmt: skip


def evicting() -> tuple[QuotaRig, Eviction]:
    rig = QuotaRig(size_quota(100, EVICT))
    rig.subscribe("s")
    rig.publish(20, body=TEN)
    return rig, rig.effects.evictions[-1]


def test_a_window_of_very_many_topics_has_pauses() -> None:
    """A message to each of 20,000 topics with an evicting quota held the loop for 0.4 s."""
    told, rigs = Told(), [evicting() for _ in range(5 * EVENTS_PER_YIELD)]
    for rig, act in rigs:
        told.quotas.evicted(rig.topic, act, 1)
    work = told.quotas.end_window()
    next(work)
    # In the pause one of them goes, and another one evicts again.
    gone, (again, act) = rigs[-1][0], rigs[-2]
    told.quotas.topic_unloaded(gone.topic)
    told.quotas.evicted(again.topic, act, 2)
    assert len([*work]) == 4
    columns = told.log.take()
    assert columns is not None
    assert [json.loads(text)["acts"] for text in columns["outcome"]] == [1] * 18 + [1, 2]
    assert told.window() == []


def test_a_quota_that_stops_producers_again_in_a_pause_is_not_released(rig: QuotaRig) -> None:
    told, other = Told(), [evicting() for _ in range(EVENTS_PER_YIELD)]
    quota = quota_of(rig)
    for each in (*(one for one, _ in other), rig):
        told.quotas.quota_state_changed(each.topic, quota, exceeded=True, at_ns=1)
    assert len(told.window()) == len(other) + 1
    for each in (*(one for one, _ in other), rig):
        told.quotas.quota_state_changed(each.topic, quota, exceeded=False, at_ns=2)
    work = told.quotas.end_window()
    next(work)
    told.quotas.quota_state_changed(rig.topic, quota, exceeded=True, at_ns=3)
    at_once(work)
    assert len((told.log.take() or {"event": ()})["event"]) == len(other)
    told.quotas.quota_state_changed(rig.topic, quota, exceeded=False, at_ns=4)
    assert [event["time_ns"] for event in told.window()] == [4]


def test_events_without_room_are_counted_and_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    told, (rig, act) = Told(), evicting()
    for _ in range(EVENTS_MAX):
        told.log.add(1, "throttle_began", topic=rig.topic.name.full)
    monkeypatch.setattr(quota_events, "event_inputs", None)
    quota = quota_of(rig)
    told.quotas.evicted(rig.topic, act, 1)
    told.quotas.quota_state_changed(rig.topic, quota, exceeded=True, at_ns=1)
    told.quotas.quota_state_changed(rig.topic, quota, exceeded=False, at_ns=2)
    at_once(told.quotas.end_window())
    assert told.log.dropped_count == 3
