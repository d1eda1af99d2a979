"""Replays one topic under one policy, with the broker's own laws.

The controller is the broker's :class:`TopicControl`, evaluated once per cycle. A step is divided
into cycles of whole milliseconds, as close to the interval as possible. If the interval is longer
than a step, the controller runs after several steps. Rates are constant within a step. The replay
ignores the broker's memory, because the samples of one topic do not show it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import ceil, floor, inf
from typing import Final

from headgate.base.errors import InputError
from headgate.base.units import MS_PER_S, NS_PER_MS, NS_PER_S
from headgate.flow.adaptive.cycle import (
    AdaptiveSettings,
    Cycle,
    DecisionKind,
    PublishLimit,
    TopicSignals,
)
from headgate.flow.adaptive.topic import TopicControl
from headgate.flow.quota.backlog_quota import Quota, QuotaPolicy
from headgate.pipeline.backtest.fluid import FlowConditions, FluidModel, QuotaRule
from headgate.pipeline.backtest.load import Load, Outcome, Step
from headgate.pipeline.backtest.policy import Policy, Rates, Recorded

INTERVAL_NS_MIN: Final = 500 * NS_PER_MS
"""The shortest interval of a replay. The laws combine shorter cycles into samples of half a second,
so a replay would show no difference."""

_POLICIES: Final = (None, *QuotaPolicy)


class Resolution(Enum):
    """How often a replay evaluates the controller."""

    CYCLE = "cycle"
    """As often as the broker does."""
    SAMPLE = "sample"
    """At most once in a step: faster, and equal to an interval as long as a step."""


@dataclass(frozen=True, slots=True)
class Timing:
    """When a replay evaluates the controller."""

    cycles_per_step: int
    steps_per_cycle: int
    step_ns: int

    @property
    def part_s(self) -> float:
        """Seconds between two evaluations, or of a step if that is shorter."""
        return self.step_ns / NS_PER_S / self.cycles_per_step

    @property
    def cycle_ns(self) -> int:
        """Time between two evaluations, for the laws."""
        return self.step_ns * self.steps_per_cycle // self.cycles_per_step


def timing(
    settings: AdaptiveSettings | None, step_ns: int, resolution: Resolution = Resolution.CYCLE
) -> Timing:
    """The timing for steps of this length; with ``settings`` None, the controller never runs.

    Raises:
        InputError: the interval is below :data:`INTERVAL_NS_MIN`.
    """
    if settings is None:
        return Timing(1, 1, step_ns)
    if settings.interval_ns < INTERVAL_NS_MIN:
        raise InputError(
            f"interval_ms is {settings.interval_ns // NS_PER_MS}; "
            f"{INTERVAL_NS_MIN // NS_PER_MS} or more is allowed in a replay"
        )
    wanted = step_ns / settings.interval_ns
    steps = max(1, round(1.0 / wanted))
    if resolution is Resolution.SAMPLE or wanted <= 1.0:
        return Timing(1, steps, step_ns)
    # With whole milliseconds, the quotients of the laws are exact in 64-bit floats.
    whole = [n for n in range(1, ceil(2 * wanted)) if step_ns % (n * NS_PER_MS) == 0]
    return Timing(min(whole or [1], key=lambda n: abs(n - wanted)), 1, step_ns)


def replay(load: Load, policy: Policy, resolution: Resolution = Resolution.CYCLE) -> Outcome:
    """Replay one topic under one policy.

    Raises:
        InputError: the policy's interval is too short for a replay.
    """
    return _Replay(load, policy, timing(policy.adaptive, load.step_ns, resolution)).run()


@dataclass(slots=True)
class _Replay:
    """The state of one replay."""

    load: Load
    policy: Policy
    timing: Timing
    control: TopicControl = field(default_factory=TopicControl)
    limit: PublishLimit | None = None
    activations: int = 0
    messages: float = 0.0
    seen: int = 0
    cycles: int = 0

    def run(self) -> Outcome:
        load = self.load
        steps = [load.step(number) for number in range(len(load.steps))]
        fluid = FluidModel(load.backlog_bytes, load.oldest_age_s, self._tracks_age(steps))
        wanted = moved = before = 0.0
        for number, step in enumerate(steps):
            start = fluid.published
            self._step(number, step, fluid)
            published = fluid.published - start
            if number:
                moved += abs(published - before)
            before = published
            wanted += step.arrivals_bytes_per_s * (load.step_ns / NS_PER_S)
        totals = fluid.totals
        offered = totals.offered_bytes
        return Outcome(
            seconds_over_quota=totals.over_s,
            quota_seconds=totals.quota_s,
            drain_used=1.0 - totals.wasted_bytes / offered if offered > 0.0 else 1.0,
            wanted_bytes=wanted,
            published_bytes=fluid.published,
            parked_seconds=totals.parked_s,
            parked_bytes_max=totals.parked_max,
            backlog_bytes_max=totals.backlog_max,
            activations=float(self.activations),
            jitter=moved / fluid.published if fluid.published > 0.0 else 0.0,
            evicted_bytes=totals.evicted_bytes,
        )

    def _tracks_age(self, steps: Sequence[Step]) -> bool:
        return any(time_rule(self.policy, step) is not None for step in steps)

    def _step(self, number: int, step: Step, fluid: FluidModel) -> None:
        size, time = size_rule(self.policy, step), time_rule(self.policy, step)
        settings, parts = self.policy.adaptive, self.timing.cycles_per_step
        for _ in range(parts):
            conditions = FlowConditions(
                arrivals=step.arrivals_bytes_per_s,
                capacity=step.capacity_bytes_per_s,
                set_limit=self._set_limit(step),
                adaptive_limit=_limit_bytes(self.limit, step.message_bytes),
                size=size,
                time=time,
            )
            start = fluid.published
            fluid.run(self.timing.part_s, conditions)
            self.messages += (fluid.published - start) / step.message_bytes
            if settings is not None and (number + 1) % self.timing.steps_per_cycle == 0:
                self._cycle(settings, fluid, size, time)

    def _set_limit(self, step: Step) -> float:
        publish = self.policy.publish
        if isinstance(publish, Rates):
            of_bytes = inf if publish.bytes_per_s is None else float(publish.bytes_per_s)
            of_messages = inf if publish.messages_per_s is None else float(publish.messages_per_s)
        else:
            of_bytes, of_messages = step.limit_bytes_per_s, step.limit_messages_per_s
        return min(of_bytes, of_messages * step.message_bytes)

    def _cycle(
        self,
        settings: AdaptiveSettings,
        fluid: FluidModel,
        size: QuotaRule | None,
        time: QuotaRule | None,
    ) -> None:
        """One cycle of the controller, if this topic needs an evaluation."""
        self.cycles += 1
        messages = floor(self.messages)
        if messages == self.seen and not self.control.needs_evaluation:
            return
        signals = TopicSignals(
            messages=messages,
            bytes=floor(fluid.published),
            was_parked=fluid.was_parked,
            was_slowed=fluid.was_slowed,
            backlog_bytes=floor(fluid.backlog),
            size_limit=size.limit if size is not None and size.policy.stops_producers else None,
            age_ms=-1 if fluid.age_s < 0.0 else floor(fluid.age_s * MS_PER_S),
            age_limit_ms=time.limit if time is not None and time.policy.stops_producers else None,
            done_bytes=floor(fluid.done),
        )
        self.seen = messages
        fluid.was_parked = fluid.was_slowed = False
        cycle_ns = self.timing.cycle_ns
        cycle = Cycle(settings, self.cycles * cycle_ns, cycle_ns)
        decision = self.control.evaluate(signals, cycle, 0.0)
        if decision is not None and decision.kind is DecisionKind.ACTIVATED:
            self.activations += 1
        self.limit = self.control.limit


def _limit_bytes(limit: PublishLimit | None, message_bytes: float) -> float:
    """A limit in bytes per second; infinite without one."""
    if limit is None:
        return inf
    of_bytes = inf if limit.bytes_per_s is None else float(limit.bytes_per_s)
    of_messages = inf if limit.messages_per_s is None else limit.messages_per_s * message_bytes
    return min(of_bytes, of_messages)


def size_rule(policy: Policy, step: Step) -> QuotaRule | None:
    """The size quota of a policy in a step."""
    return _rule(policy.size_quota, step.size_limit_bytes, step.size_policy)


def time_rule(policy: Policy, step: Step) -> QuotaRule | None:
    """The time quota of a policy in a step."""
    return _rule(policy.time_quota, step.time_limit_ms, step.time_policy)


def _rule(quota: Quota | Recorded | None, limit: float, policy_code: float) -> QuotaRule | None:
    if isinstance(quota, Quota):
        return QuotaRule(quota.limit, quota.policy)
    policy = _POLICIES[int(policy_code)]
    if quota is None or policy is None:
        return None
    return QuotaRule(int(limit), policy)
