"""Topics and subscriptions in the telemetry: one track for each, from loading to unloading.

A row is a tuple in the order of ``TOPIC_COLUMNS`` or ``SUBSCRIPTION_COLUMNS``. None instead of a
row says that only the time in the present state has grown, which a reader of the record fills in
(docs/telemetry.md 3). The age of the oldest message grows with time and is no change either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headgate.base.drained import drained
from headgate.base.sliced import Sliced, at_once
from headgate.base.units import NS_PER_MS
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.flow.account.account import Account, Cell, is_throttled
from headgate.flow.limits.rate_limit import Dimension, Level
from headgate.flow.quota.backlog_quota import NO_QUOTAS
from headgate.record.codec import Value
from headgate.record.fields import (
    CELL_NAMES,
    DIMENSIONS,
    STATE_FIELD_NAMES,
    THROTTLE_REASONS,
    told_count,
)
from headgate.telemetry.records.expiry_events import expired_by_values
from headgate.telemetry.records.limit_track import LimitTrack, LimitValues
from headgate.telemetry.records.names import PLAIN, Names
from headgate.telemetry.records.publishing import (
    PARKED_COLUMNS,
    PUBLISH_COLUMNS,
    PublishTrack,
    parked_values,
)
from headgate.telemetry.records.quotas import (
    BREACH_COLUMNS,
    COUNT_COLUMNS,
    LIMIT_COLUMNS,
    breach_values,
    count_values,
    evicted_by_values,
    limit_values,
)

Row = tuple[Value, ...]

SUBSCRIPTIONS_PER_YIELD: Final = 16
"""Subscriptions of a topic that are looked at between two yields: about 30 us."""

SPAN_COLUMNS: Final = ("covered_from_ns", "covered_to_ns", "counting_since_ns", "gone")

TOPIC_COLUMNS: Final = (
    "topic", "partition", "incarnation", *SPAN_COLUMNS, "oldest_age_ns", "oldest_subscription",
    *BREACH_COLUMNS, "msgs_in", "bytes_in", "msgs_out", "bytes_out", "storage_bytes",
    "backlog_bytes", "producers", "duplicates_dropped", "delays_ignored", "delays_refused",
    "producers_waiting", *LIMIT_COLUMNS, *COUNT_COLUMNS,
    *PARKED_COLUMNS, *PUBLISH_COLUMNS,
)  # fmt: skip

SUBSCRIPTION_COLUMNS: Final = (
    "topic", "partition", "incarnation", "subscription", *SPAN_COLUMNS, "oldest_age_ns", "state",
    "type", "consumers", "appended", "msgs_out", "bytes_out", "acked", "skipped", "rewound",
    "redelivered", "expired", "evicted", "evicted_by", "evicted_by_limit", "evicted_by_source",
    "expired_by_ttl_ns", "expired_by_source",
    "backlog_messages", "backlog_bytes", "delayed", "unacked", "permits",
    *(f"throttled_{reason}_{unit}_events" for reason in THROTTLE_REASONS for unit in DIMENSIONS),
    *(f"throttled_{reason}_{unit}" for reason in THROTTLE_REASONS for unit in DIMENSIONS),
    *(f"limit_{level}_{part}" for level in THROTTLE_REASONS
      for part in ("messages", "bytes", "period_ns", "source")),
    *STATE_FIELD_NAMES,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Instant:
    """The window at whose end rows are taken."""

    window_start_ns: int
    """Wall clock; the end of the window before."""
    window_end_ns: int
    """Wall clock: the ``covered_to_ns`` of the rows."""
    full: bool = False
    """Every subject has a row."""
    gone: bool = False
    """The subject ends at the window's end."""

    @classmethod
    def end(cls, at_ns: int) -> Instant:
        """The end of a subject, between two windows."""
        return cls(at_ns, at_ns, gone=True)


def cells_of(account: Account, now_ns: int) -> tuple[int, ...]:
    """Nanoseconds per cell, never less than at an earlier call.

    A wait at a limiter may still change its cause, so only such an account is booked up to now. A
    mere look must leave ``Account.since_ns``, by which others see that nothing happened.
    """
    if is_throttled(account.cell):
        return account.snapshot(now_ns)
    return account.peek(now_ns)


