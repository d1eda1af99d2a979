"""Spark's progress reports become metrics and lines."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from headgate.pipeline.progress import Progress
from headgate.pipeline.streaming.listener import StreamListener, batch_figures, listening
from headgate.pipeline.streaming.metrics import BatchFigures, StreamMetrics


def report(**more: Any) -> SimpleNamespace:
    facts: dict[str, Any] = {
        "batchId": 3,
        "numInputRows": 10,
        "inputRowsPerSecond": 2.0,
        "processedRowsPerSecond": 5.0,
        "durationMs": {"triggerExecution": 2_000, "addBatch": 1_500},
        "batchDuration": 2_000,
    }
    return SimpleNamespace(**facts | more)


class Stream:
    """Keeps its listeners, as a session's ``streams`` does."""

    def __init__(self) -> None:
        self.listeners: list[Any] = []
        self.streams = self

    def addListener(self, listener: Any) -> None:  # noqa: N802
        self.listeners.append(listener)

    def removeListener(self, listener: Any) -> None:  # noqa: N802
        self.listeners.remove(listener)


def counted(registry: CollectorRegistry, name: str) -> float | None:
    return registry.get_sample_value(f"headgate_pipeline_{name}")


def test_a_progress_report_as_figures() -> None:
    assert batch_figures(report()) == BatchFigures(3, 10, 2.0, 5.0, 2.0)
    odd = report(
        inputRowsPerSecond=float("inf"), processedRowsPerSecond=float("nan"), durationMs={}
    )
    assert batch_figures(odd) == BatchFigures(3, 10, 0.0, 0.0, 2.0)


def test_reports_are_counted_and_printed() -> None:
    metrics, err = StreamMetrics(lambda: 0), io.StringIO()
    listener = StreamListener(metrics, Progress(err))
    listener.onQueryProgress(SimpleNamespace(progress=report()))
    assert err.getvalue() == "batch 3: 10 messages in 2.0 s (5.0/s, 2.0/s arriving), 0 rows\n"
    assert counted(metrics.registry, "input_messages_per_second") == 2
    listener.onQueryProgress(SimpleNamespace(progress=report(numInputRows=0)))
    listener.onQueryIdle(SimpleNamespace())
    assert counted(metrics.registry, "input_messages_per_second") == 0
    assert counted(metrics.registry, "batches_total") == 1
    assert err.getvalue().count("\n") == 1


@pytest.mark.parametrize(("exception", "failures"), [(None, 0), ("it broke", 1)])
def test_a_failed_query_is_counted(exception: str | None, failures: int) -> None:
    metrics, spark = StreamMetrics(lambda: 0), Stream()
    with listening(spark, metrics, Progress(io.StringIO())):  # type: ignore[arg-type]
        (listener,) = spark.listeners
        listener.onQueryStarted(SimpleNamespace())
        assert not listener.ended.is_set()
        listener.onQueryTerminated(SimpleNamespace(exception=exception))
    assert counted(metrics.registry, "batch_failures_total") == failures
    assert spark.listeners == []


def test_the_listener_is_removed_when_the_job_fails() -> None:
    spark = Stream()
    with (
        pytest.raises(KeyError),
        listening(spark, StreamMetrics(lambda: 0), Progress(io.StringIO())),  # type: ignore[arg-type]
    ):
        raise KeyError
    assert spark.listeners == []
