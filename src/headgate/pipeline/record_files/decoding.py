"""Rows of the bronze tables from the files of one Spark task.

One file is in memory at a time. What cannot be read of it becomes a row of ``bronze_quarantine``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from headgate.base.errors import CorruptionError
from headgate.pipeline.kernels.decode import bronze_tables
from headgate.pipeline.record_files.folder import SOURCE_PREFIX, RecordFilesTask, file_name
from headgate.pipeline.tables.arrow_types import TIMESTAMP
from headgate.pipeline.tables.bronze import BRONZE_QUARANTINE
from headgate.pipeline.tables.quarantine import VALUE_BYTES_MAX, refused_file_row
from headgate.pipeline.timed_folders import TASK_COLUMN
from headgate.record.frames import frames


def record_tables(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.Table]]:
    """Pairs of a bronze table's name and rows, from all tasks in a batch."""
    for text in batch.column(TASK_COLUMN).to_pylist():
        yield from task_tables(RecordFilesTask.from_json(text))


def task_tables(task: RecordFilesTask) -> Iterator[tuple[str, pa.Table]]:
    """Pairs of a bronze table's name and rows, from one task, without rows that a table has."""
    for time_ms in task.times_ms:
        for name, rows in _file_tables(task, time_ms):
            if time_ms > task.upto_ms.get(name, -1):
                yield name, rows


def _file_tables(task: RecordFilesTask, time_ms: int) -> Iterator[tuple[str, pa.Table]]:
    # The driver has just listed the file. If it cannot be opened here, the cause is the machine and
    # may be temporary, so the task fails. A refused file would never be read again.
    source, name = f"{SOURCE_PREFIX}{task.label}", file_name(time_ms)
    messages: list[bytes] = []
    reason = ""
    with Path(task.path, name).open("rb") as file:
        try:
            messages.extend(frames(file.read))
        except CorruptionError as error:
            reason = str(error)
            file.seek(0)
            begin = file.read(VALUE_BYTES_MAX)
    if messages:
        yield from bronze_tables(_message_batch(source, name, messages, time_ms))
    if reason:
        yield BRONZE_QUARANTINE.name, refused_file_row(source, name, reason, begin, time_ms)


def _message_batch(source: str, name: str, messages: list[bytes], time_ms: int) -> pa.RecordBatch:
    """The messages of a file as those of a topic."""
    count = len(messages)
    at_us = pa.array([time_ms * 1_000] * count, pa.int64())
    return pa.RecordBatch.from_pydict(
        {
            "value": pa.array(messages, pa.binary()),
            "__topic": pa.array([source] * count),
            "__messageId": pa.array([f"{name}#{n}".encode() for n in range(count)], pa.binary()),
            "__publishTime": at_us.cast(TIMESTAMP),
        }
    )
