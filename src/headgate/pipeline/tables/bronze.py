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
"""Values of ``evidence``: from a broker's own account of time, or inferred from counters."""

BATCH_KIND: Final = "batch"
"""Kind of the bronze rows that record which messages arrived, one each."""

SAMPLED_KINDS: Final = (Kind.SUBSCRIPTION, Kind.TOPIC, Kind.LIMITER)
"""The kinds with rows in ``bronze_samples`` and ``intervals``."""

HEADER: Final = (
    TableColumn("source", STRING, "Telemetry stream of the message."),
    TableColumn("cluster", STRING, "Cluster of the broker."),
    TableColumn("broker", STRING, "Broker that wrote the row."),
    TableColumn("boot_id", STRING, "Id of the broker's start, new with each restart."),
    TableColumn("seq", LONG, "Sequence number of the message in that boot."),
    TableColumn("row", ColumnType.INT, "Index of the row among those of its kind in the message."),
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
        TableColumn("time", ColumnType.TIMESTAMP, "Time of the event."),
        *record_columns(Kind.EVENT),
    ),
    ("date", "hour"),
    ("window_end_ns", "window_end"),
)
BRONZE_QUARANTINE: Final = Table(
    "bronze_quarantine",
    (
        *PARTITION,
        TableColumn("message_topic", STRING, "Topic from which the message was read."),
        TableColumn("message_id", STRING, "Message id, hexadecimal."),
        TableColumn("publish_time", ColumnType.TIMESTAMP, "Publish time of the message."),
        TableColumn("reason", STRING, "Why the message could not be decoded."),
        TableColumn("value", ColumnType.BINARY, "The unchanged message."),
    ),
    ("date", "hour"),
    (),
)
