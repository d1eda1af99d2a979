"""Files of a source table, as its log lists them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from headgate.pipeline.derived.derived_table import DerivedTable
from headgate.pipeline.store.delta_log import TableFile
from headgate.pipeline.store.log_changes import SourceChange
from headgate.pipeline.tables.touched_minutes import TouchedMinutes

HOUR = 489_922


def file(hour: int, kind: str | None = "subscription") -> TableFile:
    """A file of one hour, counted since the epoch."""
    start = datetime.fromtimestamp(hour * 3_600, UTC)
    partition = {"date": start.date().isoformat(), "hour": str(start.hour)}
    if kind is not None:
        partition["kind"] = kind
    return TableFile(f"{hour}-{kind}", 1, partition, 1, None)


class Live:
    """Live files of a source table."""

    def __init__(self, files: Iterable[TableFile]) -> None:
        self._files = list(files)

    def hours(self) -> list[int]:
        return sorted({file.hour for file in self._files})

    def files_of_hours(self, hours: Iterable[int]) -> list[TableFile]:
        wanted = set(hours)
        return [file for file in self._files if file.hour in wanted]


def is_input(derived: DerivedTable, file: TableFile, hours: Iterable[int]) -> bool:
    """Whether some hours depend on a live file."""
    return derived.inputs(Live([file]), TouchedMinutes.whole(hours)) == [file]


def change_of(files: Iterable[TableFile]) -> SourceChange:
    """New files of a source."""
    files, minutes = list(files), TouchedMinutes()
    for each in files:
        minutes |= TouchedMinutes.between(*each.span_ns)
    return SourceChange(files, minutes)


def touched(
    derived: DerivedTable, new: Iterable[TableFile], live: Iterable[TableFile], root: str = ""
) -> TouchedMinutes:
    """What is computed again when files are new; these are live, too."""
    return derived.touched(root, change_of(new), Live(live))
