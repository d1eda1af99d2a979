"""One topic under adaptive publish throttling, from cycle to cycle (law 5).

Under law drain memory keeps law pressure's arithmetic and the backlog is law drain's alone; the
tighter of both limits is in force. A law that is switched off in flight lets its limit end over the
ramp. In observe-only the same is worked out and nothing is in force; a change of the mode begins
anew from the natural rate.
"""

from __future__ import annotations

from typing import Final

from headgate.flow.adaptive.cycle import (
    AdaptiveSettings,
    Cycle,
    Decision,
    DecisionKind,
    Inputs,
    Law,
    MemoryRule,
    PublishLimit,
    Rule,
    TopicFigures,
    TopicSignals,
)
from headgate.flow.adaptive.drain import DrainRate, drain_target, seconds_to_breach
from headgate.flow.adaptive.memory_share import MemoryBaseline
from headgate.flow.adaptive.natural_rate import NaturalRate
from headgate.flow.adaptive.pressure import backlog_pressure
from headgate.flow.adaptive.topic_limits import TopicLimits, differs


class TopicControl:
    """The controller's state of one topic, made when it first publishes; empty for two cycles."""

    __slots__ = (
        "_backlog_pressure",
        "_drain",
        "_law",
        "_limits",
        "_memory_pressure",
        "_memory_rule",
        "_observe_only",
        "_present",
        "_seconds_to_breach",
        "memory_baseline",
        "natural",
    )

    def __init__(self) -> None:
        self.natural = NaturalRate()
        self.memory_baseline = MemoryBaseline()
        """For :class:`headgate.flow.adaptive.memory_share.MemoryAttribution`."""
        self._drain: DrainRate | None = None
        self._limits: TopicLimits | None = None
        self._present: PublishLimit | None = None
        self._observe_only = False
        self._law = Law.PRESSURE
        self._memory_pressure = self._backlog_pressure = 0.0
        self._memory_rule: MemoryRule | None = None
        self._seconds_to_breach: float | None = None

    @property
    def limit(self) -> PublishLimit | None:
        """What is in force; None in observe-only."""
        return None if self._observe_only else self._present

    @property
    def shadow_limit(self) -> PublishLimit | None:
        """What would be in force; None unless in observe-only."""
        return self._present if self._observe_only else None

    @property
    def needs_evaluation(self) -> bool:
        """Whether the next cycle has to look also if nothing is published: there is a limit, in
        force or simulated, or a figure that would grow old."""
        return (
            self._present is not None
            or self._backlog_pressure > 0.0
            or self._seconds_to_breach is not None
        )

    @property
    def seconds_to_breach(self) -> float | None:
        """As of the last cycle that looked; see :class:`headgate.flow.adaptive.cycle.Inputs`."""
        return self._seconds_to_breach

    def learn_rate(self, messages: int, size_bytes: int, was_parked: bool, cycle: Cycle) -> bool:
        """The cheap way for a topic without quotas that stop producers, on which no memory
        presses: learn its rate. False: a limit is in force or simulated, so :meth:`evaluate`."""
        if self._present is not None:
            return False
        if self._memory_pressure:
            self._memory_pressure = 0.0
        self._memory_rule = None
        if self._backlog_pressure:
            self._backlog_pressure = 0.0
        self._seconds_to_breach = self._drain = None
        self.natural.observe(messages, size_bytes, was_parked, cycle.now_ns, cycle.elapsed_ns)
        return True

    def evaluate(
        self,
        signals: TopicSignals,
        cycle: Cycle,
        memory_pressure: float,
        memory_rule: MemoryRule | None = None,
    ) -> Decision | None:
        """One cycle: learn, and decide if the limit (in observe-only the one that would be)
        begins, changes or ends.

        ``memory_pressure``: what memory asks of this topic, 0..1, by that rule. A topic is
        evaluated in every cycle after which it had published, and in every one while it
        :attr:`needs_evaluation`.
        """
        settings = cycle.settings
        if settings.observe_only is not self._observe_only:
            ended = self.end_now(settings)
            self._observe_only, self._present = settings.observe_only, None
            if ended is not None and not ended.observe_only:
                return ended
        natural = self.natural
        is_sample = natural.observe(
            signals.messages,
            signals.bytes,
            signals.was_parked,
            cycle.now_ns,
            cycle.elapsed_ns,
            self._present is not None and not self._observe_only,
        )
        target = None
        pressure = 0.0
        if signals.size_limit is not None or signals.age_limit_ms is not None:
            drain = self._drain
            if drain is None:
                drain = self._drain = DrainRate()
            drain.observe(signals.done_bytes, signals.backlog_bytes, cycle.now_ns)
            pressure = backlog_pressure(signals, settings)
            if drain.bytes_per_s is not None and settings.law is Law.DRAIN:
                target = drain_target(signals, drain, settings)
            self._seconds_to_breach = seconds_to_breach(
                signals, natural.published_bytes, drain.bytes_per_s
            )
        elif self._drain is not None:
            self._drain = self._seconds_to_breach = None
        self._memory_pressure, self._backlog_pressure = memory_pressure, pressure
        self._memory_rule = memory_rule
        if self._present is None:
            asks = memory_pressure or (pressure and settings.law is Law.PRESSURE)
            if not (asks and natural.is_known) and (
                target is None or natural.published_bytes <= target
            ):
                return None
        return self._decide(signals, settings, target, is_sample and signals.was_slowed)

    def _decide(
        self,
        signals: TopicSignals,
        settings: AdaptiveSettings,
        target: float | None,
        may_probe: bool,
    ) -> Decision | None:
        limits, natural, drain = self._limits, self.natural, self._drain
        if limits is None:
            limits = self._limits = TopicLimits()
        pressure = self._memory_pressure
        if settings.law is Law.PRESSURE:
            pressure = max(pressure, self._backlog_pressure)
        pressure_rule = limits.follow_pressure(pressure, natural, may_probe, settings)
        drained = 0.0 if drain is None else drain.bytes_per_s or 0.0
        drain_rule = limits.follow_drain(
            target,
            natural.published_bytes,
            max(natural.bytes, drained, 1.0),
            None if self._observe_only else signals.was_slowed,
            settings,
        )
        limit, by_drain = limits.tightest()
        if limit is None:
            self._limits = None
        elif not differs(limit, self._present):
            return None
        else:
            self._law = Law.DRAIN if by_drain else Law.PRESSURE
        rule = (drain_rule if by_drain else pressure_rule) or drain_rule or Rule.CLEAR
        return self._change(limit, rule, self._inputs(signals), settings)

    def end_now(self, settings: AdaptiveSettings) -> Decision | None:
        """End what is in force at once, or what would be: the mode changed, the controller ends,
        or it has failed for too long. None: there is nothing. What was learned stays."""
        self._limits = None
        if self._present is None:
            return None
        return self._change(None, Rule.LET_GO, self._inputs(_NO_SIGNALS), settings)

    def _change(
        self,
        limit: PublishLimit | None,
        rule: Rule,
        inputs: Inputs,
        settings: AdaptiveSettings,
    ) -> Decision:
        old, self._present = self._present, limit
        if old is None:
            kind = DecisionKind.ACTIVATED
        else:
            kind = DecisionKind.DEACTIVATED if limit is None else DecisionKind.CHANGED
        return Decision(
            kind=kind,
            observe_only=self._observe_only,
            law=self._law,
            rule=rule,
            inputs=inputs,
            old=old,
            new=limit,
            step_factor=settings.max_rate_change_factor,
        )

    def _inputs(self, signals: TopicSignals) -> Inputs:
        natural, drain = self.natural, self._drain
        known = natural.is_known
        return Inputs(
            memory_pressure=self._memory_pressure,
            backlog_pressure=self._backlog_pressure,
            backlog_bytes=signals.backlog_bytes,
            size_limit=signals.size_limit,
            age_ms=signals.age_ms,
            age_limit_ms=signals.age_limit_ms,
            published_bytes_per_s=natural.published_bytes,
            drain_bytes_per_s=None if drain is None else drain.bytes_per_s,
            natural_messages_per_s=natural.messages if known else None,
            natural_bytes_per_s=natural.bytes if known else None,
            seconds_to_breach=self._seconds_to_breach,
            memory_rule=self._memory_rule,
        )

    def figures(self) -> TopicFigures:
        """As of the last cycle that looked. In observe-only the rates are those that would be."""
        natural, limit = self.natural, self._present
        left = 1.0
        if limit is not None and natural.is_known:
            if limit.messages_per_s is not None:
                left = min(left, limit.messages_per_s / natural.messages)
            if limit.bytes_per_s is not None and natural.bytes > 0.0:
                left = min(left, limit.bytes_per_s / natural.bytes)
        return TopicFigures(
            active=limit is not None and not self._observe_only,
            natural_rate=natural.messages,
            effective_rate=natural.messages * left,
            memory_pressure=self._memory_pressure,
            backlog_pressure=self._backlog_pressure,
            rate_reduction_ratio=1.0 - left,
        )


_NO_SIGNALS: Final = TopicSignals(messages=0, bytes=0, was_parked=False)
