"""Decides when a stream refreshes the derived tables: after a batch, or between two.

A stream that keeps up refreshes after every batch. A stream that catches up refreshes once a
minute, because each refresh also reads the day before.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from pyspark.sql import SparkSession

from headgate.pipeline.derived.catalogue import DERIVED
from headgate.pipeline.lineage.job_lineage import JobLineage
from headgate.pipeline.quality import check_tables
from headgate.pipeline.refresh import refresh_all
from headgate.pipeline.store.housekeeping.periodic import PeriodicHousekeeping
from headgate.pipeline.streaming.metrics import StreamMetrics, table_figures
from headgate.pipeline.tables.bronze import BRONZE_QUARANTINE, BRONZE_SAMPLES

BEHIND_S: Final = 60.0
"""A stream whose newest telemetry is older than this catches up."""
REFRESH_PERIOD_S: Final = 60.0
"""Least time between two refreshes while a stream catches up."""

_BATCH_TABLES: Final = (BRONZE_SAMPLES.name, BRONZE_QUARANTINE.name)


class RefreshPace:
    """Decides whether a refresh is due, by the clock ``monotonic`` in seconds."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._next_s = monotonic() + REFRESH_PERIOD_S
        self.is_pending = False
        """Whether the derived tables lack a batch."""

    def after_batch(self, lag_s: float) -> bool:
        """Whether to refresh after a batch with telemetry of ``lag_s`` ago; NaN: unknown."""
        self.is_pending = True
        return not lag_s >= BEHIND_S or self._monotonic() >= self._next_s

    def mark_refreshed(self) -> None:
        """Note that the derived tables are up to date with bronze."""
        self.is_pending = False
        self._next_s = self._monotonic() + REFRESH_PERIOD_S


class StreamTables:
    """The tables of one stream. Two threads call it: that of Spark's batches, and the one that
    waits for the query."""

    def __init__(
        self,
        root: str,
        metrics: StreamMetrics,
        *,
        retain_days: int | None = None,
        say: Callable[[str], None] = lambda _: None,
        lineage: JobLineage | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """``retain_days``: how long rows are kept; None: for ever. ``say`` gets a line about rows
        that are not as expected."""
        self._root = root
        self._say = say
        self._said: set[tuple[str, str]] = set()
        self._lineage = lineage
        self._metrics = metrics
        self._pace = RefreshPace(monotonic)
        self._housekeeping = PeriodicHousekeeping(
            root, retain_days=retain_days, monotonic=monotonic
        )
        self._lock = threading.Lock()

    def bring_up_to_date(self, session: SparkSession) -> None:
        """Refresh all derived tables, and update the metrics of all tables."""
        refresh_all(session, self._root)
        self._check()
        self._pace.mark_refreshed()
        self._metrics.set_tables(table_figures(self._root))

    def _check(self) -> None:
        """Bring ``quality`` up to date. Each refresh replaces the rows of the present hour, so an
        expectation that is still not met gets no further line."""
        checked = check_tables(self._root)
        if not checked.checks:
            return
        if self._lineage is not None:
            self._lineage.refreshed([derived.table for derived in DERIVED], checked.outcomes)
        names = {(row["table_name"], row["expectation"]) for row in checked.failures}
        if not names <= self._said:
            for line in checked.lines(self._root):
                self._say(line)
        self._said = names

    def after_batch(self, session: SparkSession) -> None:
        """Refresh if that is due, then compact; a batch was appended to bronze."""
        with self._lock:
            self._metrics.set_tables(table_figures(self._root, _BATCH_TABLES))
            if self._pace.after_batch(self._metrics.lag_s()):
                self.bring_up_to_date(session)
            self._housekeeping.after_batch()

    def between_batches(self, session: SparkSession) -> None:
        """Refresh if a refresh is pending, and go on with housekeeping; no batch runs.

        A batch that begins meanwhile waits for its end.
        """
        if self._pace.is_pending:
            with self._lock:
                self.bring_up_to_date(session)
        elif self._housekeeping.is_due:
            with self._lock:
                self._housekeeping.between_batches()
