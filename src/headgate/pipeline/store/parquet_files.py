"""Parquet files of Delta tables, which no reader sees until they are committed.

Every file name is unique, so a task that is killed and repeated leaves only an orphan file.
Partition columns are in the path and in the commit, not in the file. The footer holds how the rows
met the expectations of their table (``kernels.file_checks``).
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headgate.base.clock import SystemClock
from headgate.base.units import MIB
from headgate.pipeline.kernels.file_checks import FOOTER_KEY
from headgate.pipeline.kernels.row_checks import RowChecks
from headgate.pipeline.store.footers import column_places
from headgate.pipeline.store.table_store import TableStore, store_of
from headgate.pipeline.tables.arrow_types import table_arrow_schema
from headgate.pipeline.tables.catalogue import TABLES
from headgate.pipeline.tables.columns import DAY_HOURS, EPOCH, Table

MINUTE_COLUMN: Final = "minute"

ROWS_BUFFERED_MAX: Final = 50_000
"""Rows that a writer buffers, over all partitions, before it writes row groups."""

BYTES_BUFFERED_MAX: Final = 256 * MIB
"""Bytes that a writer buffers likewise: a row has some 1.5 KB, and more with long names."""

FILES_OPEN_MAX: Final = 32
"""Files that a writer keeps open; after days without a run, rows are of very many hours."""

FILE_BYTES_MAX: Final = 128 * MIB
"""A file that reached this size gets no more rows: the next ones begin another file."""


@dataclass(frozen=True, slots=True)
class FileAdded:
    """One finished file, as the Delta log describes it. It is sent to the driver."""

    table: str
    path: str
    """Relative to the table's folder."""
    size_bytes: int
    partition: tuple[tuple[str, str], ...]
    """Partition column and its value as text."""
    rows: int
    modified_ms: int
    statistics: str
    """Delta's JSON: numRecords, minValues, maxValues."""


class TableFiles:
    """Writer of Arrow rows into files, with one open file for each partition."""

    def __init__(
        self,
        root: str,
        table: Table,
        task: str,
        *,
        schema: pa.Schema | None = None,
        file_bytes_max: int = FILE_BYTES_MAX,
        by_minute: Collection[int] = (),
    ) -> None:
        """``schema``: the columns of the rows; None stands for those of this release.

        ``by_minute``: hours since the epoch of which each minute gets files of its own.
        """
        self._store = store_of(root)
        self._table = table
        self._task = task
        self._file_bytes_max = file_bytes_max
        self._by_minute = frozenset(by_minute)
        schema = table_arrow_schema(table) if schema is None else schema
        self._schema = pa.schema([f for f in schema if f.name not in table.partition_by])
        self._open: dict[tuple[str, ...], _OpenFile] = {}
        """By partition values, and the minute if it has files of its own; the one written last is
        at the end."""
        self._finished: list[_OpenFile] = []
        self._added: list[FileAdded] = []

    def write(self, rows: pa.Table) -> None:
        """Add rows; they have all columns of the table, in any order."""
        for values, part in self._parts(rows):
            file = self._open.pop(values, None) or self._new_file(values)
            self._open[values] = file
            file.add(part.select(self._schema.names).cast(self._schema))
            if len(self._open) > FILES_OPEN_MAX:
                self._finish(next(iter(self._open)))
        if sum(file.share for file in self._open.values()) >= _share_max():
            self._flush()

    def _flush(self) -> None:
        """Write the rows of the files that have most of them, until a quarter of all may be left.

        Otherwise a file of few rows, as that of kind ``batch``, would get a row group each time.
        The driver reads these, and their footers would be larger than their rows.
        """
        left = sum(file.share for file in self._open.values())
        fullest_first = sorted(self._open.items(), key=lambda open_: -open_[1].share)
        for values, file in fullest_first:
            if left <= _share_max() // 4:
                return
            left -= file.share
            file.flush()
            if file.size_bytes >= self._file_bytes_max:
                self._finish(values)

    def _parts(self, rows: pa.Table) -> Iterable[tuple[tuple[str, ...], pa.Table]]:
        """The rows of each file."""
        for values, part in _split(rows, self._table.partition_by):
            if not self._by_minute or self._hour(values) not in self._by_minute:
                yield values, part
                continue
            for (minute,), rows_of_minute in _split(part, (MINUTE_COLUMN,)):
                yield (*values, minute), rows_of_minute

    def _hour(self, values: tuple[str, ...]) -> int:
        named = dict(zip(self._table.partition_by, values, strict=True))
        day = date.fromisoformat(named["date"])
        return (day - EPOCH).days * DAY_HOURS + int(named["hour"])

    def _finish(self, values: tuple[str, ...]) -> None:
        file = self._open.pop(values)
        self._finished.append(file)
        self._added.append(file.finish(self._table))

    def _new_file(self, values: tuple[str, ...]) -> _OpenFile:
        # A minute of its own comes after the partition's values.
        pairs = tuple(zip(self._table.partition_by, values, strict=False))
        folder = "/".join(f"{name}={value}" for name, value in pairs)
        self._store.make_folder(self._table.name, folder)
        path = f"{folder}/part-{self._task}-{uuid.uuid4().hex}.zstd.parquet"
        return _OpenFile(self._store, self._table, path, pairs, self._schema)

    def close(self) -> list[FileAdded]:
        """Finish all files."""
        for values in list(self._open):
            self._finish(values)
        added, self._added, self._finished = self._added, [], []
        return added

    def abandon(self) -> None:
        """Close and delete unfinished files."""
        for file in (*self._finished, *self._open.values()):
            file.abandon()
        self._open.clear()
        self._added, self._finished = [], []


