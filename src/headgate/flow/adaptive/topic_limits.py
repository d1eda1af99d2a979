"""The limits that both laws of adaptive throttling set on one topic (law 5.5).

Law pressure limits messages and bytes, law drain bytes; the tighter of both is in force.
"""

from __future__ import annotations

from typing import Final

from headgate.flow.adaptive.cycle import AdaptiveSettings, PublishLimit, Rule
from headgate.flow.adaptive.drain import DrainLimit
from headgate.flow.adaptive.natural_rate import NaturalRate
from headgate.flow.adaptive.pressure import PressureLimit

CHANGE_MIN: Final = 0.02
"""A limit moves only if it changes by more than this part of itself."""


class TopicLimits:
    """The limits of both laws on one topic; None for a law that sets none."""

    __slots__ = ("_drain", "_pressure")

    def __init__(self) -> None:
        self._pressure: PressureLimit | None = None
        self._drain: DrainLimit | None = None

    def follow_pressure(
        self, pressure: float, natural: NaturalRate, may_probe: bool, settings: AdaptiveSettings
    ) -> Rule | None:
        """Apply one cycle of law pressure; returns why its limit has its value, None without
        one."""
        law = self._pressure
        if law is None:
            if not (pressure and natural.is_known):
                return None
            law = self._pressure = PressureLimit(natural)
        rule = law.follow(pressure, natural, may_probe, settings)
        if rule is Rule.CLEAR:
            self._pressure = None
        return rule

    def follow_drain(
        self,
        target: float | None,
        published: float,
        natural: float,
        was_slowed: bool | None,
        settings: AdaptiveSettings,
    ) -> Rule | None:
        """Apply one cycle of law drain; returns why its limit has its value, None without one.

        ``published`` is in bytes a second; ``natural`` is that of :meth:`DrainLimit.follow`.
        ``was_slowed`` says that something waited for the limit. It is None if the limit is only
        simulated; then the published rate decides whether the limit is needed.
        """
        law = self._drain
        if law is None:
            if target is None or published <= target:
                return None
            self._drain = DrainLimit(target)
            return Rule.TARGET if target > 1.0 else Rule.MINIMUM
        is_needed = published > law.bytes if was_slowed is None else was_slowed
        if target is not None and published > target:
            is_needed = True
        rule = law.follow(target, natural, is_needed, settings)
        if rule is Rule.CLEAR:
            self._drain = None
        return rule

    def tightest(self) -> tuple[PublishLimit | None, bool]:
        """The tighter of both limits, None without any; and whether law drain set its bytes."""
        pressure, drain = self._pressure, self._drain
        if pressure is None:
            if drain is None:
                return None, False
            return PublishLimit(None, max(1, round(drain.bytes))), True
        size_bytes, by_drain = pressure.bytes, False
        if drain is not None and drain.bytes < size_bytes:
            size_bytes, by_drain = drain.bytes, True
        return PublishLimit(max(1, round(pressure.messages)), max(1, round(size_bytes))), by_drain


def differs(limit: PublishLimit, present: PublishLimit | None) -> bool:
    """Whether ``limit`` differs enough from the present one to replace it."""
    if present is None:
        return True
    for new, old in zip(limit, present, strict=True):
        if new is None or old is None:
            if new is not old:
                return True
        elif abs(new - old) > CHANGE_MIN * old:
            return True
    return False
