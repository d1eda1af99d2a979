"""The time axis that all charts of a page share. Pure.

A range of any length has at most :data:`POINTS_MAX` steps of whole minutes. A step shows the sum,
the mean or the largest of the values within it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.pipeline.kernels.array_types import Doubles, Longs
from headgate.pipeline.tables.columns import MINUTE_NS
from headgate.pipeline.time_span import Span

POINTS_MAX: Final = 1_440
"""Most points of a line: more than a screen has pixels for."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Equal steps over a range."""

    start_ns: int
    """Start of the first step, at a whole minute."""
    step_ns: int
    count: int
    known: Span = field(default_factory=Span)
    """The part of the range with telemetry, which may begin and end within a step; an open end is
    that of the steps."""

    @classmethod
    def over(cls, since_ns: int, until_ns: int, points_max: int = POINTS_MAX) -> Grid:
        """The finest grid of whole minutes over ``[since_ns, until_ns)``, with at least one step.

        The first and the last step are known only within that range.
        """
        start_ns = since_ns // MINUTE_NS * MINUTE_NS
        minutes = max(1, -(-(until_ns - start_ns) // MINUTE_NS))
        step = -(-minutes // points_max)
        return cls(start_ns, step * MINUTE_NS, -(-minutes // step), Span(since_ns, until_ns))

    @property
    def end_ns(self) -> int:
        """End of the last step."""
        return self.start_ns + self.step_ns * self.count

    @property
    def known_from_ns(self) -> int:
        """Begin of the known part."""
        return self.start_ns if self.known.since_ns is None else self.known.since_ns

    @property
    def known_to_ns(self) -> int:
        """End of the known part: the last step may not be over."""
        return self.end_ns if self.known.until_ns is None else self.known.until_ns

    @property
    def known_s(self) -> float:
        """Seconds of the known part; more than 0."""
        return max(1, self.known_to_ns - self.known_from_ns) / NS_PER_S

    def within(self, span: Span) -> Grid:
        """The same steps with a known part within ``span``: for a subject that began later or ended
        earlier than others."""
        since_ns, until_ns = (
            other if own is None else own
            for own, other in (
                (span.since_ns, self.known_from_ns),
                (span.until_ns, self.known_to_ns),
            )
        )
        begin_ns = min(max(since_ns, self.known_from_ns), self.known_to_ns)
        end_ns = max(min(until_ns, self.known_to_ns), begin_ns)
        return replace(self, known=Span(begin_ns, end_ns))

    @property
    def edges_ns(self) -> Longs:
        """The begin of each step and the end of the last, cut to the known part."""
        edges = self.start_ns + self.step_ns * np.arange(self.count + 1, dtype=np.int64)
        return np.clip(edges, self.known_from_ns, self.known_to_ns)

    def step_indexes(self, times_ns: Longs) -> Longs:
        """The index of the step of each instant; the closest step for an instant outside."""
        return np.clip((times_ns - self.start_ns) // self.step_ns, 0, self.count - 1)

    def total(self, steps: Longs, values: Doubles) -> Doubles:
        """Sums by step; 0 for a step without values."""
        return np.asarray(np.bincount(steps, np.nan_to_num(values), self.count), np.float64)

    def mean(self, steps: Longs, values: Doubles, weights: Doubles) -> Doubles:
        """Weighted means by step; NaN for a step without values."""
        known = ~np.isnan(values)
        weight = self.total(steps, np.where(known, weights, 0.0))
        total = self.total(steps, np.where(known, values, 0.0) * weights)
        return np.divide(total, weight, out=np.full(self.count, np.nan), where=weight > 0)

    def largest(self, steps: Longs, values: Doubles) -> Doubles:
        """Largest values by step; NaN for a step without values."""
        found = np.full(self.count, -np.inf)
        np.maximum.at(found, steps, np.where(np.isnan(values), -np.inf, values))
        return np.where(np.isinf(found), np.nan, found)


def time_text(time_ns: float) -> str:
    """An instant in the charts' format: ``2026-11-21 10:00:00`` in UTC, with milliseconds unless it
    is a whole second."""
    second, rest_ns = divmod(int(time_ns), NS_PER_S)
    millisecond = f".{rest_ns // NS_PER_MS:03}" if rest_ns >= NS_PER_MS else ""
    return f"{datetime.fromtimestamp(second, UTC):%Y-%m-%d %H:%M:%S}{millisecond}"


def numbers(column: Any) -> Doubles:
    """An Arrow column of numbers as floats; null becomes NaN.

    Instants are exact to the microsecond only.
    """
    values = pc.cast(column, pa.float64(), safe=False)
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64)


def instants(column: Any) -> Longs:
    """Nanoseconds of an Arrow column of timestamps (in microseconds) or nanoseconds."""
    kind = str(column.type)
    values = column.cast("int64").to_numpy()
    return np.asarray(values, dtype=np.int64) * (1_000 if kind.startswith("timestamp") else 1)


ACCOUNT_COLUMNS: Final = ("from_ns", "to_ns")
"""Begin and end of a row's account."""


def account_span(rows: Any) -> Span:
    """From the begin of the first account to the end of the last; open without rows.

    ``rows`` has :data:`ACCOUNT_COLUMNS`.
    """
    return Span(pc.min(rows["from_ns"]).as_py(), pc.max(rows["to_ns"]).as_py())
