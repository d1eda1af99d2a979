"""Every field of the telemetry record: name, number, type, nature, unit and meaning.

Rules of this file:

* Fields are defined here only. ``proto/headgate_record.proto``, the codec, the pipeline's schemas
  and the documentation follow from it.
* Fields are only added. A number is never reused, and a name never changes its meaning, unit or
  nature. A reader ignores unknown fields and sees null for missing ones.
* ``CUMULATIVE`` values count from ``counting_since_ns`` of the row's subject (its creation, or the
  broker's boot) and never fall. ``LEVEL`` values are those at ``covered_to_ns``.
* Names end with the unit. Times are nanoseconds since the epoch, durations nanoseconds.
* Amounts of a feature that the broker does not use (quotas, adaptive limits) are null, not zero.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

from headgate.base.park_cause import ParkCause

MAJOR_VERSION: Final = 2
"""The highest version that this release reads. It grows only when an old reader would misread a new
record; such records are quarantined."""

MEASURED_VERSION: Final = 1
"""Version of records whose broker measured the account of time. Those of an inferred account have
:data:`MAJOR_VERSION`, because a reader of version 1 would take them for measured."""

MESSAGE_BYTES_MAX: Final = 1_048_576
"""Largest encoded batch; a window with more rows is split over several messages."""

COUNT_MAX: Final = (1 << 58) - 1
"""Largest cumulative value: nine years of nanoseconds, or 288 petabytes. A count that passes it is
told as this much: readers refuse the whole message of a larger one, with the rows of others."""

UNKNOWN_INCARNATION: Final = 0
"""Incarnation of a topic whose cluster does not tell it."""


def told_count(count: int) -> int:
    """A cumulative value as a record has it: one that passes :data:`COUNT_MAX` stays there. Clients
    may drive some as far, by seeking over entries that claim very many messages."""
    return min(count, COUNT_MAX)


FULL_PERIOD_NS: Final = 60_000_000_000
"""At every multiple of this wall-clock time a broker sends a row for every subject."""


class FieldType(enum.Enum):
    """The type of a column: in Python str, int (64 bits, signed), float or bool."""

    STRING = "string"
    INT64 = "int64"
    DOUBLE = "double"
    BOOL = "bool"


class Nature(enum.Enum):
    """How a column's values may be combined."""

    IDENTITY = "identity"
    """Identifies the subject of the row."""
    SPAN = "span"
    """Part of the time that the row covers."""
    CUMULATIVE = "cumulative"
    """Grows from ``counting_since_ns``: differences are amounts."""
    LEVEL = "level"
    """The value at ``covered_to_ns``: never summed over time."""


class Kind(enum.Enum):
    """The row kinds of a batch; the value is also the kind's name in every table."""

    TOPIC = "topic"
    SUBSCRIPTION = "subscription"
    LIMITER = "limiter"
    EVENT = "event"


@dataclass(frozen=True, slots=True)
class Field:
    """One column of one row kind."""

    number: int
    """The protobuf field number within the row kind; never reused."""
    name: str
    type: FieldType
    nature: Nature
    unit: str
    """``ns``, ``messages``, ``bytes``, ``entries``, ``1`` for plain counts, or empty."""
    meaning: str


_S, _I, _D, _B = FieldType.STRING, FieldType.INT64, FieldType.DOUBLE, FieldType.BOOL
_ID, _SPAN, _CUM, _LEVEL = Nature.IDENTITY, Nature.SPAN, Nature.CUMULATIVE, Nature.LEVEL

# fmt: off
# One or two lines for each field: the formatter would give each argument a line.
# Span fields have the same numbers in every sampled kind.
_SPAN_FIELDS: Final = (
    Field(5, "covered_from_ns", _I, _SPAN, "ns", "End of the row sent before this one for the same"
          " subject, or counting_since_ns for its first: a hole shows that a row was lost."),
    Field(6, "covered_to_ns", _I, _SPAN, "ns", "The instant the row was taken: its window's end, or"
          " the subject's end."),
    Field(7, "counting_since_ns", _I, _SPAN, "ns", "When the subject's cumulative values were zero:"
          " its creation or loading by this boot of the broker."),
    Field(8, "gone", _B, _SPAN, "", "The subject was deleted or unloaded at covered_to_ns; no row"
          " of it follows."),
)

