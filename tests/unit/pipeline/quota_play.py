"""Synthetic telemetry of topics with backlog quotas, and of what the quotas took.

Every topic is a function of the seconds since the broker's start, so that what tables must hold
can be worked out by hand.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from headgate.base.units import GIB, KIB, MIB
from headgate.record.fields import QUOTA_TYPES, Kind
from tests.unit.pipeline.play import Broker, S, columns_of

NS = "persistent://acme/ns/"
SOURCE = "namespace policy acme/ns"

FIRST_ACT_S = 40
ACT_EVERY_S = 4
MESSAGES_OF_ACT = 100
BYTES_OF_ACT = 100 * KIB

Facts = dict[str, Any]


def quota(kind: str, limit: int, policy: str, source: str = SOURCE) -> Facts:
    """The fields of one quota in force."""
    unit = "bytes" if kind == "size" else "ns"
    return {
        f"quota_{kind}_limit_{unit}": limit,
        f"quota_{kind}_policy": policy,
        f"quota_{kind}_source": source,
    }


def oldest(age_s: int, subscription: str) -> Facts:
    """Whose the oldest message is, and its age."""
    return {"oldest_age_ns": age_s * S, "oldest_subscription": subscription}


def acts_until(seconds: int) -> int:
    """Acts of eviction in :func:`aged` so far."""
    return 0 if seconds < FIRST_ACT_S else 1 + (seconds - FIRST_ACT_S) // ACT_EVERY_S


def held(seconds: int) -> Facts:
    """1 MiB a second up to the limit of 60 MiB, where producers are held."""
    over_s = max(0, seconds - 60)
    return {
        **quota("size", 60 * MIB, "producer_request_hold"),
        **oldest(seconds, "billing"),
        "backlog_bytes": min(seconds, 60) * MIB,
        "quota_size_breach_ns": max(0, 60 - seconds) * S,
        "parked_backlog_quota_ns": over_s * S,
        "parked_backlog_quota_messages": 5 if over_s else 0,
        "parked_backlog_quota_bytes": 5 * KIB if over_s else 0,
    }


def aged(seconds: int) -> Facts:
    """Nobody reads; what becomes 40 s old is evicted down to 36 s."""
    acts = acts_until(seconds)
    age_s = 36 + (seconds - FIRST_ACT_S) % ACT_EVERY_S if acts else seconds
    return {
        **quota("time", 40 * S, "consumer_backlog_eviction"),
        **oldest(age_s, "audit"),
        "partition": 2,
        "backlog_bytes": age_s * 100 * KIB,
        "quota_time_breach_ns": (40 - age_s) * S,
        "eviction_time_acts": acts,
        "eviction_time_messages": MESSAGES_OF_ACT * acts,
        "eviction_time_bytes": BYTES_OF_ACT * acts,
    }


def blocked(_seconds: int) -> Facts:
    """A limit of 0 and no backlog: everybody is refused."""
    limit = quota("size", 0, "producer_exception", "topic policy")
    return {**limit, "backlog_bytes": 0, "quota_size_breach_ns": 0}


def both(seconds: int) -> Facts:
    """Half of the size, where it stays, and an age that nears an hour."""
    return {
        **quota("size", GIB, "producer_exception", "topic policy"),
        **quota("time", 3_600 * S, "producer_request_hold"),
        **oldest(seconds, "slow"),
        "backlog_bytes": GIB // 2,
        "quota_time_breach_ns": (3_600 - seconds) * S,
    }


def lifted(seconds: int) -> Facts:
    """A quota that held for 3 s in its second minute and was taken away before that one's end."""
    limit = quota("size", 10 * MIB, "producer_request_hold") if seconds <= 70 else {}
    return {
        **limit,
        "backlog_bytes": 5 * MIB,
        "parked_backlog_quota_ns": min(max(0, seconds - 62), 3) * S,
    }


def free(_seconds: int) -> Facts:
    """No quota."""
    return {"backlog_bytes": MIB}


TOPICS: Mapping[str, Callable[[int], Facts]] = {
    f"{NS}{topic.__name__}": topic for topic in (held, aged, blocked, both, lifted, free)
}


class QuotaBroker(Broker):
    """Plays :data:`TOPICS`, or others, for one boot of one broker."""

    def __init__(
        self, topics: Mapping[str, Callable[[int], Facts]] = TOPICS, **broker: Any
    ) -> None:
        super().__init__((), **broker)
        self._topics = topics
        self._told_s = 0

    def _tables(self, full: bool) -> dict[Kind, dict[str, list[Any]]]:
        rows = [
            {
                **self._span(Kind.TOPIC, index),
                **dict.fromkeys((f"eviction_{quota}_acts" for quota in QUOTA_TYPES), 0),
                "parked_backlog_quota_ns": 0,
                "topic": name,
                "msgs_in": 100 * self._elapsed_s,
                **facts(self._elapsed_s),
            }
            for index, (name, facts) in enumerate(self._topics.items())
        ]
        events = list(self._events())
        return {
            Kind.TOPIC: columns_of(Kind.TOPIC, rows),
            Kind.EVENT: columns_of(Kind.EVENT, events),
        }

    def _events(self) -> Iterator[dict[str, Any]]:
        for seconds in range(self._told_s + 1, self._elapsed_s + 1):
            about = {"time_ns": self.since_ns + seconds * S - 1, "incarnation": 1}
            if acts_until(seconds) > acts_until(seconds - 1):
                yield {**about, **act(), "event": "eviction", "topic": f"{NS}aged-partition-2"}
            if seconds == 60:
                outcome = json.dumps({"action": "producers_held"})
                told = {"event": "quota_exceeded", "topic": f"{NS}held", "inputs": "{}"}
                yield {**about, **told, "outcome": outcome}
        self._told_s = self._elapsed_s


def act() -> dict[str, str]:
    """Inputs and outcome of one act of :func:`aged`, as the broker writes them."""
    inputs = {
        "quota": "time",
        "policy": "consumer_backlog_eviction",
        "source": SOURCE,
        "limit_ns": 40 * S,
        "backlog_bytes": 4_000 * KIB,
        "oldest_age_ns": 40 * S,
    }
    outcome = {
        "acts": 1,
        "messages": MESSAGES_OF_ACT,
        "bytes": BYTES_OF_ACT,
        "backlog_bytes": 3_600 * KIB,
        "oldest_age_ns": 36 * S,
        "subscriptions": [
            {"subscription": "audit", "messages": 90, "bytes": 90 * KIB},
            {"subscription": "ö", "messages": 10, "bytes": 10 * KIB},
        ],
        "subscriptions_more": 3,
    }
    return {"inputs": json.dumps(inputs), "outcome": json.dumps(outcome)}


def quota_play(seconds: int, window_s: int = 10, **broker: Any) -> list[bytes]:
    """All topics from the broker's start on."""
    player = QuotaBroker(**broker)
    return [m for _ in range(0, seconds, window_s) for m in player.window(window_s)]
