"""The state of backlog quotas at the end of a range."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from headgate.base.units import NS_PER_S
from headgate.pipeline.kernels.array_types import Flags
from headgate.pipeline.kernels.quota_forecast import HELD_NS_MIN
from headgate.pipeline.output.breach_times import BREACH_COLUMNS, likely_ns
from headgate.pipeline.report.grid import numbers
from headgate.pipeline.store.scan import TableScan
from headgate.pipeline.tables.intervals import TOPIC_KEY
from headgate.pipeline.time_span import Span
from headgate.record.fields import QUOTA_TYPES

REACHED: Final = "reached"
"""Reached in one of the newest minutes of the range."""
APPROACHED: Final = "approached"
"""Not reached in those, and a forecast expects a breach."""
WAS_REACHED: Final = "was reached"
"""Reached earlier in the range only."""

IS_REACHED: Final = "is_reached"
"""Column of :func:`with_reached`: 1 if a quota was reached in the minute, otherwise 0."""

_EVICTED: Final = tuple(f"eviction_{quota}_acts" for quota in QUOTA_TYPES)
_USES_MAX: Final = tuple(f"{quota}_use_max" for quota in QUOTA_TYPES)
REACHED_COLUMNS: Final = ("seconds_to_breach", "held_seconds", *_EVICTED, *_USES_MAX)
"""Columns of ``quota_usage`` that :func:`reached_minutes` needs."""

TopicKey = tuple[Any, ...]
"""Values of ``TOPIC_KEY``."""


@dataclass(frozen=True, slots=True)
class QuotaStates:
    """Topics by the state of their quotas at the end of a range."""

    reached: frozenset[TopicKey]
    """Topics with a quota that was reached in the newest minutes."""
    approached: tuple[TopicKey, ...]
    """Other topics whose newest minute expects a breach, the soonest first."""


def reached_minutes(rows: pa.Table | pa.RecordBatch) -> Flags:
    """Whether a quota was reached in each minute: it held, refused or evicted, or was full.

    ``rows`` has :data:`REACHED_COLUMNS`.
    """
    found = numbers(rows.column("seconds_to_breach")) == 0
    found |= numbers(rows.column("held_seconds")) >= HELD_NS_MIN / NS_PER_S
    for name in _EVICTED:
        found |= numbers(rows.column(name)) > 0
    for name in _USES_MAX:
        # This includes a quota that refused sends within the minute and has room at its end.
        found |= numbers(rows.column(name)) >= 1
    return np.asarray(found)


def reached_quota(row: dict[str, Any]) -> str:
    """The quota that was reached in a minute: ``size`` or ``time``; empty if unknown, as in a row
    of an older folder."""
    if row["seconds_to_breach"] == 0 and row["breach_quota"]:
        return str(row["breach_quota"])
    for quota in QUOTA_TYPES:
        if row[f"eviction_{quota}_acts"] or (row[f"{quota}_use_max"] or 0) >= 1:
            return quota
    return ""


def with_reached(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Append the column :data:`IS_REACHED` to rows with :data:`REACHED_COLUMNS`."""
    for batch in batches:
        yield batch.append_column(IS_REACHED, pa.array(reached_minutes(batch).astype(np.int64)))


def states_at_end(scan: TableScan, fresh: Span) -> QuotaStates:
    """Read ``quota_usage``; ``fresh`` are the newest minutes of the range."""
    latest: dict[TopicKey, dict[str, Any]] = {}
    reached = set()
    columns = dict.fromkeys((*TOPIC_KEY, *BREACH_COLUMNS, *REACHED_COLUMNS))
    for batch in scan.batches(list(columns), fresh):
        for row, is_reached in zip(batch.to_pylist(), reached_minutes(batch).tolist(), strict=True):
            key = tuple(row[name] for name in TOPIC_KEY)
            if is_reached:
                reached.add(key)
            if key not in latest or latest[key]["minute"] < row["minute"]:
                latest[key] = row
    approached = [
        (at_ns, key)
        for key, row in latest.items()
        if key not in reached and (at_ns := likely_ns(row)) is not None
    ]
    approached.sort(key=lambda found: (found[0], str(found[1])))
    return QuotaStates(frozenset(reached), tuple(key for _, key in approached))
