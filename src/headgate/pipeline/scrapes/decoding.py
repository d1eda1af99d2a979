"""Rows of the bronze tables from the scrapes of one Spark task.

Two scrapes are in memory at a time. A file that is no scrape becomes a row of ``bronze_quarantine``
with a reason. It never stops the job.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from headgate.base.units import NS_PER_MS
from headgate.pipeline.scrapes.folder import GAP_MS_MAX, ScrapeTask, bad_lines_name, file_name
from headgate.pipeline.scrapes.pairs import ScrapePair
from headgate.pipeline.scrapes.reading import Scrape, read_scrape
from headgate.pipeline.scrapes.rows import batch_rows, pair_rows, scrape_source
from headgate.pipeline.tables.bronze import BRONZE_QUARANTINE, BRONZE_SAMPLES
from headgate.pipeline.tables.quarantine import VALUE_BYTES_MAX, refused_file_row
from headgate.pipeline.timed_folders import TASK_COLUMN


class _RefusedError(Exception):
    """A file is no scrape; the text says why."""


def scrape_tables(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.Table]]:
    """Pairs of a bronze table's name and rows, from all tasks in a batch."""
    for text in batch.column(TASK_COLUMN).to_pylist():
        yield from task_tables(ScrapeTask.from_json(text))


def task_tables(task: ScrapeTask) -> Iterator[tuple[str, pa.Table]]:
    """Pairs of a bronze table's name and rows, from one task.

    Rows come from each pair of neighbouring scrapes. One more row for each scrape records that it
    was read.
    """
    for name, reason in task.refused:
        yield BRONZE_QUARANTINE.name, _quarantined(task, name, reason, None)
    before = _previous_scrape(task) if task.times_ms else None
    for time_ms in task.times_ms:
        try:
            scrape = _read(task, time_ms)
        except _RefusedError as error:
            name = file_name(time_ms)
            yield BRONZE_QUARANTINE.name, _quarantined(task, name, str(error), time_ms)
            continue
        if scrape.unreadable and bad_lines_name(time_ms) not in task.quarantined:
            yield BRONZE_QUARANTINE.name, _lines_quarantined(task, scrape, time_ms)
        yield BRONZE_SAMPLES.name, batch_rows(task.label, scrape, time_ms * NS_PER_MS)
        if before is not None and time_ms - before[0] <= GAP_MS_MAX:
            times_ns = before[0] * NS_PER_MS, time_ms * NS_PER_MS
            for rows in pair_rows(ScrapePair(task.label, before[1], scrape, *times_ns)):
                yield BRONZE_SAMPLES.name, rows
        before = time_ms, scrape


def _previous_scrape(task: ScrapeTask) -> tuple[int, Scrape] | None:
    """The scrape before the first one. An unreadable one is skipped; its own task has reported
    it."""
    for time_ms in sorted(task.earlier_ms, reverse=True):
        try:
            return time_ms, _read(task, time_ms)
        except _RefusedError:
            continue
    return None


def _read(task: ScrapeTask, time_ms: int) -> Scrape:
    # The driver has just listed the file. If it cannot be opened here, the cause is the machine and
    # may be temporary, so the task fails. A refused file would never be read again.
    path = Path(task.path, file_name(time_ms))
    try:
        with path.open(encoding="utf-8", newline="\n") as lines:
            scrape = read_scrape(lines)
    except UnicodeDecodeError as error:
        raise _RefusedError(f"it is not UTF-8: {error.reason}") from error
    if not scrape.topics:
        raise _RefusedError(
            "it has no series of a topic: it is empty or no text of a broker's /metrics, or "
            "exposeTopicLevelMetricsInPrometheus is off"
        )
    return scrape


def _lines_quarantined(task: ScrapeTask, scrape: Scrape, time_ms: int) -> pa.Table:
    reason = f"{scrape.unreadable:,} of its lines cannot be read; the value is the first of them"
    value = scrape.first_unreadable.encode()
    return refused_file_row(
        scrape_source(task.label), bad_lines_name(time_ms), reason, value, time_ms
    )


def _quarantined(task: ScrapeTask, name: str, reason: str, time_ms: int | None) -> pa.Table:
    """Rows for a refused file; a ``time_ms`` of None stands for the file's modification time."""
    path = Path(task.path, name)
    try:
        with path.open("rb") as file:
            value = file.read(VALUE_BYTES_MAX)
        at_ms = path.stat().st_mtime_ns // NS_PER_MS if time_ms is None else time_ms
    except OSError:
        value, at_ms = b"", time_ms or (*task.times_ms, *task.earlier_ms)[0]
    return refused_file_row(scrape_source(task.label), name, reason, value, at_ms)
