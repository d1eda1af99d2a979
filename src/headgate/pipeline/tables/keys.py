"""The columns that identify a row, of the tables with a row for each subject and minute."""

from __future__ import annotations

from typing import Final

from headgate.pipeline.tables.catalogue import TABLES

MINUTE: Final = "minute"

ROW_KEYS: Final = {table.name: table.key for table in TABLES.values() if MINUTE in table.key}
"""By table; a column may be null in a key."""
