"""Fills the table ``quality`` from the footers of the files that were written since the last time.

Each file holds how its own rows met the expectations of their table, so nothing here reads rows.
The rows of an hour are a function of the live files of that hour: hours with a new file in any
table are replaced. The commit notes the version of every table that it covers, so it does not
matter which job wrote the files, or where it was killed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final

from headgate.pipeline.derived.derived_table import passes
from headgate.pipeline.kernels.quality import CheckedFile, Outcomes, outcomes, quality_table
from headgate.pipeline.store.delta_log import (
    AppTransaction,
    TableFile,
    commit_replace,
    ensure_table,
    source_key,
)
from headgate.pipeline.store.followed_log import FollowedLog
from headgate.pipeline.store.footers import file_checks
from headgate.pipeline.store.log_changes import change_since, followed, followed_or_new
from headgate.pipeline.store.parquet_files import write_tables
from headgate.pipeline.store.table_store import store_of, table_names
from headgate.pipeline.tables.catalogue import CHECKED
from headgate.pipeline.tables.quality import QUALITY

_SUMMARIZED: Final = [
    "hour_start", "table_name", "expectation", "is_met", "rows_checked", "rows_failed",
    "failed_columns", "example", "sentence",
]  # fmt: skip

_FAILURES_SHOWN: Final = 5
"""Failures of one job that get a line each."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What one look at the tables found."""

    hours: int = 0
    checks: int = 0
    """Expectations, summed over tables and hours."""
    failures: tuple[Mapping[str, Any], ...] = ()
    """Rows of ``quality`` that are not met, the latest hour last."""
    outcomes: Outcomes = field(default_factory=dict)
    """Of all expectations, summed over the hours."""

    def __str__(self) -> str:
        if not self.checks:
            return "nothing new"
        failed = len(self.failures)
        held = "all are met" if not failed else f"{failed:,} {_is(failed)} not met"
        return f"{_counted(self.checks, 'expectation')} in {_counted(self.hours, 'hour')}, {held}"

    def lines(self, out: str) -> Iterator[str]:
        """A line about each failure, the latest ones, and one that says where all are."""
        for row in self.failures[-_FAILURES_SHOWN:]:
            example = f" One of them: {row['example']}." if row["example"] else ""
            yield f"Hour {row['hour_start']:%Y-%m-%dT%H:%MZ}: {row['sentence']}{example}"
        if self.failures:
            yield f"All of them: headgate pipeline show quality --where is_met=false --out {out}"


def begin_quality(root: str) -> None:
    """Note the present versions of all tables as checked, when ``quality`` is new in a folder.

    Files of earlier releases hold no results, so there is nothing to read in them.
    """
    ensure_table(root, QUALITY)
    versions = [_version(log) for log in _logs(root).values()]
    if versions:
        commit_replace(root, QUALITY, [], [], *versions)


def check_tables(root: str) -> Checked:
    """Bring ``quality`` up to date; the caller holds its lease."""
    quality, logs = followed_or_new(root, QUALITY).delta, _logs(root)
    hours: set[int] = set()
    versions: list[AppTransaction] = []
    for name, log in logs.items():
        noted = _version(log)
        seen = quality.transaction_version(noted.app_id)
        if seen is None or seen < noted.version:
            versions.append(noted)
            change = change_since(root, name, seen, noted.version, log.files)
            hours |= {file.hour for file in change.files}
    if not versions:
        return Checked()
    found: list[dict[str, Any]] = []
    parts = passes(hours) or [frozenset()]
    for part in parts:
        rows = quality_table({hour: _files_of(root, logs, hour) for hour in part}, CHECKED)
        files = write_tables(root, "quality", [(QUALITY.name, rows)])
        noted_last = versions if part is parts[-1] else [None]
        commit_replace(root, QUALITY, files, part, *noted_last)
        found += rows.select(_SUMMARIZED).to_pylist()
    failures = sorted((row for row in found if not row["is_met"]), key=itemgetter("hour_start"))
    return Checked(len(hours), len(found), tuple(failures), outcomes(found))


Logs = Mapping[str, FollowedLog[TableFile]]
"""The logs of tables by their names."""


def _logs(root: str) -> Logs:
    """The checked tables that are there."""
    there = {*table_names(root)}
    return {table.name: followed(root, table.name) for table in CHECKED if table.name in there}


def _version(log: FollowedLog[TableFile]) -> AppTransaction:
    with log.lock:
        return AppTransaction(source_key(log.delta), log.version)


def _files_of(root: str, logs: Logs, hour: int) -> dict[str, list[CheckedFile]]:
    """The files of one hour with their results, by table."""
    found = {}
    for name, log in logs.items():
        files = log.files_of_hours([hour])
        results = file_checks(store_of(root), name, [file.path for file in files])
        found[name] = [
            CheckedFile(file.partition.get("kind"), checks)
            for file, checks in zip(files, results, strict=True)
        ]
    return found


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _is(count: int) -> str:
    return "is" if count == 1 else "are"
