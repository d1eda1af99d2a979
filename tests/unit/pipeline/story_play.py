"""Synthetic telemetry of topics, limiters and backlogs that change with time.

A story says what is so at every second since :data:`BEGIN`, whichever boot of a broker tells it:
cumulative values are what they grew since that boot. So whatever is lost, late or told twice, what
the tables must hold can be worked out from the story alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from headgate.base.park_cause import ParkCause
from headgate.base.units import MIB
from headgate.record.fields import STATE_FIELD_NAMES, Kind, Nature, cell_name, field_names
from tests.unit.pipeline.play import T0, Broker, S, columns_of

NS = "persistent://acme/ns/"
BEGIN = T0 + 55 * 60 * S
"""2025-11-21T10:55:00Z, when all stories begin: five minutes before the hour's edge."""

Facts = dict[str, Any]
Story = Callable[[int], Facts]
"""From seconds since :data:`BEGIN` to a row's fields, cumulative ones since then."""


def parked(cause: ParkCause, held_s: float, messages: int = 0) -> Facts:
    """That a cause held for so long, and holds so much."""
    name = f"parked_{cause.label}"
    found = {f"{name}_ns": int(held_s * S)}
    if cause is not ParkCause.MEMORY:
        found |= {f"{name}_messages": messages, f"{name}_bytes": 100 * messages}
    return found


def publish_limit(messages: float | None, size: float | None, source: str) -> Facts:
    """The publish limit in force."""
    return {
        "publish_limit_messages_per_s": messages,
        "publish_limit_bytes_per_s": size,
        "publish_limit_source": source,
    }


def limited(second: int) -> Facts:
    """10 msg/s, of every minute 57 s at the limit."""
    held_s = second // 60 * 57 + min(second % 60, 57)
    return {
        "msgs_in": 10 * second,
        **publish_limit(10.0, None, "topic policy"),
        **parked(ParkCause.TOPIC_RATE, held_s, 1_200),
    }


def raised(second: int) -> Facts:
    """10 msg/s, raised to 900 after 330 s: within the first minute of the next hour."""
    held_s = min(second, 330)
    rate = 10.0 if second < 330 else 900.0
    return {
        "msgs_in": 10 * held_s + 100 * (second - held_s),
        **publish_limit(rate, None, "topic policy"),
        **parked(ParkCause.TOPIC_RATE, held_s, 50 if second < 330 else 0),
    }


def adaptive(second: int) -> Facts:
    """The controller held in the second and third minute, and lets go within the third."""
    held_s = min(max(second - 60, 0), 90)
    limit = (
        publish_limit(5_000.0, 7_500.0, "topic policy and adaptive controller")
        if 60 <= second < 150
        else publish_limit(5_000.0, None, "topic policy")
    )
    natural = {"natural_rate_messages_per_s": 120.5, "natural_rate_bytes_per_s": 12_050.0}
    return {"msgs_in": 100 * second, **limit, **natural, **parked(ParkCause.ADAPTIVE, held_s)}


def under_broker(second: int) -> Facts:
    """Half of the time at the broker-wide limit, 6 s of every minute at the connection's bound."""
    return {
        "msgs_in": 80 * second,
        **parked(ParkCause.BROKER_RATE, second / 2, 7),
        **parked(ParkCause.PENDING_LIMIT, second / 10),
    }


def quota_held(second: int) -> Facts:
    """At its quota from the fourth minute on: nothing is stored then."""
    return {
        "msgs_in": 50 * min(second, 180),
        "backlog_bytes": min(second, 180) * MIB // 3,
        "quota_size_limit_bytes": 60 * MIB,
        "quota_size_policy": "producer_request_hold",
        "quota_size_source": "namespace policy acme/ns",
        **parked(ParkCause.BACKLOG_QUOTA, max(0, second - 180), 5 if second > 180 else 0),
    }


def paused(second: int) -> Facts:
    """Its connection was not read for the first ten seconds."""
    return {"msgs_in": second, **parked(ParkCause.MEMORY, min(second, 10))}


def free(second: int) -> Facts:
    """Publishes, and nothing holds it."""
    return {"msgs_in": 30 * second}


def idle(_second: int) -> Facts:
    """A limit, and nobody who publishes."""
    return {"msgs_in": 0, **publish_limit(10.0, None, "topic policy")}


TOPICS: Mapping[str, Story] = {
    f"{NS}{story.__name__}": story
    for story in (limited, raised, adaptive, under_broker, quota_held, paused, free, idle)
}


def _limiter(level: str, subject: str, dimension: str, limit: int, source: str) -> Facts:
    return {
        "level": level,
        "subject": subject,
        "dimension": dimension,
        "limit": limit,
        "limit_period_ns": S,
        "limit_source": source,
    }


def broker_limiter(second: int) -> Facts:
    """All of 100 msg/s for two topics, which wait for half of the time."""
    setting = "broker setting brokerPublisherThrottlingMaxMessageRate"
    return {
        **_limiter("publish_broker", "b1", "messages", 100, setting),
        "granted": 100 * second,
        "offered": 150 * second,
        "waiting_ns": second * S // 2,
        "waiters_max": 1 + second // 10 % 6,
        "waiter_1": f"{NS}under_broker|p1",
        "waiter_1_amount": 600,
        # The second place is by turns.
        "waiter_2": f"{NS}{'limited' if second // 10 % 2 else 'raised'}|p2",
        "waiter_2_amount": 50,
    }


def idle_limiter(second: int) -> Facts:
    """A tenth of what it allows, and nobody waits."""
    return {
        **_limiter("subscription", f"{NS}free|s", "bytes", 1_000, "namespace policy acme/ns"),
        "limit_period_ns": 2 * S,
        "granted": 50 * second,
        "offered": 50 * second,
        "waiting_ns": 0,
        "waiters_max": 0,
    }


