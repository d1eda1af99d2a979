"""The Prometheus metrics of a stream. No Spark here.

Figures of a batch come from Spark's progress report, figures of the tables from their logs. They
have their own registry, apart from other metrics of the process.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from headgate.base.errors import InputError
from headgate.base.units import NS_PER_S
from headgate.pipeline.options import StreamOptions
from headgate.pipeline.output.attribution import messages_text
from headgate.pipeline.progress import Progress
from headgate.pipeline.store.log_changes import followed
from headgate.pipeline.store.scan import TableScan, existing_tables
from headgate.pipeline.tables.bronze import BRONZE_QUARANTINE, BRONZE_SAMPLES
from headgate.pipeline.tables.columns import MINUTE_NS

_BUCKETS_S: Final = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


@dataclass(frozen=True, slots=True)
class BatchFigures:
    """One batch, as Spark reports it."""

    batch_id: int
    messages: int
    input_messages_per_s: float
    """Messages since the batch before, divided by the time between the two."""
    processed_messages_per_s: float
    """Messages of the batch, divided by the time that it took."""
    duration_s: float


@dataclass(frozen=True, slots=True)
class TableFigures:
    """How many rows a table has, and the time of its newest row."""

    rows: int
    newest_ns: int | None
    """End of what its newest row covers, ns since the epoch; None if the log lacks it."""


class StreamMetrics:
    """The metrics of one stream."""

    def __init__(self, wall_ns: Callable[[], int]) -> None:
        """``wall_ns``: the clock by which the lag is measured."""
        self.registry = registry = CollectorRegistry()
        self._wall_ns = wall_ns
        self._tables: Mapping[str, TableFigures] = {}
        prefix = "headgate_pipeline_"
        self._input = Gauge(
            f"{prefix}input_messages_per_second",
            "Telemetry messages of the last batch, divided by the time since the previous batch.",
            registry=registry,
        )
        self._processed = Gauge(
            f"{prefix}processed_messages_per_second",
            "Telemetry messages of the last batch, divided by its duration.",
            registry=registry,
        )
        self._messages = Counter(
            f"{prefix}input_messages_total", "Telemetry messages read.", registry=registry
        )
        self._batches = Counter(
            f"{prefix}batches_total", "Finished batches with telemetry.", registry=registry
        )
        self._failures = Counter(
            f"{prefix}batch_failures_total",
            "Batches that failed; the stream ends with the first.",
            registry=registry,
        )
        self._duration = Histogram(
            f"{prefix}batch_duration_seconds",
            "Time of a batch, from the request of the topics' ends to the last table.",
            buckets=_BUCKETS_S,
            registry=registry,
        )
        Gauge(
            f"{prefix}lag_seconds",
            "How long ago the newest telemetry in the tables was measured.",
            registry=registry,
        ).set_function(self.lag_s)
        self._quarantined = Gauge(
            f"{prefix}quarantined_messages",
            "Messages in bronze_quarantine: no telemetry that this version reads.",
            registry=registry,
        )
        self._rows = Gauge(f"{prefix}table_rows", "Rows of a table.", ["table"], registry=registry)
        self._newest = Gauge(
            f"{prefix}table_newest_timestamp_seconds",
            "End of what a table's newest row covers, since the epoch.",
            ["table"],
            registry=registry,
        )

    def lag_s(self) -> float:
        """Seconds from the end of the newest telemetry window to now; NaN without any."""
        newest = self._tables.get(BRONZE_SAMPLES.name, TableFigures(0, None)).newest_ns
        return float("nan") if newest is None else (self._wall_ns() - newest) / NS_PER_S

    def set_tables(self, tables: Mapping[str, TableFigures]) -> None:
        """Update the figures of these tables; those of others stay."""
        self._tables = {**self._tables, **tables}
        for name, figures in tables.items():
            self._rows.labels(name).set(figures.rows)
            if figures.newest_ns is not None:
                self._newest.labels(name).set(figures.newest_ns / NS_PER_S)
        quarantine = self._tables.get(BRONZE_QUARANTINE.name)
        self._quarantined.set(0 if quarantine is None else quarantine.rows)

    def add_batch(self, batch: BatchFigures) -> None:
        """Count a finished batch."""
        self._input.set(batch.input_messages_per_s)
        self._processed.set(batch.processed_messages_per_s)
        self._messages.inc(batch.messages)
        self._batches.inc()
        self._duration.observe(batch.duration_s)

    def add_idle(self) -> None:
        """Set both rates to 0: no message arrived for a while."""
        self._input.set(0)
        self._processed.set(0)

    def add_failure(self) -> None:
        """Count a failed batch."""
        self._failures.inc()

    def batch_text(self, batch: BatchFigures) -> str:
        """The batch, and the tables after it, in one line."""
        samples = self._tables.get(BRONZE_SAMPLES.name, TableFigures(0, None))
        quarantine = self._tables.get(BRONZE_QUARANTINE.name, TableFigures(0, None))
        parts = [
            f"batch {batch.batch_id}: {messages_text(batch.messages)} in {batch.duration_s:.1f} s "
            f"({batch.processed_messages_per_s:.1f}/s, "
            f"{batch.input_messages_per_s:.1f}/s arriving)",
            f"{samples.rows:,} rows",
        ]
        if samples.newest_ns is not None:
            parts.append(f"{self.lag_s():.1f} s behind")
        if quarantine.rows:
            parts.append(f"{quarantine.rows:,} in quarantine")
        return ", ".join(parts)


def table_figures(root: str, names: Collection[str] | None = None) -> dict[str, TableFigures]:
    """Figures of every table of the folder, or of these, from the tables' logs alone."""
    found = {}
    for name in existing_tables(root):
        if names is None or name in names:
            found[name] = _figures(root, name)
    return found


def _figures(root: str, name: str) -> TableFigures:
    files = followed(root, name).files()
    minutes_ns = [file.minutes_ns[1] for file in files if file.minutes_ns is not None]
    if files and len(minutes_ns) == len(files):
        return TableFigures(sum(file.rows for file in files), max(minutes_ns) + MINUTE_NS)
    ends_ns = [file.window_ends_ns[1] for file in files if file.window_ends_ns is not None]
    if files and len(ends_ns) == len(files):
        return TableFigures(sum(file.rows for file in files), max(ends_ns))
    scan = TableScan(root, name)
    span = scan.span()
    return TableFigures(scan.row_count, None if span is None else span.until_ns)


@contextmanager
def served_metrics(
    metrics: StreamMetrics, options: StreamOptions, progress: Progress
) -> Iterator[str | None]:
    """Serve ``/metrics`` while the stream runs, if the options name a port; yields its URL.

    Raises:
        InputError: the server cannot listen at the address.
    """
    if options.metrics_port is None:
        yield None
        return
    host = options.metrics_host
    try:
        server, thread = start_http_server(options.metrics_port, host, metrics.registry)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"metrics cannot be served at {host}:{options.metrics_port}: {why} (--metrics-port, "
            "--metrics-host)"
        ) from error
    url = f"http://{host}:{server.server_port}/metrics"
    progress.say(f"Metrics at {url}")
    try:
        yield url
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
