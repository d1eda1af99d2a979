"""Which topics are slowed while memory is short (law 5.3).

While the broker's memory is not under pressure, each topic's memory is its base. Under pressure a
topic takes part when it has grown by :data:`GROWTH_BYTES_MIN` since then and by a hundredth of
what all have grown, as of the cycle before; it does so until the pressure is over. All others keep
their rate, however hard it presses.

Where nobody takes part although the pressure has been full for :data:`UNNAMED_CYCLES` cycles,
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
UNNAMED_CYCLES: Final = 3
"""So many cycles in a row at full pressure in which no topic took part; all of them together last
at least :data:`UNNAMED_NS_MIN`, or at a short interval nobody would have had the time to grow."""
UNNAMED_NS_MIN: Final = 2 * NS_PER_S
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
        "_is_anyone",
        "_lowest_share",
        "_since_ns",
        "_unnamed_cycles",
        "_unnamed_since_ns",
        "is_everybody",
        "is_given_up",
        "pressure",
    )

    def __init__(self) -> None:
        self.pressure = 0.0
        """The broker's, in this cycle."""
        self.is_everybody = False
        """Whether all topics that publish are slowed, because none is seen to take the memory."""
        self.is_given_up = False
        """Whether they were in this stretch of pressure, without effect."""
        self._episode = 0
        self._growth_bytes = 0
        self._growth_before_bytes = 0
        self._is_anyone = False
        """Whether any topic has taken part in this cycle."""
        self._began_ns = 0
        """When this cycle began."""
        self._unnamed_cycles = 0
        self._unnamed_since_ns = 0
        self._since_ns = 0
        """When memory last came down while everybody was slowed, or was not at full pressure."""
        self._lowest_share = 0.0

    def begin(
        self, pressure: float, used_share: float, now_ns: int, *, is_enforced: bool = True
    ) -> MemoryRule | None:
        """A cycle begins. ``pressure`` is the broker's, 0..1, with that part of its memory in use.
        Where nothing is enforced nothing can have an effect, so none is asked for.

        Says when everybody begins to be slowed with this cycle, or ends to be without effect.
        """
        is_unnamed = self.pressure >= 1.0 and not self._is_anyone and not self.is_everybody
        if not self._unnamed_cycles:
            self._unnamed_since_ns = self._began_ns
        self._unnamed_cycles = self._unnamed_cycles + 1 if is_unnamed else 0
        self._began_ns = now_ns
        was_anyone, self._is_anyone = self._is_anyone, False
        if pressure > 0.0 and self.pressure <= 0.0:
            self._episode += 1
        self.pressure = pressure
        self._growth_before_bytes = self._growth_bytes
        self._growth_bytes = 0
        if pressure <= 0.0:
            self.is_everybody = self.is_given_up = False
        elif self.is_everybody:
            return self._look_for_effect(used_share, now_ns, is_enforced and was_anyone)
        elif pressure >= 1.0 and self._is_nobody_named(now_ns) and not self.is_given_up:
            self.is_everybody = True
            self._since_ns, self._lowest_share = now_ns, used_share
            return MemoryRule.EVERYBODY
        return None

    def _is_nobody_named(self, now_ns: int) -> bool:
        lasted_ns = now_ns - self._unnamed_since_ns
        return self._unnamed_cycles >= UNNAMED_CYCLES and lasted_ns >= UNNAMED_NS_MIN

    def _look_for_effect(
        self, used_share: float, now_ns: int, is_anyone_slowed: bool
    ) -> MemoryRule | None:
        has_fallen = used_share <= self._lowest_share - EFFECT_SHARE
        if has_fallen or self.pressure < 1.0 or not is_anyone_slowed:
            self._since_ns, self._lowest_share = now_ns, used_share
        if now_ns - self._since_ns < NO_EFFECT_NS:
            return None
        self.is_everybody, self.is_given_up = False, True
        return MemoryRule.NO_EFFECT

    def pressure_on(self, held: MemoryBaseline, held_bytes: int) -> float:
        """What the memory asks of a topic that holds so much now: the pressure, or nothing."""
        base = held.base_bytes
        # What waits because everybody is slowed is no growth of the topic's own.
        if self.pressure <= 0.0 or base < 0 or held_bytes < base or self.is_everybody:
            held.base_bytes = base = held_bytes
        if self.pressure <= 0.0:
            return 0.0
        growth = held_bytes - base
        self._growth_bytes += growth
        if growth >= GROWTH_BYTES_MIN and growth * GROWTH_PARTS >= self._growth_before_bytes:
            held.episode = self._episode
        if held.episode != self._episode and not self.is_everybody:
            return 0.0
        self._is_anyone = True
        return self.pressure

    def rule_on(self, pressure: float) -> MemoryRule | None:
        """By which rule :meth:`pressure_on` asks that of a topic, or no longer asks anything; None
        where it never did."""
        if self.is_everybody:
            return MemoryRule.EVERYBODY
        if pressure > 0.0:
            return MemoryRule.SHARE
        return MemoryRule.NO_EFFECT if self.is_given_up else None
