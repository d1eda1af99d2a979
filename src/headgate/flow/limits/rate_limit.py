"""A rate limit: at most so many messages and bytes in any window of one period (law 1)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from math import inf
from typing import NamedTuple

from headgate.base.errors import InputError
from headgate.base.units import INT64_MAX, NS_PER_S


class Level(IntEnum):
    """Where a limit holds, the most specific level first. The values index lists."""

    SUBSCRIPTION = 0
    TOPIC = 1
    BROKER = 2


class Dimension(IntEnum):
    """What a limit counts. The values index lists."""

    MESSAGES = 0
    BYTES = 1


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most so many messages and bytes in any window of one period.

    ``None`` means no limit in that dimension. Raises :class:`InputError` if an amount is outside
    1..2^63-1, if the period is not positive, or if neither dimension is limited.
    """

    messages: int | None
    bytes: int | None
    period_ns: int = NS_PER_S
    relative: bool = False
    """Whether the amounts come on top of the publish rate (law 1.7, PIP-52). Such a limit has to be
    put :meth:`above` a publish rate before it can be enforced."""
    base: RateLimit | None = None
    """The relative limit from which this one was computed; None for a plain limit."""
    times: int = 1
    """How many times a limit with a ``base`` contains the publish rate: once for each subscription
    that needs it; 0 for the sum over many topics."""

    def __post_init__(self) -> None:
        for name, amount in (("messages", self.messages), ("bytes", self.bytes)):
            if amount is not None and not 1 <= amount <= INT64_MAX:
                raise InputError(f"{name} is {amount}; a limit lies in 1..{INT64_MAX}")
        if self.messages is None and self.bytes is None:
            raise InputError("a limit needs messages or bytes; use None for no limit at all")
        if self.period_ns < 1:
            raise InputError(f"period_ns is {self.period_ns}; a period is at least 1 ns")

    def amount(self, dimension: Dimension) -> int | None:
        """The limit in one dimension, per period; None if there is none."""
        return self.messages if dimension == Dimension.MESSAGES else self.bytes

    def per_second(self, dimension: Dimension) -> float | None:
        """The limit in one dimension as a rate, to show and to compare."""
        amount = self.amount(dimension)
        return None if amount is None else amount * NS_PER_S / self.period_ns

    def above(self, published: PerSecond) -> RateLimit:
        """What a relative limit allows at the publish rate ``published``; a plain limit is returned
        unchanged. The publish rate is scaled to the limit's period."""
        if not self.relative:
            return self

        def sum_with(amount: int | None, per_second: float) -> int | None:
            if amount is None:
                return None
            return min(amount + round(per_second * self.period_ns / NS_PER_S), INT64_MAX)

        return RateLimit(
            messages=sum_with(self.messages, published.messages),
            bytes=sum_with(self.bytes, published.bytes),
            period_ns=self.period_ns,
            base=self,
        )


def is_lower(limit: RateLimit, other: RateLimit) -> bool:
    """Whether ``limit`` allows less than ``other`` in the first dimension in which they differ; a
    missing limit allows everything."""
    for dimension in Dimension:
        rates = limit.per_second(dimension), other.per_second(dimension)
        if rates[0] != rates[1]:
            return (rates[0] or inf) < (rates[1] or inf)
    return False


class PerSecond(NamedTuple):
    """A rate in both dimensions."""

    messages: float
    bytes: float


class Refusal(NamedTuple):
    """Why the next entry may not go now, and when it may.

    If several budgets refuse, it names the one that releases last. ``release_at_ns`` may be the
    present instant: then the waiter only waits for its turn, and ``pop_ready`` is due at once.
    """

    level: Level
    dimension: Dimension
    release_at_ns: int
