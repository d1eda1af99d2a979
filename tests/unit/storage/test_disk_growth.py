"""Samples of the disk: what is growth, and what only looks like it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headgate.base.units import NS_PER_S
from headgate.flow.disk_forecast import LONG_NS, Filling
from headgate.fs import Space
from headgate.ledger.statistics import SpaceUse
from headgate.storage.disk_growth import DiskGrowth

SEGMENT = 1_000
SIZE = 100_000


class FakeLog:
    """A log with a prepared segment and an old file."""

    def __init__(self) -> None:
        self.segment_bytes = SEGMENT
        self.retained_bytes = 0
        self.dead_bytes = 0
        self.unused_bytes = 2 * SEGMENT
        self.files_hold = SimpleNamespace(is_held=False)

    def space_use(self) -> SpaceUse:
        return SpaceUse(
            live_bytes=self.retained_bytes, pinned_bytes=0, dead_bytes=self.dead_bytes,
            index_bytes=0, open_bytes=self.unused_bytes, checkpoint_bytes=0, segments=1,
            segments_dead=0, unused_bytes=self.unused_bytes,
        )  # fmt: skip


class Disk:
    """A disk with a log, the telemetry log, the reserve and other files."""

    def __init__(self) -> None:
        self.log, self.telemetry = FakeLog(), FakeLog()
        logs: Any = (self.log, self.telemetry)
        self.growth = DiskGrowth(logs[0], logs[1:])
        self.size_bytes, self.other_bytes, self.reserve_bytes = SIZE, 5_000, 0
        self.now_s = 0

    def read(self, seconds: int = 10) -> None:
        self.now_s += seconds
        used = self.other_bytes + self.reserve_bytes
        used += sum(log.space_use().file_bytes for log in (self.log, self.telemetry))
        space = Space(self.size_bytes - used, self.size_bytes)
        self.growth.add(space, self.reserve_bytes, self.now_s * NS_PER_S)

    @property
    def now_ns(self) -> int:
        return self.now_s * NS_PER_S


@pytest.fixture
def disk() -> Disk:
    found = Disk()
    for _ in range(3):
        found.read()
    return found


def test_the_parts_and_the_room(disk: Disk) -> None:
    (sample,) = disk.growth.samples
    disk.log.retained_bytes, disk.log.dead_bytes = 700, 300
    disk.reserve_bytes = 50
    disk.read()
    later = disk.growth.samples[-1]
    assert later.retained_bytes - sample.retained_bytes == 700
    assert later.log_bytes - sample.log_bytes == 1_000
    assert later.other_bytes == sample.other_bytes == 5_000
    # The main log's unused files are room, all but two segments; the telemetry log's are not.
    assert later.room_bytes == SIZE - 1_000 - 50 - 5_000 - 2 * SEGMENT - 2 * SEGMENT


def test_files_that_are_prepared_or_kept_are_no_growth(disk: Disk) -> None:
    for segments in (3, 1, 2, 4):
        disk.log.unused_bytes = segments * SEGMENT
        disk.read()
    assert len({sample[1:] for sample in disk.growth.samples}) == 1


def test_a_single_reading_between_two_states_is_no_growth(disk: Disk) -> None:
    disk.read()
    disk.other_bytes += SEGMENT  # the file is there, and the log does not know it yet
    disk.read()
    disk.other_bytes -= SEGMENT
    disk.read()
    disk.read()
    assert {sample.other_bytes for sample in disk.growth.samples} == {5_000}


def test_other_files_are_growth(disk: Disk) -> None:
    for _ in range(20):
        disk.other_bytes += 10
        disk.read()
    growth = disk.growth.forecast(disk.now_ns).growth
    assert growth is not None
    assert growth.other_per_s == pytest.approx(1.0, rel=0.1)


def test_another_size_is_room_and_no_growth(disk: Disk) -> None:
    for step in range(30):
        disk.log.retained_bytes += 100
        if step == 20:
            disk.size_bytes += 50_000
            disk.other_bytes += 2_500  # what a file system takes for itself
        disk.read()
        if step == 19:
            before_s = disk.growth.forecast(disk.now_ns).full_in_s
    forecast = disk.growth.forecast(disk.now_ns)
    assert forecast.growth is not None
    assert forecast.growth.total_per_s == pytest.approx(10)
    assert before_s is not None
    assert forecast.full_in_s == pytest.approx(before_s - 100 + 4_750, rel=0.01)


def test_samples_are_those_of_an_hour_ten_seconds_apart(disk: Disk) -> None:
    for _ in range(2_000):
        disk.read(5)
    samples = disk.growth.samples
    assert 360 <= len(samples) <= 362
    assert samples[-1].at_ns - samples[1].at_ns <= LONG_NS
    assert samples[-1].at_ns - samples[0].at_ns >= LONG_NS


def test_an_old_forecast_is_not_shown(disk: Disk) -> None:
    for _ in range(20):
        disk.log.retained_bytes += 100
        disk.read()
    assert disk.growth.is_soon(disk.now_ns)
    assert disk.growth.forecast(disk.now_ns + 60 * NS_PER_S).filling is Filling.FILLING
    late_ns = disk.now_ns + 61 * NS_PER_S
    assert disk.growth.forecast(late_ns).filling is Filling.UNKNOWN
    assert not disk.growth.is_soon(late_ns)


def test_a_backup_of_any_log_is_seen(disk: Disk) -> None:
    assert not disk.growth.is_held_for_backup
    disk.telemetry.files_hold.is_held = True
    assert disk.growth.is_held_for_backup
