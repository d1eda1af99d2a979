"""Who takes the memory when it runs short (law 5.3).

While the broker's memory is not under pressure, each topic's memory is its base. Under pressure a
topic takes part when it has grown by :data:`GROWTH_BYTES_MIN` since then and by a hundredth of
what all have grown, as of the cycle before; it does so until the pressure is over. All others keep
their rate, however hard it presses.
"""

from __future__ import annotations

from typing import Final

from headgate.base.units import KIB

GROWTH_BYTES_MIN: Final = 64 * KIB
GROWTH_PARTS: Final = 100
"""A topic takes part from this part of all topics' growth on: a hundredth."""


class HeldMemory:
    """What one topic held when the pressure was last clear; made with its first look."""

    __slots__ = ("base_bytes", "episode")

    def __init__(self) -> None:
        self.base_bytes = -1
        """-1: not looked at yet."""
        self.episode = 0
        """In which stretch of pressure it took part last."""


class MemoryAttribution:
    """Over all topics; a cycle costs each of them O(1)."""

    __slots__ = ("_episode", "_growth_before_bytes", "_growth_bytes", "pressure")

    def __init__(self) -> None:
        self.pressure = 0.0
        """The broker's, in this cycle."""
        self._episode = 0
        self._growth_bytes = 0
        self._growth_before_bytes = 0

    def begin(self, pressure: float) -> None:
        """A cycle begins; ``pressure`` is the broker's, 0..1."""
        if pressure > 0.0 and self.pressure <= 0.0:
            self._episode += 1
        self.pressure = pressure
        self._growth_before_bytes = self._growth_bytes
        self._growth_bytes = 0

    def pressure_on(self, held: HeldMemory, held_bytes: int) -> float:
        """What the memory asks of a topic that holds so much now: the pressure, or nothing."""
        base = held.base_bytes
        if self.pressure <= 0.0 or base < 0 or held_bytes < base:
            held.base_bytes = base = held_bytes
        if self.pressure <= 0.0:
            return 0.0
        growth = held_bytes - base
        self._growth_bytes += growth
        if growth >= GROWTH_BYTES_MIN and growth * GROWTH_PARTS >= self._growth_before_bytes:
            held.episode = self._episode
        return self.pressure if held.episode == self._episode else 0.0
