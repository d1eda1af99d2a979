"""Commits to the Delta tables of a pipeline folder, made with delta-rs.

Rules of this file:

* One job fills a table, and another may drop, merge or delete files of it (``table_leases``). In S3
  a job can lose its lease. So before each commit in S3 the functions here read the lease.
* A commit makes the version after the loaded one, or none. If another job was first, the function
  loads the table again and decides anew what to add and remove.
* A commit is idempotent by its application transaction: the function loads the table, compares the
  version, and commits with the same handle. A fresh handle would commit the transaction twice.
* Delta truncates a maximum statistic to milliseconds. Readers that prune by it must round up.
* No commit deletes old log entries: derived tables read the versions since their last refresh.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.schema import Schema
from deltalake.transaction import AddAction, PostCommitHookProperties, RemoveAction

from headgate.base.clock import SystemClock
from headgate.base.errors import InputError
from headgate.base.units import NS_PER_S
from headgate.pipeline.failures import PipelineError
from headgate.pipeline.store.idempotent_commit import (
    CommitConflictError,
    commit,
    commit_properties,
)
from headgate.pipeline.store.lease import housekeeping_name
from headgate.pipeline.store.lock_tokens import check_lease
from headgate.pipeline.store.parquet_files import FileAdded, TableFiles
from headgate.pipeline.store.table_store import TableStore, store_of
from headgate.pipeline.tables.arrow_types import plain_schema, table_arrow_schema
from headgate.pipeline.tables.columns import DAY_HOURS, EPOCH, HOUR_NS, MINUTE_NS, Table
from headgate.pipeline.tables.touched_minutes import TouchedMinutes

LAYOUT_VERSION: Final = 1
"""Version of the tables' layout; a folder with another one is refused."""

_LAYOUT_KEY: Final = "headgate.layout"

_PROPERTIES: Final = {"delta.deletedFileRetentionDuration": "interval 1 days"}
"""Properties of every table: how long the log tells of removed files. A stream removes some fifteen
files of ``intervals`` with each trigger. In a week, which is usual, these are a million, and each
commit reads them."""

_KEPT_FROM: Final = "headgate.kept_from_hour"
"""Application transaction whose version is the first hour (since the epoch) that retention kept.
The commit that drops rows also sets it, so the two always agree."""

TOUCHED_KEY: Final = "headgate.touched"
"""Key in a commit's metadata: which minutes of which hours it replaced."""

COMMIT_ATTEMPTS_MAX: Final = 20
"""How often a commit is tried while other jobs write the same table; each of them makes a version
when this one fails."""

REWRITE_ROWS: Final = 25_000
"""Rows that are read at once of a file that is written again."""

COMMIT_HOOKS: Final = PostCommitHookProperties(cleanup_expired_logs=False)
"""Actions after a commit: a checkpoint after every hundred commits, so that a table opens quickly.
Only ``housekeeping.log_cleanup`` shortens the log, because it knows which tables still read it."""


@dataclass(frozen=True, slots=True)
class AppTransaction:
    """An application's transaction; a second commit with it, or with an older one, does nothing."""

    app_id: str
    version: int


def ensure_table(root: str, table: Table) -> DeltaTable:
    """Open a table. Create it if it is absent, and add columns and properties that it lacks.

    Raises:
        InputError: the folder holds a table of another layout version.
        LockLostError: the table needs a change, and another job has the lock.
    """
    store = store_of(root)
    try:
        delta = open_table(root, table)
    except TableNotFoundError:
        # A run that was killed while it created the table may have left an empty log folder.
        check_lease(root, table.name)
        return _created(store, table)
    if missing_columns(delta, table):
        delta = _altered(root, table, _add_columns)
    return delta if _has_properties(delta) else _altered(root, table, _set_properties)


Alter = Callable[[DeltaTable, Table, CommitProperties], None]
"""Changes the metadata of a loaded table in one commit."""


