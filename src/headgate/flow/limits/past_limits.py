"""What a window counts after its limit changed (law 1.5).

A budget has this only while its limit changed within the last period, or while it has a debt from
another limit. An amount that was delivered under a limit ``then`` counts, under a limit ``now``,
as::

    amount * now / then    if then is the higher one
    amount                 otherwise

Each count is computed from the delivered amount, never from an earlier count. So errors do not add
up over many changes, and a limit that returns to its old value finds the window as it was. Counts
are in 2^-32 of a message or byte, each rounded up; only their sum is rounded up to a whole one.

Amounts leave in the order of the slots of :mod:`headgate.flow.limits.budget`, which hold the
delivered amounts.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

PART_BITS: Final = 32

LIMITS_MAX: Final = 32
"""Most limits that one window remembers. A limit that changes ten times a second has eleven. Beyond
this, the two neighbours that differ least are merged under the lower limit, which counts a little
more, never less."""


class PastLimits:
    """The amounts of one window, by the limit under which each was delivered."""

    __slots__ = ("_amounts", "_limits", "_now", "_owed_limit", "_sum", "owed")

    def __init__(self, limit: int, held: int, owed: int) -> None:
        """``held`` is in the window, ``owed`` is the debt; both were delivered under ``limit``."""
        self._now = limit
        self._limits = [limit]
        self._amounts = [held]
        """For each limit, oldest first; only the last one may be 0."""
        self._sum = held << PART_BITS
        """What the amounts count, in parts of 2^-32."""
        self.owed = owed
        """The debt: the delivered amount that is not in the window yet."""
        self._owed_limit = limit

    # -- what counts -----------------------------------------------------------------------

    @property
    def in_window(self) -> int:
        """What the window counts now."""
        return -(-self._sum >> PART_BITS)

    @property
    def debt(self) -> int:
        """What the debt counts now."""
        return -(-self._parts(self.owed, self._owed_limit) >> PART_BITS)

    @property
    def held(self) -> int:
        """The delivered amounts in the window, in full."""
        return sum(self._amounts)

    @property
    def all_under_present_limit(self) -> bool:
        """Whether everything was delivered under the present limit. Then each amount counts in
        full, and the budget no longer needs this object."""
        if self.owed and self._owed_limit != self._now:
            return False
        return not self._sum or self._limits == [self._now]

    def _parts(self, amount: int, then: int) -> int:
        if then <= self._now:
            return amount << PART_BITS
        return -(-(amount * self._now << PART_BITS) // then)

    def _amount_of(self, parts: int, then: int) -> int:
        """The largest amount that counts at most ``parts``."""
        return parts * max(then, self._now) // (self._now << PART_BITS)

    def until_room(self) -> tuple[int, int]:
        """When the next entry may go, if it may not go now: after so many whole periods, and then
        after this amount has left the window."""
        owed = self._parts(self.owed, self._owed_limit)
        needed = self._sum + owed - ((self._now - 1) << PART_BITS)
        periods, rest = divmod(needed - 1, self._sum)
        rest += 1
        leaves = 0
        for then, amount in zip(self._limits, self._amounts, strict=True):
            parts = self._parts(amount, then)
            if parts >= rest:
                return periods, leaves + amount - self._amount_of(parts - rest, then)
            rest -= parts
            leaves += amount
        return periods, leaves

    # -- what happens to it ----------------------------------------------------------------

    def charged(self, logged: int, owed: int) -> None:
        """Add an entry: ``logged`` of it is in the window, ``owed`` is debt."""
        if self._limits[-1] == self._now:  # the usual case, and the hot one
            self._amounts[-1] += logged
            self._sum += logged << PART_BITS
        elif logged:
            self._append(logged, self._now)
        if owed:
            # Two debts under different limits both count as under the lower limit.
            self._owed_limit = min(self._owed_limit, self._now) if self.owed else self._now
            self.owed += owed

    def _append(self, amount: int, then: int) -> None:
        if self._limits[-1] != then:
            if self._amounts[-1]:
                self._limits.append(then)
                self._amounts.append(0)
            else:
                self._limits[-1] = then
        held = self._amounts[-1]
        self._amounts[-1] = held + amount
        self._sum += self._parts(held + amount, then) - self._parts(held, then)
        if len(self._limits) > LIMITS_MAX:
            self._merge()

    def expired(self, amount: int) -> None:
        """The oldest ``amount`` left the window."""
        self._leave(amount, 0)

    def given_back(self, amount: int) -> None:
        """The youngest ``amount`` was not delivered after all."""
        self._leave(amount, -1)

    def _leave(self, amount: int, end: int) -> None:
        limits, amounts = self._limits, self._amounts
        while amount:
            then, held = limits[end], amounts[end]
            left = max(0, held - amount)
            amount -= held - left
            amounts[end] = left
            self._sum += self._parts(left, then) - self._parts(held, then)
            if left or len(limits) == 1:
                return
            del limits[end], amounts[end]

    def take_room(self) -> int:
        """Move as much of the debt into the window as fits; returns how much."""
        if not self.owed or self._sum > (self._now - 1) << PART_BITS:
            return 0
        then = self._owed_limit
        held = self._amounts[-1] if self._limits[-1] == then else 0
        others = self._sum - self._parts(held, then)
        taken = min(self.owed, self._amount_of((self._now << PART_BITS) - others, then) - held)
        self.owed -= taken
        self._append(taken, then)
        return taken

    def repeat(self, periods_max: int) -> int:
        """Skip whole periods in which a large debt repeats the same slots; returns how many, at
        most ``periods_max``."""
        held = self._amounts[0]
        is_equal = len(self._limits) == 1 and self._limits[0] == self._owed_limit
        if not (is_equal and self.owed >= held > 0 and self.in_window >= self._now):
            return 0
        periods = min(self.owed // held, periods_max)
        self.owed -= periods * held
        return periods

    def forgive(self) -> int:
        """Drop the debt: its amount counts in the window instead. Returns how much that is."""
        owed, self.owed = self.owed, 0
        if owed:
            self._append(owed, self._owed_limit)
        return owed

    def change(self, limit: int, period_ns: int, before_ns: int) -> None:
        """Apply another limit, and a period that was ``before_ns`` long. A shorter period scales
        the remembered limits down in proportion."""
        if period_ns < before_ns:
            self._limits = [max(1, then * period_ns // before_ns) for then in self._limits]
            self._owed_limit = max(1, self._owed_limit * period_ns // before_ns)
        self._now = limit
        held = zip(self._limits, self._amounts, strict=True)
        self._sum = sum(self._parts(amount, then) for then, amount in held)
        if not self._amounts[-1]:
            self._limits[-1] = limit

    def _merge(self) -> None:
        """Merge the two neighbours that differ least."""
        pairs = enumerate(pairwise(self._limits))
        at = min(pairs, key=lambda pair: max(pair[1]) / min(pair[1]))[0]
        lower = min(self._limits[at : at + 2])
        amount = sum(self._amounts[at : at + 2])
        before = zip(self._limits[at : at + 2], self._amounts[at : at + 2], strict=True)
        self._sum += self._parts(amount, lower) - sum(self._parts(a, then) for then, a in before)
        self._limits[at : at + 2] = [lower]
        self._amounts[at : at + 2] = [amount]
