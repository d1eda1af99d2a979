"""A steady rate of actions, independent of the scheduler."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from headgate.base.errors import InputError

BEHIND_S_MAX = 1.0
"""Actions that are late by more are dropped, so that a burst does not follow a pause."""

LATE_S_MAX = 0.05
"""The same for :meth:`Pace.wait_s`: a worker that was late does not work faster afterwards."""


class Pace:
    """When the next action of a steady series is due. Times are seconds of a monotonic clock."""

    def __init__(self, rate_per_s: float, now_s: float) -> None:
        """The first action is due one step after ``now_s``.

        Raises:
            InputError: the rate is not positive.
        """
        if rate_per_s <= 0:
            raise InputError(f"rate_per_s is {rate_per_s}; a pace is positive")
        self._step_s = 1 / rate_per_s
        self._next_s = now_s + self._step_s

    def due(self, now_s: float) -> int:
        """How many actions became due since the last call; they count as done."""
        self._next_s = max(self._next_s, now_s - BEHIND_S_MAX)
        if now_s < self._next_s:
            return 0
        count = int((now_s - self._next_s) / self._step_s) + 1
        self._next_s += count * self._step_s
        return count

    def wait_s(self, now_s: float) -> float:
        """Seconds until the next action is due, 0 if it is late; it counts as done.

        An action that is late by more than :data:`LATE_S_MAX` is dropped, so a pause or a busy
        machine causes no burst.
        """
        self._next_s = max(self._next_s, now_s - LATE_S_MAX)
        wait_s = max(0.0, self._next_s - now_s)
        self._next_s += self._step_s
        return wait_s


class PhasedPace:
    """A pace whose rate changes at set times."""

    def __init__(self, rates_per_s: Sequence[float], phase_s: float, now_s: float) -> None:
        """Each rate holds for ``phase_s`` seconds, the last one for ever.

        Raises:
            InputError: a rate is not positive.
        """
        self._paces = deque(
            Pace(rate, now_s + phase_s * number) for number, rate in enumerate(rates_per_s)
        )
        self._phase_s = phase_s
        self._end_s = now_s + phase_s

    def due(self, now_s: float) -> int:
        """How many actions became due since the last call; they count as done."""
        count = 0
        while len(self._paces) > 1 and now_s >= self._end_s:
            count += self._paces.popleft().due(self._end_s)
            self._end_s += self._phase_s
        return count + self._paces[0].due(now_s)