def _altered(root: str, table: Table, alter: Alter) -> DeltaTable:
    def attempt(current: DeltaTable) -> bool:
        commit(store_of(root), table.name, current, lambda given: alter(current, table, given))
        return True

    check_lease(root, table.name)
    _until_committed(root, table.name, lambda: open_table(root, table), attempt)
    return open_table(root, table)


def _add_columns(current: DeltaTable, table: Table, properties: CommitProperties) -> None:
    absent = set(missing_columns(current, table))
    fields = Schema.from_arrow(table_arrow_schema(table)).fields
    current.alter.add_columns(
        [field for field in fields if field.name in absent],
        commit_properties=properties,
        post_commithook_properties=COMMIT_HOOKS,
    )


def _set_properties(current: DeltaTable, _: Table, properties: CommitProperties) -> None:
    current.alter.set_table_properties(
        _PROPERTIES, commit_properties=properties, post_commithook_properties=COMMIT_HOOKS
    )


def _has_properties(delta: DeltaTable) -> bool:
    have = delta.metadata().configuration
    return all(have.get(name) == value for name, value in _PROPERTIES.items())


def missing_columns(delta: DeltaTable, table: Table) -> list[str]:
    """Columns of this release that the folder's table, written by an earlier one, lacks."""
    have = {field.name for field in delta.schema().fields}
    return [name for name in table.column_names() if name not in have]


def _created(store: TableStore, table: Table) -> DeltaTable:
    store.make_folder(table.name)
    try:
        return DeltaTable.create(
            store.url(table.name),
            Schema.from_arrow(table_arrow_schema(table)),
            partition_by=list(table.partition_by),
            name=table.name,
            configuration={_LAYOUT_KEY: str(LAYOUT_VERSION), **_PROPERTIES},
            storage_options=store.storage_options,
            commit_properties=commit_properties(),
            raise_if_key_not_exists=False,
        )
    except DeltaError:
        # Another job was first, or a response was lost and delta-rs then found its own table.
        if not store.is_table(table.name):
            raise
        return open_table(store.root, table)


def open_table(root: str, table: Table) -> DeltaTable:
    """An existing table, only to be read: nothing is created or added.

    Raises:
        InputError: it is of another layout version.
    """
    store = store_of(root)
    delta = store.delta(table.name)
    check_layout(delta, store.uri(table.name))
    return delta


def check_layout(delta: DeltaTable, path: str) -> None:
    """Check that a table at ``path`` has the layout of this version.

    Raises:
        InputError: it has another layout version.
    """
    layout = delta.metadata().configuration.get(_LAYOUT_KEY)
    if layout != str(LAYOUT_VERSION):
        is_newer = (layout or "").isdigit() and int(layout or 0) > LAYOUT_VERSION
        advice = "use the newer release that wrote it" if is_newer else "choose another folder"
        raise InputError(
            f"{path} has table layout {layout}; this version reads and writes {LAYOUT_VERSION}: "
            f"{advice}"
        )


def commit_append(
    root: str, table: Table, files: Sequence[FileAdded], transaction: AppTransaction | None
) -> bool:
    """Add files in one commit; False if the transaction was committed before."""
    return _fill(root, table, lambda _: _Change(files, [], transaction))


def commit_replace(
    root: str,
    table: Table,
    files: Sequence[FileAdded],
    replaced: Collection[int],
    transaction: AppTransaction | None,
    *others: AppTransaction,
) -> bool:
    """Replace all rows of some minutes by files, in one commit; False if it was committed before.

    ``replaced``: ``TouchedMinutes``, or hours since the epoch as :attr:`TableFile.hour`. Where a
    live file also has rows of other minutes, those are written into a file of their own first. The
    commit records the minutes, which tables that follow from this one compute again.
    ``others``: more transactions, for a table with several sources.
    """
    whole = TouchedMinutes.whole
    touched = replaced if isinstance(replaced, TouchedMinutes) else whole(replaced)
    kept: list[FileAdded] = []

    def change(delta: DeltaTable) -> _Change:
        _delete_written(root, kept)
        old = [f for f in _files_of_hours(delta, touched) if touched.overlaps(*f.span_ns)]
        mixed = [file for file in old if not touched.contains(*file.span_ns)]
        done = _Change(files, old, transaction, others=others).is_done(delta)
        kept[:] = [] if done else rows_beside(root, table, delta, mixed, touched)
        return _Change([*files, *kept], old, transaction, touched=touched, others=others)

    try:
        return _fill(root, table, change)
    except BaseException:
        _delete_written(root, kept)
        raise


