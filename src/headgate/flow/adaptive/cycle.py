"""The settings, inputs and decisions of one cycle of adaptive throttling (law 5).

In each cycle the controller evaluates every topic that published or has a limit, and slows those
that put memory or a backlog under pressure. This module defines the types. The two laws are in
``pressure`` and ``drain``, the rate of a topic without limits in ``natural_rate``, the state of one
topic in ``topic``, and which topics use up the memory in ``memory_share``. A cycle is::

    pressure = memory_pressure(used_bytes, limit_bytes, settings)
    attribution.begin_cycle(pressure, used_bytes / limit_bytes, now_ns)
    cycle = Cycle(settings, now_ns, now_ns - last_cycle_ns)
    for topic in those that published since the last cycle, or whose control needs_evaluation:
        on_topic = attribution.pressure_on(topic.control.memory_baseline, held_bytes)
        if on_topic or topic has a quota that stops producers \
                or not topic.control.learn_rate(messages, size_bytes, was_parked, cycle):
            rule = attribution.rule_on(on_topic)
            decision = topic.control.evaluate(TopicSignals(...), cycle, on_topic, rule)

Afterwards ``topic.control.limit`` is the limit to enforce.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from headgate.base.errors import InputError
from headgate.base.units import NS_PER_MS, NS_PER_S

INTERVAL_NS_MIN: Final = 10 * NS_PER_MS
INTERVAL_NS_MAX: Final = 600 * NS_PER_S
FAILED_CYCLES_MAX: Final = 10
FAILED_NS_MIN: Final = 30 * NS_PER_S


class Law(StrEnum):
    """How a backlog slows producers: the values of ``adaptivePublisherThrottlingLaw``."""

    PRESSURE = "pressure"
    """Allow a smaller part of the natural rate the fuller the quota is (Pulsar's draft)."""
    DRAIN = "drain"
    """Allow what consumers drain, plus what brings the backlog to the set point."""


class Rule(StrEnum):
    """Why a limit has its value, or why it ended."""

    TARGET = "target"
    """It is the target of the law."""
    STEP = "step"
    """It moves towards the target by the largest step of a cycle."""
    FLOOR = "floor"
    """It is at the floor of law pressure."""
    MINIMUM = "minimum"
    """It is one byte a second, because the target of law drain is 0 or less."""
    RAMP = "ramp"
    """It rises step by step until it ends, because it is no longer needed."""
    CLEAR = "clear"
    """It ended, because it is no longer needed."""
    LET_GO = "let_go"
    """It ended at once: the mode changed, or the controller failed for too long."""


class MemoryRule(StrEnum):
    """Why memory pressure slows a topic, or stops doing so (law 5.3)."""

    SHARE = "share"
    """The topic is one of those that use the memory up."""
    EVERYBODY = "everybody"
    """No topic stands out, so all topics that publish are slowed."""
    NO_EFFECT = "no_effect"
    """Slowing all topics did not bring memory down, so they are no longer slowed."""


class DecisionKind(StrEnum):
    """What a decision does to the limit."""

    ACTIVATED = "activated"
    CHANGED = "changed"
    DEACTIVATED = "deactivated"


@dataclass(frozen=True, slots=True)
class AdaptiveSettings:
    """The settings of the controller; any of them may change between two cycles.

    Raises :class:`InputError` if a value is out of its range, or if a low watermark is not below
    its high watermark.
    """

    observe_only: bool = False
    interval_ns: int = NS_PER_S
    memory_low: float = 0.70
    """Watermarks, as parts of the memory that may be used."""
    memory_high: float = 0.85
    backlog_low: float = 0.75
    """Watermarks, as parts of a backlog quota, by size or by time."""
    backlog_high: float = 0.90
    min_rate_factor: float = 0.10
    """The floor of law pressure, as a part of the natural rate."""
    max_rate_change_factor: float = 0.25
    """The largest step of a limit in a cycle, as a part of the natural rate."""
    law: Law = Law.PRESSURE
    drain_set_point: float = 0.70
    """The backlog that law drain aims at, as a part of the quota."""
    drain_horizon_ns: int = 10 * NS_PER_S
    """The time in which law drain brings the backlog to the set point."""

    def __post_init__(self) -> None:
        if not INTERVAL_NS_MIN <= self.interval_ns <= INTERVAL_NS_MAX:
            allowed = f"{INTERVAL_NS_MIN}..{INTERVAL_NS_MAX} is allowed"
            raise InputError(f"interval_ns is {self.interval_ns}; {allowed}")
        for name in ("memory", "backlog"):
            low, high = getattr(self, f"{name}_low"), getattr(self, f"{name}_high")
            if not 0 < low < high <= 1:
                raise InputError(
                    f"{name}_low is {low} and {name}_high {high}; 0 < low < high <= 1 is allowed"
                )
        for name in ("min_rate_factor", "max_rate_change_factor", "drain_set_point"):
            value = getattr(self, name)
            if not 0 < value <= 1:
                raise InputError(f"{name} is {value}; 0 < {name} <= 1 is allowed")
        if self.drain_horizon_ns < 1:
            raise InputError(f"drain_horizon_ns is {self.drain_horizon_ns}; at least 1 is allowed")


@dataclass(frozen=True, slots=True)
class Cycle:
    """What all topics share in one cycle of the controller."""

    settings: AdaptiveSettings
    now_ns: int
    """Monotonic time; may be negative."""
    elapsed_ns: int
    """Time since the cycle before; for the first cycle, the interval."""


class PublishLimit(NamedTuple):
    """The most that may be published in any second; None for no limit in that dimension."""

    messages_per_s: int | None
    """At least 1."""
    bytes_per_s: int | None
    """At least 1."""


class TopicSignals(NamedTuple):
    """The inputs of one topic in one cycle."""

    messages: int
    """Messages accepted since the topic was loaded; never falls."""
    bytes: int
    was_parked: bool
    """Whether any message of the topic waited since the cycle before, for any limit or quota."""
    was_slowed: bool = False
    """Whether any message waited for the adaptive limit."""
    backlog_bytes: int = 0
    """The backlog of the slowest durable subscription, staged entries included."""
    size_limit: int | None = None
    """Bytes of the size quota; None without one, or if it evicts and so stops no producer."""
    age_ms: int = -1
    """Age of the oldest unacknowledged message; -1 without one."""
    age_limit_ms: int | None = None
    """The time quota; None as for the size quota."""
    done_bytes: int = 0
    """What the slowest subscription ever acknowledged or skipped. It falls with a seek, and when
    another subscription becomes the slowest."""


class Inputs(NamedTuple):
    """The figures on which a decision is based."""

    memory_pressure: float
    """The memory pressure on this topic, 0..1; 0 if the topic takes no part in it."""
    backlog_pressure: float
    """The pressure of the fuller of its quotas, 0..1."""
    backlog_bytes: int
    size_limit: int | None
    age_ms: int
    age_limit_ms: int | None
    published_bytes_per_s: float
    drain_bytes_per_s: float | None
    """None if it was not measured."""
    natural_messages_per_s: float | None
    """None while it is unknown."""
    natural_bytes_per_s: float | None
    seconds_to_breach: float | None
    """Seconds until the size quota is reached at the present rates; 0 if it is reached, None if
    that takes more than a day."""
    memory_rule: MemoryRule | None = None
    """Why memory pressure slows the topic or stops doing so; None if it never did."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A limit begins, changes or ends; log, ``explain`` and pipeline read this record."""

    kind: DecisionKind
    observe_only: bool
    """Whether the limit is only simulated."""
    law: Law
    rule: Rule
    inputs: Inputs
    old: PublishLimit | None
    new: PublishLimit | None
    step_factor: float
    """The largest step of a cycle, as a part of the natural rate."""


class TopicFigures(NamedTuple):
    """The figures of one topic for metrics; rates are messages a second."""

    active: bool
    """Whether a limit is in force; never in observe-only."""
    natural_rate: float
    effective_rate: float
    """The limit in messages, also if it is set in bytes; without a limit, the natural rate."""
    memory_pressure: float
    """The memory pressure on this topic in the last cycle that evaluated it."""
    backlog_pressure: float
    rate_reduction_ratio: float
    """1 - effective / natural; 0 without a limit."""


def must_drop_limits(last_success_ns: int, now_ns: int, interval_ns: int) -> bool:
    """Whether all limits must end, because no cycle succeeded for ten intervals and half a minute.

    So a controller that fails leaves no limit behind forever.
    """
    return now_ns - last_success_ns >= max(FAILED_CYCLES_MAX * interval_ns, FAILED_NS_MIN)
