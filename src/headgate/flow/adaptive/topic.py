"""The controller's state of one topic, from cycle to cycle (law 5).

Under law drain, memory still follows the arithmetic of law pressure, and the backlog follows law
drain alone; the tighter of both limits is in force. If the law changes, the limit of the old law
ends step by step. In observe-only mode the same is computed and nothing is enforced; a change of
the mode starts again from the natural rate.
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
    """The controller's state of one topic, created when it first publishes."""

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
        """The state that :class:`headgate.flow.adaptive.memory_share.MemoryAttribution` keeps."""
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
        """The limit in force; None in observe-only mode."""
        return None if self._observe_only else self._present

    @property
    def shadow_limit(self) -> PublishLimit | None:
        """The limit that observe-only mode simulates; None in the enforcing mode."""
        return self._present if self._observe_only else None

    @property
    def needs_evaluation(self) -> bool:
        """Whether the next cycle must evaluate the topic even if it publishes nothing: it has a
        limit, in force or simulated, or a figure that would become stale."""
        return (
            self._present is not None
            or self._backlog_pressure > 0.0
            or self._seconds_to_breach is not None
        )

    @property
    def seconds_to_breach(self) -> float | None:
        """Seconds until the size quota is reached, as of the last cycle that evaluated it."""
        return self._seconds_to_breach

    def learn_rate(self, messages: int, size_bytes: int, was_parked: bool, cycle: Cycle) -> bool:
        """Learn the rate of a topic that no memory pressure and no quota can slow.

        This is cheaper than :meth:`evaluate`. Returns False if the topic has a limit, in force or
        simulated, so that the caller must evaluate it.
        """
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
        """Learn from one cycle; returns a decision if the limit, in force or simulated, begins,
        changes or ends.

        ``memory_pressure`` is the memory pressure on this topic, 0..1, and ``memory_rule`` its
        reason. Evaluate a topic in each cycle in which it published, and while it
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
        """End the limit at once, in force or simulated; returns None if there is none.

        The caller does so when the mode changes, when the controller stops or when it failed for
        too long. The learned rates stay.
        """
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
        """The figures of the last cycle that evaluated it; in observe-only mode, simulated
        rates."""
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
