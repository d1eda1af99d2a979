"""Results of checks that the footers of a table's files hold."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import pyarrow.parquet as pq

from headgate.pipeline.kernels.file_checks import FOOTER_KEY, FileChecks
from headgate.pipeline.store.table_store import READ_AT_ONCE, TableStore


def file_checks(store: TableStore, table: str, paths: Iterable[str]) -> list[FileChecks | None]:
    """The results of some files of a table, in their order.

    None: another release wrote the file, and it has no results, or those of a later form.
    """

    def read(path: str) -> FileChecks | None:
        footer = pq.read_metadata(store.path(table, path), filesystem=store.files).metadata
        value = (footer or {}).get(FOOTER_KEY)
        return None if value is None else FileChecks.decoded(value)

    if not store.is_object_store:
        return [read(path) for path in paths]
    with ThreadPoolExecutor(READ_AT_ONCE) as pool:
        return list(pool.map(read, paths))
