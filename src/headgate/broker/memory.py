"""How much memory the broker holds, against what it may use (law 5.3).

CPython seldom gives memory back: after a spike the process stays as large as it was, and what was
freed waits in the allocator for the next messages. So what the allocator has free does not count as
held. To ask for it walks all of its free pieces under the lock that every thread allocates with,
which is nothing (10 us) in a heap of few pieces and 10 ms in one of half a million. It is therefore
asked only while the process alone is above the low watermark, on a lane, and the seldomer the
longer it takes; the last answer counts meanwhile. Nothing is given back to the system: that holds
the same lock for a tenth of a second a gigabyte.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from headgate.base.units import NS_PER_S
from headgate.broker.lanes import Lane

ASK_EVERY_NS_MIN = NS_PER_S
"""The allocator is not asked again sooner."""

ASK_EVERY_NS_MAX = 5 * NS_PER_S
"""Nor later, so that the end of a spike is seen within the law's 10 s."""

ASK_REST = 1_000
"""It rests for this many times as long as the last walk took, between those two bounds."""


class MemorySource(Protocol):
    """What the controller of adaptive publish throttling asks once a cycle."""

    @property
    def limit_bytes(self) -> int:
        """What the broker may use; above 0."""

    def used_bytes(self) -> int:
        """What it holds now, 0 where that is not known. Never blocks."""


class SystemMemory(Protocol):
    """The process as the system and its allocator see it."""

    def resident_bytes(self) -> int:
        """Memory of the machine that the process occupies; 0 where the system does not tell."""

    def free_bytes(self) -> int:
        """What the allocator keeps for the next allocations; 0 where it does not tell.

        May take milliseconds; may be called on any thread.
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
        lane: Lane,
        now_ns: Callable[[], int],
    ) -> None:
        """``cache_bytes`` are what caches could give up at once, ``low_share`` is the low watermark
        as a share of the limit; up to there the allocator is not asked, because nobody waits for
        the answer. ``now_ns`` is monotone and is also called on the lane.
        """
        self.limit_bytes = limit_bytes
        self._cache_bytes = cache_bytes
        self._system = system
        self._low_share = low_share
        self._lane = lane
        self._now_ns = now_ns
        self._free_bytes = 0
        self._is_asking = False
        self._ask_again_ns = now_ns()

    def used_bytes(self) -> int:
        """See :meth:`MemorySource.used_bytes`."""
        held = max(0, self._system.resident_bytes() - self._cache_bytes())
        if held <= self._low_share() * self.limit_bytes:
            # By the next time that it matters, what was free may long be in use.
            self._free_bytes = 0
            return held
        if not self._is_asking and self._now_ns() >= self._ask_again_ns:
            self._is_asking = True
            self._lane.submit(self._ask, self._answered)
        return max(0, held - self._free_bytes)

    def _ask(self) -> tuple[int, int]:
        """On the lane: bytes, and nanoseconds that it took to count them."""
        begun_ns = self._now_ns()
        free_bytes = self._system.free_bytes()
        return free_bytes, self._now_ns() - begun_ns

    def _answered(self, answer: tuple[int, int] | None, error: BaseException | None) -> None:
        self._is_asking = False
        self._free_bytes, took_ns = answer or (0, 0)
        rest_ns = min(max(ASK_REST * took_ns, ASK_EVERY_NS_MIN), ASK_EVERY_NS_MAX)
        self._ask_again_ns = self._now_ns() + rest_ns
        if error is not None:
            raise error
