"""Housekeeping by a stream: it compacts after batches; once an hour it drops old rows and vacuums.

A trigger every few seconds leaves a file of each kind in the present hour, and each refresh reads
the whole hour. Measured with a window every 10 s and without compaction: a refresh took 1.1 s at
the beginning of an hour and 7 to 8 s at its end, mostly to open 1,400 files.

A batch waits for a turn, so a turn rewrites files of one table, :data:`TURN_BYTES_MAX` at most.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Final

from headgate.base.units import MIB
from headgate.pipeline.store.housekeeping.compact import Compacted, compact_table
from headgate.pipeline.store.housekeeping.log_cleanup import LOG_HOURS_KEPT, clean_log
from headgate.pipeline.store.housekeeping.retention import drop_before
from headgate.pipeline.store.housekeeping.small_files import SMALL_BYTES, CompactionLimits
from headgate.pipeline.store.housekeeping.vacuum import vacuum
from headgate.pipeline.store.lease import TableHeldError
from headgate.pipeline.store.table_leases import housekeeping_lease
from headgate.pipeline.store.table_store import table_names
from headgate.pipeline.tables.catalogue import FILLED, TABLES
from headgate.pipeline.tables.keys import MINUTE

FILES_MAX: Final = 8
"""Most small files of about one size in a partition that are not merged at once."""

TURN_BYTES_MAX: Final = 8 * MIB
"""Bytes of files that a turn rewrites at most: about a second of CPU."""

PERIOD_S: Final = 3_600.0
"""Time between two vacuums, two retentions and two looks at closed hours."""
LISTING_PERIODS: Final = 24
"""Of so many vacuums one lists all files of the folder, and finds those that no version has."""
PAUSE_S: Final = 60.0
"""How long a stream leaves files alone after it met another job that merges them."""

RETAIN_HOURS: Final = LOG_HOURS_KEPT
"""How long replaced files stay, for jobs that read them. Derived tables replace the last few
minutes with every trigger."""

_GROWING: Final = tuple(
    name for name in FILLED if name.startswith("bronze") or MINUTE in TABLES[name].column_names()
)
"""The tables that get more files in the present hour. The others replace the files of an hour."""

SETTLED_MINUTES: Final = 8
"""Files with one of so many newest minutes are not merged while a stream runs: each trigger
replaces those of the last few minutes, and should not write others again."""

RUN_BYTES_MAX: Final = 256 * MIB
"""Bytes of files of one table that a run rewrites at most; the next one continues."""

_CROWDED: Final = CompactionLimits(
    FILES_MAX, TURN_BYTES_MAX // 2, TURN_BYTES_MAX, settled_minutes=SETTLED_MINUTES
)
_CLOSED: Final = replace(_CROWDED, files_max=1, open_hours=2)


def merge_after_run(root: str) -> Compacted:
    """Compact what one run of a schedule left: crowded partitions and closed hours of all tables.

    A table that another job keeps in order is left to that job. Returns the sums over the tables.
    """
    there = set(table_names(root))
    done = []
    for name in (name for name in TABLES if name in there):
        with suppress(TableHeldError):
            for limits in (_CROWDED, _CLOSED):
                wide = replace(limits, bytes_max=RUN_BYTES_MAX, small_bytes=SMALL_BYTES)
                done.append(compact_table(root, name, wide))
    return Compacted(
        sum(part.replaced for part in done),
        sum(part.added for part in done),
        sum(part.size_bytes for part in done),
    )


class PeriodicHousekeeping:
    """Compaction, retention and vacuum by the one streaming job that fills a folder."""

    def __init__(
        self,
        root: str,
        *,
        retain_days: int | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """``retain_days``: how long rows are kept; None: for ever."""
        self._root = root
        self._retain_days = retain_days
        self._monotonic = monotonic
        self._next_s = self._next_vacuum_s = monotonic() + PERIOD_S
        self._paused_until_s = monotonic()
        self._vacuums = 0
        self._due = [*TABLES]
        """Tables whose closed hours are to be looked at."""

    @property
    def is_due(self) -> bool:
        """Whether :meth:`between_batches` has something to do."""
        now_s = self._monotonic()
        return now_s >= self._paused_until_s and (bool(self._due) or now_s >= self._next_s)

    def after_batch(self) -> None:
        """Do a turn, and once an hour vacuum all tables; the job has no uncommitted files now."""
        self._unless_held(self._turn)
        if self._monotonic() >= self._next_vacuum_s:
            self._unless_held(self._vacuum)

    def between_batches(self) -> None:
        """Do a turn; a batch may begin meanwhile."""
        self._unless_held(self._turn)

    def _unless_held(self, work: Callable[[], None]) -> None:
        """Work, unless another job merges or deletes files; then pause for :data:`PAUSE_S`."""
        if self._monotonic() < self._paused_until_s:
            return
        try:
            work()
        except TableHeldError:
            self._paused_until_s = self._monotonic() + PAUSE_S

    def _turn(self) -> None:
        """Compact crowded partitions of one table, or else closed hours of one; once an hour drop
        old rows of all."""
        there = set(table_names(self._root))
        crowded = (self._compacted_bytes(name, _CROWDED) for name in _GROWING if name in there)
        if not any(crowded) and self._due:
            name = self._due[0]
            if name not in there or not self._compacted_bytes(name, _CLOSED):
                self._due.pop(0)
        if self._monotonic() >= self._next_s:
            if self._retain_days is not None:
                drop_before(self._root, self._retain_days)
            self._next_s = self._monotonic() + PERIOD_S
            self._due = [*TABLES]

    def _compacted_bytes(self, name: str, limits: CompactionLimits) -> int:
        return compact_table(self._root, name, limits).size_bytes

    def _vacuum(self) -> None:
        lists = self._vacuums % LISTING_PERIODS == 0
        vacuum(self._root, RETAIN_HOURS, False, filled_here=FILLED, lists_folders=lists)
        self._vacuums += 1
        for name in table_names(self._root):
            with housekeeping_lease(self._root, name):
                clean_log(self._root, name)
        self._next_vacuum_s = self._monotonic() + PERIOD_S
