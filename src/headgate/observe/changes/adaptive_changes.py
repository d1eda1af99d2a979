"""When adaptive publish throttling began and ended to slow a topic's producers."""

from __future__ import annotations

from headgate.engine.topic import Topic
from headgate.explain.change_log import CHANGES_MAX, TOPIC_MAX, ChangeLog
from headgate.explain.changes import RELEASED, SLOWED, PlainChange
from headgate.flow.adaptive.cycle import Decision, DecisionKind
from headgate.flow.sentences.adaptive import decision_sentence


class AdaptiveChanges:
    """Keeps the limits that the controller of one broker began and ended. A listener of it.

    Steps in between follow the pressure, many in a minute: the report on the controller has them.
    What it would have done (observe-only) changed nothing.
    """

    def __init__(self) -> None:
        self.log: ChangeLog[PlainChange] = ChangeLog(CHANGES_MAX, TOPIC_MAX)
        """By the full name of the topic, or of the partition."""

    def decided(self, topic: Topic, decision: Decision, at_ms: int) -> None:
        """The controller decided at ``at_ms``, of the wall clock."""
        if decision.observe_only or decision.kind is DecisionKind.CHANGED:
            return
        kind = SLOWED if decision.kind is DecisionKind.ACTIVATED else RELEASED
        name = topic.name
        whose = "" if name.partition < 0 else f" of partition {name.partition}"
        text = f"adaptive throttling: producers{whose} are {decision_sentence(decision)}"
        self.log.add(name.full, PlainChange(at_ms, kind, "topic", text))
