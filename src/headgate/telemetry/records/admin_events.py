"""Changes of the admin API in the events of the telemetry."""

from __future__ import annotations

from typing import Final

from headgate.base.audit_entry import AuditEntry
from headgate.base.names import InvalidNameError, parse_topic
from headgate.telemetry.records.events import EVENTS_MAX, EventLog
from headgate.telemetry.records.names import Names

ROOM: Final = EVENTS_MAX // 4
"""While so many events wait for the next batch, changes add none: a script that changes thousands
of topics must not displace evictions and throttled events. The audit log has every change."""


class AdminEvents:
    """Adds an event for each change."""

    def __init__(self, events: EventLog, names: Names) -> None:
        self._events = events
        self._names = names
        self.dropped_count = 0
        """Changes without an event since the start."""

    def changed(self, entry: AuditEntry, at_ns: int) -> None:
        """The broker carried a change out. The telemetry has no address of a client."""
        if self._events.count >= ROOM:
            self.dropped_count += 1
            return
        names, topic = self._names, None
        inputs = {"operation": entry.operation, "role": _part(names, entry.identity.role)}
        if entry.identity.original_role:
            inputs["original_role"] = names.part(entry.identity.original_role)
        if "://" in entry.resource:
            topic = self._topic(entry.resource)
        elif entry.resource:
            # The parts of a namespace, a tenant or the name of a setting, which is no secret.
            is_setting = entry.operation.startswith("settings.")
            parts = entry.resource.split("/")
            inputs["resource"] = "/".join(parts if is_setting else map(names.part, parts))
        self._events.add(
            at_ns,
            "admin_change",
            topic=topic,
            subscription=_part(names, entry.subscription) or None,
            inputs=inputs,
            outcome={"status": entry.status},
        )

    def _topic(self, resource: str) -> str | None:
        try:
            return self._names.topic(parse_topic(resource))
        except InvalidNameError:
            return None


def _part(names: Names, name: str) -> str:
    return names.part(name) if name else ""