def _share_max() -> int:
    return ROWS_BUFFERED_MAX * BYTES_BUFFERED_MAX


class _OpenFile:
    def __init__(
        self,
        store: TableStore,
        table: Table,
        path: str,
        partition: tuple[tuple[str, str], ...],
        schema: pa.Schema,
    ) -> None:
        self._store, self._table = store, table.name
        self._path, self._partition = path, partition
        self._checks = RowChecks(table, dict(partition))
        self._sink = store.files.open_output_stream(store.path(table.name, path))
        self._footers: list[pq.FileMetaData] = []
        # A copy of the schema for Arrow only would be a third of a small file.
        self._writer = pq.ParquetWriter(
            self._sink,
            schema,
            compression="zstd",
            version="2.6",
            store_schema=False,
            metadata_collector=self._footers,
        )
        self._pieces: list[pa.Table] = []
        self.buffered = self._buffered_bytes = 0
        self._rows = 0

    @property
    def size_bytes(self) -> int:
        """Bytes that were written so far, without the buffered rows."""
        return int(self._sink.tell())

    @property
    def share(self) -> int:
        """What is buffered, of :func:`_share_max` that a writer buffers over all its files."""
        return max(self.buffered * BYTES_BUFFERED_MAX, self._buffered_bytes * ROWS_BUFFERED_MAX)

    def add(self, rows: pa.Table) -> None:
        """Add rows without partition columns; they are written in large groups."""
        self._pieces.append(rows)
        self.buffered += rows.num_rows
        self._buffered_bytes += rows.nbytes

    def flush(self) -> None:
        """Write the buffered rows as a row group."""
        if self._pieces:
            rows = pa.concat_tables(self._pieces)
            self._checks.add(rows)
            self._writer.write_table(rows, row_group_size=1 << 20)
        self._rows += self.buffered
        self._pieces, self.buffered, self._buffered_bytes = [], 0, 0

    def finish(self, table: Table) -> FileAdded:
        """Write the buffered rows, close the file and describe it."""
        self.flush()
        self._writer.add_key_value_metadata({FOOTER_KEY: self._checks.finish().encoded()})
        self._writer.close()
        size_bytes = self._sink.tell()
        self._sink.close()
        statistics = _statistics(self._footers[0], table.statistics, self._rows)
        return FileAdded(
            table.name,
            self._path,
            size_bytes,
            self._partition,
            self._rows,
            SystemClock.wall_ns() // 1_000_000,
            json.dumps(statistics),
        )

    def abandon(self) -> None:
        """Close and delete the file."""
        self._writer.close()
        self._sink.close()
        self._store.delete([f"{self._table}/{self._path}"])


def _split(
    rows: pa.Table, partition_by: tuple[str, ...]
) -> Iterable[tuple[tuple[str, ...], pa.Table]]:
    if rows.num_rows == 0:
        return
    groups = rows.select(partition_by).group_by(list(partition_by)).aggregate([])
    for group in groups.to_pylist():
        values = tuple(_text(group[name]) for name in partition_by)
        if groups.num_rows == 1:
            yield values, rows
            return
        mask = None
        for name in partition_by:
            equal = pc.equal(rows.column(name), pa.scalar(group[name]))
            mask = equal if mask is None else pc.and_(mask, equal)
        yield values, rows.filter(mask)


def _text(value: Any) -> str:
    return value.isoformat() if isinstance(value, date) else str(value)


def _statistics(
    metadata: pq.FileMetaData, names: tuple[str, ...], row_count: int
) -> Mapping[str, Any]:
    least: dict[str, Any] = {}
    largest: dict[str, Any] = {}
    places = column_places(metadata)
    # A merged file of an earlier release may lack a column.
    for name in (name for name in names if name in places):
        found = [
            metadata.row_group(group).column(places[name]).statistics
            for group in range(metadata.num_row_groups)
        ]
        if found and all(s is not None and s.has_min_max for s in found):
            least[name] = _delta_value(min(s.min for s in found))
            largest[name] = _delta_value(max(s.max for s in found))
    return {"numRecords": row_count, "minValues": least, "maxValues": largest}


def _delta_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return value


def write_tables(
    root: str,
    task: str,
    tables: Iterable[tuple[str, pa.Table]],
    by_minute: Collection[int] = (),
) -> list[FileAdded]:
    """Write (table name, rows) pairs and finish all files; on an error nothing is left.

    ``by_minute``: as :class:`TableFiles`.
    """
    writers: dict[str, TableFiles] = {}
    try:
        for name, rows in tables:
            if name not in writers:
                writers[name] = TableFiles(root, TABLES[name], task, by_minute=by_minute)
            writers[name].write(rows)
        return [added for writer in writers.values() for added in writer.close()]
    except BaseException:
        for writer in writers.values():
            writer.abandon()
        raise
