"""The rows of one window, gathered until they are encoded."""

from __future__ import annotations

from typing import Final

from headgate.record.codec import Columns
from headgate.record.fields import Kind
from headgate.telemetry.records.limiters import LIMITER_COLUMNS
from headgate.telemetry.records.subjects import SUBSCRIPTION_COLUMNS, TOPIC_COLUMNS, Row

LAST_ROWS_MAX: Final = 4_096
"""Last rows of ended subjects, kept for one window; further ones are dropped."""

_COLUMNS: Final = {
    Kind.TOPIC: TOPIC_COLUMNS,
    Kind.SUBSCRIPTION: SUBSCRIPTION_COLUMNS,
    Kind.LIMITER: LIMITER_COLUMNS,
}

Tables = dict[Kind, Columns]


class RowBuffer:
    """Rows by the kind of their subject."""

    def __init__(self) -> None:
        self._rows: dict[Kind, list[Row]] = {kind: [] for kind in _COLUMNS}
        self._last_rows: list[tuple[Kind, Row]] = []
        self.count = 0
        """Rows that :meth:`take` may return now."""
        self.dropped_count = 0
        """Last rows dropped since the start."""

    def add(self, kind: Kind, row: Row | None) -> None:
        """Add a row of the window; None adds nothing."""
        if row is not None:
            self._rows[kind].append(row)
            self.count += 1

    def add_last(self, kind: Kind, row: Row | None) -> None:
        """Keep the last row of an ended subject for the next window; None keeps nothing."""
        if row is None:
            return
        if not self.has_room_for_last:
            self.drop_last()
            return
        self._last_rows.append((kind, row))

    def drop_last(self) -> None:
        """Count a last row for which there is no room."""
        self.dropped_count += 1

    @property
    def has_room_for_last(self) -> bool:
        """Whether :meth:`add_last` keeps a row; else there is no need to make it."""
        return len(self._last_rows) < LAST_ROWS_MAX

    def begin_window(self) -> None:
        """Put the last rows of ended subjects before the rows of the window."""
        last_rows, self._last_rows = self._last_rows, []
        for kind, row in last_rows:
            self.add(kind, row)

    def take(self, rows_max: int) -> Tables:
        """Remove and return the first rows as columns, at most ``rows_max``; kinds without rows are
        left out."""
        tables: Tables = {}
        for kind, rows in self._rows.items():
            taken = rows[:rows_max]
            if taken:
                tables[kind] = dict(zip(_COLUMNS[kind], zip(*taken, strict=True), strict=True))
                del rows[:rows_max]
                rows_max -= len(taken)
                self.count -= len(taken)
        return tables
