"""The largest value of a column in a file, for each value of another column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.pipeline.store.table_store import TableStore

PART_ROWS: Final = 1 << 16
"""Rows that are read at once."""


def largest_by(
    store: TableStore, table: str, path: str, by: str, column: str
) -> dict[str | None, int]:
    """The largest number in ``column``, by the text in ``by``, which may be None.

    A row group whose footer says that all its rows have the same text is not read: so much memory
    and time as the footer takes, whatever the file's size. Others are read in parts.
    """
    found: dict[str | None, int] = {}
    file = pq.ParquetFile(store.path(table, path), filesystem=store.files, read_dictionary=[by])
    with file:
        for number in range(file.num_row_groups):
            told = _in_footer(file.metadata.row_group(number), by, column)
            for part in _in_rows(file, number, by, column) if told is None else (told,):
                for text, largest in part.items():
                    found[text] = max(found.get(text, largest), largest)
    return found


def _in_footer(group: pq.RowGroupMetaData, by: str, column: str) -> dict[str | None, int] | None:
    """What the footer tells of a row group with one text; None if it has more, or does not tell."""
    columns = (group.column(place) for place in range(group.num_columns))
    statistics = {each.path_in_schema: each.statistics for each in columns}
    texts, numbers = statistics[by], statistics[column]
    if texts is None or numbers is None or not numbers.has_min_max or not texts.has_null_count:
        return None
    if texts.null_count == group.num_rows:
        return {None: numbers.max}
    if texts.null_count or not texts.has_min_max or texts.min != texts.max:
        return None
    return {texts.min: numbers.max}


def _in_rows(
    file: pq.ParquetFile, number: int, by: str, column: str
) -> Iterator[Mapping[str | None, int]]:
    """What parts of a row group have. A part has each text once, as the file does."""
    parts = file.iter_batches(
        PART_ROWS, row_groups=[number], columns=[by, column], use_threads=False
    )
    for part in parts:
        rows = pa.Table.from_batches([part]).group_by(by).aggregate([(column, "max")])
        texts, numbers = rows[by].to_pylist(), rows[f"{column}_max"].to_pylist()
        yield dict(zip(texts, numbers, strict=True))
