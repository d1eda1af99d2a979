"""The stream of changes of a table's closed minutes.

Derived tables are replaced by the hour, so the files that a commit adds repeat rows that did not
change. This stream compares the rows: a batch has each row that is new, that has other values, or
that no longer exists, since the batch before, and marks it in the column ``change``. Whoever
applies all batches by the key of the rows has the table.

An offset is a version of the table and the instant up to which its minutes are closed. A batch
follows from its two offsets, so a repeated batch has the same rows. A minute that has not ended in
the telemetry of all brokers still changes with each refresh; it stays out until it is closed.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake.exceptions import TableNotFoundError
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    SupportsTriggerAvailableNow,
)

from headgate.base.errors import InputError
from headgate.base.units import NS_PER_US
from headgate.pipeline.source.options import ReadOptions
from headgate.pipeline.source.plain_errors import without_traceback
from headgate.pipeline.source.row_changes import row_changes
from headgate.pipeline.source.snapshot import Snapshot, gone_files_text, open_snapshot
from headgate.pipeline.store.delta_log import (
    TableFile,
    check_layout,
    kept_from_hour,
    source_key,
)
from headgate.pipeline.store.followed_log import FollowedLog
from headgate.pipeline.store.log_changes import followed
from headgate.pipeline.store.spark_reader import BATCH_ROWS, file_batches
from headgate.pipeline.store.table_store import store_of
from headgate.pipeline.tables.arrow_types import TIMESTAMP, table_arrow_schema
from headgate.pipeline.tables.columns import HOUR_NS, MINUTE_NS, Table
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.tables.keys import MINUTE, ROW_KEYS

IDLE_POLL_S: Final = 0.5
"""Least time between two looks at a table without a new version. Spark's default trigger asks for
the latest offset every 10 ms."""

_BEFORE_ALL: Final = -1
"""Version of an offset before the table's first row."""


@dataclass(frozen=True, slots=True)
class Offset:
    """How far a stream has read."""

    table_id: str
    version: int
    closed_ns: int
    """Minutes that begin before this instant are closed."""

    def to_json(self) -> dict[str, Any]:
        """As Spark's checkpoint has it."""
        return {"table": self.table_id, "version": self.version, "closed_ns": self.closed_ns}

    @staticmethod
    def from_json(found: dict[str, Any]) -> Offset:
        """From Spark's checkpoint."""
        return Offset(str(found["table"]), int(found["version"]), int(found["closed_ns"]))


@dataclass(frozen=True, slots=True)
class HourChange:
    """The files of an hour that a task compares, and up to which minute on each side."""

    before: tuple[str, ...]
    now: tuple[str, ...]
    common: tuple[str, ...]
    """Files of both versions, whose rows are new if their minute was not closed before."""


class HourPartition(InputPartition):
    """One hour; ``value`` is a :class:`HourChange`, and the two instants of closed minutes."""


class ChangeReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads what changed in the closed minutes of a table."""

    def __init__(self, options: ReadOptions) -> None:
        """``options``: those of a stream."""
        self._options = options
        self._idle_since_s: float | None = None
        self._target: Offset | None = None
        self._seen: tuple[tuple[str, int], int | None] | None = None
        """A version of ``intervals``, and its newest minute."""

    @without_traceback()
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Before the first row, or with ``startingFrom=latest`` the newest closed minute."""
        newest = self._newest(0)
        if self._options.starts_latest:
            return newest.to_json()
        return Offset(newest.table_id, _BEFORE_ALL, 0).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Everything: an hour is a task, so a large batch has many tasks and no large one."""
        return ReadAllAvailable()

    @without_traceback()
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Fix the end of the query."""
        self._target = self._newest(0)

    @without_traceback()
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: ARG002, N802
        """The newest version of the table, and what is closed in it."""
        begin = Offset.from_json(start)
        if self._target is not None:
            # With a longer delay than in the run before, a minute would be open again.
            end = replace(self._target, closed_ns=max(begin.closed_ns, self._target.closed_ns))
        else:
            if self._idle_since_s is not None:
                time.sleep(max(0.0, self._idle_since_s + IDLE_POLL_S - time.monotonic()))
            end = self._newest(begin.closed_ns)
        self._check_same_table(begin, end)
        self._idle_since_s = time.monotonic() if end == begin else None
        return end.to_json()

    @without_traceback()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """A task for each hour that may have changed rows."""
        begin, until = Offset.from_json(start), Offset.from_json(end)
        self._check_same_table(begin, until)
        before = [] if begin.version == _BEFORE_ALL else self._snapshot(begin.version).files()
        end_snapshot = self._snapshot(until.version)
        # What retention drops is no change of what was measured.
        kept = kept_from_hour(end_snapshot.delta) or 0
        before = [file for file in before if file.hour >= kept]
        changed = hour_changes(before, end_snapshot.files(), begin.closed_ns, until.closed_ns)
        return [
            HourPartition((change, begin.closed_ns, until.closed_ns, begin.version))
            for change in changed
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The changed rows of one hour."""
        if partition.value is None:
            return
        change, closed_before_ns, closed_now_ns, version = partition.value
        with without_traceback():
            before = self._rows(change.before, None, closed_before_ns, version)
            now = pa.concat_tables(
                [
                    self._rows(change.now, None, closed_now_ns, version),
                    self._rows(change.common, closed_before_ns, closed_now_ns, version),
                ]
            )
            table = self._options.table
            found = row_changes(before, now, ROW_KEYS[table.name], self._options.columns)
            yield from found.to_batches(max_chunksize=BATCH_ROWS)

    def _rows(
        self, paths: tuple[str, ...], since_ns: int | None, until_ns: int, version: int
    ) -> pa.Table:
        table = self._options.table
        schema = table_arrow_schema(table)
        if not paths:
            return schema.empty_table()
        condition = ds.field(MINUTE) < _instant(until_ns)
        if since_ns is not None:
            condition = condition & (ds.field(MINUTE) >= _instant(since_ns))
        try:
            batches = list(file_batches(self._options.root, table, paths, None, condition))
        except FileNotFoundError as error:
            raise InputError(f"{gone_files_text(table, version)}{_ADVICE}") from error
        return pa.Table.from_batches(batches, schema)

    def _snapshot(self, version: int) -> Snapshot:
        options = self._options
        try:
            return open_snapshot(options.root, options.table, version=version)
        except InputError as error:
            raise InputError(f"{error}{_ADVICE}") from error

    def _newest(self, closed_ns: int) -> Offset:
        """The newest version; what was closed before, up to ``closed_ns``, stays closed.

        It follows the logs, so a look at a table without a new version reads next to nothing.
        """
        root, table = self._options.root, self._options.table
        try:
            log = _followed(root, table)
        except TableNotFoundError:
            open_snapshot(root, table)  # says what is there
            raise
        found_ns = self._closed_ns(log)
        return Offset(str(log.delta.metadata().id), log.version, max(closed_ns, found_ns))

    def _closed_ns(self, log: FollowedLog[TableFile]) -> int:
        """Up to where minutes are closed: ``intervals`` has one that ends so much later.

        A table may have no row in a minute, but it has seen ``intervals`` up to a version.
        """
        newest_ns = None
        if self._options.table.name != INTERVALS.name:
            with suppress(InputError, TableNotFoundError):
                newest_ns = self._seen_minute_ns(log)
        newest_ns = _newest_minute_ns(log.files()) if newest_ns is None else newest_ns
        if newest_ns is None:
            return 0
        return max(0, newest_ns + MINUTE_NS - self._options.delay_minutes * MINUTE_NS)

    def _seen_minute_ns(self, log: FollowedLog[TableFile]) -> int | None:
        """The newest minute of ``intervals`` in the version that the table has seen."""
        root = self._options.root
        source = _followed(root, INTERVALS)
        key = source_key(source.delta)
        version = log.delta.transaction_version(key)
        if version is None:
            return None
        if self._seen is None or self._seen[0] != (key, version):
            is_newest = version == source.version
            before = None if is_newest else open_snapshot(root, INTERVALS, version=version)
            live = source.files() if before is None else before.files()
            self._seen = (key, version), _newest_minute_ns(live)
        return self._seen[1]

    def _check_same_table(self, begin: Offset, end: Offset) -> None:
        if begin.table_id != end.table_id or begin.version > end.version:
            raise InputError(
                f"table {self._options.table.name} in {self._options.root} is not the one that "
                f"this stream has read{_ADVICE}"
            )


def _followed(root: str, table: Table) -> FollowedLog[TableFile]:
    """The table's log, of which this process does not keep what was removed."""
    log = followed(root, table.name)
    check_layout(log.delta, store_of(root).uri(table.name))
    log.forget_removed(log.version)
    return log


def _newest_minute_ns(files: Iterable[TableFile]) -> int | None:
    """The start of the newest minute; None without rows, or without a record of it."""
    return max((file.minutes_ns[1] for file in files if file.minutes_ns is not None), default=None)


_ADVICE: Final = "; start the stream with a new checkpoint, which reads the table from its start"


def hour_changes(
    before: list[TableFile], now: list[TableFile], closed_before_ns: int, closed_now_ns: int
) -> list[HourChange]:
    """The hours that may have changed rows, with their files of two versions.

    A file of both versions matters only if minutes of its hour were closed meanwhile.
    """
    old, new = {file.path for file in before}, {file.path for file in now}
    hours: dict[tuple[Any, ...], tuple[list[str], list[str], list[str]]] = defaultdict(
        lambda: ([], [], [])
    )
    for file in before:
        if file.path not in new:
            hours[_place(file)][0].append(file.path)
    for file in now:
        if file.path not in old:
            hours[_place(file)][1].append(file.path)
        elif file.hour * HOUR_NS < closed_now_ns and (file.hour + 1) * HOUR_NS > closed_before_ns:
            hours[_place(file)][2].append(file.path)
    return [
        HourChange(*(tuple(sorted(paths)) for paths in hours[place])) for place in sorted(hours)
    ]


def _place(file: TableFile) -> tuple[Any, ...]:
    """The hour of a file, and its kind if the table is partitioned by it."""
    return file.hour, file.partition.get("kind", "")


def _instant(time_ns: int) -> pa.Scalar:
    return pa.scalar(time_ns // NS_PER_US, TIMESTAMP)
