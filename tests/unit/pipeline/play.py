"""Synthetic telemetry: the demo's situations, played second by second and encoded as records.

A broker here obeys the record's rules: cumulative values since its boot, windows that end at
multiples of the interval, rows only for subjects that changed, everything once a minute.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headgate.base.errors import CorruptionError
from headgate.base.units import MIB
from headgate.pipeline.kernels.coverage_gaps import WINDOW_COLUMNS, coverage, coverage_gaps
from headgate.pipeline.kernels.decode import bronze_tables
from headgate.pipeline.kernels.intervals import SORT_COLUMNS, interval_table
from headgate.pipeline.tables.bronze import BATCH_KIND
from headgate.pipeline.tables.columns import HOUR_NS
from headgate.pipeline.tables.intervals import KEY_COLUMNS
from headgate.record.codec import BatchHeader, UnknownVersionError, decode_packed, encode_window
from headgate.record.fields import FIELDS, FULL_PERIOD_NS, STATE_FIELD_NAMES, Kind, cell_name

S = 1_000_000_000
T0 = 1_763_719_200 * S
"""2025-11-21T10:00:00Z."""


@dataclass(frozen=True)
class Situation:
    """One subscription's steady behaviour; rates in messages a second."""

    topic: str
    subscription: str
    verdict: str
    """What it was built to be."""
    published: int
    acked: int
    delivered: int
    cells: Mapping[str, float]
    """Cell of the account to its share of the time; sums to 1."""
    consumers: int = 1
    limits: Mapping[str, int] = field(default_factory=dict)
    """Level to messages a second."""
    byte_limits: Mapping[str, int] = field(default_factory=dict)
    """Level to bytes a second."""
    oldest_grows: bool = True
    source: str = ""
    """Where its limits are set; the level's policy if it is empty."""
    evicted: int = 0
    """Messages a second that a size quota of 1 MiB takes."""
    delayed: int = 0
    """Messages a second that are published with a delay and never due."""
    expired: int = 0
    """Messages a second that a TTL of 60 s takes."""
    duplicates: int = 0
    """Messages a second that deduplication drops."""


HUNGRY = {
    level: cell_name(f"throttled_{level}", "messages", "hungry")
    for level in ("subscription", "topic", "broker")
}
BUSY = {
    level: cell_name(f"throttled_{level}", "messages", "busy")
    for level in ("subscription", "topic", "broker")
}
_NS = "persistent://public/default/"

SITUATIONS = (
    Situation(
        _NS + "slow", "slow", "CONSUMER", 500, 100, 100, {"no_permits": 0.9, "dispatching": 0.1}
    ),
    Situation(
        _NS + "sub-limit",
        "held",
        "THROTTLED_SUBSCRIPTION",
        500,
        200,
        200,
        {HUNGRY["subscription"]: 0.95, "dispatching": 0.05},
        limits={"subscription": 200},
    ),
    Situation(
        _NS + "topic-limit",
        "one",
        "THROTTLED_TOPIC",
        500,
        100,
        100,
        {HUNGRY["topic"]: 0.97, "dispatching": 0.03},
        limits={"topic": 200},
    ),
    Situation(
        _NS + "topic-limit",
        "two",
        "THROTTLED_TOPIC",
        500,
        100,
        100,
        {HUNGRY["topic"]: 0.97, "dispatching": 0.03},
        limits={"topic": 200},
    ),
    Situation(
        _NS + "broker-limit",
        "s",
        "THROTTLED_BROKER",
        500,
        150,
        150,
        {HUNGRY["broker"]: 0.96, "dispatching": 0.04},
        limits={"broker": 300},
    ),
    Situation(
        _NS + "busy",
        "s",
        "CONSUMER",
        600,
        400,
        402,
        {
            BUSY["subscription"]: 0.77,
            HUNGRY["subscription"]: 0.04,
            "no_permits": 0.15,
            "dispatching": 0.04,
        },
        limits={"subscription": 500},
    ),
    Situation(
        _NS + "keeps-up",
        "s",
        "NONE",
        300,
        300,
        300,
        {"awaiting_ack": 0.3, "caught_up": 0.6, "dispatching": 0.1},
        oldest_grows=False,
    ),
    Situation(_NS + "alone", "s", "NO_CONSUMER", 200, 0, 0, {"no_consumer": 1.0}, consumers=0),
)

