"""Batch reads open only the files that may have rows that pass."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import datasource as spark

from headgate.base.errors import InputError
from headgate.pipeline.source.batch import FilteringReader, TableReader
from headgate.pipeline.source.options import parse_options
from headgate.pipeline.store.delta_log import open_table, table_files
from headgate.pipeline.tables.intervals import INTERVALS
from tests.unit.pipeline.source.folder import append, minute_row, replace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two hours of two topics, and a subscription."""
    rows = [minute_row(place, topic) for place in range(0, 120, 20) for topic in "ab"]
    append(tmp_path, [*rows, minute_row(0, kind="subscription", subscription="s")])
    return tmp_path


def reader(root: Path, *filters: spark.Filter, **options: str) -> TableReader:
    given = {"path": str(root), "table": "intervals"} | options
    made = FilteringReader(parse_options(given, 0))
    assert list(made.pushFilters(list(filters))) == list(filters), "Spark applies them, too"
    return made


def read(made: TableReader) -> list[dict[str, Any]]:
    batches = [batch for part in made.partitions() for batch in made.read(part)]
    return [row for batch in batches for row in batch.to_pylist()]


def test_all_rows_in_the_types_of_the_table(root: Path) -> None:
    made = reader(root, columns="minute,topic,msgs_in")
    (part,) = made.partitions()
    (batch, *_) = made.read(part)
    assert batch.schema.types == [pa.timestamp("us", tz="UTC"), pa.string(), pa.int64()]
    assert len(read(made)) == 13


def test_files_of_other_hours_and_kinds_are_not_opened(root: Path) -> None:
    for file in table_files(open_table(str(root), INTERVALS)):
        if file.partition["hour"] != "11" or file.partition["kind"] != "topic":
            (root / "intervals" / file.path).unlink()
    late = datetime(2025, 11, 21, 11, 20, tzinfo=UTC)
    rows = read(
        reader(
            root,
            spark.EqualTo(("kind",), "topic"),
            spark.GreaterThanOrEqual(("minute",), late),
            spark.IsNotNull(("topic",)),
        )
    )
    assert sorted((row["topic"], row["msgs_in"]) for row in rows) == [
        ("a", 80), ("a", 100), ("b", 80), ("b", 100),
    ]  # fmt: skip
    with pytest.raises(InputError, match="were deleted by a vacuum"):
        read(reader(root))


def test_a_range_and_kinds_of_the_options(root: Path) -> None:
    for file in table_files(open_table(str(root), INTERVALS)):
        if file.partition["hour"] != "11":
            (root / "intervals" / file.path).unlink()
    given = {"since": "2025-11-21T11:20:30Z", "until": "2025-11-21T11:40:00Z", "kinds": "topic"}
    rows = read(reader(root, **given))
    assert [(row["topic"], row["msgs_in"]) for row in rows] == [("a", 80), ("b", 80)]


def test_no_file_is_one_task_without_rows(root: Path) -> None:
    made = reader(root, spark.EqualTo(("kind",), "limiter"))
    assert made.partitions() == []
    assert list(made.read(spark.InputPartition(None))) == []


def test_more_tasks_on_request(root: Path) -> None:
    assert len(reader(root).partitions()) == 1
    assert len(reader(root, minPartitions="3").partitions()) == 3
    assert len(read(reader(root, minPartitions="3"))) == 13


def test_an_earlier_version(root: Path) -> None:
    replace(root, [1], [minute_row(60, "c")])
    assert len(read(reader(root))) == 8
    assert len(read(reader(root, versionAsOf="1"))) == 13
    assert read(reader(root, versionAsOf="0")) == []
    with pytest.raises(InputError, match=r"versionAsOf=9: table intervals has versions 0 to 2"):
        reader(root, versionAsOf="9").partitions()
    assert len(read(reader(root, timestampAsOf="2250-01-01T00:00:00Z"))) == 8
    with pytest.raises(InputError, match="has no version of 1970-01-02"):
        reader(root, timestampAsOf="1970-01-02T00:00:00Z").partitions()


def test_what_does_not_exist_is_named(root: Path) -> None:
    with pytest.raises(InputError, match="has no table evictions: no run has made it yet; there"):
        reader(root, table="evictions").partitions()
    with pytest.raises(InputError, match="there is no folder /nonexistent"):
        reader(Path("/nonexistent")).partitions()
