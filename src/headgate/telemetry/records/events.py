"""The events between two batches: a bounded list of rows."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from headgate.record.codec import Columns

EVENTS_MAX: Final = 2_000
"""Events kept for one batch; further ones are counted and dropped."""

EVENTS_PER_YIELD: Final = 4
"""Events that the end of a window makes between two yields, of 60 us each, and more of an eviction
from many subscriptions."""

EVENT_COLUMNS: Final = (
    "time_ns", "event", "topic", "subscription", "incarnation", "inputs", "outcome",
)  # fmt: skip


class EventLog:
    """Collects events until the next batch takes them."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, str, str | None, str | None, int | None, str, str]] = []
        self.dropped_count = 0
        """Events dropped since the start."""

    def add(
        self,
        time_ns: int,
        event: str,
        *,
        topic: str | None = None,
        subscription: str | None = None,
        incarnation: int | None = None,
        inputs: dict[str, Any] | None = None,
        outcome: dict[str, Any] | None = None,
    ) -> None:
        """Add an event; ``event`` is one of :data:`headgate.record.fields.EVENT_NAMES`."""
        if self.is_full:
            self.drop()
            return
        row = (
            time_ns,
            event,
            topic,
            subscription,
            incarnation,
            msgspec.json.encode(inputs or {}).decode(),
            msgspec.json.encode(outcome or {}).decode(),
        )
        self._rows.append(row)

    @property
    def is_full(self) -> bool:
        """Whether :meth:`add` drops an event; then there is no need to make it."""
        return len(self._rows) >= EVENTS_MAX

    def drop(self) -> None:
        """Count an event for which there is no room."""
        self.dropped_count += 1

    @property
    def count(self) -> int:
        """Events that :meth:`take` may return now."""
        return len(self._rows)

    def take(self, rows_max: int = EVENTS_MAX) -> Columns | None:
        """Remove and return the first rows as columns, at most ``rows_max``; None without rows."""
        rows = self._rows[:rows_max]
        del self._rows[:rows_max]
        if not rows:
            return None
        return dict(zip(EVENT_COLUMNS, zip(*rows, strict=True), strict=True))