TIED = {HUNGRY["topic"]: 0.49, "no_permits": 0.49, "storage": 0.02}
BYTES_HUNGRY = cell_name("throttled_broker", "bytes", "hungry")

STORY = (
    *SITUATIONS[:7],
    Situation(_NS + "disk", "s", "BROKER", 400, 100, 100, {"storage": 0.7, "no_permits": 0.3}),
    Situation(_NS + "tied", "s", "CONSUMER", 400, 100, 100, TIED, limits={"topic": 200}),
    Situation(
        _NS + "by-bytes",
        "s",
        "THROTTLED_BROKER",
        400,
        300,
        300,
        {BYTES_HUNGRY: 0.9, "awaiting_ack": 0.1},
        byte_limits={"broker": 30_000},
    ),
    # Its queue is still filling: the limit merely stands by.
    Situation(
        _NS + "filling",
        "s",
        "CONSUMER",
        400,
        100,
        200,
        {HUNGRY["subscription"]: 0.95, "dispatching": 0.05},
        limits={"subscription": 200},
    ),
    # All that waits is young, because a quota takes the rest before it is acknowledged.
    Situation(
        _NS + "late",
        "s",
        "CONSUMER",
        400,
        20,
        400,
        {"awaiting_ack": 0.9, "caught_up": 0.1},
        oldest_grows=False,
        evicted=380,
    ),
    Situation(
        _NS + "late-limited",
        "s",
        "CONSUMER",
        400,
        20,
        200,
        {HUNGRY["subscription"]: 0.95, "dispatching": 0.05},
        limits={"subscription": 200},
        evicted=150,
    ),
    Situation(
        _NS + "relative",
        "s",
        "THROTTLED_TOPIC",
        500,
        450,
        450,
        {HUNGRY["topic"]: 0.9, "dispatching": 0.1},
        limits={"topic": 450},
        source="topic policy, above the publish rate",
    ),
    Situation(_NS + "left", "s", "NO_CONSUMER", 200, 0, 0, {"no_consumer": 1.0}, consumers=0),
    # It was slow for long enough to have demonstrated a rate, and drains now.
    Situation(
        _NS + "drains", "s", "CONSUMER", 100, 300, 300, {"no_permits": 0.97, "storage": 0.03}
    ),
    # Nothing that grows is due.
    Situation(
        _NS + "not-due",
        "s",
        "NONE",
        400,
        100,
        100,
        {"not_due": 0.9, "awaiting_ack": 0.1},
        oldest_grows=False,
        delayed=300,
    ),
    # A part of what nobody takes is due.
    Situation(
        _NS + "some-due",
        "s",
        "NO_CONSUMER",
        400,
        0,
        0,
        {"no_consumer": 1.0},
        consumers=0,
        delayed=300,
    ),
    Situation(
        _NS + "expires",
        "s",
        "NO_CONSUMER",
        400,
        0,
        0,
        {"no_consumer": 1.0},
        consumers=0,
        expired=390,
        duplicates=7,
    ),
)
"""Every verdict, ties, bystanders and both units; every subscription changes in every window."""


