"""The table ``attribution``: the cause of each subscription's backlog, by minute."""

from __future__ import annotations

from typing import Final

from headgate.pipeline.tables.bronze import EVIDENCE_VALUES
from headgate.pipeline.tables.columns import (
    DOUBLE,
    EPOCH_NS,
    HOUR_NS,
    LONG,
    MINUTE_COLUMN,
    NS,
    PARTITION,
    SHARE,
    STRING,
    Agreement,
    ColumnType,
    Sum,
    Table,
    TableColumn,
    required,
)
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.record.fields import DIMENSIONS, Kind

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
    TableColumn(
        "growth_messages", LONG, "Backlog at the end less backlog at the start.", "messages"
    ),
    TableColumn(
        "backlog_messages",
        LONG,
        "Backlog at the end, without delayed messages that are not due.",
        "messages",
        least=0,
    ),
    TableColumn(
        "delayed_messages",
        LONG,
        "Delayed messages that are not due at the end; null in rows of earlier versions.",
        "messages",
        least=0,
    ),
    TableColumn(
        "residual_messages",
        LONG,
        "Growth that the counted amounts do not explain; null if they were inferred from it.",
        "messages",
    ),
    TableColumn("appended", LONG, "Messages appended.", "messages", least=0),
    TableColumn("acked", LONG, "Messages acknowledged.", "messages", least=0),
    TableColumn(
        "evicted",
        LONG,
        "Messages that a backlog quota evicted before they were acknowledged; null in rows of"
        " earlier"
        " versions.",
        "messages",
        least=0,
    ),
    TableColumn(
        "expired",
        LONG,
        "Messages that expired by their age before they were acknowledged; null in rows of earlier"
        " versions.",
        "messages",
        least=0,
    ),
    *required(
        TableColumn("from_ns", LONG, "Start of the account.", EPOCH_NS, least=0),
        TableColumn("to_ns", LONG, "End of the account.", EPOCH_NS, least=0),
    ),
    TableColumn(
        "oldest_age_max_ns", LONG, "Largest age of the oldest deliverable message.", NS, least=0
    ),
    *(
        TableColumn(
            name,
            DOUBLE,
            "Share of this cause in the accounted time; all shares sum to 1.",
            SHARE,
            least=0,
            most=1,
        )
        for name in SHARE_COLUMNS
    ),
    TableColumn(
        "verdict",
        STRING,
        "Cause of the backlog by the verdict law; NONE without a backlog.",
        is_required=True,
        values=BLAMES,
    ),
    TableColumn("second", STRING, "The second cause, or null.", values=BLAMES),
    TableColumn(
        "bystander",
        ColumnType.BOOLEAN,
        "Whether second is a limiter that was busy and not the cause.",
    ),
    TableColumn(
        "dimension",
        STRING,
        "What the named limiter counts: messages, bytes or null.",
        values=DIMENSIONS,
    ),
    TableColumn(
        "proven_rate_per_s",
        DOUBLE,
        "The consumers' demonstrated rate up to here, or null.",
        "messages/s",
        least=0,
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
        least=0,
        most=1,
    ),
    TableColumn(
        "completeness", DOUBLE, "Share of the time that rows cover.", SHARE, least=0, most=1
    ),
    TableColumn(
        "accounted_ns",
        LONG,
        "Accounted time, the base of the shares: the sum of all states, lost rows included; without"
        " an account, the covered time.",
        NS,
        least=0,
    ),
    TableColumn(
        "evidence",
        STRING,
        "measured, or inferred if any of its minutes was inferred from counters, which lowers"
        " confidence.",
        values=EVIDENCE_VALUES,
    ),
    TableColumn("sentence", STRING, "The verdict in words."),
)
ATTRIBUTION_KEY: Final = ("cluster", "topic", "partition", "subscription", "incarnation")

ATTRIBUTION: Final = Table(
    "attribution",
    (
        *PARTITION,
        MINUTE_COLUMN,
        *(column for column in INTERVALS.columns if column.name in ATTRIBUTION_KEY),
        TableColumn("broker", STRING, "Broker that wrote the minute's last row."),
        *JUDGEMENT_COLUMNS,
    ),
    ("date", "hour"),
    ("minute",),
    meaning="One row for each subscription and minute with telemetry.",
    key=(*ATTRIBUTION_KEY, "minute"),
    follows_from=(INTERVALS.name, "demonstrated_rates"),
    sums=(
        Sum("shares_add_up", SHARE_COLUMNS, 1.0, tolerance=1e-6),
        Sum("from_before_to", ("from_ns",), "to_ns", is_at_most=True),
    ),
    agreements=(
        *(
            Agreement(name, INTERVALS.name, name, (Kind.SUBSCRIPTION.value,))
            for name in ("appended", "acked")
        ),
        Agreement(
            "backlog_messages",
            INTERVALS.name,
            "backlog_messages",
            (Kind.SUBSCRIPTION.value,),
            ("delayed_messages",),
        ),
    ),
)
