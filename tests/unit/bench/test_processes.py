"""Memory of this process, where it has no Java."""

from __future__ import annotations

from bench.processes import cpu_s, peak_mib


def test_without_java_the_driver_is_this_process() -> None:
    peaks = peak_mib()
    assert 10 < peaks["driver"] < 10_000
    assert peaks["worker"] == 0
    assert cpu_s() == 0
