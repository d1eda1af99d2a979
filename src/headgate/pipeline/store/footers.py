"""What the footers of a table's files tell, without the files' rows.

A footer in memory takes some 200 kB for each row group of bronze, fifteen times its size in the
file. So it must be freed once it was read. Whoever uses a footer's ``schema`` keeps it: the two
hold each other, so only Python's garbage collector frees them, and it does not know their size.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow.parquet as pq

from headgate.pipeline.kernels.file_checks import FOOTER_KEY, FileChecks
from headgate.pipeline.store.table_store import TableStore


def column_places(footer: pq.FileMetaData) -> dict[str, int]:
    """Where each column is in the row groups, by its name; empty without row groups."""
    if not footer.num_row_groups:
        return {}
    group = footer.row_group(0)
    return {group.column(place).path_in_schema: place for place in range(group.num_columns)}


def column_max(store: TableStore, table: str, paths: Iterable[str], column: str) -> int | None:
    """The largest value of a column of whole numbers in some files of a table; None if there are no
    files, or the footer of one does not tell it. One footer is in memory at once."""

    def read(path: str) -> list[int] | None:
        footer = pq.read_metadata(store.path(table, path), filesystem=store.files)
        place = column_places(footer).get(column)
        found: list[int] = []
        for group in range(footer.num_row_groups):
            of_group = None if place is None else footer.row_group(group).column(place).statistics
            if of_group is None or not of_group.has_min_max:
                return None
            found.append(int(of_group.max))
        return found

    largest: list[int] = []
    for path in paths:
        of_file = read(path)
        if of_file is None:
            return None
        largest += of_file
    return max(largest, default=None)


def file_checks(store: TableStore, table: str, paths: Iterable[str]) -> list[FileChecks | None]:
    """The results of some files of a table, in their order.

    None: another release wrote the file, and it has no results, or those of a later form.
    """

    def read(path: str) -> FileChecks | None:
        footer = pq.read_metadata(store.path(table, path), filesystem=store.files).metadata
        value = (footer or {}).get(FOOTER_KEY)
        return None if value is None else FileChecks.decoded(value)

    return list(store.each(paths, read))
