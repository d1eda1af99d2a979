"""The publish rate that relative limits follow (law 1.7, PIP-52).

The rate is the mean over a sliding second, sampled every :data:`SAMPLE_NS`. A rise counts at once,
so it is known in full after 1.1 s. A fall counts gradually: the rate falls by at most half in each
:data:`HALVING_NS`. So a pausing producer does not starve its consumers, and with bursts the fullest
of the recent seconds counts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from headgate.base.units import NS_PER_MS, NS_PER_S

SAMPLE_NS = 100 * NS_PER_MS
"""Time between two samples: a limit follows the rate within this time."""

HALVING_NS = 2 * NS_PER_S
"""The shortest time in which a followed rate halves."""

NOTHING_PER_S = 0.5
"""A followed rate below this counts as 0; otherwise halving would never end."""


class PublishRate:
    """The followed rates of growing counters (messages, bytes, entries), per second."""

    __slots__ = ("_marks", "_sampled_ns", "per_second")

    def __init__(
        self, counts: Sequence[int], now_ns: int, *, known: Sequence[float] | None = None
    ) -> None:
        """Start from ``counts``, the counters at ``now_ns``. ``known`` are rates that were measured
        by other means; without them the rates start at 0."""
        self._marks: deque[tuple[int, tuple[int, ...]]] = deque([(now_ns, tuple(counts))])
        self._sampled_ns = now_ns
        self.per_second = tuple(known) if known is not None else (0.0,) * len(counts)

    def resume(self, counts: Sequence[int], now_ns: int) -> None:
        """Publishing resumes now, after a pause since the last sample; ``counts`` are the counters
        before it."""
        self._marks.clear()
        self._marks.append((now_ns, tuple(counts)))

    def sample(self, counts: Sequence[int], now_ns: int) -> bool:
        """Follow what was published since the last sample.

        Returns False if the rates are 0 and stay so while nothing is published.
        """
        marks = self._marks
        marks.append((now_ns, tuple(counts)))
        while len(marks) > 1 and marks[1][0] <= now_ns - NS_PER_S:
            marks.popleft()
        since_ns, base = marks[0]
        elapsed_ns = max(now_ns - since_ns, NS_PER_S)
        kept = 0.5 ** ((now_ns - self._sampled_ns) / HALVING_NS)
        self._sampled_ns = now_ns
        rates = []
        for count, begin, followed in zip(counts, base, self.per_second, strict=True):
            rate = max((count - begin) * NS_PER_S / elapsed_ns, followed * kept)
            rates.append(rate if rate >= NOTHING_PER_S else 0.0)
        self.per_second = tuple(rates)
        return any(rates)
