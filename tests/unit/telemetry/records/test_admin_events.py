"""Changes of the admin API are events of the telemetry."""

from __future__ import annotations

import json
from typing import Any

from headgate.base.audit_entry import AuditEntry, AuditResult
from headgate.base.identity import Identity
from headgate.record.fields import EVENT_NAMES
from headgate.telemetry.records.admin_events import ROOM, AdminEvents
from headgate.telemetry.records.events import EVENTS_MAX, EventLog
from headgate.telemetry.records.names import PLAIN, HashedNames

TOPIC = "persistent://public/default/orders"


def entry(resource: str = TOPIC, operation: str = "topic.delete", **more: Any) -> AuditEntry:
    return AuditEntry(
        operation, resource, AuditResult.ALLOWED, Identity("ops"), "10.0.0.7:1", status=204, **more
    )


def event(made: AuditEntry, names: Any = PLAIN) -> dict[str, Any]:
    log = EventLog()
    AdminEvents(log, names).changed(made, 5)
    found = log.take()
    assert found is not None
    return {name: values[0] for name, values in found.items()}


def test_a_change_is_an_event_with_its_role_and_without_an_address() -> None:
    found = event(entry(subscription="s"))
    assert found["event"] in EVENT_NAMES
    assert (found["time_ns"], found["topic"], found["subscription"]) == (5, TOPIC, "s")
    assert json.loads(found["inputs"]) == {"operation": "topic.delete", "role": "ops"}
    assert json.loads(found["outcome"]) == {"status": 204}
    assert "10.0.0.7" not in repr(found)


def test_other_resources_are_inputs() -> None:
    found = event(entry("public/default", "namespace.policy.write"))
    assert json.loads(found["inputs"])["resource"] == "public/default"
    assert found["topic"] is None
    assert event(entry("not a name://x"))["topic"] is None


def test_hashed_names_hide_tenants_topics_and_roles_and_no_setting() -> None:
    names = HashedNames(b"k" * 32)
    texts = repr([event(entry(), names), event(entry("public/default", "x.y"), names)])
    for name in ("public", "orders", "ops"):
        assert name not in texts
    found = event(entry("maxMessageSize", "settings.write"), names)
    assert json.loads(found["inputs"])["resource"] == "maxMessageSize"


def test_a_script_of_changes_leaves_room_for_other_events() -> None:
    log = EventLog()
    events = AdminEvents(log, PLAIN)
    for _ in range(EVENTS_MAX):
        events.changed(entry(), 1)
    assert log.count == ROOM
    assert events.dropped_count == EVENTS_MAX - ROOM
