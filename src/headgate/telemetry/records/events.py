"""The events between two batches: a bounded list of rows."""

from __future__ import annotations

from typing import Any, Final, cast

import msgspec

from headgate.base.lazy_min_heap import LazyMinHeap
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
        self._by_owner: dict[str, list[tuple[int, Row]]] = {}
        """Each with the number of its addition."""
        self._owners = LazyMinHeap[str](self._figure, ())
        """Finds the tenant with most."""
        self._added = 0
        self._count = 0
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
        if self._count >= EVENTS_MAX:
            self._by_owner[self._largest()].pop()
            self._count -= 1
            self.drop()
        row = (
            time_ns,
            event,
            topic,
            subscription,
            incarnation,
            msgspec.json.encode(inputs or {}).decode(),
            msgspec.json.encode(outcome or {}).decode(),
        )
        owner = tenant_of(topic or "")
        self._added += 1
        self._count += 1
        self._by_owner.setdefault(owner, []).append((self._added, row))
        self._owners.changed(owner)

    def has_room(self, topic: str | None) -> bool:
        """Whether :meth:`add` takes an event about a topic, by its name in the records; else there
        is no need to make it."""
        if self._count < EVENTS_MAX:
            return True
        own = len(self._by_owner.get(tenant_of(topic or ""), ()))
        return own + 1 < len(self._by_owner[self._largest()])

    def drop(self) -> None:
        """Count an event for which there is no room."""
        self.dropped_count += 1

    @property
    def count(self) -> int:
        """Events that :meth:`take` may return now."""
        return self._count

    def take(self, rows_max: int = EVENTS_MAX) -> Columns | None:
        """Remove and return the rows that were added first as columns, at most ``rows_max``; None
        without rows."""
        numbered = sorted(row for rows in self._by_owner.values() for row in rows)
        if not numbered:
            return None
        self._begin_with(numbered[rows_max:])
        rows = [row for _, row in numbered[:rows_max]]
        return dict(zip(EVENT_COLUMNS, zip(*rows, strict=True), strict=True))

    def _begin_with(self, numbered: list[tuple[int, Row]]) -> None:
        """Keep these and no others."""
        self._by_owner = {}
        for each in numbered:
            self._by_owner.setdefault(tenant_of(each[1][2] or ""), []).append(each)
        self._owners = LazyMinHeap(self._figure, self._by_owner)
        self._count = len(numbered)

    def _figure(self, owner: str) -> int:
        return -len(self._by_owner[owner])

    def _largest(self) -> str:
        return cast(str, self._owners.top())
