"""The broker's memory use against its limit (law 5.3).

CPython rarely returns memory to the system: after a spike the process stays as large as it was, and
freed memory waits in the allocator for the next messages. So memory that is free in the allocator
does not count as used. To answer, the allocator walks all its free chunks under the lock that every
allocation takes: 10 us for few chunks, 3 ms for a hundred thousand, 10 ms for half a million.
The broker therefore asks only while the process is above the low watermark, and less often the
longer an answer takes; meanwhile it uses the last answer. A separate thread would delay the loop as
long, because the loop waits for the lock. The broker does not make the allocator return memory,
because that holds the same lock for a tenth of a second per gigabyte.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from headgate.base.units import NS_PER_S

ASK_PAUSE_FACTOR = 1_000
"""The pause until the allocator is asked again, in multiples of how long the last answer took."""

ASK_PAUSE_NS_MAX = 5 * NS_PER_S
"""The longest pause, so that the controller sees the end of a spike within the 10 s of law 5.3."""


class MemorySource(Protocol):
    """Where the controller of adaptive publish throttling reads memory use, once a cycle."""

    @property
    def limit_bytes(self) -> int:
        """Memory that the broker may use; above 0."""

    def used_bytes(self) -> int:
        """Memory that the broker uses now; 0 if unknown."""


class SystemMemory(Protocol):
    """The process's memory as the system and the allocator report it."""

    def resident_bytes(self) -> int:
        """Physical memory of the process; 0 if the system does not report it."""

    def free_bytes(self) -> int:
        """Free memory in the allocator; 0 if it does not report that. May take milliseconds."""


class ProcessMemory:
    """The process's physical memory without the part that is available for reuse."""

    def __init__(
        self,
        limit_bytes: int,
        cache_bytes: Callable[[], int],
        *,
        system: SystemMemory,
        low_share: Callable[[], float],
        now_ns: Callable[[], int],
    ) -> None:
        """``cache_bytes`` returns what caches could release at once and ``now_ns`` a monotonic
        time. ``low_share`` returns the low watermark as a share of the limit: below it, free memory
        in the allocator does not matter.
        """
        self.limit_bytes = limit_bytes
        self._cache_bytes = cache_bytes
        self._system = system
        self._low_share = low_share
        self._now_ns = now_ns
        self._free_bytes = 0
        self._ask_again_ns = now_ns()

    def used_bytes(self) -> int:
        """Memory in use without the entry cache, which shrinks for everything else."""
        held_bytes = max(0, self._system.resident_bytes() - self._cache_bytes())
        if held_bytes <= self._low_share() * self.limit_bytes:
            # When it matters again, what is free now may be in use.
            self._free_bytes = 0
            return held_bytes
        begun_ns = self._now_ns()
        if begun_ns >= self._ask_again_ns:
            self._free_bytes = self._system.free_bytes()
            now_ns = self._now_ns()
            self._ask_again_ns = now_ns + min(
                ASK_PAUSE_FACTOR * (now_ns - begun_ns), ASK_PAUSE_NS_MAX
            )
        return max(0, held_bytes - self._free_bytes)
