"""A telemetry topic that is a folder, and the job ``attribute`` over it."""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from headgate.pipeline import jobs, refresh
from headgate.pipeline.derived.catalogue import DERIVED
from headgate.pipeline.options import AttributeOptions, SourceOptions
from headgate.pipeline.tables.attribution import ATTRIBUTION
from headgate.pipeline.tables.columns import Table
from headgate.pipeline.tables.demonstrated_rates import DEMONSTRATED_RATES
from headgate.pipeline.tables.schemas import MESSAGE_SCHEMA
from tests.unit.pipeline.play import message_batch


class Topic:
    """Stands for the telemetry topic: a folder of files, each of some messages."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def publish(self, messages: list[bytes]) -> None:
        """Add messages, all at once."""
        table = pa.Table.from_batches([message_batch(messages)])
        hidden = self.folder / f".{uuid.uuid4().hex}"
        pq.write_table(table, hidden)
        hidden.rename(self.folder / f"{uuid.uuid4().hex}.parquet")

    def stream(self, spark: SparkSession) -> DataFrame:
        """Its messages, as the jobs read them."""
        return spark.readStream.schema(MESSAGE_SCHEMA).parquet(str(self.folder))


def attribute(out: Path, topic: Topic, **options: Any) -> tuple[list[dict[str, Any]], str]:
    """Run the job; its rows and what it said."""
    answer, progress = io.StringIO(), io.StringIO()
    asked = AttributeOptions(SourceOptions(str(out)), format="json", **options)
    jobs.run_attribute(asked, answer, progress, messages=topic.stream)
    return json.loads(answer.getvalue()), progress.getvalue()


@contextmanager
def computing(*tables: Table) -> Iterator[None]:
    """In the context, jobs compute only these derived tables; without any, they compute all.

    A table costs a job about a second of CPU. A test that compares few tables computes these, and
    those that they follow from.
    """
    needed = {*(table.name for table in tables)}
    if ATTRIBUTION.name in needed:
        needed.add(DEMONSTRATED_RATES.name)
    wanted = tuple(each for each in DERIVED if not tables or each.name in needed)
    with pytest.MonkeyPatch.context() as patch:
        for place in (jobs, refresh):
            patch.setattr(place, "DERIVED", wanted)
        yield


def fill(out: Path, topic: Topic, *tables: Table) -> str:
    """Run the job ``run``, which computes these derived tables, or all; return what it said."""
    progress = io.StringIO()
    with computing(*tables):
        jobs.run_once(SourceOptions(str(out)), progress, messages=topic.stream)
    return progress.getvalue()


def rows_of(out: Path, table: str) -> pa.Table:
    """A table's rows in an order of their own."""
    rows = DeltaTable(out / table).to_pyarrow_table()
    names = [
        name
        for name in rows.column_names
        if not (pa.types.is_floating(rows[name].type) or pa.types.is_list(rows[name].type))
    ]
    return rows.sort_by([(name, "ascending") for name in names])
