"""The process's memory, as Linux and glibc report it."""

from __future__ import annotations

import ctypes
import logging
import os
import sys
from collections.abc import Callable
from typing import Final

from headgate.app.machine import physical_memory_bytes, read_text
from headgate.base.clock import Clock
from headgate.base.memory_limit import memory_limit_bytes
from headgate.broker.process_room import CALM_SHARE
from headgate.control.memory import ProcessMemory
from headgate.policy.settings import Settings

logger = logging.getLogger("headgate.app")

STATM_PATH = "/proc/self/statm"

_STATM_BYTES_MAX = 256

SMALL_OBJECT_BYTES: Final = 80
"""What a block of Python's own allocator takes on average. It has blocks of up to 512 bytes, and
gets its memory from the system, not from glibc."""


class ProcSelfMemory:
    """Implements :class:`headgate.control.memory.SystemMemory`.

    Without ``/proc`` (macOS) the process occupies 0; with another allocator than glibc's 2.33 or
    newer (musl, macOS) nothing is free.
    """

    def __init__(self, statm_path: str = STATM_PATH, library: object = None) -> None:
        """``library`` has the allocator's functions; None for those of this process."""
        self._page_bytes = os.sysconf("SC_PAGE_SIZE")
        self._mallinfo = _mallinfo2(library or ctypes.CDLL(None))
        try:
            self._statm: int | None = os.open(statm_path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._statm = None

    @property
    def is_readable(self) -> bool:
        """Whether this system reports the memory of a process."""
        return self._statm is not None

    def resident_bytes(self) -> int:
        if self._statm is None:
            return 0
        return int(os.pread(self._statm, _STATM_BYTES_MAX, 0).split()[1]) * self._page_bytes

    def free_bytes(self) -> int:
        return 0 if self._mallinfo is None else int(self._mallinfo().fordblks)

    def allocated_bytes(self) -> int:
        """What the allocators have given out: that of Python's small objects, about, and glibc's.
        May take milliseconds."""
        found = None if self._mallinfo is None else self._mallinfo()
        large_bytes = 0 if found is None else int(found.uordblks) + int(found.hblkhd)
        return large_bytes + SMALL_OBJECT_BYTES * sys.getallocatedblocks()

    def close(self) -> None:
        """Close the file; from then on the process occupies 0."""
        if self._statm is not None:
            os.close(self._statm)
            self._statm = None


class MemoryOfObjects:
    """Implements :class:`headgate.app.garbage_collection.Memory`."""

    def __init__(self, system: ProcSelfMemory, bounded_bytes: Callable[[], int]) -> None:
        """``bounded_bytes`` are what caches take, what clients are charged with, and what tenants
        keep."""
        self._system = system
        self._bounded_bytes = bounded_bytes

    def used_bytes_max(self) -> int:
        return self._system.resident_bytes() - self._bounded_bytes()

    def used_bytes(self) -> int:
        return self._system.allocated_bytes() - self._bounded_bytes()


def throttling_memory(
    settings: Settings,
    system: ProcSelfMemory,
    cache_bytes: Callable[[], int],
    clock: Clock,
) -> ProcessMemory:
    """The memory signal of adaptive publish throttling; warns where there is none.

    ``cache_bytes`` are what caches could give up at once.
    """
    if not system.is_readable:
        logger.warning(
            "%s cannot be read: adaptive publish throttling considers backlogs only, not memory",
            STATM_PATH,
        )
    return ProcessMemory(
        _limit_bytes(settings),
        cache_bytes,
        system=system,
        low_share=lambda: settings.adaptivePublisherThrottlingMemoryLowWatermarkPct,
        now_ns=clock.monotonic_ns,
    )


def memory_with_caches(settings: Settings, system: ProcSelfMemory, clock: Clock) -> ProcessMemory:
    """The process's memory as the system sees it, for what is left to clients. Caches count: they
    have bounds, and keep what they have."""
    return ProcessMemory(
        _limit_bytes(settings),
        lambda: 0,
        system=system,
        low_share=lambda: CALM_SHARE,
        now_ns=clock.monotonic_ns,
    )


def _limit_bytes(settings: Settings) -> int:
    """The memory that the broker may use: by setting, control group or machine."""
    return memory_limit_bytes(settings.headgateMemoryLimitMB, physical_memory_bytes(), read_text)


class _Mallinfo2(ctypes.Structure):
    """``struct mallinfo2`` of glibc's ``malloc.h``."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd",
            "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
        )
    ]  # fmt: skip


def _mallinfo2(library: object) -> Callable[[], _Mallinfo2] | None:
    """glibc's function of that name; None in other libraries."""
    function = getattr(library, "mallinfo2", None)
    if function is not None:
        function.argtypes = ()
        function.restype = _Mallinfo2
    return function