def rows_beside(
    root: str,
    table: Table,
    delta: DeltaTable,
    files: Sequence[TableFile],
    touched: TouchedMinutes,
) -> list[FileAdded]:
    """New files with the rows of some files that lie outside some minutes."""
    if not files:
        return []
    schema = plain_schema(pa.schema(delta.schema().to_arrow()))
    writer = TableFiles(root, table, "kept", schema=schema)
    store = store_of(root)
    try:
        for file in files:
            dataset = store.dataset(table.name, [file.path], schema, table.partition_by)
            minutes = touched[file.hour]
            # Rows that are read ahead take memory.
            for batch in dataset.to_batches(
                batch_size=REWRITE_ROWS, batch_readahead=0, fragment_readahead=0
            ):
                minute = pc.minute(batch.column("minute"))
                inside = pc.and_(
                    pc.greater_equal(minute, minutes.start), pc.less(minute, minutes.stop)
                )
                writer.write(pa.Table.from_batches([batch.filter(pc.invert(inside))]))
        return writer.close()
    except BaseException:
        writer.abandon()
        raise


def _delete_written(root: str, files: Sequence[FileAdded]) -> None:
    """Delete files that were written for a commit that was not made."""
    store_of(root).delete([f"{file.table}/{file.path}" for file in files])


def commit_drop(root: str, name: str, before_hour: int) -> list[TableFile]:
    """Drop all hours before one (since the epoch) in one commit, and return their files.

    From then on :func:`kept_from_hour` tells dropped hours from empty ones.
    """
    dropped: list[TableFile] = []

    def change(delta: DeltaTable) -> _Change | None:
        kept = kept_from_hour(delta)
        # Late rows of dropped hours are dropped, too, even if retention was extended meanwhile.
        first = before_hour if kept is None else max(before_hour, kept)
        dropped[:] = [file for file in table_files(delta) if file.hour < first]
        mark = AppTransaction(_KEPT_FROM, first) if kept is None or first > kept else None
        return _Change([], dropped, mark) if dropped else None

    return dropped if _keep_house(root, name, change) else []


def commit_rewritten(
    root: str, name: str, old: Sequence[TableFile], new: Sequence[FileAdded]
) -> bool:
    """Replace files by others with the same rows, in one commit; False if one is replaced already.

    Tables that follow from this one do not see a change.
    """
    paths = {file.path for file in old}

    def change(delta: DeltaTable) -> _Change | None:
        live = pa.table(delta.get_add_actions(flatten=True))["path"].to_pylist()
        return _Change(new, old, None, is_change=False) if paths <= {*live} else None

    return _keep_house(root, name, change)


def kept_from_hour(delta: DeltaTable) -> int | None:
    """The first hour that retention kept, counted since the epoch; None: it kept all."""
    hour: int | None = delta.transaction_version(_KEPT_FROM)
    return hour


def has_seen(delta: DeltaTable, transaction: AppTransaction) -> bool:
    """Whether a table has committed a transaction, or a later one of the same application."""
    version = delta.transaction_version(transaction.app_id)
    return version is not None and version >= transaction.version


def source_key(source: DeltaTable) -> str:
    """The application id under which a derived table stores its source's seen version."""
    metadata = source.metadata()
    return f"{metadata.name}:{metadata.id}"


