"""Failures of a job in one sentence, and its checks before Spark starts."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyspark.errors import PySparkException

from headgate.base.errors import InputError
from headgate.pipeline.failures import PipelineError
from headgate.pipeline.job_session import plain_errors
from headgate.pipeline.jobs import run_attribute, run_once, run_stream
from headgate.pipeline.options import AttributeOptions, SourceOptions, StreamOptions
from tests.unit.pipeline.scrapes.texts import write_scrapes


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (DeltaError("Generic error: no room\nand a page of more"), "Generic error: no room"),
        (OSError(28, "No space left on device", "/t/x"), "[Errno 28] No space left on device"),
        (PySparkException("first line\nsecond line"), "first line"),
    ],
)
def test_failures_of_spark_and_the_disk_are_one_sentence(
    error: Exception, said: str, tmp_path: Path
) -> None:
    log = tmp_path / "spark.log"
    with pytest.raises(PipelineError) as caught, plain_errors(log):
        raise error
    assert str(caught.value).startswith(said)
    assert str(caught.value).endswith(f"(all of it: {log})")
    assert "\n" not in str(caught.value)
    assert log.read_text(encoding="utf-8") == f"{error}\n"


def test_the_reason_survives_where_the_log_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(PipelineError) as caught, plain_errors(tmp_path / "none" / "spark.log"):
        raise OSError(28, "No space left on device")
    assert str(caught.value) == "[Errno 28] No space left on device"


def test_a_link_in_place_of_the_log_leads_to_no_other_file(tmp_path: Path) -> None:
    """Others may write to the folder of the tables, and so choose what the log is."""
    other, log = tmp_path / "keys", tmp_path / "_spark.log"
    other.write_text("mine\n")
    log.symlink_to(other)
    with pytest.raises(PipelineError) as caught, plain_errors(log):
        raise OSError(28, "No space left on device")
    assert str(caught.value) == "[Errno 28] No space left on device"
    assert other.read_text() == "mine\n"


def test_a_missing_table_is_reported(tmp_path: Path) -> None:
    with pytest.raises(PipelineError), plain_errors(tmp_path / "spark.log"):
        DeltaTable(str(tmp_path / "nothing"))


def test_brokers_are_checked_before_a_folder_is_created(tmp_path: Path) -> None:
    """A broker that does not answer leaves no folder with a lock in it."""
    out = tmp_path / "tables"
    source = SourceOptions(str(out), ("pulsar://127.0.0.1:9",), ("http://127.0.0.1:9",))
    err = io.StringIO()
    with pytest.raises(InputError, match="cannot be reached"):
        run_attribute(AttributeOptions(source), io.StringIO(), err)
    with pytest.raises(InputError, match="cannot be reached"):
        run_stream(StreamOptions(source, 1.0), err)
    assert not out.exists()
    assert err.getvalue() == "Checking the brokers ... \n" * 2


def test_a_bucket_without_a_work_folder_is_refused_first(tmp_path: Path) -> None:
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


def test_a_table_that_cannot_be_opened_gives_one_sentence(tmp_path: Path) -> None:
    scrapes, log = tmp_path / "scrapes", tmp_path / "tables" / "bronze_samples" / "_delta_log"
    write_scrapes(scrapes, range(2))
    log.mkdir(parents=True)
    (log / f"{0:020d}.json").write_text("no commit\n")
    source = SourceOptions(str(tmp_path / "tables"), scrapes=str(scrapes))
    with pytest.raises(PipelineError, match="all of it"):
        run_once(source, io.StringIO())