class TopicTrack:
    """One live topic."""

    __slots__ = (
        "_sent",
        "base_name",
        "covered_ns",
        "limit",
        "loaded_ns",
        "names",
        "publishing",
        "quota_limits",
        "since_ns",
        "subscriptions",
        "topic",
    )

    def __init__(self, topic: Topic, since_ns: int, names: Names = PLAIN) -> None:
        self.topic = topic
        self.names = names
        self.base_name = names.topic(topic.name.base)
        self.since_ns = self.covered_ns = since_ns
        self.loaded_ns = topic.now_ns
        """The turn in which it was loaded: its stored subscriptions were loaded in the same."""
        self.subscriptions: dict[str, SubscriptionTrack] = {}
        self.limit = LimitTrack(since_ns)
        self.publishing = PublishTrack(topic, since_ns)
        self.quota_limits: Row = limit_values(NO_QUOTAS, names)
        """The columns of the quotas in force."""
        self._sent: Row = ()

    @property
    def partition(self) -> int | None:
        """The value in a row."""
        return self.topic.partition if self.topic.partition >= 0 else None

    def row(self, at: Instant) -> Row | None:
        """The row of the window; None if nothing changed."""
        return at_once(self.row_in_steps(at))

    def row_in_steps(self, at: Instant) -> Sliced[Row | None]:
        """:meth:`row`, which yields while it looks at the subscriptions. If the topic ends at such
        a yield, its last row covers the window, and this one is None."""
        if at.window_end_ns <= self.covered_ns:
            return None
        topic = self.topic
        # The sums of removed subscriptions are read first: one that is removed at a yield counts
        # by itself, and only once.
        messages_out, bytes_out = topic.messages_out_removed, topic.bytes_out_removed
        backlog_bytes = 0
        for number, subscription in enumerate(drained([*topic.subscriptions.values()]), 1):
            messages_out += subscription.messages_sent
            bytes_out += subscription.bytes_sent
            if subscription.is_durable:
                backlog_bytes = max(backlog_bytes, subscription.backlog_bytes)
            if number % SUBSCRIPTIONS_PER_YIELD == 0:
                yield
        values: Row = (
            told_count(topic.messages_in()),
            topic.bytes_in(),
            told_count(messages_out),
            bytes_out,
            topic.storage_bytes(),
            backlog_bytes,
            len(topic.producers),
            topic.publishing.duplicates_if_any,
            topic.delays_ignored,
            topic.delays_refused,
            0 if topic.access is None else topic.access.waiting_count,
            *self.quota_limits,
            *count_values(topic),
            *parked_values(topic),
            *self.publishing.values(),
        )
        if values == self._sent and not (at.full or at.gone):
            return None
        age_ns, oldest = yield from self._oldest()
        if at.window_end_ns <= self.covered_ns:
            return None
        self._sent = values
        covered_from_ns, self.covered_ns = self.covered_ns, at.window_end_ns
        return (
            self.base_name,
            self.partition,
            topic.incarnation,
            covered_from_ns,
            at.window_end_ns,
            self.since_ns,
            at.gone,
            age_ns,
            oldest,
            *breach_values(topic),
            *values,
        )

    def _oldest(self) -> Sliced[tuple[int | None, str | None]]:
        oldest_ms: int | None = None
        name: str | None = None
        for number, subscription in enumerate(drained([*self.topic.subscriptions.values()]), 1):
            if subscription.is_durable and not subscription.removed:
                received_ms = subscription.oldest_unacked_ms()
                if received_ms is not None and (oldest_ms is None or received_ms < oldest_ms):
                    oldest_ms, name = received_ms, subscription.name
            if number % SUBSCRIPTIONS_PER_YIELD == 0:
                yield
        if oldest_ms is None or name is None:
            return None, None
        age_ns = max(0, self.topic.log_ms - oldest_ms) * NS_PER_MS
        return age_ns, self.names.part(name)


