"""Events wait, bounded, for the batch that takes them."""

from __future__ import annotations

import json

from headgate.record.codec import BatchHeader, decode, encode_window
from headgate.record.fields import EVENT_FIELDS, Kind
from headgate.telemetry.records.events import EVENT_COLUMNS, EVENTS_MAX, EventLog


def test_columns_are_fields_of_the_record() -> None:
    assert tuple(field.name for field in EVENT_FIELDS) == EVENT_COLUMNS


def test_taken_once_in_order() -> None:
    log = EventLog()
    assert log.take() is None
    log.add(5, "restart", inputs={"boot": "b"}, outcome={"topics": 3})
    log.add(7, "throttle_began", topic="t", subscription="s", incarnation=2)
    columns = log.take()
    assert columns is not None
    assert columns["time_ns"] == (5, 7)
    assert columns["event"] == ("restart", "throttle_began")
    assert columns["topic"] == (None, "t")
    assert columns["subscription"] == (None, "s")
    assert columns["incarnation"] == (None, 2)
    assert [json.loads(str(text)) for text in columns["inputs"]] == [{"boot": "b"}, {}]
    assert [json.loads(str(text)) for text in columns["outcome"]] == [{"topics": 3}, {}]
    assert log.take() is None


def test_they_travel_in_a_record() -> None:
    log = EventLog()
    log.add(5, "limit_changed", inputs={"before": {"messages": None}}, outcome={"messages": 50})
    columns = log.take()
    assert columns is not None
    (message,) = encode_window(BatchHeader("s", "c", "b", "boot", 1, 10), 0, {Kind.EVENT: columns})
    told = decode(message).columns[Kind.EVENT]
    assert told["inputs"] == ['{"before":{"messages":null}}']
    assert told["outcome"] == ['{"messages":50}']
    assert "topic" not in told


def test_what_is_too_much_is_counted() -> None:
    log = EventLog()
    for i in range(EVENTS_MAX + 3):
        log.add(i, "throttle_began")
    assert log.dropped_count == 3
    columns = log.take()
    assert columns is not None
    assert list(columns["time_ns"]) == list(range(EVENTS_MAX))
    log.add(1, "throttle_ended")
    assert log.dropped_count == 3
    assert log.take() is not None


def test_a_tenant_with_very_many_takes_the_place_of_none_of_another() -> None:
    """One change of a policy is an event of each topic of a namespace: evictions of others, which
    come at the end of a window, were lost beside it."""
    log = EventLog()
    for i in range(EVENTS_MAX + 100):
        log.add(i, "limit_changed", topic=f"persistent://evil/a/t{i}")
    assert not log.has_room("persistent://evil/b/t")
    assert log.has_room("persistent://acme/a/t")
    for i in range(5):
        log.add(i, "eviction", topic=f"persistent://acme/a/t{i}")
    log.add(7, "restart")
    assert (log.count, log.dropped_count) == (EVENTS_MAX, 106)
    first, rest = log.take(256), log.take()
    assert first is not None
    assert rest is not None
    assert list(first["time_ns"]) == list(range(256))
    assert list(rest["event"][-7:]) == ["limit_changed", *["eviction"] * 5, "restart"]
    assert rest["time_ns"][-7] == EVENTS_MAX - 7
    assert log.count == 0


def test_of_tenants_with_equally_many_none_takes_from_the_others() -> None:
    log = EventLog()
    for i in range(EVENTS_MAX * 2):
        log.add(i, "throttle_began", topic=f"persistent://t{i % 4}/a/t")
    columns = log.take()
    assert columns is not None
    assert list(columns["time_ns"]) == list(range(EVENTS_MAX))
    log.add(1, "throttle_ended", topic="persistent://t1/a/t")
    assert log.count == 1
