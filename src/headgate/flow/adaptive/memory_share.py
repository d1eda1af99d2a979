"""Which topics are slowed while memory is short (law 5.3).

While memory is not under pressure, each topic's memory is its baseline. Under pressure, a topic
takes part if it has grown by :data:`GROWTH_BYTES_MIN` since then, and by a hundredth of what all
topics had grown in the cycle before. It takes part until the pressure ends. All other topics keep
their rate, however high the pressure is.

If no topic takes part although the pressure was full for :data:`UNATTRIBUTED_CYCLES` cycles, all
topics that publish are slowed until the pressure ends. If that does not bring memory down within
:data:`NO_EFFECT_NS`, publishers do not fill the memory: they are no longer slowed, and not slowed
together again before the pressure has ended once.
"""

from __future__ import annotations

from typing import Final

from headgate.base.units import KIB, NS_PER_S
from headgate.flow.adaptive.cycle import MemoryRule

GROWTH_BYTES_MIN: Final = 64 * KIB
GROWTH_PARTS: Final = 100
"""A topic takes part if its growth is at least 1/100 of the growth of all topics."""
UNATTRIBUTED_CYCLES: Final = 3
"""Cycles in a row at full pressure in which no topic took part, before all topics are slowed."""
UNATTRIBUTED_NS_MIN: Final = 2 * NS_PER_S
"""How long these cycles last together at least: with short cycles no topic has time to grow."""
NO_EFFECT_S: Final = 60
NO_EFFECT_NS: Final = NO_EFFECT_S * NS_PER_S
EFFECT_SHARE: Final = 0.01
"""Memory must fall by at least this part of what may be used to count as an effect. While the
pressure is below full, no effect is needed: memory is under control."""


class MemoryBaseline:
    """The memory of one topic when there was no pressure last."""

    __slots__ = ("base_bytes", "episode")

    def __init__(self) -> None:
        self.base_bytes = -1
        """-1 before the first cycle."""
        self.episode = 0
        """The number of the last episode of pressure in which it took part."""


class MemoryAttribution:
    """Finds the topics that use the memory up; a cycle costs O(1) for each topic."""

    __slots__ = (
        "_began_ns",
        "_episode",
        "_growth_before_bytes",
        "_growth_bytes",
        "_lowest_share",
        "_since_ns",
        "_slows_any_topic",
        "_unattributed_cycles",
        "_unattributed_since_ns",
        "has_no_effect",
        "pressure",
        "slows_all_topics",
    )

    def __init__(self) -> None:
        self.pressure = 0.0
        """The broker's memory pressure in this cycle."""
        self.slows_all_topics = False
        """Whether all topics that publish are slowed, because none stands out."""
        self.has_no_effect = False
        """Whether slowing all topics had no effect in this episode of pressure."""
        self._episode = 0
        self._growth_bytes = 0
        self._growth_before_bytes = 0
        self._slows_any_topic = False
        """Whether any topic takes part in this cycle."""
        self._began_ns = 0
        """When this cycle began."""
        self._unattributed_cycles = 0
        self._unattributed_since_ns = 0
        self._since_ns = 0
        """When memory last fell while all topics were slowed, or was below full pressure."""
        self._lowest_share = 0.0

    def begin_cycle(
        self, pressure: float, used_share: float, now_ns: int, *, is_enforced: bool = True
    ) -> MemoryRule | None:
        """Begin a cycle; returns a rule if all topics begin or cease to be slowed with it.

        ``pressure`` is the broker's memory pressure, 0..1, and ``used_share`` the part of its
        memory in use. If limits are not enforced, they need not have an effect.
        """
        is_unattributed = (
            self.pressure >= 1.0 and not self._slows_any_topic and not self.slows_all_topics
        )
        if not self._unattributed_cycles:
            self._unattributed_since_ns = self._began_ns
        self._unattributed_cycles = self._unattributed_cycles + 1 if is_unattributed else 0
        self._began_ns = now_ns
        was_anyone, self._slows_any_topic = self._slows_any_topic, False
        if pressure > 0.0 and self.pressure <= 0.0:
            self._episode += 1
        self.pressure = pressure
        self._growth_before_bytes = self._growth_bytes
        self._growth_bytes = 0
        if pressure <= 0.0:
            self.slows_all_topics = self.has_no_effect = False
        elif self.slows_all_topics:
            return self._look_for_effect(used_share, now_ns, is_enforced and was_anyone)
        elif pressure >= 1.0 and self._is_unattributed(now_ns) and not self.has_no_effect:
            self.slows_all_topics = True
            self._since_ns, self._lowest_share = now_ns, used_share
            return MemoryRule.EVERYBODY
        return None

    def _is_unattributed(self, now_ns: int) -> bool:
        lasted_ns = now_ns - self._unattributed_since_ns
        return self._unattributed_cycles >= UNATTRIBUTED_CYCLES and lasted_ns >= UNATTRIBUTED_NS_MIN

    def _look_for_effect(
        self, used_share: float, now_ns: int, is_anyone_slowed: bool
    ) -> MemoryRule | None:
        has_fallen = used_share <= self._lowest_share - EFFECT_SHARE
        if has_fallen or self.pressure < 1.0 or not is_anyone_slowed:
            self._since_ns, self._lowest_share = now_ns, used_share
        if now_ns - self._since_ns < NO_EFFECT_NS:
            return None
        self.slows_all_topics, self.has_no_effect = False, True
        return MemoryRule.NO_EFFECT

    def pressure_on(self, baseline: MemoryBaseline, held_bytes: int) -> float:
        """The memory pressure on a topic that holds ``held_bytes`` now; 0 if it takes no part."""
        base = baseline.base_bytes
        # What waits because all topics are slowed is not growth that the topic caused.
        if self.pressure <= 0.0 or base < 0 or held_bytes < base or self.slows_all_topics:
            baseline.base_bytes = base = held_bytes
        if self.pressure <= 0.0:
            return 0.0
        growth = held_bytes - base
        self._growth_bytes += growth
        if growth >= GROWTH_BYTES_MIN and growth * GROWTH_PARTS >= self._growth_before_bytes:
            baseline.episode = self._episode
        if baseline.episode != self._episode and not self.slows_all_topics:
            return 0.0
        self._slows_any_topic = True
        return self.pressure

    def rule_on(self, pressure: float) -> MemoryRule | None:
        """Why :meth:`pressure_on` slows a topic, or stopped doing so; None if it never did."""
        if self.slows_all_topics:
            return MemoryRule.EVERYBODY
        if pressure > 0.0:
            return MemoryRule.SHARE
        return MemoryRule.NO_EFFECT if self.has_no_effect else None