LIMITERS: Sequence[Story] = (broker_limiter, idle_limiter)

HUNGRY = cell_name("throttled_topic", "messages", "hungry")
_CELLS: Mapping[str, Mapping[str, int]] = {
    ".": {"caught_up": 80, "awaiting_ack": 10, "dispatching": 10},
    "C": {"no_permits": 90, "dispatching": 10},
    "T": {HUNGRY: 97, "dispatching": 3},
    "S": {"no_permits": 90, "dispatching": 10},
}
"""What a minute of a backlog's story is: quiet, the consumer's fault, the topic limit's, or the
consumer's until all is skipped at its half. In hundredths of the time."""

_APPENDED_PER_S, _ACKED_PER_S = 100, 40


@dataclass(frozen=True)
class Backlog:
    """One subscription's story, a letter a minute; it is gone after the last, if that is a blank.
    It goes on as with its last letter."""

    topic: str
    pattern: str

    def ends_s(self) -> int | None:
        """When it is gone, if it goes."""
        return 60 * len(self.pattern.rstrip()) if self.pattern.endswith(" ") else None

    def letter(self, second: int) -> str:
        """What is so in that second, which is the one that ends then."""
        minute = min((second - 1) // 60, len(self.pattern) - 1)
        return self.pattern[max(0, minute)]

    def at(self, second: int) -> Facts:
        """The row's fields after so many seconds."""
        return dict(_histories(self, second // 600 * 600 + 600)[second])


@cache
def _histories(story: Backlog, seconds: int) -> list[Facts]:
    counts = dict.fromkeys(("appended", "acked", "skipped"), 0)
    cells = dict.fromkeys(STATE_FIELD_NAMES, 0)
    backlog = waiting_s = 0
    found = [{**counts, **cells, "backlog_messages": 0, "oldest_age_ns": 0, "state": "caught_up"}]
    for second in range(1, seconds + 1):
        letter = story.letter(second)
        if letter == " ":
            found.append(found[-1])
            continue
        backlog += _APPENDED_PER_S
        acked = backlog if letter == "." else _ACKED_PER_S
        skipped = backlog - acked if letter == "S" and second % 60 == 30 else 0
        backlog -= acked + skipped
        waiting_s = 0 if backlog == 0 else waiting_s + 1
        counts["appended"] += _APPENDED_PER_S
        counts["acked"] += acked
        counts["skipped"] += skipped
        for cell, share in _CELLS[letter].items():
            cells[f"state_{cell}_ns"] += share * S // 100
        age_ns = waiting_s * S if backlog else 50_000_000
        state = max(_CELLS[letter], key=lambda cell: _CELLS[letter][cell])
        levels = {"backlog_messages": backlog, "oldest_age_ns": age_ns, "state": state}
        found.append({**counts, **cells, **levels})
    return found


class StoryBroker(Broker):
    """Tells stories for one boot of one broker."""

    def __init__(
        self,
        topics: Mapping[str, Story] | None = None,
        limiters: Sequence[Story] | None = None,
        backlogs: Sequence[Backlog] = (),
        *,
        start_ns: int = BEGIN,
        **broker: Any,
    ) -> None:
        super().__init__((), start_ns=start_ns, **broker)
        self._topics = TOPICS if topics is None else topics
        self._limiters = LIMITERS if limiters is None else limiters
        self._backlogs = backlogs
        self._boot_s = (start_ns - BEGIN) // S

    def _tables(self, full: bool) -> dict[Kind, dict[str, list[Any]]]:
        topics = (
            (i, story, {"topic": name, "producers": 1, "msgs_out": 0})
            for i, (name, story) in enumerate(self._topics.items())
        )
        limiters: Iterator[tuple[int, Story, Facts]] = (
            (i, story, {}) for i, story in enumerate(self._limiters)
        )
        now_s = self._boot_s + self._elapsed_s
        backlogs = (
            (
                i,
                story.at,
                {"topic": story.topic, "subscription": "s", "gone": story.ends_s() == now_s},
            )
            for i, story in enumerate(self._backlogs)
            if story.ends_s() is None or now_s <= (story.ends_s() or 0)
        )
        told = {Kind.TOPIC: topics, Kind.LIMITER: limiters, Kind.SUBSCRIPTION: backlogs}
        return {
            kind: columns_of(kind, [self._row(kind, *each) for each in rows])
            for kind, rows in told.items()
        }

    def _row(self, kind: Kind, index: int, story: Story, names: Facts) -> Facts:
        now, boot = story(self._boot_s + self._elapsed_s), story(self._boot_s)
        grown = {
            name: now[name] - boot[name]
            for name in field_names(kind, Nature.CUMULATIVE)
            if name in now
        }
        defaults: Facts = {}
        if kind is Kind.TOPIC:
            causes = dict.fromkeys((f"parked_{c.label}_ns" for c in ParkCause), 0)
            defaults = {**causes, "bytes_in": 100 * grown["msgs_in"], "backlog_bytes": 0}
        elif kind is Kind.SUBSCRIPTION:
            rest = ("rewound", "expired", "evicted", "redelivered", "delayed", "unacked")
            defaults = {**dict.fromkeys(rest, 0), "consumers": 1, "permits": 500, "type": "Shared"}
            defaults |= {"msgs_out": grown["acked"], "bytes_out": 100 * grown["acked"]}
        return {**self._span(kind, index), **defaults, **now, **grown, **names}


def tell(seconds: int, window_s: int = 10, **broker: Any) -> list[bytes]:
    """All stories of one boot, from its start on."""
    player = StoryBroker(**broker)
    return [m for _ in range(0, seconds, window_s) for m in player.window(window_s)]
