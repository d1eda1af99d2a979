"""What TTLs expire is told once a minute and topic, in sums, and never crowds out the rest."""

from __future__ import annotations

import json
from typing import Any

from headgate.engine.subscription import Subscription
from headgate.flow.expiry import MessageTtl
from headgate.telemetry.records.events import EVENTS_MAX, EventLog
from headgate.telemetry.records.expiry_events import (
    EVENTS_PER_WINDOW,
    ExpiryEvents,
    expired_by_values,
)
from headgate.telemetry.records.names import PLAIN, HashedNames
from headgate.telemetry.records.quotas import NAMES_CHARACTERS_MAX, SUBSCRIPTIONS_MAX
from tests.unit.engine.quota_rig import QuotaRig, size_quota

TTL = MessageTtl(60, "topic policy")


class Told:
    """Events of one window, taken apart."""

    def __init__(self) -> None:
        self.log = EventLog()
        self.expiry = ExpiryEvents(self.log, PLAIN)

    def window(self, *, full: bool = True) -> list[dict[str, Any]]:
        self.expiry.end_window(full=full)
        return self.taken()

    def taken(self) -> list[dict[str, Any]]:
        columns = self.log.take()
        if columns is None:
            return []
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        for row in rows:
            row["inputs"], row["outcome"] = json.loads(row["inputs"]), json.loads(row["outcome"])
        return rows


def subscriptions(*names: str) -> list[Subscription]:
    rig = QuotaRig(size_quota(100))
    return [rig.subscribe(name) for name in names]


def test_a_minute_is_one_event_with_its_sums() -> None:
    told = Told()
    audit, billing = subscriptions("audit", "billing")
    for at_ns in range(1, 6):
        told.expiry.expired(audit, TTL, 2, at_ns)
        assert told.window(full=False) == []
    told.expiry.expired(billing, TTL, 100, 7)
    (event,) = told.window()
    assert (event["event"], event["time_ns"], event["subscription"]) == ("expiry", 7, None)
    assert event["topic"] == audit.topic.name.full
    assert event["inputs"] == {"ttl_ns": 60_000_000_000, "source": "topic policy"}
    assert event["outcome"] == {
        "messages": 110,
        "subscriptions": [
            {"subscription": "billing", "messages": 100},
            {"subscription": "audit", "messages": 10},
        ],
        "subscriptions_more": 0,
    }
    assert told.window() == []


def test_another_ttl_is_another_event() -> None:
    told = Told()
    (audit,) = subscriptions("audit")
    told.expiry.expired(audit, TTL, 2, 1)
    told.expiry.expired(audit, MessageTtl(30, "namespace policy acme/ns"), 3, 2)
    assert [(e["inputs"]["source"], e["outcome"]["messages"]) for e in told.window()] == [
        ("topic policy", 2),
        ("namespace policy acme/ns", 3),
    ]


def test_a_topic_that_is_unloaded_has_its_event_at_once() -> None:
    told = Told()
    audit, other = subscriptions("audit"), subscriptions("audit")
    told.expiry.expired(audit[0], TTL, 2, 1)
    told.expiry.expired(other[0], TTL, 3, 1)
    told.expiry.topic_unloaded(audit[0].topic)
    assert [event["outcome"]["messages"] for event in told.taken()] == [2]
    assert [event["outcome"]["messages"] for event in told.window()] == [3]


def test_many_topics_share_the_windows_and_lose_nothing() -> None:
    told = Told()
    of_topics = [subscriptions("audit")[0] for _ in range(EVENTS_PER_WINDOW + 5)]
    for subscription in of_topics:
        told.expiry.expired(subscription, TTL, 1, 1)
    assert len(told.window()) == EVENTS_PER_WINDOW < EVENTS_MAX
    # Those that wait for their event go on adding up; the others begin anew.
    for subscription in of_topics:
        told.expiry.expired(subscription, TTL, 1, 2)
    assert [event["outcome"]["messages"] for event in told.window(full=False)] == [2] * 5
    assert len(told.window()) == EVENTS_PER_WINDOW


def test_an_event_names_so_many_subscriptions() -> None:
    told = Told()
    for subscription in subscriptions(*(f"s{n}" for n in range(SUBSCRIPTIONS_MAX + 3))):
        told.expiry.expired(subscription, TTL, 1, 1)
    (event,) = told.window()
    assert len(event["outcome"]["subscriptions"]) == SUBSCRIPTIONS_MAX
    assert event["outcome"]["subscriptions_more"] == 3


def test_long_names_have_a_bound_together() -> None:
    told = Told()
    for subscription in subscriptions(*(f"{n:03d}".rjust(512, "x") for n in range(100))):
        told.expiry.expired(subscription, TTL, 1, 1)
    (event,) = told.window()
    named = NAMES_CHARACTERS_MAX // 512
    assert len(event["outcome"]["subscriptions"]) == named
    assert (event["outcome"]["subscriptions_more"], event["outcome"]["messages"]) == (
        100 - named,
        100,
    )


def test_the_values_in_a_row() -> None:
    assert expired_by_values(None, PLAIN) == (None, None)
    assert expired_by_values(TTL, PLAIN) == (60_000_000_000, "topic policy")
    _, source = expired_by_values(MessageTtl(60, "namespace policy acme/ns"), HashedNames(b"key"))
    assert isinstance(source, str)
    assert source.startswith("namespace policy ")
    assert "acme" not in source
