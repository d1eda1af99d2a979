"""Memory of this process, as system and allocator report it."""

from __future__ import annotations

import gc
import logging
import mmap
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.app.system_memory import MemoryOfObjects, ProcSelfMemory, throttling_memory
from headgate.base.units import MIB
from headgate.policy.settings import Settings
from headgate.testing import ManualClock

MISSING = "/no/such/statm"
SPIKE_BYTES = 64 * MIB


class CountingMemory(ProcSelfMemory):
    """Counts how often the allocator is asked."""

    asked_count = 0

    def free_bytes(self) -> int:
        self.asked_count += 1
        return super().free_bytes()


@pytest.fixture
def system() -> Iterator[ProcSelfMemory]:
    memory = ProcSelfMemory()
    yield memory
    memory.close()


def test_pages_in_use_count(system: ProcSelfMemory) -> None:
    if not Path("/proc/self/statm").exists():
        assert not system.is_readable
        assert system.resident_bytes() == 0
        return
    # What earlier tests left is freed now, and not while this one counts.
    gc.collect()
    before_bytes = system.resident_bytes()
    with mmap.mmap(-1, SPIKE_BYTES) as held:  # new pages, and none that the process has freed
        held.write(b"x" * SPIKE_BYTES)
        # The system may take other pages of a large process back meanwhile.
        assert system.resident_bytes() - before_bytes > SPIKE_BYTES / 2
    system.close()
    assert system.resident_bytes() == 0


def test_the_resident_pages_are_the_second_number(tmp_path: Path) -> None:
    statm = tmp_path / "statm"
    statm.write_text("1000 300 20 4 0 70 0\n")
    memory = ProcSelfMemory(str(statm))
    pages_bytes = memory.resident_bytes()
    statm.write_text("1000 100 20 4 0 70 0\n")
    assert pages_bytes == 3 * memory.resident_bytes() > 0
    memory.close()


def test_what_was_freed_between_others_is_free(system: ProcSelfMemory) -> None:
    bodies = [bytes(10_000) for _ in range(2_000)]
    before_bytes = system.free_bytes()
    kept = bodies[::10]
    bodies.clear()
    freed_bytes = system.free_bytes() - before_bytes
    allocator_tells = system.free_bytes() > 0
    assert len(kept) == 200
    assert freed_bytes > 10 * MIB or not allocator_tells


def test_another_allocator_has_nothing_free() -> None:
    memory = ProcSelfMemory(library=object())
    assert memory.free_bytes() == 0
    memory.close()


def test_without_a_readable_system_the_signal_is_absent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = Settings(headgateMemoryLimitMB=100)
    with caplog.at_level(logging.WARNING):
        memory = throttling_memory(settings, ProcSelfMemory(MISSING), lambda: 1, ManualClock())
    assert memory.limit_bytes == 100 * MIB
    assert memory.used_bytes() == 0
    assert [record.message for record in caplog.records] == [
        "/proc/self/statm cannot be read: adaptive publish throttling considers backlogs only, not "
        "memory"
    ]


def test_the_low_watermark_is_the_setting_of_the_moment() -> None:
    system = CountingMemory()
    settings = Settings()
    memory = throttling_memory(settings, system, lambda: 0, ManualClock())
    memory.used_bytes()
    assert system.asked_count == 0
    settings.adaptivePublisherThrottlingMemoryLowWatermarkPct = 1e-9
    memory.used_bytes()
    assert system.asked_count == (1 if system.is_readable else 0)
    system.close()


def test_memory_of_objects_counts_what_lives_and_not_what_is_free(system: ProcSelfMemory) -> None:
    memory = MemoryOfObjects(system, lambda: 10 * MIB)
    gc.collect()
    before_bytes = memory.used_bytes()
    objects = [object() for _ in range(SPIKE_BYTES // 16)]
    grown_bytes = memory.used_bytes() - before_bytes
    assert grown_bytes > SPIKE_BYTES
    del objects
    assert memory.used_bytes() - before_bytes < grown_bytes / 4
    if system.is_readable:
        assert memory.used_bytes_max() == pytest.approx(
            system.resident_bytes() - 10 * MIB, abs=SPIKE_BYTES
        )
