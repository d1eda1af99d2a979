"""Decisions of the adaptive controller in the events of the telemetry.

The begin and end of a limit are events at their instants. Changes in between come with every cycle:
each window and topic has one event with the last, and with the limit before the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headgate.base.sliced import Sliced
from headgate.engine.topic import Topic
from headgate.flow.adaptive.cycle import Decision, DecisionKind, PublishLimit
from headgate.flow.sentences.adaptive import decision_sentence
from headgate.telemetry.records.events import EVENTS_PER_YIELD, EventLog
from headgate.telemetry.records.names import Names


@dataclass(slots=True)
class _Steps:
    """The changes of one window."""

    old: PublishLimit | None
    last: Decision
    at_ns: int


class ControllerEvents:
    """Gathers the decisions of one controller until the window ends."""

    def __init__(self, events: EventLog, names: Names) -> None:
        self._events = events
        self._names = names
        self._steps: dict[Topic, _Steps] = {}

    def decided(self, topic: Topic, decision: Decision, at_ns: int) -> None:
        """A limit began, changed or ended; in observe-only mode it would have."""
        if decision.kind is DecisionKind.CHANGED:
            steps = self._steps.get(topic)
            if steps is None:
                self._steps[topic] = _Steps(decision.old, decision, at_ns)
            else:
                steps.last, steps.at_ns = decision, at_ns
            return
        self.topic_unloaded(topic)  # its earlier changes come first
        self._add(topic, decision, decision.old, at_ns)

    def end_window(self) -> Sliced[None]:
        """Add the events of the window, with pauses: there may be one for each topic."""
        for number, topic in enumerate(list(self._steps), start=1):
            self.topic_unloaded(topic)
            if number % EVENTS_PER_YIELD == 0:
                yield

    def topic_unloaded(self, topic: Topic) -> None:
        """Add the gathered changes of one topic."""
        steps = self._steps.pop(topic, None)
        if steps is not None:
            self._add(topic, steps.last, steps.old, steps.at_ns)

    def _add(self, topic: Topic, decision: Decision, old: PublishLimit | None, at_ns: int) -> None:
        name = self._names.topic(topic.name)
        if not self._events.has_room(name):
            self._events.drop()
            return
        self._events.add(
            at_ns,
            "controller_decision",
            topic=name,
            incarnation=topic.incarnation,
            inputs={"law": decision.law, **decision.inputs._asdict(), "limit": _limit(old)},
            outcome={
                "kind": decision.kind,
                "observe_only": decision.observe_only,
                "rule": decision.rule,
                "limit": _limit(decision.new),
                "sentence": decision_sentence(decision),
            },
        )


def _limit(limit: PublishLimit | None) -> dict[str, Any] | None:
    return None if limit is None else limit._asdict()
