"""The bronze tables: telemetry as it was received."""

from __future__ import annotations

from typing import Final

from headgate.pipeline.tables.columns import (
    KIND,
    LONG,
    PARTITION,
    STRING,
    ColumnType,
    Table,
    TableColumn,
    record_columns,
)
from headgate.record.fields import Kind

MEASURED: Final = "measured"
INFERRED: Final = "inferred"
"""Values of ``evidence``: from a broker's own account of time, or worked out from counters."""

BATCH_KIND: Final = "batch"
"""Kind of the bronze rows that say which batches arrived; one for each message."""

SAMPLED_KINDS: Final = (Kind.SUBSCRIPTION, Kind.TOPIC, Kind.LIMITER)
"""The kinds with rows in ``bronze_samples`` and ``intervals``."""

HEADER: Final = (
    TableColumn("source", STRING, "Telemetry stream the message came over."),
    TableColumn("cluster", STRING, "Cluster of the broker."),
    TableColumn("broker", STRING, "Broker that wrote the row."),
    TableColumn("boot_id", STRING, "Start of the broker that wrote the row."),
    TableColumn("seq", LONG, "Number of the message in that boot."),
    TableColumn("row", ColumnType.INT, "Place of the row in its message and kind."),
    TableColumn("window_start_ns", LONG, "Start of the message's window, ns since the epoch."),
    TableColumn("window_end_ns", LONG, "End of the message's window, ns since the epoch."),
    TableColumn("window_end", ColumnType.TIMESTAMP, "End of the message's window."),
    TableColumn("clock_step", ColumnType.BOOLEAN, "The wall clock stepped in the window."),
    TableColumn("evidence", STRING, "measured by the broker, or inferred from its counters."),
)

BRONZE_SAMPLES: Final = Table(
    "bronze_samples",
    (*PARTITION, KIND, *HEADER, *record_columns(*SAMPLED_KINDS)),
    ("date", "hour", "kind"),
    ("window_end_ns", "window_end"),
)
BRONZE_EVENTS: Final = Table(
    "bronze_events",
    (
        *PARTITION,
        *HEADER,
        TableColumn("time", ColumnType.TIMESTAMP, "When it happened."),
        *record_columns(Kind.EVENT),
    ),
    ("date", "hour"),
    ("window_end_ns", "window_end"),
)
BRONZE_QUARANTINE: Final = Table(
    "bronze_quarantine",
    (
        *PARTITION,
        TableColumn("message_topic", STRING, "Topic the message was read from."),
        TableColumn("message_id", STRING, "Its id, hexadecimal."),
        TableColumn("publish_time", ColumnType.TIMESTAMP, "When it was published."),
        TableColumn("reason", STRING, "Why it is not a record that can be read."),
        TableColumn("value", ColumnType.BINARY, "The message as it was."),
    ),
    ("date", "hour"),
    (),
)
