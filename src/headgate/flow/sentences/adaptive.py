"""One sentence about a decision of adaptive publish throttling.

The log, ``explain`` and the pipeline print it. It has no line break and no full stop.
"""

from __future__ import annotations

from typing import Final

from headgate.base.texts import percent, time_text
from headgate.flow.adaptive.cycle import (
    Decision,
    DecisionKind,
    Inputs,
    Law,
    MemoryRule,
    PublishLimit,
    Rule,
)
from headgate.flow.adaptive.memory_share import NO_EFFECT_S
from headgate.flow.adaptive.pressure import quota_use

_BOUND: Final = {
    Rule.FLOOR: "at the floor of its natural rate",
    Rule.MINIMUM: "at the lowest possible limit",
    Rule.RAMP: "on its way to no limit",
}
_ENDED: Final = {
    Rule.LET_GO: "released at once",
    Rule.CLEAR: "no limit is needed any more",
}


_PRESSES: Final = {
    MemoryRule.SHARE: " and the topic is among those that use it up",
    MemoryRule.EVERYBODY: " and no single topic uses it up, so all publishing topics are slowed",
}
_NO_EFFECT: Final = f"slowing all topics for {NO_EFFECT_S} s did not bring memory down"


def publish_limit_text(limit: PublishLimit) -> str:
    """``750 msg/s and 768,000 B/s``, or one of the two."""
    parts = []
    if limit.messages_per_s is not None:
        parts.append(f"{limit.messages_per_s:,} msg/s")
    if limit.bytes_per_s is not None:
        parts.append(f"{limit.bytes_per_s:,} B/s")
    return " and ".join(parts)


def decision_sentence(decision: Decision) -> str:
    """What a decision does, why, and what bounds its limit."""
    would = "would be " if decision.observe_only else ""
    if decision.new is None:
        why = _ENDED.get(decision.rule, _ENDED[Rule.CLEAR])
        if decision.rule is Rule.CLEAR and decision.inputs.memory_rule is MemoryRule.NO_EFFECT:
            why = _NO_EFFECT
        return f"{would}no longer slowed: {why}"
    verb = "slowed"
    if decision.kind is DecisionKind.CHANGED and decision.old is not None:
        verb = "raised" if _is_higher(decision.new, decision.old) else "slowed further"
    text = f"{would}{verb} to {publish_limit_text(decision.new)}: {_why(decision)}"
    if decision.rule is Rule.STEP:
        return f"{text}; limit bound by the step of {percent(decision.step_factor)}"
    bound = _BOUND.get(decision.rule)
    return f"{text}; {bound}" if bound else text


def _is_higher(new: PublishLimit, old: PublishLimit) -> bool:
    if new.bytes_per_s is not None and old.bytes_per_s is not None:
        return new.bytes_per_s > old.bytes_per_s
    return (new.messages_per_s or 0) > (old.messages_per_s or 0)


def _why(decision: Decision) -> str:
    inputs = decision.inputs
    parts = []
    if inputs.memory_pressure > 0.0:
        pressure = percent(inputs.memory_pressure)
        presses = _PRESSES[inputs.memory_rule or MemoryRule.SHARE]
        parts.append(f"memory is short ({pressure} of the way between its watermarks){presses}")
    if inputs.backlog_pressure > 0.0 or decision.law is Law.DRAIN:
        parts += _backlog(inputs)
    if decision.law is Law.DRAIN and inputs.drain_bytes_per_s is not None:
        parts.append(f"consumers drain {inputs.drain_bytes_per_s:,.0f} B/s")
    # Later decisions change a limit, so the present rates will not continue.
    if inputs.seconds_to_breach and decision.kind is DecisionKind.ACTIVATED:
        parts.append(f"at the present rates the quota breaks in {_soon(inputs.seconds_to_breach)}")
    if not parts and inputs.memory_rule is MemoryRule.NO_EFFECT:
        return _NO_EFFECT
    if not parts:
        return "memory and backlog are clear"
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if parts[1:] else parts[0]


def _backlog(inputs: Inputs) -> list[str]:
    """The use of the fuller quota; empty without any."""
    size = quota_use(inputs.backlog_bytes, inputs.size_limit)
    age = quota_use(inputs.age_ms, inputs.age_limit_ms)
    if age > size or (inputs.size_limit is None and inputs.age_limit_ms is not None):
        return [f"the oldest message is at {percent(age)} of its time quota"]
    if inputs.size_limit is not None:
        return [f"the backlog is at {percent(size)} of its quota"]
    return []


def _soon(seconds: float) -> str:
    return "less than a second" if seconds < 1 else time_text(seconds)
