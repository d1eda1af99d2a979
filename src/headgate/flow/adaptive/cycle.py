"""The settings, inputs and decisions of one cycle of adaptive throttling (law 5).

A controller looks at every topic that published or is limited, once in each cycle, and slows those
that memory or a backlog asks to be slowed. This module has the words of it; the two laws are in
``pressure`` and ``drain``, what a topic publishes by itself in ``natural_rate``, one topic's state
in ``adaptive_topic``, who takes the memory in ``memory_share``. A cycle is::

    pressure = memory_pressure(used_bytes, limit_bytes, settings)
    attribution.begin_cycle(pressure, used_bytes / limit_bytes, now_ns)
    cycle = Cycle(settings, now_ns, now_ns - last_cycle_ns)
    for topic in those that published since the last cycle, or whose control needs_evaluation:
        asks = attribution.pressure_on(topic.control.memory_baseline, held_bytes)
        if asks or topic has a quota that stops producers \
                or not topic.control.learn_rate(messages, size_bytes, was_parked, cycle):
            rule = attribution.rule_on(asks)
            decision = topic.control.evaluate(TopicSignals(...), cycle, asks, rule)

After it ``topic.control.limit`` is what has to be in force.
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
    """What a topic's backlog does to its producers, as ``adaptivePublisherThrottlingLaw`` says."""

    PRESSURE = "pressure"
    """The fuller the quota, the smaller the part of the natural rate (Pulsar's draft)."""
    DRAIN = "drain"
    """What consumers drain, and so much more as brings the backlog to the set point."""


class Rule(StrEnum):
    """What set a limit to the value that it has, or ended it."""

    TARGET = "target"
    """What the law asks for."""
    STEP = "step"
    """On its way there, by the largest step that a cycle allows."""
    FLOOR = "floor"
    """Law pressure goes no lower."""
    MINIMUM = "minimum"
    """One byte a second: law drain asks for nothing at all."""
    RAMP = "ramp"
    """On its way up to the end, because no limit is needed any more."""
    CLEAR = "clear"
    """Ended: no limit is needed any more."""
    LET_GO = "let_go"
    """Ended at once: the mode changed, or the controller has failed for too long."""


class MemoryRule(StrEnum):
    """By which rule memory asks a topic to be slowed, or asks it no longer (law 5.3)."""

    SHARE = "share"
    """The topic is among those that use it up."""
    EVERYBODY = "everybody"
    """No topic is seen to use it up, so all that publish are slowed."""
    NO_EFFECT = "no_effect"
    """They were, and memory did not come down for it: they are let go."""


class DecisionKind(StrEnum):
    """What became of the limit."""

    ACTIVATED = "activated"
    CHANGED = "changed"
    DEACTIVATED = "deactivated"


@dataclass(frozen=True, slots=True)
class AdaptiveSettings:
    """The settings of the controller; all of them may change from one cycle to the next.

    Raises :class:`InputError` for a value out of its range and for a low watermark that is not
    below its high one.
    """

    observe_only: bool = False
    interval_ns: int = NS_PER_S
    memory_low: float = 0.70
    """Parts of the memory that may be used."""
    memory_high: float = 0.85
    backlog_low: float = 0.75
    """Parts of a backlog quota, of its size or its time."""
    backlog_high: float = 0.90
    min_rate_factor: float = 0.10
    """Part of the natural rate below which law pressure does not go."""
    max_rate_change_factor: float = 0.25
    """Part of the natural rate by which a limit moves in a cycle at most."""
    law: Law = Law.PRESSURE
    drain_set_point: float = 0.70
    """Part of the quota at which law drain wants the backlog of a topic that publishes too much."""
    drain_horizon_ns: int = 10 * NS_PER_S
    """In what time law drain wants the backlog there."""

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
    """What all topics share in one look of the controller."""

    settings: AdaptiveSettings
    now_ns: int
    """Of a clock that never goes back; may be negative."""
    elapsed_ns: int
    """Since the cycle before; the interval for the first one."""


class PublishLimit(NamedTuple):
    """At most so much may be published in any second; None: no limit in that dimension."""

    messages_per_s: int | None
    """At least 1."""
    bytes_per_s: int | None
    """At least 1."""


class TopicSignals(NamedTuple):
    """One topic as a cycle finds it."""

    messages: int
    """Accepted since the topic was loaded; never falls."""
    bytes: int
    was_parked: bool
    """Whether anything of the topic waited, for any limit or quota, since the cycle before."""
    was_slowed: bool = False
    """Whether anything waited because of the adaptive limit."""
    backlog_bytes: int = 0
    """Of the slowest stored subscription, with what is accepted and not yet durable."""
    size_limit: int | None = None
    """Bytes of the size quota; None without one, or where it evicts: then nobody is stopped."""
    age_ms: int = -1
    """Of the oldest message that somebody owes; -1 without one."""
    age_limit_ms: int | None = None
    """Of the time quota; None as for the size."""
    done_bytes: int = 0
    """What the slowest subscription ever acknowledged or passed; falls with a seek, or when
    another subscription becomes the slowest."""


class Inputs(NamedTuple):
    """What a decision was made of."""

    memory_pressure: float
    """What the broker's memory asks of this topic, 0..1; 0 if it takes no part in it."""
    backlog_pressure: float
    """The fuller of its quotas between the watermarks, 0..1."""
    backlog_bytes: int
    size_limit: int | None
    age_ms: int
    age_limit_ms: int | None
    published_bytes_per_s: float
    drain_bytes_per_s: float | None
    """None where nobody measured."""
    natural_messages_per_s: float | None
    """None while it is not known."""
    natural_bytes_per_s: float | None
    seconds_to_breach: float | None
    """Until the size quota is reached at the present rates; 0 where it is, None where they do not
    lead there within a day."""
    memory_rule: MemoryRule | None = None
    """By which rule memory asks that, or asks it no longer; None where it never did."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A limit begins, changes or ends: the record that log, ``explain`` and pipeline all read."""

    kind: DecisionKind
    observe_only: bool
    """Nothing is enforced: this is what would have been done."""
    law: Law
    rule: Rule
    inputs: Inputs
    old: PublishLimit | None
    new: PublishLimit | None
    step_factor: float
    """The largest step of a cycle, as a part of the natural rate."""


class TopicFigures(NamedTuple):
    """What metrics tell of one topic; rates are messages a second."""

    active: bool
    """Whether a limit is in force; never in observe-only."""
    natural_rate: float
    effective_rate: float
    """The limit in messages, or what the limit in bytes amounts to; the natural rate without
    one."""
    memory_pressure: float
    """What memory asks of this topic, as of the last cycle that looked."""
    backlog_pressure: float
    rate_reduction_ratio: float
    """1 - effective / natural, 0 where nothing is reduced."""


def must_drop_limits(last_success_ns: int, now_ns: int, interval_ns: int) -> bool:
    """Whether limits have to go because no cycle succeeded for ten intervals and half a minute.

    So a controller that fails leaves no limit behind for good.
    """
    return now_ns - last_success_ns >= max(FAILED_CYCLES_MAX * interval_ns, FAILED_NS_MIN)