STATE_NAMES: Final = (
    "transition", "caught_up", "awaiting_ack", "no_consumer", "unacked_limit", "no_permits",
    "socket_full", "key_blocked", "throttled_subscription", "throttled_topic", "throttled_broker",
    "storage", "dispatching", "not_due", "stuck",
)
"""The states of a subscription. All but the last two stand in the order in which the broker
checks them; ``not_due`` comes after ``caught_up``, and ``stuck`` is only inferred."""

_LATE_STATES: Final = ("not_due", "stuck")
"""Plain states that came after the throttled cells."""

_THROTTLED_STATES: Final = ("throttled_subscription", "throttled_topic", "throttled_broker")
DIMENSIONS: Final = ("messages", "bytes")
READINESS: Final = ("hungry", "busy")


def _cells() -> tuple[tuple[str, str, str], ...]:
    plain = [
        (state, "", "") for state in STATE_NAMES
        if state not in (*_THROTTLED_STATES, *_LATE_STATES)
    ]
    split = [
        (state, dimension, consumer)
        for state in _THROTTLED_STATES for dimension in DIMENSIONS for consumer in READINESS
    ]
    return (*plain, *split, *((state, "", "") for state in _LATE_STATES))


STATE_CELLS: Final = _cells()
"""(state, dimension, consumer) of every cell of the account; dimension is ``messages``, ``bytes``
or empty, consumer ``hungry``, ``busy`` or empty. Plain states come first, then throttled ones, then
plain ones that came later, as in the broker's numbering of cells. Field numbers follow this order,
so only append."""


def cell_name(state: str, dimension: str = "", consumer: str = "") -> str:
    """The stable text of a cell: ``caught_up``, ``throttled_topic_messages_hungry``."""
    return "_".join(part for part in (state, dimension, consumer) if part)


CELL_NAMES: Final = tuple(cell_name(*cell) for cell in STATE_CELLS)
"""The text of every cell; also the values of the field ``state``."""

STATE_FIELD_NAMES: Final = tuple(f"state_{name}_ns" for name in CELL_NAMES)
"""The column of every cell, in the order of :data:`STATE_CELLS`."""

PARK_CAUSES: Final = tuple(cause.label for cause in ParkCause)
"""What a parked SEND waits for. ``memory`` pauses sockets, so it counts seconds only."""

QUOTA_TYPES: Final = ("size", "time")
THROTTLE_REASONS: Final = ("subscription", "topic", "broker")
WAITERS_LARGEST: Final = 5


def _state_fields() -> tuple[Field, ...]:
    def meaning(state: str, dimension: str, consumer: str) -> str:
        text = f"Time spent in state {state}"
        if dimension:
            text += f", refused by the {dimension} budget while the consumer was {consumer}"
        return text + "."

    return tuple(
        Field(100 + i, name, _I, _CUM, "ns", meaning(*cell))
        for i, (name, cell) in enumerate(zip(STATE_FIELD_NAMES, STATE_CELLS, strict=True))
    )


def _parked_fields() -> tuple[Field, ...]:
    fields: list[Field] = []
    for i, cause in enumerate(PARK_CAUSES):
        base = 60 + 3 * i if i < 6 else 85 + 3 * (i - 6)  # 80 to 84 were taken when the last came
        fields.append(Field(base, f"parked_{cause}_ns", _I, _CUM, "ns",
                            f"Wall time while at least one SEND was held by {cause}."))
        if cause == "memory":
            continue
        for j, unit in enumerate(DIMENSIONS):
            fields.append(Field(base + 1 + j, f"parked_{cause}_{unit}", _I, _LEVEL, unit,
                                f"{unit.capitalize()} held by {cause} now."))
    return tuple(fields)


PARKED_FIELD_NAMES: Final = tuple(field.name for field in _parked_fields())
"""The columns of parked SENDs, in order."""