class SubscriptionTrack:
    """One live subscription."""

    __slots__ = (
        "_appended_before",
        "_cell_at_sent",
        "_cell_ns_at_sent",
        "_events_before",
        "_handed_before",
        "_rewound_before",
        "_sent",
        "_sent_ns",
        "cells_ns",
        "covered_ns",
        "holding",
        "limit",
        "name",
        "sent_in_window",
        "since_ns",
        "subscription",
        "topic",
    )

    def __init__(self, subscription: Subscription, topic: TopicTrack, since_ns: int) -> None:
        log = subscription.topic.log
        now_ns = subscription.topic.now_ns
        self.subscription = subscription
        self.name = topic.names.part(subscription.name)
        """The value in a row."""
        self.topic = topic
        self.since_ns = self.covered_ns = since_ns
        self.limit = LimitTrack(since_ns)
        self.holding: Cell | None = None
        """The limiter that held it in the last window."""
        self.cells_ns = cells_of(subscription.account, now_ns)
        """Its account at the end of the last window."""
        self.sent_in_window = (0, 0)
        """Messages and bytes handed over in the last window, by :class:`Dimension`."""
        self._handed_before = (subscription.messages_sent, subscription.bytes_sent)
        self._appended_before = log.messages_before(log.end)
        # The backlog of a new subscription counts as rewound by its creation; that of a loaded
        # subscription is old.
        is_new = now_ns != topic.loaded_ns
        self._rewound_before = -subscription.backlog_messages if is_new else 0
        # The gate, with its counters, outlives an unload of the topic.
        subscription.gate.count_until(now_ns)
        counted = subscription.gate.throttled_events
        self._events_before = tuple(n for level in counted for n in level)
        self._sent: Row = ()
        self._sent_ns = 0
        self._cell_at_sent = subscription.account.cell
        self._cell_ns_at_sent = 0

    def row(self, at: Instant, broker_limit: LimitValues) -> Row | None:
        """The row of the window; None if nothing changed. Updates ``cells_ns`` and
        ``sent_in_window`` in any case."""
        subscription = self.subscription
        now_ns = subscription.topic.now_ns
        handed, before = (subscription.messages_sent, subscription.bytes_sent), self._handed_before
        self.sent_in_window = (handed[0] - before[0], handed[1] - before[1])
        self._handed_before = handed
        account = subscription.account
        if subscription.throttled:
            subscription.dispatcher.count_late(now_ns)
        cells_ns = self.cells_ns = cells_of(account, now_ns)
        if at.window_end_ns <= self.covered_ns:
            return None
        cell = account.cell
        values = self._values(broker_limit)
        # The cells add up to the elapsed time: if all of it went into the present cell, which was
        # the present one then, no other cell changed.
        stayed = cell is self._cell_at_sent and (
            cells_ns[cell] - self._cell_ns_at_sent == now_ns - self._sent_ns
        )
        if stayed and values == self._sent and not (at.full or at.gone):
            return None
        self._sent, self._sent_ns = values, now_ns
        self._cell_at_sent, self._cell_ns_at_sent = cell, cells_ns[cell]
        covered_from_ns, self.covered_ns = self.covered_ns, at.window_end_ns
        age_ms = subscription.deliverable_age_ms()
        return (
            self.topic.base_name,
            self.topic.partition,
            subscription.topic.incarnation,
            self.name,
            covered_from_ns,
            at.window_end_ns,
            self.since_ns,
            at.gone,
            None if age_ms is None else age_ms * NS_PER_MS,
            CELL_NAMES[cell],
            *values,
            *cells_ns,
        )

    def _values(self, broker_limit: LimitValues) -> Row:
        subscription = self.subscription
        subscription.count_throttling()
        counted = (n for level in subscription.gate.throttled_events for n in level)
        events = (n - before for n, before in zip(counted, self._events_before, strict=True))
        return (
            subscription.type.label if subscription.type_known else None,
            len(subscription.consumers),
            *map(told_count, self._amounts()),
            *evicted_by_values(subscription.evicted_by, self.topic.names),
            *expired_by_values(subscription.expired_by, self.topic.names),
            subscription.backlog_messages,
            subscription.backlog_bytes,
            None if subscription.dispatcher.delayed is None else subscription.delayed_messages,
            subscription.dispatcher.in_flight_messages(),
            sum(consumer.permits for consumer in subscription.consumers),
            *events,
            *(told_count(n) for level in subscription.throttled_dispatch.counts for n in level),
            *self.limit.values,
            *self.topic.limit.values,
            *broker_limit,
        )

    def _amounts(self) -> tuple[int, ...]:
        subscription = self.subscription
        log = subscription.topic.log
        return (
            log.messages_before(log.end) - self._appended_before,
            subscription.messages_sent,
            subscription.bytes_sent,
            subscription.acked_messages,
            subscription.skipped_messages,
            subscription.rewound_messages - self._rewound_before,
            subscription.redelivered_messages,
            subscription.expired_messages,
            subscription.evicted_messages,
        )

    def limit_at(self, level: Level, broker_limit: LimitValues) -> LimitValues:
        """The effective limit of a level as this subscription meets it."""
        return (self.limit.values, self.topic.limit.values, broker_limit)[level]

    def waiting_amount(self, dimension: Dimension) -> int:
        """Messages or bytes that wait at a limiter: not acknowledged and not with a consumer. 0
        when no limiter holds the subscription now."""
        if not self.subscription.throttled:
            return 0
        return self.subscription.dispatcher.waiting()[dimension]
