"""Output of the jobs, which the Spark lane runs."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.errors import StreamingQueryException

from headgate.base.errors import InputError
from headgate.pipeline import jobs
from headgate.pipeline.jobs import create_tables, run_attribute
from headgate.pipeline.options import AttributeOptions, SourceOptions, StreamOptions
from headgate.pipeline.progress import Progress
from headgate.pipeline.store.delta_log import commit_append
from headgate.pipeline.store.parquet_files import write_tables
from headgate.pipeline.streaming import refresh_pace
from headgate.pipeline.streaming.late_workers import LATE_TEXT
from headgate.pipeline.tables.arrow_types import table_arrow_schema
from headgate.pipeline.tables.demonstrated_rates import DEMONSTRATED_RATES
from headgate.pipeline.tables.intervals import INTERVALS


def test_attribution_without_reading_creates_nothing(tmp_path: Path) -> None:
    (tmp_path / "other" / "_delta_log").mkdir(parents=True)
    asked = AttributeOptions(SourceOptions(str(tmp_path)), reads=False)
    with pytest.raises(InputError, match="has no table intervals"):
        run_attribute(asked, io.StringIO(), io.StringIO())
    absent = AttributeOptions(SourceOptions(str(tmp_path / "none")), reads=False)
    with pytest.raises(InputError, match=r"no folder .*none yet"):
        run_attribute(absent, io.StringIO(), io.StringIO())
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_run_prints_which_days_it_did_not_recompute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = date(2025, 11, 23)

    @contextmanager
    def opened(*_: object) -> Iterator[object]:
        yield None

    monkeypatch.setattr(jobs, "ingest_session", opened)
    monkeypatch.setattr(jobs, "_brokers_of", lambda *_: None)
    monkeypatch.setattr(jobs, "_bring_up_to_date", lambda *_: 0)
    monkeypatch.setattr(jobs, "_check_tables", lambda *_: 0)
    monkeypatch.setattr(jobs, "recompute", lambda *asked: [f"attribution from {asked[2]} stays."])
    err = io.StringIO()
    jobs.run_once(SourceOptions(str(tmp_path)), err, recompute_days=(day, day))
    assert err.getvalue().endswith("attribution from 2025-11-23 stays.\n")


@contextmanager
def no_session(*_: object, **__: object) -> Iterator[None]:
    """Stands for Spark and its listener."""
    yield


class LateQuery:
    """A query whose Python process is late at the first start."""

    def __init__(self) -> None:
        self.starts = 0

    def start(self, *_: object, **__: object) -> LateQuery:
        """Stands for ``start_query``."""
        self.starts += 1
        return self

    def awaitTermination(self) -> None:  # noqa: N802 - as Spark names it
        """Fail as Spark does, or end."""
        if self.starts == 1:
            raise StreamingQueryException("[STREAM_FAILED] Python worker failed to connect back.")


def test_a_run_starts_again_where_the_python_process_was_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query, err = LateQuery(), io.StringIO()
    monkeypatch.setattr(jobs, "ingest_session", no_session)
    monkeypatch.setattr(jobs, "DERIVED", ())
    monkeypatch.setattr(jobs, "start_query", query.start)
    jobs.run_once(SourceOptions(str(tmp_path)), err, messages=lambda _: cast(Any, None))
    assert query.starts == 2
    assert f"{LATE_TEXT}\n" in err.getvalue()


def test_a_stream_starts_again_where_the_python_process_was_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query, err = LateQuery(), io.StringIO()
    for name in ("ingest_session", "listening"):
        monkeypatch.setattr(jobs, name, no_session)
    monkeypatch.setattr(refresh_pace, "refresh_all", lambda *_: None)
    monkeypatch.setattr(jobs, "start_query", query.start)
    monkeypatch.setattr(jobs, "run_until", lambda found, *_, **__: found.awaitTermination())
    options = StreamOptions(SourceOptions(str(tmp_path)), trigger_s=1.0)
    jobs.run_stream(options, err, messages=lambda _: cast(Any, None))
    assert query.starts == 2
    assert f"{LATE_TEXT}\n" in err.getvalue()
    assert err.getvalue().endswith("Stopped; the next run continues from here.\n")


def test_tables_of_an_earlier_release_get_their_columns_with_one_line(tmp_path: Path) -> None:
    older = pa.schema([f for f in table_arrow_schema(INTERVALS) if f.name != "parked_disk_full_ns"])
    DeltaTable.create(
        tmp_path / INTERVALS.name,
        older,
        partition_by=list(INTERVALS.partition_by),
        name=INTERVALS.name,
        configuration={"headgate.layout": "1"},
        raise_if_key_not_exists=False,
    )
    said = io.StringIO()
    for _ in range(2):
        create_tables(str(tmp_path), Progress(said).say)
    assert said.getvalue() == (
        f"{tmp_path} was written by an earlier release: intervals gets parked_disk_full_ns. "
        "Existing rows have null there; headgate pipeline upgrade recomputes them.\n"
    )


def test_a_table_that_an_earlier_release_did_not_have_is_one_line(tmp_path: Path) -> None:
    """Not in a new folder, and not where a first job was killed while it created tables."""
    said = io.StringIO()
    for killed in (False, True):
        create_tables(str(tmp_path), Progress(said).say)
        if not killed:
            shutil.rmtree(tmp_path / DEMONSTRATED_RATES.name)
    assert said.getvalue() == ""
    shutil.rmtree(tmp_path / DEMONSTRATED_RATES.name)
    row = {
        "date": date(2025, 11, 23), "hour": 1, "kind": "subscription",
        "minute": datetime(2025, 11, 23, 1, tzinfo=UTC),
    }  # fmt: skip
    rows = pa.Table.from_pylist([row], table_arrow_schema(INTERVALS))
    files = write_tables(str(tmp_path), "0", [(INTERVALS.name, rows)])
    commit_append(str(tmp_path), INTERVALS, files, None)
    for _ in range(2):
        create_tables(str(tmp_path), Progress(said).say)
    assert said.getvalue() == (
        f"{tmp_path} was written by an earlier release and lacks the table demonstrated_rates: "
        "this job computes it from all rows of intervals.\n"
    )
