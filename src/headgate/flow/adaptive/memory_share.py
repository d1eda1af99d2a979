"""Which topics are slowed while memory is short (law 5.3).

While the broker's memory is not under pressure, each topic's memory is its base. Under pressure a
topic takes part when it has grown by :data:`GROWTH_BYTES_MIN` since then and by a hundredth of
what all have grown, as of the cycle before; it does so until the pressure is over. All others keep
their rate, however hard it presses.

Where nobody takes part although the pressure has been full for :data:`UNATTRIBUTED_CYCLES` cycles,
everybody who publishes does, until the pressure is over. If that brings the memory down by nothing
for :data:`NO_EFFECT_NS`, it is not the publishers who fill it: they are let go, and not slowed
together again until the pressure was over once.
"""

from __future__ import annotations

from typing import Final

from headgate.base.units import KIB, NS_PER_S
from headgate.flow.adaptive.cycle import MemoryRule

GROWTH_BYTES_MIN: Final = 64 * KIB
GROWTH_PARTS: Final = 100
"""A topic takes part from this part of all topics' growth on: a hundredth."""
UNATTRIBUTED_CYCLES: Final = 3
"""Cycles in a row at full pressure in which no topic took part, before all topics are slowed."""
UNATTRIBUTED_NS_MIN: Final = 2 * NS_PER_S
"""How long these cycles last together at least: with short cycles no topic has time to grow."""
NO_EFFECT_S: Final = 60
NO_EFFECT_NS: Final = NO_EFFECT_S * NS_PER_S
EFFECT_SHARE: Final = 0.01
"""Less than this part of the memory that may be used is no effect. Nor does it need one while the
pressure is not full any more: then it is held."""


class MemoryBaseline:
    """What one topic held when the pressure was last clear; made with its first look."""

    __slots__ = ("base_bytes", "episode")

    def __init__(self) -> None:
        self.base_bytes = -1
        """-1: not looked at yet."""
        self.episode = 0
        """In which stretch of pressure it took part last."""


class MemoryAttribution:
    """Over all topics; a cycle costs each of them O(1)."""

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
        """The broker's, in this cycle."""
        self.slows_all_topics = False
        """Whether all topics that publish are slowed, because none is seen to take the memory."""
        self.has_no_effect = False
        """Whether they were in this stretch of pressure, without effect."""
        self._episode = 0
        self._growth_bytes = 0
        self._growth_before_bytes = 0
        self._slows_any_topic = False
        """Whether any topic has taken part in this cycle."""
        self._began_ns = 0
        """When this cycle began."""
        self._unattributed_cycles = 0
        self._unattributed_since_ns = 0
        self._since_ns = 0
        """When memory last came down while everybody was slowed, or was not at full pressure."""
        self._lowest_share = 0.0

    def begin_cycle(
        self, pressure: float, used_share: float, now_ns: int, *, is_enforced: bool = True
    ) -> MemoryRule | None:
        """A cycle begins. ``pressure`` is the broker's, 0..1, with that part of its memory in use.
        Where nothing is enforced nothing can have an effect, so none is asked for.

        Says when everybody begins to be slowed with this cycle, or ends to be without effect.
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
        """What the memory asks of a topic that holds so much now: the pressure, or nothing."""
        base = baseline.base_bytes
        # What waits because everybody is slowed is no growth of the topic's own.
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
        """By which rule :meth:`pressure_on` asks that of a topic, or no longer asks anything; None
        where it never did."""
        if self.slows_all_topics:
            return MemoryRule.EVERYBODY
        if pressure > 0.0:
            return MemoryRule.SHARE
        return MemoryRule.NO_EFFECT if self.has_no_effect else None
