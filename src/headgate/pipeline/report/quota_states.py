"""Which backlog quotas were reached, and which are only approached."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.base.units import NS_PER_S
from headgate.pipeline.kernels.quota_forecast import HELD_NS_MIN
from headgate.pipeline.output.breach_times import BREACH_COLUMNS, likely_ns
from headgate.pipeline.report.grid import numbers
from headgate.pipeline.store.scan import TableScan
from headgate.pipeline.tables.intervals import TOPIC_KEY
from headgate.pipeline.time_span import Span
from headgate.record.fields import QUOTA_TYPES

REACHED: Final = "reached"
"""In one of the range's newest minutes."""
APPROACHED: Final = "approached"
"""Not reached in those, and expected to be."""
WAS_REACHED: Final = "was reached"
"""Earlier in the range."""

ACTED: Final = "acted"
"""Column of :func:`with_acts`: 1 where a quota was reached in the minute, otherwise 0."""

_EVICTED: Final = tuple(f"eviction_{quota}_acts" for quota in QUOTA_TYPES)
_USES_MAX: Final = tuple(f"{quota}_use_max" for quota in QUOTA_TYPES)
ACT_COLUMNS: Final = ("seconds_to_breach", "held_seconds", *_EVICTED, *_USES_MAX)
"""Columns of ``quota_usage`` that are needed."""

TopicKey = tuple[Any, ...]
"""Values of ``TOPIC_KEY``."""


@dataclass(frozen=True, slots=True)
class Newest:
    """How quotas stand at the range's end."""

    reached: frozenset[TopicKey]
    """Topics in whose newest minutes one was reached."""
    near: tuple[TopicKey, ...]
    """The other topics of which the newest minute expects a breach, the soonest first."""


def acted(rows: pa.Table | pa.RecordBatch) -> npt.NDArray[np.bool_]:
    """In which minutes a quota was reached: it held, refused or evicted then, or was full.

    ``rows`` has :data:`ACT_COLUMNS`.
    """
    found = numbers(rows.column("seconds_to_breach")) == 0
    found |= numbers(rows.column("held_seconds")) >= HELD_NS_MIN / NS_PER_S
    for name in _EVICTED:
        found |= numbers(rows.column(name)) > 0
    for name in _USES_MAX:
        # Also where it refused sends in the minute and has room at its end.
        found |= numbers(rows.column(name)) >= 1
    return np.asarray(found)


def reached_quota(row: dict[str, Any]) -> str:
    """The quota that was reached in a minute of :func:`acted`: ``size`` or ``time``; empty where
    the row, one of an older folder, does not tell."""
    if row["seconds_to_breach"] == 0 and row["breach_quota"]:
        return str(row["breach_quota"])
    for quota in QUOTA_TYPES:
        if row[f"eviction_{quota}_acts"] or (row[f"{quota}_use_max"] or 0) >= 1:
            return quota
    return ""


def with_acts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows with :data:`ACT_COLUMNS`, and the column :data:`ACTED`."""
    for batch in batches:
        yield batch.append_column(ACTED, pa.array(acted(batch).astype(np.int64)))


def newest(scan: TableScan, fresh: Span) -> Newest:
    """Ask ``quota_usage``; ``fresh`` are the newest minutes of the range."""
    latest: dict[TopicKey, dict[str, Any]] = {}
    reached = set()
    columns = dict.fromkeys((*TOPIC_KEY, *BREACH_COLUMNS, *ACT_COLUMNS))
    for batch in scan.batches(list(columns), fresh):
        for row, is_reached in zip(batch.to_pylist(), acted(batch).tolist(), strict=True):
            key = tuple(row[name] for name in TOPIC_KEY)
            if is_reached:
                reached.add(key)
            if key not in latest or latest[key]["minute"] < row["minute"]:
                latest[key] = row
    near = [
        (at_ns, key)
        for key, row in latest.items()
        if key not in reached and (at_ns := likely_ns(row)) is not None
    ]
    near.sort(key=lambda found: (found[0], str(found[1])))
    return Newest(frozenset(reached), tuple(key for _, key in near))
