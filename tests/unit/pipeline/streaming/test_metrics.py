"""The metrics of a stream, and its line for each batch."""

from __future__ import annotations

import io
import math
import socket
import urllib.request
from pathlib import Path

import pytest
from prometheus_client import generate_latest

from headgate.base.errors import InputError
from headgate.pipeline.options import SourceOptions, StreamOptions
from headgate.pipeline.progress import Progress
from headgate.pipeline.streaming.metrics import (
    BatchFigures,
    StreamMetrics,
    TableFigures,
    served_metrics,
    table_figures,
)
from headgate.pipeline.tables.columns import MINUTE_NS
from tests.unit.pipeline.play import T0, S
from tests.unit.pipeline.report.folder import backtest_row, quota_row, write

GUIDE = Path(__file__).parents[4] / "docs/guide/pipeline.md"
BATCH = BatchFigures(7, 1_200, 40.0, 600.0, 2.0)
TABLES = {
    "bronze_samples": TableFigures(9_000, T0),
    "bronze_quarantine": TableFigures(0, None),
}


def metrics(now_ns: int = T0 + 3 * S) -> StreamMetrics:
    return StreamMetrics(lambda: now_ns)


def samples(found: StreamMetrics) -> dict[str, float]:
    lines = generate_latest(found.registry).decode().splitlines()
    pairs = [line.rsplit(" ", 1) for line in lines if not line.startswith("#")]
    return {name.removeprefix("headgate_pipeline_"): float(value) for name, value in pairs}


def test_before_the_first_batch_the_lag_is_unknown() -> None:
    found = samples(metrics())
    assert math.isnan(found["lag_seconds"])
    assert found["batches_total"] == found["batch_failures_total"] == 0


def test_a_batch_is_counted() -> None:
    said = metrics()
    said.set_tables(TABLES | {"bronze_quarantine": TableFigures(2, None)})
    said.add_batch(BATCH)
    said.add_batch(BATCH)
    found = samples(said)
    assert found["batches_total"] == 2
    assert found["input_messages_total"] == 2_400
    assert found["input_messages_per_second"] == 40
    assert found["processed_messages_per_second"] == 600
    assert found["batch_duration_seconds_sum"] == 4
    assert found['batch_duration_seconds_bucket{le="2.5"}'] == 2
    assert found["lag_seconds"] == 3
    assert found["quarantined_messages"] == 2
    assert found['table_rows{table="bronze_samples"}'] == 9_000
    assert found['table_newest_timestamp_seconds{table="bronze_samples"}'] == T0 / S
    assert 'table_newest_timestamp_seconds{table="bronze_quarantine"}' not in found


def test_an_idle_stream_has_zero_rates_and_a_growing_lag() -> None:
    now = [T0]
    said = StreamMetrics(lambda: now[0])
    said.set_tables(TABLES)
    said.add_batch(BATCH)
    said.add_idle()
    said.add_failure()
    now[0] += 90 * S
    found = samples(said)
    assert found["input_messages_per_second"] == found["processed_messages_per_second"] == 0
    assert found["lag_seconds"] == 90
    assert found["batch_failures_total"] == 1


def test_a_batch_is_a_line_with_the_same_figures() -> None:
    said = metrics()
    assert said.batch_text(BATCH) == (
        "batch 7: 1,200 messages in 2.0 s (600.0/s, 40.0/s arriving), 0 rows"
    )
    said.set_tables(TABLES | {"bronze_quarantine": TableFigures(2, None)})
    assert said.batch_text(BATCH).endswith("9,000 rows, 3.0 s behind, 2 in quarantine")


def test_table_figures_come_from_the_logs(tmp_path: Path) -> None:
    write(tmp_path, "quota_usage", [quota_row(place) for place in range(3)])
    write(tmp_path, "policy_backtest", [backtest_row(1)], ("run_id",))
    found = table_figures(str(tmp_path))
    assert found["quota_usage"] == TableFigures(3, T0 + 3 * MINUTE_NS)
    assert found["policy_backtest"].rows == 1


def test_metrics_are_served_while_the_stream_runs() -> None:
    said, err = metrics(), io.StringIO()
    options = StreamOptions(SourceOptions("t"), 1.0, 0)
    with served_metrics(said, options, Progress(err)) as url:
        assert url is not None
        assert err.getvalue() == f"Metrics at {url}\n"
        assert url.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(url, timeout=10) as answer:
            assert b"headgate_pipeline_batches_total 0.0" in answer.read()
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(url, timeout=10)


def test_without_a_port_nothing_is_served() -> None:
    err = io.StringIO()
    with served_metrics(metrics(), StreamOptions(SourceOptions("t")), Progress(err)) as url:
        assert url is None
    assert err.getvalue() == ""


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = StreamOptions(SourceOptions("t"), 1.0, port)
        with (
            pytest.raises(InputError, match=f"served at 127.0.0.1:{port}: Address already in use"),
            served_metrics(metrics(), options, Progress(io.StringIO())),
        ):
            pass


def test_every_metric_is_documented() -> None:
    guide = GUIDE.read_text(encoding="utf-8")
    said = metrics()
    said.set_tables(TABLES)
    missing = [f.name for f in said.registry.collect() if f"`{f.name}" not in guide]
    assert not missing