def _quota_fields() -> tuple[Field, ...]:
    fields: list[Field] = []
    for i, quota in enumerate(QUOTA_TYPES):
        base, unit = 30 + 4 * i, "bytes" if quota == "size" else "ns"
        measure = "backlog" if quota == "size" else "age of the oldest message"
        fields += [
            Field(base, f"quota_{quota}_limit_{unit}", _I, _LEVEL, unit,
                  f"Limit of the {quota} backlog quota in force; null when there is none."),
            Field(base + 1, f"quota_{quota}_policy", _S, _LEVEL, "",
                  f"What the {quota} quota does when it is exceeded, by Pulsar's name."),
            Field(base + 2, f"quota_{quota}_source", _S, _LEVEL, "",
                  f"Where the {quota} quota is set: topic, namespace or broker."),
            Field(base + 3, f"quota_{quota}_breach_ns", _I, _LEVEL, "ns",
                  f"Time until the {measure} reaches that limit at the broker's smoothed present"
                  " rate; null when it is not approaching or there is no quota."),
        ]
    for i, quota in enumerate(QUOTA_TYPES):
        base = 50 + 3 * i
        fields += [
            Field(base, f"eviction_{quota}_acts", _I, _CUM, "1",
                  f"Acts of eviction by the {quota} quota."),
            Field(base + 1, f"eviction_{quota}_messages", _I, _CUM, "messages",
                  f"Messages that the {quota} quota took from subscriptions."),
            Field(base + 2, f"eviction_{quota}_bytes", _I, _CUM, "bytes",
                  f"Bytes that the {quota} quota took from subscriptions."),
        ]
    return tuple(fields)


TOPIC_FIELDS: Final = (
    Field(1, "topic", _S, _ID, "", "Full name; of a partition the partitioned topic's."),
    Field(2, "partition", _I, _ID, "", "Index of the partition; null for an unpartitioned topic."),
    Field(3, "incarnation", _I, _ID, "", "Grows each time the name is created anew."),
    *_SPAN_FIELDS,
    Field(10, "msgs_in", _I, _CUM, "messages", "Messages appended."),
    Field(11, "bytes_in", _I, _CUM, "bytes", "Bytes appended, metadata included."),
    Field(12, "msgs_out", _I, _CUM, "messages", "Messages handed to consumers, repeats included."),
    Field(13, "bytes_out", _I, _CUM, "bytes", "Bytes handed to consumers, repeats included."),
    Field(20, "storage_bytes", _I, _LEVEL, "bytes", "Bytes of entries that are retained."),
    Field(21, "backlog_bytes", _I, _LEVEL, "bytes", "Backlog of the slowest durable subscription."),
    Field(22, "oldest_age_ns", _I, _LEVEL, "ns", "Age of the oldest unacknowledged message of any"
          " subscription; null without backlog."),
    Field(23, "oldest_subscription", _S, _LEVEL, "", "The subscription that message belongs to."),
    Field(24, "producers", _I, _LEVEL, "1", "Connected producers."),
    Field(25, "duplicates_dropped", _I, _CUM, "messages", "Messages that deduplication did not"
          " store, because they had been stored before; null if the topic never had it."),
    Field(26, "delays_ignored", _I, _CUM, "messages", "Messages that asked to be delivered later"
          " and were delivered at once, because delayed delivery was off."),
    Field(27, "delays_refused", _I, _CUM, "messages", "Messages that were refused, because they"
          " asked for a longer delay than is allowed."),
    Field(28, "producers_waiting", _I, _LEVEL, "1", "Producers that wait for exclusive access."),
    *_quota_fields(),
    *_parked_fields(),
    Field(80, "publish_limit_messages_per_s", _D, _LEVEL, "messages/s",
          "Effective publish limit; null when there is none."),
    Field(81, "publish_limit_bytes_per_s", _D, _LEVEL, "bytes/s",
          "Effective publish limit; null when there is none."),
    Field(82, "publish_limit_source", _S, _LEVEL, "", "Where the publish limit is set."),
    Field(83, "natural_rate_messages_per_s", _D, _LEVEL, "messages/s",
          "Learned rate of the unthrottled producers."),
    Field(84, "natural_rate_bytes_per_s", _D, _LEVEL, "bytes/s",
          "Learned rate of the unthrottled producers."),
)