class Broker:
    """Plays situations for one boot of one broker."""

    def __init__(
        self,
        situations: tuple[Situation, ...] = SITUATIONS,
        *,
        start_ns: int = T0,
        boot: str = "boot-1",
        source: str = "b1",
        cluster: str = "demo",
        backlogs: Mapping[tuple[str, str], int] | None = None,
    ) -> None:
        self.situations = situations
        self.source, self.cluster, self.boot = source, cluster, boot
        self.since_ns = self.now_ns = start_ns
        self.seq = 0
        self._last_sent: dict[tuple[Kind, int], int] = {}
        self._backlogs = [
            dict(backlogs or {}).get((s.topic, s.subscription), 0) for s in situations
        ]
        self._at_boot = list(self._backlogs)
        self._not_counted_s = 0

    def reset(self) -> None:
        """Count from zero again, without saying so."""
        self._not_counted_s += self._elapsed_s

    def window(self, seconds: int = 1, *, step_s: int = 0) -> list[bytes]:
        """Let time pass and encode the window; the wall clock steps in it by ``step_s``."""
        begin_ns = self.now_ns + step_s * S
        self.now_ns = begin_ns + seconds * S
        self._not_counted_s += step_s
        full = self.now_ns // FULL_PERIOD_NS != begin_ns // FULL_PERIOD_NS
        header = BatchHeader(
            self.source,
            self.cluster,
            f"{self.source}:6650",
            self.boot,
            begin_ns,
            self.now_ns,
            step_s != 0,
        )
        messages = encode_window(header, self.seq, self._tables(full))
        self.seq += len(messages)
        return messages

    def backlogs(self) -> dict[tuple[str, str], int]:
        """Backlogs now, for the next boot."""
        return {
            (s.topic, s.subscription): self._backlog(i, s) for i, s in enumerate(self.situations)
        }

    @property
    def _elapsed_s(self) -> int:
        return (self.now_ns - self.since_ns) // S - self._not_counted_s

    def _tables(self, full: bool) -> dict[Kind, dict[str, list[Any]]]:
        subscriptions = [
            self._subscription(i, s)
            for i, s in enumerate(self.situations)
            if full or s.published or not self._last_sent.get((Kind.SUBSCRIPTION, i))
        ]
        topics = {s.topic: s for s in self.situations}
        return {
            Kind.SUBSCRIPTION: columns_of(Kind.SUBSCRIPTION, subscriptions),
            Kind.TOPIC: columns_of(
                Kind.TOPIC, [self._topic(i, s) for i, s in enumerate(topics.values())]
            ),
            Kind.LIMITER: columns_of(Kind.LIMITER, [self._limiter()]),
        }

    def _span(self, kind: Kind, index: int) -> dict[str, Any]:
        before = self._last_sent.get((kind, index), self.since_ns)
        self._last_sent[kind, index] = self.now_ns
        return {
            "covered_from_ns": before,
            "covered_to_ns": self.now_ns,
            "counting_since_ns": self.since_ns,
            "gone": False,
            "incarnation": 1,
        }

    def _backlog(self, index: int, s: Situation) -> int:
        growth = s.published - s.acked - s.evicted - s.expired
        return self._at_boot[index] + growth * self._elapsed_s

    def _subscription(self, index: int, s: Situation) -> dict[str, Any]:
        seconds = self._elapsed_s
        elapsed_ns = seconds * S
        backlog = self._backlog(index, s)
        cells = {f"state_{cell}_ns": int(elapsed_ns * share) for cell, share in s.cells.items()}
        row: dict[str, Any] = {
            **self._span(Kind.SUBSCRIPTION, index),
            **dict.fromkeys(STATE_FIELD_NAMES, 0),
            **cells,
            "topic": s.topic,
            "subscription": s.subscription,
            "type": "Shared",
            "consumers": s.consumers,
            "appended": s.published * seconds,
            "msgs_out": s.delivered * seconds,
            "bytes_out": 100 * s.delivered * seconds,
            "acked": s.acked * seconds,
            "skipped": 0,
            "rewound": 0,
            "redelivered": 0,
            "expired": s.expired * seconds,
            "expired_by_ttl_ns": 60 * S if s.expired else None,
            "expired_by_source": "topic policy" if s.expired else None,
            "evicted": s.evicted * seconds,
            "evicted_by": "size" if s.evicted else None,
            "evicted_by_limit": MIB if s.evicted else None,
            "evicted_by_source": "topic policy" if s.evicted else None,
            "backlog_messages": backlog,
            "backlog_bytes": 100 * backlog,
            "delayed": s.delayed * seconds if s.delayed else None,
            "unacked": max(0, s.delivered - s.acked - s.evicted) * seconds,
            "permits": 500,
            "state": max(s.cells, key=lambda cell: s.cells[cell]),
            "oldest_age_ns": elapsed_ns if s.oldest_grows else 50_000_000,
        }
        for unit, limits in (("messages", s.limits), ("bytes", s.byte_limits)):
            for level, amount in limits.items():
                row |= {
                    f"limit_{level}_{unit}": amount,
                    f"limit_{level}_period_ns": S,
                    f"limit_{level}_source": s.source or f"{level} policy",
                }
        return row

    def _topic(self, index: int, s: Situation) -> dict[str, Any]:
        seconds = self._elapsed_s
        return {
            **self._span(Kind.TOPIC, index),
            "topic": s.topic,
            "msgs_in": s.published * seconds,
            "bytes_in": 100 * s.published * seconds,
            "duplicates_dropped": s.duplicates * seconds if s.duplicates else None,
            "parked_topic_rate_ns": 0,
            "backlog_bytes": 0,
            "producers": 1,
        }

    def _limiter(self) -> dict[str, Any]:
        seconds = self._elapsed_s
        return {
            **self._span(Kind.LIMITER, 0),
            "level": "topic",
            "subject": _NS + "topic-limit",
            "dimension": "messages",
            "limit": 200,
            "limit_period_ns": S,
            "offered": 1_000 * seconds,
            "granted": 200 * seconds,
            "waiting_ns": seconds * S,
            "waiters_max": 2,
            "waiter_1": "one",
            "waiter_1_amount": 100,
        }


