"""From a broker's folder of scrapes to bronze rows, minutes and judgements, without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headgate.pipeline.kernels.coverage_gaps import Coverage
from headgate.pipeline.kernels.intervals import SORT_COLUMNS, interval_table
from headgate.pipeline.scrapes.decoding import task_tables
from headgate.pipeline.scrapes.folder import ScrapeTask, broker_folders, scrape_tasks
from headgate.pipeline.tables.columns import HOUR_NS
from headgate.record.fields import Kind
from tests.unit.pipeline.row_by_row import judge_minutes, proven_rate_per_s


def all_works(folder: Path, parts: int = 1) -> list[ScrapeTask]:
    """What a first run has to do."""
    return [
        task
        for broker in broker_folders(str(folder))
        for task in scrape_tasks(broker, None, (), parts)
    ]


def tables(works_: Sequence[ScrapeTask], name: str = "bronze_samples") -> pa.Table:
    """Rows of one bronze table."""
    found = [rows for task in works_ for table, rows in task_tables(task) if table == name]
    return pa.concat_tables(found)


def minutes(folder: Path, kind: Kind = Kind.SUBSCRIPTION, parts: int = 1) -> list[dict[str, Any]]:
    """Rows of ``intervals``, by the kernel."""
    rows = tables(all_works(folder, parts))
    hours = {(end - 1) // HOUR_NS for end in rows["window_end_ns"].to_pylist()}
    table = rows.filter(pc.equal(rows["kind"], kind.value))
    table = table.sort_by([(name, "ascending") for name in SORT_COLUMNS])
    found: list[dict[str, Any]] = interval_table(table, kind, hours, Coverage()).to_pylist()
    return found


def judgements(folder: Path) -> dict[str, dict[str, Any]]:
    """Judgement of each subscription over all of its minutes, by the last part of its topic."""
    by_topic: dict[str, list[dict[str, Any]]] = {}
    for minute in minutes(folder):
        by_topic.setdefault(minute["topic"].rpartition("/")[2], []).append(minute)
    return {name: judge_minutes(rows, proven_rate_per_s(rows)) for name, rows in by_topic.items()}
