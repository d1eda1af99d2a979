"""Files of a source table, as its log lists them."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime

from headgate.pipeline.derived.derived_table import DerivedTable
from headgate.pipeline.store.delta_log import TableFile

HOUR = 489_922


def file(hour: int, kind: str | None = "subscription") -> TableFile:
    """A file of one hour, counted since the epoch."""
    start = datetime.fromtimestamp(hour * 3_600, UTC)
    partition = {"date": start.date().isoformat(), "hour": str(start.hour)}
    if kind is not None:
        partition["kind"] = kind
    return TableFile(f"{hour}-{kind}", 1, partition, 1, None)


def is_input(derived: DerivedTable, file: TableFile, hours: Collection[int]) -> bool:
    """Whether some hours depend on a live file."""
    return derived.inputs([file], hours) == [file]
