"""The tables about limiters: ``publish_attribution`` and ``throttle_timeline``."""

from __future__ import annotations

from typing import Final

from headgate.base.park_cause import ParkCause
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES, EVIDENCE_VALUES
from headgate.pipeline.tables.columns import (
    DOUBLE,
    EPOCH_NS,
    LONG,
    MINUTE_COLUMN,
    NS,
    PARTITION,
    SHARE,
    STRING,
    Agreement,
    Sum,
    Table,
    TableColumn,
    required,
)
from headgate.pipeline.tables.intervals import INTERVALS, TOPIC_COLUMNS, TOPIC_KEY
from headgate.record.fields import PARKED_FIELD_NAMES, Kind

PUBLISH_LEVELS: Final = (
    "publish_limit_messages_per_s",
    "publish_limit_bytes_per_s",
    "publish_limit_source",
    "natural_rate_messages_per_s",
    "natural_rate_bytes_per_s",
)
"""Telemetry fields of topics about publish limits."""


def _parked_column(name: str) -> TableColumn:
    cause = name.removeprefix("parked_").rsplit("_", 1)[0]
    if name.endswith("_ns"):
        meaning = f"Time in which {cause} parked at least one message."
        return TableColumn(name, LONG, meaning, NS, least=0)
    unit = name.rsplit("_", 1)[1]
    meaning = f"{unit.capitalize()} that {cause} parks at the end."
    return TableColumn(name, LONG, meaning, unit, least=0)


_CAUSES: Final = tuple(cause.label for cause in ParkCause)


PARK_COLUMNS: Final = (
    TableColumn("broker", STRING, "Broker that wrote the last row."),
    TableColumn(
        "completeness", DOUBLE, "Share of the time that was sampled.", SHARE, least=0, most=1
    ),
    *required(
        TableColumn("from_ns", LONG, "Start of the account.", EPOCH_NS),
        TableColumn("to_ns", LONG, "End of the account.", EPOCH_NS),
    ),
    TableColumn("msgs_in", LONG, "Messages appended.", "messages", least=0),
    TableColumn("bytes_in", LONG, "Bytes appended, metadata included.", "bytes", least=0),
    TableColumn(
        "duplicates_dropped",
        LONG,
        "Messages that deduplication did not store, because they had been stored before; null if"
        " the topic never had it.",
        "messages",
        least=0,
    ),
    TableColumn("producers", LONG, "Connected producers at the end.", least=0),
    *(_parked_column(name) for name in PARKED_FIELD_NAMES),
    *(INTERVALS.column(name) for name in PUBLISH_LEVELS),
    TableColumn(
        "cause",
        STRING,
        "Park cause of most of the time, as in parked_CAUSE_ns; null if none parked.",
        values=_CAUSES,
    ),
    TableColumn("second_cause", STRING, "The next park cause by time, or null.", values=_CAUSES),
    TableColumn(
        "held_share",
        DOUBLE,
        "Share of the counted time in which cause parked; null without counted time.",
        SHARE,
        least=0,
        most=1,
    ),
    TableColumn(
        "evidence",
        STRING,
        "measured, or inferred if any of its minutes was inferred from counters.",
        values=EVIDENCE_VALUES,
    ),
    TableColumn("sentence", STRING, "The row in words."),
)
"""Columns of the park causes of a topic over a minute or a range."""

PUBLISH_ATTRIBUTION: Final = Table(
    "publish_attribution",
    (
        *PARTITION,
        MINUTE_COLUMN,
        *TOPIC_COLUMNS,
        *PARK_COLUMNS,
    ),
    ("date", "hour"),
    ("minute",),
    meaning="One row for each topic and minute in which messages were published, waited or were"
    " dropped as duplicates.",
    key=(*TOPIC_KEY, "minute"),
    follows_from=(INTERVALS.name,),
    sums=(Sum("from_before_to", ("from_ns",), "to_ns", is_at_most=True),),
    agreements=tuple(
        Agreement(name, INTERVALS.name, name, (Kind.TOPIC.value,))
        for name in ("msgs_in", "bytes_in", "duplicates_dropped")
    ),
)
"""One row for each topic and minute with a published, held or dropped message."""

LIMITER_KEY: Final = ("cluster", "level", "subject", "dimension", "incarnation")

THROTTLE_TIMELINE: Final = Table(
    "throttle_timeline",
    (
        *PARTITION,
        MINUTE_COLUMN,
        *(INTERVALS.column(name) for name in LIMITER_KEY),
        TableColumn("broker", STRING, "Broker that wrote the minute's last row."),
        TableColumn(
            "completeness", DOUBLE, "Share of the minute that was sampled.", SHARE, least=0, most=1
        ),
        *(INTERVALS.column(name) for name in ("from_ns", "to_ns", "covered_ns")),
        TableColumn(
            "counted_ns",
            LONG,
            "Time over which offered, granted and waiting_ns were counted: with lost rows, without"
            " the time in which the broker was down.",
            NS,
            least=0,
        ),
        TableColumn("limit", LONG, "Amount for one period at the minute's end.", least=0),
        TableColumn("limit_period_ns", LONG, "The period.", NS, least=0),
        TableColumn("limit_source", STRING, "Source of the limit."),
        TableColumn(
            "limit_per_s", DOUBLE, "The limit as a rate, in units of the dimension.", least=0
        ),
        TableColumn(
            "offered", LONG, "Amount that came to the limiter, each message once.", least=0
        ),
        TableColumn("granted", LONG, "Amount that passed.", least=0),
        TableColumn("held", LONG, "offered less granted; 0 if the waiting amount shrank.", least=0),
        TableColumn("waiting_ns", LONG, "Time with at least one waiter.", NS, least=0),
        TableColumn(
            "waiting_share",
            DOUBLE,
            "Share of the counted time with at least one waiter.",
            SHARE,
            least=0,
            most=1,
        ),
        TableColumn("waiters_max", LONG, "Most waiters at once.", least=0),
        TableColumn(
            "use",
            DOUBLE,
            "granted / the amount that the limit allows in the counted time; 1 is full use.",
            least=0,
        ),
        TableColumn(
            "waiters",
            STRING,
            "Waiters, largest first: a JSON array of objects with waiter and granted (the amount in"
            " the rows that name it; a row names five); null if there were none.",
            json_fields=(("waiter", STRING), ("granted", LONG)),
        ),
        TableColumn("sentence", STRING, "The row in words."),
    ),
    ("date", "hour"),
    ("minute",),
    meaning="One row for each limiter in use and minute.",
    key=(*LIMITER_KEY, "minute"),
    follows_from=(INTERVALS.name, BRONZE_SAMPLES.name),
    sums=(
        Sum("from_before_to", ("from_ns",), "to_ns", is_at_most=True),
        Sum("held_covers_offered", ("offered",), "held", less=("granted",), is_at_most=True),
    ),
    agreements=tuple(
        Agreement(name, INTERVALS.name, name, (Kind.LIMITER.value,))
        for name in ("offered", "granted")
    ),
)
"""One row for each limiter in use and minute: what it granted, and who waited."""
