"""The histograms of stored entries have the bounds that the engine counts by."""

from __future__ import annotations

from headgate.engine.write_histograms import LATENCY_BOUNDS_NS, SIZE_BOUNDS_BYTES
from headgate.telemetry.prometheus.series.writes import LATENCY_BUCKETS, SIZE_BUCKETS, WRITE_SERIES


def test_buckets_have_the_bounds_that_their_names_say() -> None:
    milliseconds = [name.removeprefix("le_").replace("_", ".") for name in LATENCY_BUCKETS]
    assert [float(ms) * 1e6 for ms in milliseconds[:-1]] == list(LATENCY_BOUNDS_NS)
    units = {"": 1, "kb": 1_024, "mb": 1_048_576}
    sizes = [name.removeprefix("le_").partition("_") for name in SIZE_BUCKETS]
    assert [int(n) * units[unit] for n, _, unit in sizes[:-1]] == list(SIZE_BOUNDS_BYTES)


def test_each_bucket_says_its_range() -> None:
    meanings = {series.name: series.meaning for series in WRITE_SERIES}
    prefix = "Entries of the last whole minute, by size in bytes: "
    assert meanings["pulsar_entry_size_le_128"] == f"{prefix}up to 128."
    assert meanings["pulsar_entry_size_le_1_kb"] == f"{prefix}over 512, up to 1 KiB."
    assert meanings["pulsar_entry_size_le_overflow"] == f"{prefix}over 1 MiB."