def _throttled_fields() -> tuple[Field, ...]:
    fields: list[Field] = []
    number = 40
    for reason in THROTTLE_REASONS:
        for unit in DIMENSIONS:
            fields += [
                Field(number, f"throttled_{reason}_{unit}_events", _I, _CUM, "1",
                      f"Times the {reason} limit in {unit} delayed delivery, at most one a"
                      " period."),
                Field(number + 1, f"throttled_{reason}_{unit}", _I, _CUM, unit,
                      f"{unit.capitalize()} that backlog and permits allowed and the {reason} limit"
                      " held back, once for each delivery attempt."),
            ]
            number += 2
    return tuple(fields)


def _dispatch_limit_fields() -> tuple[Field, ...]:
    fields: list[Field] = []
    for i, level in enumerate(THROTTLE_REASONS):
        base = 60 + 4 * i
        fields += [
            Field(base, f"limit_{level}_messages", _I, _LEVEL, "messages",
                  f"Effective {level} dispatch limit for one period; null when there is none."),
            Field(base + 1, f"limit_{level}_bytes", _I, _LEVEL, "bytes",
                  f"Effective {level} dispatch limit for one period; null when there is none."),
            Field(base + 2, f"limit_{level}_period_ns", _I, _LEVEL, "ns",
                  f"Period of the {level} dispatch limit."),
            Field(base + 3, f"limit_{level}_source", _S, _LEVEL, "",
                  f"Where the {level} dispatch limit is set."),
        ]
    return tuple(fields)


SUBSCRIPTION_FIELDS: Final = (
    Field(1, "topic", _S, _ID, "", "Full name; of a partition the partitioned topic's."),
    Field(2, "partition", _I, _ID, "", "Index of the partition; null for an unpartitioned topic."),
    Field(3, "incarnation", _I, _ID, "", "Grows each time the name is created anew."),
    Field(4, "subscription", _S, _ID, "", "Name of the subscription."),
    *_SPAN_FIELDS,
    Field(9, "type", _S, _LEVEL, "", "Exclusive, Shared, Failover or Key_Shared."),
    Field(10, "consumers", _I, _LEVEL, "1", "Connected consumers."),
    Field(11, "appended", _I, _CUM, "messages", "Messages appended to the topic."),
    Field(12, "msgs_out", _I, _CUM, "messages", "Messages handed to consumers, repeats included."),
    Field(13, "bytes_out", _I, _CUM, "bytes", "Bytes handed to consumers, repeats included."),
    Field(14, "acked", _I, _CUM, "messages", "Messages acknowledged by consumers."),
    Field(15, "skipped", _I, _CUM, "messages", "Messages passed by skip, clear or seek forward."),
    Field(16, "rewound", _I, _CUM, "messages", "Messages that became unacknowledged again by seek"
          " back, or stood before the subscription when it was created at the earliest."),
    Field(17, "redelivered", _I, _CUM, "messages", "Messages handed out again."),
    Field(18, "expired", _I, _CUM, "messages", "Messages passed by expiry."),
    Field(19, "evicted", _I, _CUM, "messages", "Messages passed by a backlog quota."),
    Field(20, "backlog_messages", _I, _LEVEL, "messages", "Messages not acknowledged."),
    Field(21, "backlog_bytes", _I, _LEVEL, "bytes", "Bytes not acknowledged."),
    Field(22, "oldest_age_ns", _I, _LEVEL, "ns", "Age of the oldest deliverable unacknowledged"
          " message; null without backlog."),
    Field(23, "delayed", _I, _LEVEL, "messages", "Delayed messages that are not yet due."),
    Field(24, "unacked", _I, _LEVEL, "messages", "Messages with consumers, unacknowledged."),
    Field(25, "permits", _I, _LEVEL, "entries", "Sum of the consumers' permits."),
    Field(26, "state", _S, _LEVEL, "", "The present cell of the account; it goes on until the next"
          " row."),
    Field(27, "evicted_by", _S, _LEVEL, "", "The backlog quota that evicted last, size or time;"
          " null while none did."),
    Field(28, "evicted_by_limit", _I, _LEVEL, "", "Its limit then, in bytes or ns."),
    Field(29, "evicted_by_source", _S, _LEVEL, "", "Where it was set: topic, namespace or broker."),
    Field(30, "expired_by_ttl_ns", _I, _LEVEL, "ns", "The TTL that expired messages last; null"
          " while none did, or if a request expired them."),
    Field(31, "expired_by_source", _S, _LEVEL, "", "Where it was set: topic, namespace or broker."),
    *_throttled_fields(),
    *_dispatch_limit_fields(),
    *_state_fields(),
)

