"""Memory of this process, where it has no Java."""

from __future__ import annotations

from bench.processes import check_memory, cpu_s, peak_mib, watched_memory
from bench.report import Table


def test_without_java_the_driver_is_this_process() -> None:
    peaks = peak_mib()
    assert 10 < peaks["driver"] < 10_000
    assert peaks["driver"] == peaks["python"]
    assert peaks["worker"] == peaks["executor"] == 0
    assert cpu_s() == 0


def test_the_largest_that_was_seen_is_reported() -> None:
    with watched_memory() as peaks:
        pass
    assert peaks.keys() == {"driver", "python", "worker", "executor"}
    table = Table("Memory")
    check_memory(table, peaks | {"worker": 501.0})
    assert [row.verdict for row in table.rows] == ["pass", "MISS"]
