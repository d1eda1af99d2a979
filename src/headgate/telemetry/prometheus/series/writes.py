"""The series of stored entries: histograms of their latency and size."""

from __future__ import annotations

from typing import Final

from headgate.telemetry.prometheus.series.definition import Series, topic_gauge

LATENCY_BUCKETS: Final = (
    "le_0_5",
    "le_1",
    "le_5",
    "le_10",
    "le_20",
    "le_50",
    "le_100",
    "le_200",
    "le_1000",
    "overflow",
)
"""Of :data:`headgate.engine.write_histograms.LATENCY_BOUNDS_NS`, as Pulsar names them (ms)."""
SIZE_BUCKETS: Final = (
    "le_128",
    "le_512",
    "le_1_kb",
    "le_2_kb",
    "le_4_kb",
    "le_16_kb",
    "le_100_kb",
    "le_1_mb",
    "le_overflow",
)
"""Of :data:`headgate.engine.write_histograms.SIZE_BOUNDS_BYTES`."""


def _buckets(name: str, unit: str, buckets: tuple[str, ...], what: str) -> tuple[Series, ...]:
    """One series for each bucket, their count, their sum; ``unit`` is that of the sum."""
    of = "Entries of the last whole minute"
    bounds = [
        bucket.removeprefix("le_").replace("_kb", " KiB").replace("_mb", " MiB").replace("_", ".")
        for bucket in buckets[:-1]
    ]
    ranges = [f"up to {bound}" for bound in bounds] + [f"over {bounds[-1]}"]
    for place, bound in enumerate(bounds[:-1], 1):
        ranges[place] = f"over {bound}, {ranges[place]}"
    return (
        *(
            topic_gauge(f"{name}_{bucket}", "entries", f"{of}, by {what}: {place}.")
            for bucket, place in zip(buckets, ranges, strict=True)
        ),
        topic_gauge(f"{name}_count", "entries", f"{of}."),
        topic_gauge(f"{name}_sum", unit, f"{of}: the sum of these."),
    )


WRITE_SERIES: Final = (
    *_buckets("storage_write_latency", "us", LATENCY_BUCKETS, "ms from arrival to receipt"),
    *_buckets(
        "storage_ledger_write_latency",
        "us",
        LATENCY_BUCKETS,
        "ms that the log took for their commit",
    ),
    *_buckets("entry_size", "bytes", SIZE_BUCKETS, "size in bytes"),
)
"""With ``exposeTopicLevelMetricsInPrometheus``; in the order of :func:`values.write_values`."""