def commit_replace_partition(
    root: str, table: Table, files: Sequence[FileAdded], partition: Mapping[str, str]
) -> bool:
    """Replace all rows of one partition by files, in one commit; for tables without hours.

    ``partition``: values of the table's partition columns, as text. False if there were no rows and
    are none.
    """

    def change(delta: DeltaTable) -> _Change:
        old = [file for file in table_files(delta) if file.partition == partition]
        return _Change(files, old, None)

    return _fill(root, table, change)


@dataclass(frozen=True, slots=True)
class _Change:
    """What one commit does to a table."""

    added: Sequence[FileAdded]
    removed: Sequence[TableFile]
    transaction: AppTransaction | None
    is_change: bool = True
    """Whether the table's rows change."""
    touched: TouchedMinutes | None = None
    """The minutes that it replaces, if it replaces minutes."""
    others: Sequence[AppTransaction] = ()

    @property
    def transactions(self) -> list[AppTransaction]:
        """All transactions of the commit."""
        return [each for each in (self.transaction, *self.others) if each is not None]

    def is_done(self, delta: DeltaTable) -> bool:
        """Whether there is nothing to commit: the transactions were committed, or nothing
        changes."""
        if not self.transactions:
            return not self.added and not self.removed
        return all(has_seen(delta, each) for each in self.transactions)

    def actions(self) -> list[AddAction | RemoveAction]:
        """The lines of the log."""
        now_ms = SystemClock.wall_ns() // 1_000_000
        return [
            *(
                AddAction(
                    file.path,
                    file.size_bytes,
                    dict(file.partition),
                    file.modified_ms,
                    self.is_change,
                    file.statistics,
                )
                for file in self.added
            ),
            *(
                RemoveAction(
                    path=file.path,
                    data_change=self.is_change,
                    deletion_timestamp=now_ms,
                    size=file.size_bytes,
                    partition_values=dict(file.partition),
                )
                for file in self.removed
            ),
        ]


def _fill(root: str, table: Table, change: Callable[[DeltaTable], _Change]) -> bool:
    """Commit under the lease of the job that fills a table."""
    return _until_committed(
        root,
        table.name,
        lambda: ensure_table(root, table),
        lambda delta: _committed(root, delta, change(delta), table.name),
    )


def _keep_house(root: str, name: str, change: Callable[[DeltaTable], _Change | None]) -> bool:
    """Commit under the lease of the job that keeps a table's files in order."""
    return _until_committed(
        root,
        name,
        lambda: store_of(root).delta(name),
        lambda delta: _committed(root, delta, change(delta), housekeeping_name(name)),
    )


def _until_committed(
    root: str, name: str, load: Callable[[], DeltaTable], attempt: Callable[[DeltaTable], bool]
) -> bool:
    """Repeat an attempt on a newly loaded table while other jobs write the versions between."""
    for _ in range(COMMIT_ATTEMPTS_MAX):
        try:
            return attempt(load())
        except CommitConflictError:
            continue
    raise PipelineError(
        f"table {name} in {root} was changed by another job {COMMIT_ATTEMPTS_MAX} times while this "
        "one tried to commit; the next run repeats its work"
    )


def _committed(root: str, delta: DeltaTable, change: _Change | None, lease: str) -> bool:
    if change is None or change.is_done(delta):
        return False
    check_lease(root, lease)
    metadata = delta.metadata()
    commit(
        store_of(root),
        metadata.name,
        delta,
        lambda properties: delta.create_write_transaction(
            change.actions(),
            mode="append",
            schema=delta.schema(),
            partition_by=metadata.partition_columns,
            commit_properties=properties,
            post_commithook_properties=COMMIT_HOOKS,
        ),
        [Transaction(made.app_id, made.version) for made in change.transactions],
        {} if change.touched is None else {TOUCHED_KEY: change.touched.to_json()},
    )
    return True


