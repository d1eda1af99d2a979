"""The bronze tables: telemetry as it was received."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from headgate.flow.account.verdict import INFERRED, MEASURED
from headgate.pipeline.tables.columns import (
    EPOCH_NS,
    KIND,
    LONG,
    PARTITION,
    STRING,
    ColumnType,
    Sum,
    Table,
    TableColumn,
    record_columns,
    required,
)
from headgate.record.fields import Kind

EVIDENCE_VALUES: Final = (MEASURED, INFERRED)
"""Values of ``evidence``."""

BATCH_KIND: Final = "batch"
"""Kind of the bronze rows that record which messages arrived, one each."""

SAMPLED_KINDS: Final = (Kind.SUBSCRIPTION, Kind.TOPIC, Kind.LIMITER)
"""The kinds with rows in ``bronze_samples`` and ``intervals``."""

EVENT_IDENTITY: Final = ("source", "boot_id", "seq", "row")
"""The identity of an event; a row with the same is the same message, read twice."""

HEADER: Final = (
    TableColumn("source", STRING, "Telemetry stream of the message."),
    TableColumn("cluster", STRING, "Cluster of the broker."),
    TableColumn("broker", STRING, "Broker that wrote the row."),
    TableColumn("boot_id", STRING, "Id of the broker's start, new with each restart."),
    TableColumn("seq", LONG, "Sequence number of the message in that boot.", least=0),
    TableColumn(
        "row", ColumnType.INT, "Index of the row among those of its kind in the message.", least=0
    ),
    *required(
        TableColumn("window_start_ns", LONG, "Start of the message's window.", EPOCH_NS),
        TableColumn("window_end_ns", LONG, "End of the message's window.", EPOCH_NS),
        TableColumn("window_end", ColumnType.TIMESTAMP, "End of the message's window."),
    ),
    TableColumn("clock_step", ColumnType.BOOLEAN, "The wall clock stepped in the window."),
    TableColumn(
        "evidence",
        STRING,
        "measured by the broker, or inferred from its counters.",
        values=EVIDENCE_VALUES,
    ),
)

_WINDOW: Final = Sum("start_before_end", ("window_start_ns",), "window_end_ns", is_at_most=True)

BRONZE_SAMPLES: Final = Table(
    "bronze_samples",
    (*PARTITION, KIND, *HEADER, *record_columns(*SAMPLED_KINDS)),
    ("date", "hour", "kind"),
    ("window_end_ns", "window_end"),
    meaning="One row for each row of a telemetry message, and one of kind batch for each message.",
    key=("kind", *EVENT_IDENTITY),
    is_key_unique=False,
    sums=(
        _WINDOW,
        Sum("covered_from_before_to", ("covered_from_ns",), "covered_to_ns", is_at_most=True),
    ),
)

_JSON: Final = ("inputs", "outcome")
"""Fields of an event with a JSON object."""

BRONZE_EVENTS: Final = Table(
    "bronze_events",
    (
        *PARTITION,
        *HEADER,
        TableColumn("time", ColumnType.TIMESTAMP, "Time of the event."),
        *(
            replace(column, json_fields=()) if column.name in _JSON else column
            for column in record_columns(Kind.EVENT)
        ),
    ),
    ("date", "hour"),
    ("window_end_ns", "window_end"),
    meaning="One row for each event in a telemetry message.",
    key=EVENT_IDENTITY,
    is_key_unique=False,
    sums=(_WINDOW,),
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
    meaning="One row for each message that could not be decoded.",
    key=("message_topic", "message_id"),
    is_key_unique=False,
)