def columns_of(kind: Kind, rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Rows as columns, with every field that one of them has."""
    names = [f.name for f in FIELDS[kind] if any(f.name in row for row in rows)]
    return {name: [row.get(name) for row in rows] for name in names}


def play(seconds: int, interval_s: int = 1, **broker: Any) -> list[bytes]:
    """All situations from :data:`T0` on."""
    player = Broker(**broker)
    return [m for _ in range(0, seconds, interval_s) for m in player.window(interval_s)]


def _window_end_ns(message: bytes) -> int:
    """Where a message's window ends; of what is no message, :data:`T0`."""
    try:
        return decode_packed(message).header.window_end_ns
    except (CorruptionError, UnknownVersionError):
        return T0


def message_batch(messages: list[bytes]) -> pa.RecordBatch:
    """Messages as ingestion gets them, published when their windows ended."""
    count = len(messages)
    published = [_window_end_ns(message) // 1_000 for message in messages]
    return pa.record_batch(
        {
            "value": pa.array(messages, pa.binary()),
            "__topic": pa.array(["persistent://headgate/telemetry/samples"] * count),
            "__messageId": pa.array(
                [bytes([8, 1, 16, i % 128]) for i in range(count)], pa.binary()
            ),
            "__publishTime": pa.array(published, pa.timestamp("us", "UTC")),
        }
    )


def bronze(messages: list[bytes], table: str = "bronze_samples") -> pa.Table:
    """The rows of a bronze table, in one chunk, because a chunk a message is slow to filter."""
    pairs = bronze_tables(message_batch(messages))
    return pa.concat_tables([rows for name, rows in pairs if name == table]).combine_chunks()


def minutes(
    messages: list[bytes], kind: Kind = Kind.SUBSCRIPTION, hours: Collection[int] | None = None
) -> list[dict[str, Any]]:
    """The rows of intervals that follow from messages: see :func:`minutes_of`."""
    return minutes_of(bronze(messages), kind, hours)


def minutes_of(
    rows: pa.Table, kind: Kind = Kind.SUBSCRIPTION, hours: Collection[int] | None = None
) -> list[dict[str, Any]]:
    """The rows of intervals that follow from bronze rows, by the kernel, without Spark.

    ``hours``: those to compute; None: all. The rows are in time order by subject.
    """
    windows = rows.filter(pc.equal(rows["kind"], BATCH_KIND)).select(list(WINDOW_COLUMNS))
    if hours is None:
        hours = {(end - 1) // HOUR_NS for end in rows["window_end_ns"].to_pylist()}
        hours |= {hour for gap in coverage_gaps(windows) for hour in gap.hours}
    arrived = coverage(windows, hours)
    table = rows.filter(pc.equal(rows["kind"], kind.value))
    table = table.sort_by([(name, "ascending") for name in SORT_COLUMNS])
    found = interval_table(table, kind, hours, arrived).to_pylist()
    return sorted(found, key=lambda row: (*(str(row[k]) for k in KEY_COLUMNS), row["from_ns"]))
