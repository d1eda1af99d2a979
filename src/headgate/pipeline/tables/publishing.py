"""The tables about limiters: ``publish_attribution`` and ``throttle_timeline``."""

from __future__ import annotations

from typing import Final

from headgate.pipeline.tables.columns import (
    DOUBLE,
    LONG,
    PARTITION,
    STRING,
    ColumnType,
    Table,
    TableColumn,
)
from headgate.pipeline.tables.intervals import BY_NAME, TOPIC_COLUMNS
from headgate.record.fields import PARKED_FIELD_NAMES

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
        return TableColumn(name, LONG, f"Time in which {cause} parked at least one message. [ns]")
    unit = name.rsplit("_", 1)[1]
    return TableColumn(name, LONG, f"{unit.capitalize()} that {cause} parks at the end.")


PARK_COLUMNS: Final = (
    TableColumn("broker", STRING, "Broker that wrote the last row."),
    TableColumn("completeness", DOUBLE, "Share of the time that was sampled, 0 to 1."),
    TableColumn("from_ns", LONG, "Start of the account, ns since the epoch."),
    TableColumn("to_ns", LONG, "End of the account, ns since the epoch."),
    TableColumn("msgs_in", LONG, "Messages appended."),
    TableColumn("bytes_in", LONG, "Bytes appended, metadata included."),
    TableColumn("producers", LONG, "Connected producers at the end."),
    *(_parked_column(name) for name in PARKED_FIELD_NAMES),
    *(BY_NAME[name] for name in PUBLISH_LEVELS),
    TableColumn(
        "cause",
        STRING,
        "Park cause of most of the time, as in parked_CAUSE_ns; null if none parked.",
    ),
    TableColumn("second_cause", STRING, "The next park cause by time, or null."),
    TableColumn(
        "held_share",
        DOUBLE,
        "Share of the counted time in which cause parked, 0 to 1; null without counted time.",
    ),
    TableColumn(
        "evidence",
        STRING,
        "measured, or inferred if any of its minutes was inferred from counters.",
    ),
    TableColumn("sentence", STRING, "The row in words."),
)
"""Columns of the park causes of a topic over a minute or a range."""

PUBLISH_ATTRIBUTION: Final = Table(
    "publish_attribution",
    (
        *PARTITION,
        TableColumn("minute", ColumnType.TIMESTAMP, "Start of the minute."),
        *TOPIC_COLUMNS,
        *PARK_COLUMNS,
    ),
    ("date", "hour"),
    ("minute",),
)
"""One row for each topic and minute with a published or held message."""

LIMITER_KEY: Final = ("cluster", "level", "subject", "dimension", "incarnation")

THROTTLE_TIMELINE: Final = Table(
    "throttle_timeline",
    (
        *PARTITION,
        TableColumn("minute", ColumnType.TIMESTAMP, "Start of the minute."),
        *(BY_NAME[name] for name in LIMITER_KEY),
        TableColumn("broker", STRING, "Broker that wrote the minute's last row."),
        TableColumn("completeness", DOUBLE, "Share of the minute that was sampled, 0 to 1."),
        TableColumn("from_ns", LONG, "Start of the minute's account, ns since the epoch."),
        TableColumn("to_ns", LONG, "End of the minute's account, ns since the epoch."),
        TableColumn(
            "covered_ns", LONG, "Time between them that rows cover, without lost rows. [ns]"
        ),
        TableColumn(
            "counted_ns",
            LONG,
            "Time over which offered, granted and waiting_ns were counted: with lost rows, without"
            " the time in which the broker was down. [ns]",
        ),
        TableColumn("limit", LONG, "Amount for one period at the minute's end."),
        TableColumn("limit_period_ns", LONG, "The period. [ns]"),
        TableColumn("limit_source", STRING, "Source of the limit."),
        TableColumn("limit_per_s", DOUBLE, "The limit as a rate, in units of the dimension."),
        TableColumn("offered", LONG, "Amount that came to the limiter, each message once."),
        TableColumn("granted", LONG, "Amount that passed."),
        TableColumn("held", LONG, "offered less granted; 0 if the waiting amount shrank."),
        TableColumn("waiting_ns", LONG, "Time with at least one waiter. [ns]"),
        TableColumn(
            "waiting_share", DOUBLE, "Share of the counted time with at least one waiter, 0 to 1."
        ),
        TableColumn("waiters_max", LONG, "Most waiters at once."),
        TableColumn(
            "use",
            DOUBLE,
            "granted / the amount that the limit allows in the counted time; 1 is full use.",
        ),
        TableColumn(
            "waiters",
            STRING,
            "Waiters, largest first: a JSON array of objects with waiter and granted (the amount in"
            " the rows that name it; a row names five); null if there were none.",
        ),
        TableColumn("sentence", STRING, "The row in words."),
    ),
    ("date", "hour"),
    ("minute",),
)
"""One row for each limiter in use and minute: what it granted, and who waited."""
