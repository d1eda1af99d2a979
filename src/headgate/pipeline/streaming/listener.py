"""Spark's progress reports as metrics, and as one line for each batch."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from headgate.pipeline.progress import Progress
from headgate.pipeline.streaming.metrics import BatchFigures, StreamMetrics

_LAST_REPORT_S: Final = 5.0
"""How long to wait for the end of a query: Spark reports it in another thread."""


class StreamListener(StreamingQueryListener):
    """Listens to one query."""

    def __init__(self, metrics: StreamMetrics, progress: Progress) -> None:
        super().__init__()
        self._metrics = metrics
        self._progress = progress
        self.ended = threading.Event()
        """Set when a query has ended and Spark has reported everything about it."""

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802, ARG002
        self.ended.clear()

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        report = event.progress
        if report.numInputRows == 0:
            self._metrics.add_idle()
            return
        batch = batch_figures(report)
        self._metrics.add_batch(batch)
        self._progress.say(self._metrics.batch_text(batch))

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802, ARG002
        self._metrics.add_idle()

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        if event.exception is not None:
            self._metrics.add_failure()
        self.ended.set()


def batch_figures(report: Any) -> BatchFigures:
    """A batch from Spark's ``StreamingQueryProgress``; rates that Spark does not know are 0."""
    return BatchFigures(
        report.batchId,
        report.numInputRows,
        _rate(report.inputRowsPerSecond),
        _rate(report.processedRowsPerSecond),
        report.durationMs.get("triggerExecution", report.batchDuration) / 1_000,
    )


def _rate(value: float | None) -> float:
    return value if value is not None and 0 <= value < float("inf") else 0.0


@contextmanager
def listening(spark: SparkSession, metrics: StreamMetrics, progress: Progress) -> Iterator[None]:
    """Listen to the session's query until it has ended and has been reported to its end."""
    listener = StreamListener(metrics, progress)
    spark.streams.addListener(listener)
    try:
        yield
        listener.ended.wait(_LAST_REPORT_S)
    finally:
        spark.streams.removeListener(listener)
