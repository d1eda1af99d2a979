"""Folders of tables as an earlier release left them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np
import pyarrow as pa

from headgate.pipeline.tables.arrow_types import conform, partition_columns, table_arrow_schema
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES
from headgate.pipeline.tables.columns import HOUR_NS
from headgate.pipeline.tables.intervals import INTERVALS
from tests.unit.pipeline.play import T0, Broker, bronze
from tests.unit.pipeline.store.old_folder import old_table


def old_folder(root: Path, hours: int = 2, without: Collection[str] = ("gaps",)) -> None:
    """Bronze of some hours, and ``intervals`` of them, each hour in a file that lacks columns."""
    brokers = [Broker(start_ns=T0 + hour * HOUR_NS, boot=f"boot-{hour}") for hour in range(hours)]
    messages = [message for broker in brokers for message in broker.window(10)]
    old_table(root, BRONZE_SAMPLES, [], bronze(messages))
    old_table(root, INTERVALS, without, interval_rows(hours))


def interval_rows(hours: int) -> pa.Table:
    """A row in each hour, without a value in most columns."""
    ends_ns = np.array([T0 + hour * HOUR_NS + 1 for hour in range(hours)])
    given = partition_columns(ends_ns - 1) | {
        "kind": pa.array(["topic"] * hours),
        "minute": pa.array((ends_ns - 1) // 1_000, pa.timestamp("us", tz="UTC")),
    }
    return conform(given, table_arrow_schema(INTERVALS), hours)
