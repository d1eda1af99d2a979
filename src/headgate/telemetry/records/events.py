"""The events between two batches: a bounded list of rows."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from headgate.base.fair_largest import FairLargest
from headgate.base.names import tenant_of
from headgate.record.codec import Columns

EVENTS_MAX: Final = 2_000
"""Events kept for one batch; further ones are counted and dropped."""

EVENTS_PER_YIELD: Final = 4
"""Events that the end of a window makes between two yields, of 60 us each, and more of an eviction
from many subscriptions."""

EVENT_COLUMNS: Final = (
    "time_ns", "event", "topic", "subscription", "incarnation", "inputs", "outcome",
)  # fmt: skip

Row = tuple[int, str, str | None, str | None, int | None, str, str]


class EventLog:
    """Collects events until the next batch takes them. Where there is no room, the tenant with most
    loses its last one: one change of a policy is an event of each of its topics, and evictions of
    others must not get lost beside them. Events about no topic are those of an owner of their own.
    """

    def __init__(self) -> None:
        self._rows = FairLargest[Row](EVENTS_MAX)
        """By negative numbers of their additions: the largest are those that came first."""
        self._added = 0
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
        if not self.has_room(topic):
            self.drop()
            return
        if len(self._rows) >= EVENTS_MAX:
            self.drop()  # of the tenant with most
        row = (
            time_ns,
            event,
            topic,
            subscription,
            incarnation,
            msgspec.json.encode(inputs or {}).decode(),
            msgspec.json.encode(outcome or {}).decode(),
        )
        self._added += 1
        self._rows.add(tenant_of(topic or ""), -self._added, row)

    def has_room(self, topic: str | None) -> bool:
        """Whether :meth:`add` takes an event about a topic, by its name in the records; else there
        is no need to make it."""
        return self._rows.has_room(tenant_of(topic or ""))

    def drop(self) -> None:
        """Count an event for which there is no room."""
        self.dropped_count += 1

    @property
    def count(self) -> int:
        """Events that :meth:`take` may return now."""
        return len(self._rows)

    def take(self, rows_max: int = EVENTS_MAX) -> Columns | None:
        """Remove and return the rows that were added first as columns, at most ``rows_max``; None
        without rows."""
        found = [
            (key, owner, row) for owner, rows in self._rows.taken().items() for key, row in rows
        ]
        if not found:
            return None
        found.sort(key=lambda each: -each[0])
        for key, owner, row in found[rows_max:]:
            self._rows.add(owner, key, row)
        rows = [row for _, _, row in found[:rows_max]]
        return dict(zip(EVENT_COLUMNS, zip(*rows, strict=True), strict=True))
