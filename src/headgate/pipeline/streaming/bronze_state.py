"""Says whether a batch of a query is in the bronze tables, by their application transactions."""

from __future__ import annotations

import enum
from typing import Final

from headgate.pipeline.location import resolved_root
from headgate.pipeline.store.delta_log import ensure_table
from headgate.pipeline.tables.bronze import BRONZE_EVENTS, BRONZE_QUARANTINE, BRONZE_SAMPLES

_TABLES: Final = (BRONZE_EVENTS, BRONZE_QUARANTINE, BRONZE_SAMPLES)
"""In the order in which a batch is committed to them."""


class BatchState(enum.Enum):
    """How much of a batch is in the tables."""

    ABSENT = "absent"
    """No table has a row of it."""
    PARTIAL = "partial"
    """Some tables have their rows, and the last one has not, or has none to come."""
    WRITTEN = "written"
    """All of it."""


def has_batches(out: str, app_id: str) -> bool:
    """Whether a query with this id has written to the tables of a folder."""
    return any(version is not None for version in _versions(out, app_id))


def batch_state(out: str, app_id: str, number: int) -> BatchState:
    """How much of batch ``number`` of the query with this id is in the tables of a folder."""
    has_it = [version is not None and version >= number for version in _versions(out, app_id)]
    if has_it[-1]:
        return BatchState.WRITTEN
    return BatchState.PARTIAL if any(has_it) else BatchState.ABSENT


def _versions(out: str, app_id: str) -> list[int | None]:
    root = resolved_root(out)
    return [ensure_table(root, table).transaction_version(app_id) for table in _TABLES]
