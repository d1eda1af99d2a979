"""The table ``demonstrated_rates``: rates that consumers have shown, by subscription and hour."""

from __future__ import annotations

from typing import Final

from headgate.pipeline.tables.attribution import ATTRIBUTION_KEY
from headgate.pipeline.tables.columns import PARTITION, ColumnType, Table, TableColumn
from headgate.pipeline.tables.intervals import INTERVALS

KEY_COLUMNS: Final = tuple(c for c in INTERVALS.columns if c.name in ATTRIBUTION_KEY)

RATES: Final = TableColumn(
    "rates_per_s",
    ColumnType.DOUBLES,
    "Messages acknowledged per second in each of the hour's 60 minutes, null where the minute"
    " demonstrates no rate.",
    "messages/s",
    is_required=True,
)

DEMONSTRATED_RATES: Final = Table(
    "demonstrated_rates",
    (*PARTITION, *KEY_COLUMNS, RATES),
    ("date", "hour"),
    (),
    meaning="One row for each subscription and hour in which its consumers have shown a rate.",
    key=("date", "hour", *ATTRIBUTION_KEY),
    follows_from=(INTERVALS.name,),
)
