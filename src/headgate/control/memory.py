"""How much memory the broker holds, against what it may use (law 5.3).

CPython seldom gives memory back: after a spike the process stays as large as it was, and what was
freed waits in the allocator for the next messages. So what the allocator has free does not count as
held. To ask for it walks all of its free pieces under the lock that every thread allocates with:
10 us in a heap of few pieces, 3 ms in one of a hundred thousand, 10 ms in one of half a million.
It is therefore asked only while the process alone is above the low watermark, and the seldomer the
longer it takes; the last answer counts meanwhile. On a thread of its own it would delay the loop as
long, because that waits for the lock within its turn. Nothing is given back to the system: that
holds the same lock for a tenth of a second a gigabyte.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from headgate.base.units import NS_PER_S

ASK_REST = 1_000
"""The allocator is left alone for this many times as long as it last took to ask it."""

ASK_REST_NS_MAX = 5 * NS_PER_S
"""But no longer, so that the end of a spike is seen within the law's 10 s."""


class MemorySource(Protocol):
    """What the controller of adaptive publish throttling asks once a cycle."""

    @property
    def limit_bytes(self) -> int:
        """What the broker may use; above 0."""

    def used_bytes(self) -> int:
        """What it holds now; 0 where that is not known."""


class SystemMemory(Protocol):
    """The process as the system and its allocator see it."""

    def resident_bytes(self) -> int:
        """Memory of the machine that the process occupies; 0 where the system does not tell."""

    def free_bytes(self) -> int:
        """What the allocator keeps for the next allocations; 0 where it does not tell.

        May take milliseconds.
        """


class ProcessMemory:
    """What the process occupies, less what could be used again at once."""

    def __init__(
        self,
        limit_bytes: int,
        cache_bytes: Callable[[], int],
        *,
        system: SystemMemory,
        low_share: Callable[[], float],
        now_ns: Callable[[], int],
    ) -> None:
        """``cache_bytes`` are what caches could give up at once, ``low_share`` is the low watermark
        as a share of the limit: up to there nothing depends on what the allocator has free.
        ``now_ns`` is monotone.
        """
        self.limit_bytes = limit_bytes
        self._cache_bytes = cache_bytes
        self._system = system
        self._low_share = low_share
        self._now_ns = now_ns
        self._free_bytes = 0
        self._ask_again_ns = now_ns()

    def used_bytes(self) -> int:
        """What the process holds without the entry cache, which gives way to everything else."""
        held_bytes = max(0, self._system.resident_bytes() - self._cache_bytes())
        if held_bytes <= self._low_share() * self.limit_bytes:
            # By the next time that it matters, what was free may long be in use.
            self._free_bytes = 0
            return held_bytes
        begun_ns = self._now_ns()
        if begun_ns >= self._ask_again_ns:
            self._free_bytes = self._system.free_bytes()
            now_ns = self._now_ns()
            self._ask_again_ns = now_ns + min(ASK_REST * (now_ns - begun_ns), ASK_REST_NS_MAX)
        return max(0, held_bytes - self._free_bytes)
