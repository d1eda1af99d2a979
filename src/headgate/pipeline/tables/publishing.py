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
"""Fields of the record's topic rows that tell of publish limits."""


def _parked_column(name: str) -> TableColumn:
    cause = name.removeprefix("parked_").rsplit("_", 1)[0]
    if name.endswith("_ns"):
        return TableColumn(name, LONG, f"Time in which {cause} held at least one message. [ns]")
    unit = name.rsplit("_", 1)[1]
    return TableColumn(name, LONG, f"{unit.capitalize()} that {cause} holds at the end.")


PARK_COLUMNS: Final = (
    TableColumn("broker", STRING, "Broker that wrote the last row."),
    TableColumn("completeness", DOUBLE, "How much of the time was sampled, 0 to 1."),
    TableColumn("from_ns", LONG, "Where the account begins."),
    TableColumn("to_ns", LONG, "Where the account ends."),
    TableColumn("msgs_in", LONG, "Messages appended."),
    TableColumn("bytes_in", LONG, "Bytes appended, metadata included."),
    TableColumn("producers", LONG, "Connected producers at the end."),
    *(_parked_column(name) for name in PARKED_FIELD_NAMES),
    *(BY_NAME[name] for name in PUBLISH_LEVELS),
    TableColumn(
        "cause", STRING, "What held for most of the time, as in parked_CAUSE_ns; null: nothing."
    ),
    TableColumn("second_cause", STRING, "What held for most of the time after that, or null."),
    TableColumn(
        "held_share",
        DOUBLE,
        "Part of the counted time in which cause held, 0 to 1; null when nothing was counted.",
    ),
    TableColumn("evidence", STRING, "measured, or inferred if any of it is from counters alone."),
    TableColumn("sentence", STRING, "All that in words."),
)
"""What held a topic's producers, over a minute or a range."""

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
        TableColumn("completeness", DOUBLE, "How much of the minute was sampled, 0 to 1."),
        TableColumn("from_ns", LONG, "Where the account of this minute begins."),
        TableColumn("to_ns", LONG, "Where the account of this minute ends."),
        TableColumn("covered_ns", LONG, "Time inside it that rows cover, lost rows left out."),
        TableColumn(
            "counted_ns",
            LONG,
            "Time inside it that offered, granted and waiting_ns are of: that of lost rows, too,"
            " and not that in which the broker was down.",
        ),
        TableColumn("limit", LONG, "Amount for one period at the minute's end."),
        TableColumn("limit_period_ns", LONG, "The period. [ns]"),
        TableColumn("limit_source", STRING, "Where it is set."),
        TableColumn("limit_per_s", DOUBLE, "The limit as a rate, in units of the dimension."),
        TableColumn("offered", LONG, "Amount that wanted to pass, each once."),
        TableColumn("granted", LONG, "Amount that passed."),
        TableColumn("held", LONG, "By how much more came than passed; 0 where what waited shrank."),
        TableColumn("waiting_ns", LONG, "Time with at least one waiter. [ns]"),
        TableColumn(
            "waiting_share", DOUBLE, "Part of the counted time in which somebody waited, 0 to 1."
        ),
        TableColumn("waiters_max", LONG, "Most waiters at once."),
        TableColumn(
            "use", DOUBLE, "granted / what the limit allows in the counted time; 1 is all."
        ),
        TableColumn(
            "waiters",
            STRING,
            "Who waited, a JSON array of objects with waiter and granted (what it got in the rows"
            " that name it, five of each), the largest first; null when nobody did.",
        ),
        TableColumn("sentence", STRING, "All that in words."),
    ),
    ("date", "hour"),
    ("minute",),
)
"""One row for each limiter in use and minute: what it granted, and who waited."""
