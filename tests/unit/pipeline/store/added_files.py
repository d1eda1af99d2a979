"""The files that a table got since a version."""

from __future__ import annotations

from deltalake import DeltaTable

from headgate.pipeline.store.delta_log import TableFile, table_files
from headgate.pipeline.store.log_changes import change_since
from headgate.pipeline.tables.columns import Table


def files_added(
    root: str, table: Table, delta: DeltaTable, after_version: int | None
) -> list[TableFile]:
    """Files with new rows after a version, up to the loaded one; all live files without one."""
    change = change_since(
        root, table.name, after_version, delta.version(), lambda: table_files(delta)
    )
    return change.files
