"""The table ``attribution``: the cause of each subscription's backlog, by minute."""

from __future__ import annotations

from typing import Final

from headgate.pipeline.tables.columns import (
    DOUBLE,
    HOUR_NS,
    LONG,
    PARTITION,
    STRING,
    ColumnType,
    Table,
    TableColumn,
)
from headgate.pipeline.tables.intervals import INTERVALS

DEMONSTRATED_LOOK_BACK_NS: Final = 24 * HOUR_NS
"""How far before its hour a minute of ``attribution`` looks for a subscription's demonstrated rate;
in its own hour it looks as far back as the hour's start."""

BLAMES: Final = (
    "NONE",
    "CONSUMER",
    "NO_CONSUMER",
    "THROTTLED_SUBSCRIPTION",
    "THROTTLED_TOPIC",
    "THROTTLED_BROKER",
    "BROKER",
)
"""The possible causes of a share of time, also the names of verdicts; NONE stands for no
backlog."""

SHARE_COLUMNS: Final = tuple(f"share_{blame.lower()}" for blame in BLAMES)

JUDGEMENT_COLUMNS: Final = (
    TableColumn("growth_messages", LONG, "Backlog at the end less backlog at the start."),
    TableColumn("backlog_messages", LONG, "Backlog at the end."),
    TableColumn(
        "residual_messages",
        LONG,
        "Growth that the counted amounts do not explain; null if they were inferred from it.",
    ),
    TableColumn("appended", LONG, "Messages appended."),
    TableColumn("acked", LONG, "Messages acknowledged."),
    TableColumn(
        "evicted",
        LONG,
        "Messages that a backlog quota evicted before they were acknowledged; null in rows of"
        " earlier"
        " versions.",
    ),
    TableColumn("from_ns", LONG, "Start of the account, ns since the epoch."),
    TableColumn("to_ns", LONG, "End of the account, ns since the epoch."),
    TableColumn("oldest_age_max_ns", LONG, "Largest age of the oldest deliverable message."),
    *(
        TableColumn(name, DOUBLE, "Share of this cause in the accounted time; all shares sum to 1.")
        for name in SHARE_COLUMNS
    ),
    TableColumn(
        "verdict", STRING, "Cause of the backlog by the verdict law; NONE without a backlog."
    ),
    TableColumn("second", STRING, "The second cause, or null."),
    TableColumn(
        "bystander",
        ColumnType.BOOLEAN,
        "Whether second is a limiter that was busy and not the cause.",
    ),
    TableColumn("dimension", STRING, "What the named limiter counts: messages, bytes or null."),
    TableColumn(
        "proven_rate_per_s", DOUBLE, "The consumers' demonstrated rate up to here, or null."
    ),
    TableColumn(
        "grows_without_limit",
        ColumnType.BOOLEAN,
        "Whether the backlog would have grown without that limit; null when unknown.",
    ),
    TableColumn(
        "confidence",
        DOUBLE,
        "0 to 1: margin x completeness x agreement, times 0.6 if evidence is inferred.",
    ),
    TableColumn("completeness", DOUBLE, "Share of the time that rows cover, 0 to 1."),
    TableColumn(
        "accounted_ns",
        LONG,
        "Accounted time, the base of the shares: the sum of all states, lost rows included; without"
        " an account, the covered time. [ns]",
    ),
    TableColumn(
        "evidence",
        STRING,
        "measured, or inferred if any of its minutes was inferred from counters, which lowers"
        " confidence.",
    ),
    TableColumn("sentence", STRING, "The verdict in words."),
)
ATTRIBUTION_KEY: Final = ("cluster", "topic", "partition", "subscription", "incarnation")

ATTRIBUTION: Final = Table(
    "attribution",
    (
        *PARTITION,
        TableColumn("minute", ColumnType.TIMESTAMP, "Start of the minute."),
        *(column for column in INTERVALS.columns if column.name in ATTRIBUTION_KEY),
        TableColumn("broker", STRING, "Broker that wrote the minute's last row."),
        *JUDGEMENT_COLUMNS,
    ),
    ("date", "hour"),
    ("minute",),
)