LIMITER_FIELDS: Final = (
    Field(1, "level", _S, _ID, "", "subscription, topic or broker (dispatch), publish_topic or"
          " publish_broker."),
    Field(2, "subject", _S, _ID, "", "Whom it limits: a topic, topic|subscription, or the broker."),
    Field(3, "incarnation", _I, _ID, "", "Incarnation of the subject; 0 for a broker."),
    Field(4, "dimension", _S, _ID, "", "messages or bytes."),
    *_SPAN_FIELDS,
    Field(10, "limit", _I, _LEVEL, "", "Amount for one period."),
    Field(11, "limit_period_ns", _I, _LEVEL, "ns", "The period."),
    Field(12, "limit_source", _S, _LEVEL, "", "Where it is set."),
    Field(13, "offered", _I, _CUM, "", "Amount that wanted to pass, each once."),
    Field(14, "granted", _I, _CUM, "", "Amount that passed."),
    Field(15, "waiting_ns", _I, _CUM, "ns", "Time with at least one waiter."),
    Field(16, "waiters_max", _I, _LEVEL, "1", "Most waiters at once since the last row."),
    *(Field(20 + i, f"waiter_{i + 1}", _S, _LEVEL, "", f"Name of the waiter number {i + 1} by"
            " amount waiting.") for i in range(WAITERS_LARGEST)),
    *(Field(30 + i, f"waiter_{i + 1}_amount", _I, _LEVEL, "", f"What waiter number {i + 1} was"
            " granted since the last row.") for i in range(WAITERS_LARGEST)),
)

EVENT_FIELDS: Final = (
    Field(1, "time_ns", _I, _SPAN, "ns", "When it happened."),
    Field(2, "event", _S, _ID, "", "limit_changed, throttle_began, throttle_ended, quota_exceeded,"
          " quota_released, eviction, expiry, controller_decision, admin_change or restart."),
    Field(3, "topic", _S, _ID, "", "The topic concerned; null for the whole broker."),
    Field(4, "subscription", _S, _ID, "", "The subscription concerned, if it is one."),
    Field(5, "incarnation", _I, _ID, "", "Incarnation of the subject."),
    Field(6, "inputs", _S, _LEVEL, "", "What the decision was based on: one JSON object."),
    Field(7, "outcome", _S, _LEVEL, "", "What was decided or lost: one JSON object."),
)

# fmt: on

FIELDS: Final[dict[Kind, tuple[Field, ...]]] = {
    Kind.TOPIC: TOPIC_FIELDS,
    Kind.SUBSCRIPTION: SUBSCRIPTION_FIELDS,
    Kind.LIMITER: LIMITER_FIELDS,
    Kind.EVENT: EVENT_FIELDS,
}
"""All fields of all row kinds, in their documented order."""

EVENT_NAMES: Final = (
    "limit_changed",
    "throttle_began",
    "throttle_ended",
    "quota_exceeded",
    "quota_released",
    "eviction",
    "expiry",
    "controller_decision",
    "admin_change",
    "restart",
)
"""The values of the field ``event``."""


def field_names(kind: Kind, *natures: Nature) -> tuple[str, ...]:
    """Names of the fields of ``kind`` with one of ``natures``; without any, of all fields."""
    return tuple(f.name for f in FIELDS[kind] if not natures or f.nature in natures)
