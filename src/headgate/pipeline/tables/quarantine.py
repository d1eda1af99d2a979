"""Rows of ``bronze_quarantine`` about files that could not be read."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from headgate.base.units import NS_PER_MS
from headgate.pipeline.tables.arrow_types import (
    TIMESTAMP,
    conform,
    partition_columns,
    table_arrow_schema,
)
from headgate.pipeline.tables.bronze import BRONZE_QUARANTINE

VALUE_BYTES_MAX: Final = 4_096
"""Most bytes of a refused file that are stored."""


def refused_file_row(source: str, name: str, reason: str, value: bytes, at_ms: int) -> pa.Table:
    """The row about the file ``name`` of a source; ``value`` are its bytes, of which the first
    :data:`VALUE_BYTES_MAX` are stored, ``at_ms`` its time since the epoch."""
    columns = {
        **partition_columns(np.array([at_ms * NS_PER_MS], dtype=np.int64)),
        "message_topic": pa.array([source]),
        "message_id": pa.array([name]),
        "publish_time": pa.array([at_ms * 1_000], pa.int64()).cast(TIMESTAMP),
        "reason": pa.array([reason]),
        "value": pa.array([value[:VALUE_BYTES_MAX]], pa.binary()),
    }
    return conform(columns, table_arrow_schema(BRONZE_QUARANTINE), 1)