@dataclass(frozen=True, slots=True)
class TableFile:
    """One live file of a table."""

    path: str
    """Relative to the table's folder."""
    size_bytes: int
    partition: dict[str, str]
    rows: int
    window_ends_ns: tuple[int, int] | None
    """Minimum and maximum of ``window_end_ns``, if the table has that column."""
    minutes_ns: tuple[int, int] | None = None
    """Starts of the first and the last minute of its rows, if the log tells them."""

    @property
    def hour(self) -> int:
        """Hours since the epoch of its (date, hour) partition."""
        return partition_hour(self.partition)

    @property
    def span_ns(self) -> tuple[int, int]:
        """Bounds of its rows' times: the first and the last nanosecond."""
        if self.window_ends_ns is None:
            if self.minutes_ns is not None:
                return self.minutes_ns[0], self.minutes_ns[1] + MINUTE_NS - 1
            return self.hour * HOUR_NS, (self.hour + 1) * HOUR_NS - 1
        return self.window_ends_ns[0] - 1, self.window_ends_ns[1] - 1


def partition_hour(partition: Mapping[str, str | None]) -> int:
    """Hours since the epoch, from partition values as the log has them."""
    day = date.fromisoformat(str(partition["date"]))
    return (day - EPOCH).days * 24 + int(partition["hour"] or 0)


def table_files(delta: DeltaTable) -> list[TableFile]:
    """All live files of the loaded version."""
    actions = pa.table(delta.get_add_actions(flatten=True))
    return files_of_actions(actions, delta.metadata().partition_columns)


def _files_of_hours(delta: DeltaTable, hours: Collection[int]) -> list[TableFile]:
    """The live files of some hours. No object is made for the other files, which may be many."""
    actions = pa.table(delta.get_add_actions(flatten=True))
    days = {EPOCH + timedelta(days=hour // DAY_HOURS) for hour in hours}
    if actions.num_rows:
        wanted = pc.is_in(actions["partition.date"], pa.array(sorted(days), pa.date32()))
        actions = actions.filter(wanted)
    files = files_of_actions(actions, delta.metadata().partition_columns)
    return [file for file in files if file.hour in hours]


def files_of_actions(actions: pa.Table, partition_by: Sequence[str]) -> list[TableFile]:
    """The files that some rows of ``get_add_actions(flatten=True)`` describe."""
    return [
        TableFile(
            action["path"],
            action["size_bytes"],
            {name: _partition_text(action[f"partition.{name}"]) for name in sorted(partition_by)},
            action.get("num_records") or 0,
            _ends(action.get("min.window_end_ns"), action.get("max.window_end_ns")),
            _minutes(action.get("min.minute"), action.get("max.minute")),
        )
        for action in actions.to_pylist()
    ]


def _partition_text(value: object) -> str:
    return value.isoformat() if isinstance(value, date) else str(value)


def _ends(least: object, largest: object) -> tuple[int, int] | None:
    if isinstance(least, int) and isinstance(largest, int):
        return least, largest
    return None


def _minutes(least: object, largest: object) -> tuple[int, int] | None:
    """Bounds of ``minute`` in ns, from what the log has; whole minutes lose nothing there."""
    first, last = _instant_ns(least), _instant_ns(largest)
    return None if first is None or last is None else (first, last)


def _instant_ns(value: object) -> int | None:
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return int(value.timestamp()) * NS_PER_S if isinstance(value, datetime) else None


def file_of_action(added: Mapping[str, Any]) -> TableFile:
    """The file of an ``add`` action, as the log has it."""
    stats = json.loads(added.get("stats") or "{}")
    least, largest = stats.get("minValues", {}), stats.get("maxValues", {})
    return TableFile(
        added["path"],
        added["size"],
        {name: str(value) for name, value in sorted(added["partitionValues"].items())},
        stats.get("numRecords", 0),
        _ends(least.get("window_end_ns"), largest.get("window_end_ns")),
        _minutes(least.get("minute"), largest.get("minute")),
    )
