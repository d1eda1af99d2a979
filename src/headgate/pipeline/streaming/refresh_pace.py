"""When a stream brings the derived tables up to date: after a batch, or between two.

Who keeps up wants every batch in all tables. Who catches up reads batch after batch of hours that
nobody waits for; to compute after each of them reads the day before it again every time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from pyspark.sql import SparkSession

from headgate.pipeline.refresh import refresh_all
from headgate.pipeline.store.housekeeping.periodic import PeriodicHousekeeping
from headgate.pipeline.streaming.metrics import StreamMetrics, table_figures
from headgate.pipeline.tables.bronze import BRONZE_QUARANTINE, BRONZE_SAMPLES

BEHIND_S: Final = 60.0
"""A stream whose newest telemetry is older than this catches up."""
REFRESH_PERIOD_S: Final = 60.0
"""Least time from the end of a refresh to the next one while a stream catches up."""

_OF_A_BATCH: Final = (BRONZE_SAMPLES.name, BRONZE_QUARANTINE.name)


class RefreshPace:
    """Whether it is time, by the clock ``monotonic`` in seconds."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._next_s = monotonic() + REFRESH_PERIOD_S
        self.is_pending = False
        """Whether there are batches that the derived tables do not have yet."""

    def after_batch(self, lag_s: float) -> bool:
        """Whether to refresh after a batch whose newest telemetry is so old; not a number: it is
        not known how old."""
        self.is_pending = True
        return not lag_s >= BEHIND_S or self._monotonic() >= self._next_s

    def done(self) -> None:
        """The derived tables have all that bronze has."""
        self.is_pending = False
        self._next_s = self._monotonic() + REFRESH_PERIOD_S


class StreamTables:
    """The tables of one stream. Its methods are called by the thread of batches and by the one
    that waits for their end."""

    def __init__(
        self,
        root: str,
        metrics: StreamMetrics,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._root = root
        self._metrics = metrics
        self._pace = RefreshPace(monotonic)
        self._housekeeping = PeriodicHousekeeping(root)
        self._lock = threading.Lock()

    def bring_up_to_date(self, session: SparkSession) -> None:
        """Compute what follows from bronze, and take the tables' figures."""
        refresh_all(session, self._root)
        self._pace.done()
        self._metrics.set_tables(table_figures(self._root))

    def after_batch(self, session: SparkSession) -> None:
        """Bronze has a batch more."""
        with self._lock:
            self._metrics.set_tables(table_figures(self._root, _OF_A_BATCH))
            if self._pace.after_batch(self._metrics.lag_s()):
                self.bring_up_to_date(session)
            self._housekeeping.after_batch()

    def between_batches(self, session: SparkSession) -> None:
        """No batch runs: there is time for what was put off."""
        if self._pace.is_pending:
            with self._lock:
                self.bring_up_to_date(session)
