"""Histograms of the sizes and latencies of a topic's writes, in Pulsar's buckets.

A bucket counts values above the previous bound and up to its own. Each minute starts new
histograms, and the last whole minute is shown. A Pulsar broker does the same, and its dashboards
plot the counts unchanged. Counting costs one step for each commit of a topic, not for each entry.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from headgate.base.units import NS_PER_MS, NS_PER_S, NS_PER_US

PERIOD_NS = 60 * NS_PER_S
"""The time that one set of histograms covers."""

SIZE_BOUNDS_BYTES = (128, 512, 1_024, 2_048, 4_096, 16_384, 102_400, 1_048_576)
"""Largest entry of each bucket; one more bucket counts larger entries."""

LATENCY_BOUNDS_NS = (
    NS_PER_MS // 2,
    *(bound_ms * NS_PER_MS for bound_ms in (1, 5, 10, 20, 50, 100, 200, 1_000)),
)
"""Longest write of each bucket; one more bucket counts longer writes."""

_LATENCY_BUCKETS = len(LATENCY_BOUNDS_NS) + 1
_SIZE_BUCKETS = len(SIZE_BOUNDS_BYTES) + 1


class WriteHistograms:
    """The histograms of one period."""

    __slots__ = ("latency", "latency_ns", "size_bytes", "sizes", "storage", "storage_ns")

    def __init__(self) -> None:
        self.latency = [0] * _LATENCY_BUCKETS
        """Entries by the time from their arrival to their receipt."""
        self.latency_ns = 0
        """The sum of those times."""
        self.storage = [0] * _LATENCY_BUCKETS
        """Entries by the time that the log took for their commit."""
        self.storage_ns = 0
        self.sizes = [0] * _SIZE_BUCKETS
        """Entries by their size."""
        self.size_bytes = 0

    @property
    def entries(self) -> int:
        """Entries that were written."""
        return sum(self.sizes)

    @property
    def latency_us(self) -> int:
        """The sum of the times to the receipt in microseconds, as Pulsar gives it."""
        return self.latency_ns // NS_PER_US

    @property
    def storage_us(self) -> int:
        """The sum of the log's times in microseconds."""
        return self.storage_ns // NS_PER_US


NO_WRITES = WriteHistograms()
"""The histograms of topics without writes. Never changed."""


class RecentWrites:
    """The current and the previous period of one topic. Created with its first write."""

    __slots__ = ("_current", "_end_ns", "_last")

    def __init__(self, now_ns: int) -> None:
        self._end_ns = (now_ns // PERIOD_NS + 1) * PERIOD_NS
        self._current = WriteHistograms()
        self._last = NO_WRITES

    def current(self, now_ns: int) -> WriteHistograms:
        """The histograms for writes that end at ``now_ns``."""
        if now_ns >= self._end_ns:
            is_next = now_ns < self._end_ns + PERIOD_NS
            self._last = self._current if is_next else NO_WRITES
            self._current = WriteHistograms()
            self._end_ns = (now_ns // PERIOD_NS + 1) * PERIOD_NS
        return self._current

    def last(self, now_ns: int) -> WriteHistograms:
        """The last whole period before ``now_ns``."""
        self.current(now_ns)
        return self._last


def count_latency(counts: list[int], took_ns: int, entries: int) -> None:
    """Add ``entries`` that took ``took_ns`` each."""
    counts[bisect_left(LATENCY_BOUNDS_NS, took_ns)] += entries


def count_sizes(counts: list[int], sizes: list[int]) -> None:
    """Add entries of these ``sizes`` (at least one); sorts the list."""
    if len(sizes) == 1:
        counts[bisect_left(SIZE_BOUNDS_BYTES, sizes[0])] += 1
        return
    sizes.sort()
    bucket = bisect_left(SIZE_BOUNDS_BYTES, sizes[0])
    last = bisect_left(SIZE_BOUNDS_BYTES, sizes[-1], bucket)
    done = 0
    while bucket < last:
        stop = bisect_right(sizes, SIZE_BOUNDS_BYTES[bucket], done)
        counts[bucket] += stop - done
        done = stop
        bucket += 1
    counts[last] += len(sizes) - done
