"""Decisions of the controller as telemetry tells them (rule 5.6)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from headgate.base.sliced import at_once
from headgate.flow.adaptive.cycle import PublishLimit
from headgate.telemetry.records.controller_events import ControllerEvents
from headgate.telemetry.records.events import EVENTS_PER_YIELD, EventLog
from headgate.telemetry.records.names import PLAIN, HashedNames
from tests.unit.control.test_adaptive_logger import BEGUN, ENDED, STEP
from tests.unit.engine.harness import Rig


def told(events: EventLog) -> list[tuple[int, dict[str, Any], dict[str, Any]]]:
    columns = events.take() or {}
    rows = zip(*columns.values(), strict=True)
    decoded = [dict(zip(columns, row, strict=True)) for row in rows]
    assert all(row["event"] == "controller_decision" for row in decoded)
    return [
        (row["time_ns"], msgspec.json.decode(row["inputs"]), msgspec.json.decode(row["outcome"]))
        for row in decoded
    ]


def test_a_limit_begins_and_ends_at_its_instants_and_steps_are_reported_by_windows() -> None:
    events, rig = EventLog(), Rig()
    controller = ControllerEvents(events, PLAIN)
    controller.decided(rig.topic, BEGUN, 10)
    controller.decided(rig.topic, STEP, 20)
    last = replace(STEP, old=STEP.new, new=PublishLimit(250, 1_250))
    controller.decided(rig.topic, last, 30)
    (at_ns, inputs, outcome), *rest = told(events)
    assert (at_ns, rest) == (10, [])
    assert inputs["law"] == "pressure"
    assert inputs["memory_pressure"] == 0.43
    assert inputs["memory_rule"] == "everybody"
    assert inputs["limit"] is None
    assert outcome["kind"] == "activated"
    assert outcome["rule"] == "step"
    assert outcome["limit"] == {"messages_per_s": 750, "bytes_per_s": 3_750}
    assert outcome["observe_only"] is False
    assert outcome["sentence"].startswith("slowed to 750 msg/s")
    at_once(controller.end_window())
    ((at_ns, inputs, outcome),) = told(events)
    assert at_ns == 30
    assert inputs["limit"] == {"messages_per_s": 750, "bytes_per_s": 3_750}
    assert outcome["limit"] == {"messages_per_s": 250, "bytes_per_s": 1_250}
    controller.decided(rig.topic, STEP, 40)
    controller.decided(rig.topic, ENDED, 50)
    assert [at for at, _, _ in told(events)] == [40, 50]
    controller.decided(rig.topic, STEP, 60)
    controller.topic_unloaded(rig.topic)
    at_once(controller.end_window())
    assert [at for at, _, _ in told(events)] == [60]


def test_names_are_hashed_where_names_are() -> None:
    events, rig, names = EventLog(), Rig(), HashedNames(b"key")
    ControllerEvents(events, names).decided(rig.topic, BEGUN, 10)
    columns = events.take()
    assert columns is not None
    assert columns["topic"] == (names.topic(rig.topic.name),)


def test_a_window_of_very_many_topics_has_pauses() -> None:
    events = EventLog()
    controller = ControllerEvents(events, PLAIN)
    topics = [Rig().topic for _ in range(5 * EVENTS_PER_YIELD + 1)]
    for topic in topics:
        controller.decided(topic, STEP, 10)
    assert len([*controller.end_window()]) == 5
    assert len(told(events)) == len(topics)
