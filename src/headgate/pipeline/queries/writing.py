"""Writes the rows of a query: selected columns as a table, all columns as JSON or CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TextIO

from headgate.pipeline.options import FolderOptions
from headgate.pipeline.output.rows import write_rows

Rows = Sequence[Mapping[str, Any]]


def write_found(folder: FolderOptions, rows: Rows, shown: Sequence[str], out: TextIO) -> None:
    """Write rows: a table has the columns ``shown``, JSON and CSV have all."""
    have = [name for name in (rows[0] if rows else ()) if _is_plain(rows[0][name])]
    columns = [name for name in shown if name in have] if folder.format == "table" else have
    write_rows(
        folder.format,
        columns if have else shown,
        rows,
        out,
        width=folder.width,
        color=folder.color,
    )


def _is_plain(value: Any) -> bool:
    """Whether JSON and CSV can have the value, as ``rows.plain_value`` writes it."""
    return value is None or isinstance(
        value, str | int | float | bytes | datetime | list | tuple | dict
    )
