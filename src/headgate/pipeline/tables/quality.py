"""The table ``quality``: whether the rows of each table and hour are as declared."""

from __future__ import annotations

from typing import Final

from headgate.pipeline.tables.columns import (
    LONG,
    PARTITION,
    STRING,
    ColumnType,
    Table,
    TableColumn,
    required,
)

QUALITY: Final = Table(
    "quality",
    (
        *PARTITION,
        *required(
            TableColumn("hour_start", ColumnType.TIMESTAMP, "Start of the hour that was checked."),
            TableColumn("table_name", STRING, "Table whose rows of that hour were checked."),
            TableColumn("expectation", STRING, "Name of the expectation, as in the reference."),
            TableColumn("is_met", ColumnType.BOOLEAN, "Whether no row fails."),
            TableColumn("rows_checked", LONG, "Rows that the expectation applies to.", least=0),
            TableColumn("rows_failed", LONG, "Rows among them that fail.", least=0),
        ),
        TableColumn(
            "failed_columns", STRING, "Columns that fail, separated by commas; null if none does."
        ),
        TableColumn(
            "example",
            STRING,
            "Key of one row that fails: one JSON object; null if there is none.",
            json_fields=(),
        ),
        TableColumn(
            "first_failed", ColumnType.TIMESTAMP, "Time of the first row that fails, or null."
        ),
        TableColumn(
            "last_failed", ColumnType.TIMESTAMP, "Time of the last row that fails, or null."
        ),
        TableColumn("sentence", STRING, "The row in words."),
    ),
    ("date", "hour"),
    ("hour_start",),
    meaning="One row for each hour, table and expectation.",
    key=("hour_start", "table_name", "expectation"),
)
"""It follows from all tables that are stored by the hour."""
