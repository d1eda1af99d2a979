"""How failures of a job are told; the jobs themselves are played in tests/spark."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyspark.errors import PySparkException

from headgate.base.errors import InputError
from headgate.pipeline import jobs
from headgate.pipeline.failures import PipelineError
from headgate.pipeline.jobs import (
    _create_tables,
    _plain_errors,
    run_attribute,
    run_once,
    run_stream,
)
from headgate.pipeline.options import AttributeOptions, SourceOptions, StreamOptions
from headgate.pipeline.progress import Progress
from headgate.pipeline.tables.arrow_types import table_arrow_schema
from headgate.pipeline.tables.intervals import INTERVALS
from tests.unit.pipeline.scrapes.texts import write_scrapes


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (DeltaError("Generic error: no room\nand a page of more"), "Generic error: no room"),
        (OSError(28, "No space left on device", "/t/x"), "[Errno 28] No space left on device"),
        (PySparkException("first line\nsecond line"), "first line"),
    ],
)
def test_what_the_engine_and_the_disk_refuse_is_one_sentence(
    error: Exception, said: str, tmp_path: Path
) -> None:
    log = tmp_path / "spark.log"
    with pytest.raises(PipelineError) as caught, _plain_errors(log):
        raise error
    assert str(caught.value).startswith(said)
    assert str(caught.value).endswith(f"(all of it: {log})")
    assert "\n" not in str(caught.value)
    assert log.read_text(encoding="utf-8") == f"{error}\n"


def test_the_reason_survives_where_the_log_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(PipelineError) as caught, _plain_errors(tmp_path / "none" / "spark.log"):
        raise OSError(28, "No space left on device")
    assert str(caught.value) == "[Errno 28] No space left on device"


def test_a_table_that_is_not_there_is_told_as_well(tmp_path: Path) -> None:
    with pytest.raises(PipelineError), _plain_errors(tmp_path / "spark.log"):
        DeltaTable(str(tmp_path / "nothing"))


def test_brokers_are_asked_before_a_folder_is_made(tmp_path: Path) -> None:
    """A broker that does not answer leaves no folder with a lock in it."""
    out = tmp_path / "tables"
    source = SourceOptions(str(out), ("pulsar://127.0.0.1:9",), ("http://127.0.0.1:9",))
    err = io.StringIO()
    with pytest.raises(InputError, match="cannot be reached"):
        run_attribute(AttributeOptions(source), io.StringIO(), err)
    with pytest.raises(InputError, match="cannot be reached"):
        run_stream(StreamOptions(source, 1.0), err)
    assert not out.exists()
    assert err.getvalue() == "Asking the brokers ... \n" * 2


def test_a_bucket_without_a_folder_for_the_job_is_refused_before_all(tmp_path: Path) -> None:
    source = SourceOptions("s3://tables/a", ("pulsar://127.0.0.1:9",), ("http://127.0.0.1:9",))
    err = io.StringIO()
    for ask in (
        lambda: run_once(source, err),
        lambda: run_attribute(AttributeOptions(source), io.StringIO(), err),
        lambda: run_stream(StreamOptions(source, 1.0), err),
    ):
        with pytest.raises(InputError, match="--work"):
            ask()
    assert err.getvalue() == ""


def test_judging_what_is_there_makes_nothing(tmp_path: Path) -> None:
    (tmp_path / "other" / "_delta_log").mkdir(parents=True)
    asked = AttributeOptions(SourceOptions(str(tmp_path)), reads=False)
    with pytest.raises(InputError, match="has no table intervals"):
        run_attribute(asked, io.StringIO(), io.StringIO())
    absent = AttributeOptions(SourceOptions(str(tmp_path / "none")), reads=False)
    with pytest.raises(InputError, match=r"no folder .*none yet"):
        run_attribute(absent, io.StringIO(), io.StringIO())
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_what_was_not_computed_anew_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = date(2025, 11, 23)

    @contextmanager
    def opened(*_: object) -> Iterator[object]:
        yield None

    monkeypatch.setattr(jobs, "_opened", opened)
    monkeypatch.setattr(jobs, "_asked", lambda *_: None)
    monkeypatch.setattr(jobs, "_bring_up_to_date", lambda *_: None)
    monkeypatch.setattr(jobs, "recompute", lambda *asked: [f"attribution from {asked[2]} stays."])
    err = io.StringIO()
    jobs.run_once(SourceOptions(str(tmp_path)), err, anew=(day, day))
    assert err.getvalue().endswith("attribution from 2025-11-23 stays.\n")


def test_a_table_that_cannot_be_opened_is_told_in_a_sentence(tmp_path: Path) -> None:
    scrapes, log = tmp_path / "scrapes", tmp_path / "tables" / "bronze_samples" / "_delta_log"
    write_scrapes(scrapes, range(2))
    log.mkdir(parents=True)
    (log / f"{0:020d}.json").write_text("no commit\n")
    source = SourceOptions(str(tmp_path / "tables"), scrapes=str(scrapes))
    with pytest.raises(PipelineError, match="all of it"):
        run_once(source, io.StringIO())


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
        _create_tables(str(tmp_path), Progress(said))
    assert said.getvalue() == (
        f"{tmp_path} is of an earlier release: intervals gets parked_disk_full_ns. "
        "Rows that are there have null.\n"
    )
