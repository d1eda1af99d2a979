"""Law pressure: memory or a quota reduces a topic's natural rate.

Between its watermarks, a pressure grows from 0 to 1 in a straight line. At pressure *p* a topic may
publish its natural rate less *p* times the part above the floor. A limit moves towards that target
by a bounded step in each cycle. It ends in the same steps, after :data:`CLEAR_CYCLES` cycles
without pressure (law 5.2).
"""

from __future__ import annotations

from typing import Final

from headgate.flow.adaptive.cycle import AdaptiveSettings, Rule, TopicSignals
from headgate.flow.adaptive.natural_rate import NaturalRate

CLEAR_CYCLES: Final = 3
"""Cycles in a row without pressure, before a limit begins to end."""


def linear_pressure(value: float, low: float, high: float) -> float:
    """0 up to ``low``, 1 from ``high`` on, and linear between them."""
    if value <= low:
        return 0.0
    return 1.0 if value >= high else (value - low) / (high - low)


def memory_pressure(used_bytes: int, limit_bytes: int, settings: AdaptiveSettings) -> float:
    """The broker's memory pressure, 0..1. ``limit_bytes`` is what it may use, at least 1."""
    return linear_pressure(used_bytes / limit_bytes, settings.memory_low, settings.memory_high)


def quota_use(backlog: int, limit: int | None) -> float:
    """The used part of a quota; 0 without one. A quota of 0 is always full."""
    if limit is None or backlog < 0:
        return 0.0
    return backlog / limit if limit > 0 else 1.0


def backlog_pressure(signals: TopicSignals, settings: AdaptiveSettings) -> float:
    """The pressure of a topic's size or time quota, 0..1, whichever is higher."""
    low = settings.backlog_low
    use = quota_use(signals.backlog_bytes, signals.size_limit)
    if signals.age_limit_ms is not None:
        use = max(use, quota_use(signals.age_ms, signals.age_limit_ms))
    return 0.0 if use <= low else linear_pressure(use, low, settings.backlog_high)


def floor_rate(natural: float, settings: AdaptiveSettings) -> float:
    """The lowest limit at a natural rate: at least 1 a second."""
    return max(1.0, natural * settings.min_rate_factor)


def target_rate(natural: float, pressure: float, settings: AdaptiveSettings) -> float:
    """The target of the law, between the floor and the natural rate."""
    target = natural * (1.0 - pressure * (1.0 - settings.min_rate_factor))
    return max(floor_rate(natural, settings), target)


def stepped_rate(
    present: float, target: float, natural: float, settings: AdaptiveSettings
) -> float:
    """``present``, moved towards ``target`` by at most the step of a cycle."""
    step = natural * settings.max_rate_change_factor
    return min(max(target, present - step), present + step)


class PressureLimit:
    """The limit that law pressure sets on one topic."""

    __slots__ = ("_clear_cycles", "_pressure", "bytes", "messages")

    def __init__(self, natural: NaturalRate) -> None:
        """Begin at the natural rate; the first step follows with :meth:`follow`."""
        self.messages = natural.messages
        """Messages a second."""
        self.bytes = natural.bytes
        self._clear_cycles = 0
        self._pressure = 1.0

    def follow(
        self, pressure: float, natural: NaturalRate, may_probe: bool, settings: AdaptiveSettings
    ) -> Rule:
        """Move the limit by one cycle; returns why it has its value.

        ``pressure`` is the pressure on this topic now. ``may_probe`` says that the topic used all
        that it was allowed in a whole sample. :attr:`Rule.CLEAR` says that the limit has ended.
        """
        if pressure > 0.0:
            self._clear_cycles = 0
            rule = self._step(natural, pressure, settings)
            if rule is Rule.TARGET and may_probe and pressure <= self._pressure:
                natural.probe()
            self._pressure = pressure
            return rule
        self._clear_cycles += 1
        if self._clear_cycles < CLEAR_CYCLES:
            return Rule.RAMP
        self._step(natural, 0.0, settings)
        ended = self.messages >= natural.messages and self.bytes >= natural.bytes
        return Rule.CLEAR if ended else Rule.RAMP

    def _step(self, natural: NaturalRate, pressure: float, settings: AdaptiveSettings) -> Rule:
        """Move the limit in both dimensions; :attr:`Rule.STEP` if either is not at its target."""
        rule = Rule.FLOOR if pressure >= 1.0 else Rule.TARGET
        of_messages, of_bytes = natural.messages, natural.bytes
        target = target_rate(of_messages, pressure, settings)
        self.messages = stepped_rate(self.messages, target, of_messages, settings)
        if self.messages != target:
            rule = Rule.STEP
        target = target_rate(of_bytes, pressure, settings)
        self.bytes = stepped_rate(self.bytes, target, of_bytes, settings)
        return rule if self.bytes == target else Rule.STEP
