"""The log's own clock, which steps of the wall clock do not move.

The next start continues it from a mark: a row of the metadata that the broker writes at its start,
soon after a step, once an hour and when it closes. After a crash, the machine's running time and
the receive times in the log cover the time since the mark.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from headgate.base.clock import Clock, Reading, read_together
from headgate.base.errors import StorageError
from headgate.base.instants import iso_time
from headgate.base.log_time import STEP_NS, Continued, LogTime, Mark
from headgate.base.texts import duration
from headgate.base.units import NS_PER_MS, NS_PER_S, S_PER_MINUTE
from headgate.ledger import CommitLog, ReceiveTimeBound
from headgate.metadata.catalog import Catalog
from headgate.metadata.rows import LogTimeRow
from headgate.storage.metadata_writer import MetadataWriter
from headgate.storage.repeated_failures import RepeatedFailureLogger

logger = logging.getLogger("headgate.clock")

MARK_AGE_NS_MAX: Final = 60 * S_PER_MINUTE * NS_PER_S
"""The age at which the broker replaces the mark."""

_DAY_NS: Final = 24 * 60 * S_PER_MINUTE * NS_PER_S
_DAYS_FROM: Final = 3
"""Log lines give lengths from so many days on in whole days."""

LINES_MAX: Final = 20
"""Steps that get their own log line in a :data:`LINES_PERIOD_NS`; later ones are only counted."""
LINES_PERIOD_NS: Final = 60 * S_PER_MINUTE * NS_PER_S


def receive_time_bound(catalog: Catalog, clock: Clock) -> ReceiveTimeBound:
    """The bound on receive times for :meth:`CommitLog.open`: the stored one, or at the first start
    of this release on the log the present time."""
    row = catalog.log_time()
    if row is None:
        return ReceiveTimeBound(None, clock.wall_ns() // NS_PER_MS)
    return ReceiveTimeBound(row.bound_before_segment, row.bound_received_ms)


class LogClock:
    """The wall clock and the log clock of one broker."""

    def __init__(
        self, clock: Clock, catalog: Catalog, logs: Sequence[CommitLog], boot_id: str
    ) -> None:
        """Continue from the last start's mark. The first of ``logs`` is the main one. ``boot_id``
        names the boot of the machine; if it is empty, the machine's running time is not used."""
        self._clock = clock
        self._catalog = catalog
        now = read_together(clock)
        row = catalog.log_time()
        mark = None if row is None else _mark_of(row)
        log = logs[0]
        newest_ms = max(each.newest_received_ms() for each in logs)
        self._time = LogTime(mark, newest_ms, boot_id, now.running_ns, now.wall_ns)
        wall_ms = now.wall_ns // NS_PER_MS
        self._bound_before_segment = log.active_segment()
        self._bound_received_ms = wall_ms
        if row is not None:
            self._bound_before_segment = row.bound_before_segment
            self._bound_received_ms = row.bound_received_ms
        self._mark_written_ns: int | None = None
        self._failures = RepeatedFailureLogger(logger, "storing the time of the log")
        self._lines_since_ns = now.monotonic_ns
        self._steps_count = 0
        self.wall_offset_ns = now.wall_ns - now.monotonic_ns
        """The wall clock minus the monotonic clock."""
        self.skew_ms = self._time.skew_ms
        """How far the wall clock is ahead of the log clock. Read for every message."""
        if mark is not None:
            self._log_start(mark, now)
        elif newest_ms:
            self._log_adoption(log.topics_bounded, wall_ms)

    def update_offsets(self) -> bool:
        """Read the clocks again. Returns whether the log's clock advanced by more than the
        monotonic clock: the machine was asleep, or set its clock late after the boot."""
        now = read_together(self._clock)
        before_ns = self.wall_offset_ns - self.skew_ms * NS_PER_MS
        skew_before_ms = self.skew_ms
        step_ns = self._time.look(now.running_ns, now.wall_ns)
        self.wall_offset_ns, self.skew_ms = now.wall_ns - now.monotonic_ns, self._time.skew_ms
        if step_ns:
            self._mark_written_ns = None
            self._log_step(step_ns, now, is_absorbed=self.skew_ms == skew_before_ms)
        return abs(self.wall_offset_ns - self.skew_ms * NS_PER_MS - before_ns) > STEP_NS

    def is_due(self, now_ns: int) -> bool:
        """Whether the mark should be written."""
        return self._mark_written_ns is None or now_ns - self._mark_written_ns >= MARK_AGE_NS_MAX

    async def write_mark_if_due(self, writer: MetadataWriter) -> None:
        """Write the mark if it is due. Call it about once a second."""
        if self.is_due(self._clock.monotonic_ns()):
            await self.write_mark(writer)

    async def write_mark(self, writer: MetadataWriter) -> None:
        """Write the mark. If that fails, it stays due."""
        now = read_together(self._clock)
        mark = self._time.mark(now.running_ns)
        change = self._catalog.plan_log_time(
            LogTimeRow(
                machine=mark.boot_id,
                running_ns=mark.running_ns,
                wall_ns=mark.wall_ns,
                skew_ms=mark.skew_ms,
                bound_before_segment=self._bound_before_segment,
                bound_received_ms=self._bound_received_ms,
            )
        )
        self._mark_written_ns = now.monotonic_ns
        try:
            await writer.commit(change)
        except StorageError as error:
            self._mark_written_ns = None
            self._failures.failed(error, now.monotonic_ns)
        else:
            self._failures.succeeded(now.monotonic_ns)

    # -- log lines -------------------------------------------------------------------------

    def _log_step(self, step_ns: int, now: Reading, *, is_absorbed: bool) -> None:
        if now.monotonic_ns - self._lines_since_ns >= LINES_PERIOD_NS:
            if self._steps_count > LINES_MAX:
                left_out = self._steps_count - LINES_MAX
                logger.warning("the wall clock was set %d more times", left_out)
            self._lines_since_ns, self._steps_count = now.monotonic_ns, 0
        self._steps_count += 1
        if self._steps_count > LINES_MAX:
            return
        what = f"the wall clock was set {_direction(step_ns)}"
        if is_absorbed:
            logger.warning(
                "%s: this machine set its clock only after the broker started, so messages from "
                "before the start are that much older",
                what,
            )
            return
        logger.warning(
            "%s: messages keep their ages, so quotas, expiry and retention by time are not "
            "affected; seeks by time follow the wall clock",
            what,
        )

    def _log_start(self, mark: Mark, now: Reading) -> None:
        down_ns, continued = self._time.down_ns, self._time.continued
        off_ns = now.wall_ns - mark.wall_ns - down_ns
        if continued is Continued.SET_BACK:
            behind_ns = mark.log_ns + down_ns - (now.wall_ns - mark.skew_ms * NS_PER_MS)
            logger.warning(
                "the wall clock is %s behind the time of the log: messages keep their ages, and "
                "the broker cannot know how long it was down",
                _length(behind_ns),
            )
        elif abs(off_ns) > STEP_NS:
            logger.warning(
                "while the broker was down, the wall clock was set %s: messages aged by the %s "
                "that passed, not by the step",
                _direction(off_ns),
                _length(down_ns),
            )
        elif continued is Continued.WALL:
            logger.info(
                "the machine was rebooted; messages aged by %s since %s, by the wall clock",
                _length(down_ns),
                iso_time(mark.wall_ns // NS_PER_MS),
            )

    def _log_adoption(self, topics_bounded: int, wall_ms: int) -> None:
        logger.info(
            "from now on ages of messages follow the clock of the log, which steps of the wall "
            "clock do not move; it begins at %s",
            iso_time(wall_ms),
        )
        if topics_bounded:
            logger.warning(
                "%d topics have messages with receive times in the future, from a clock that was "
                "ahead: they count as received at %s",
                topics_bounded,
                iso_time(wall_ms),
            )


def _mark_of(row: LogTimeRow) -> Mark:
    return Mark(row.machine, row.running_ns, row.wall_ns, row.skew_ms)


def _direction(step_ns: int) -> str:
    return f"{'forward' if step_ns > 0 else 'back'} by {_length(abs(step_ns))}"


def _length(length_ns: int) -> str:
    if length_ns < NS_PER_S:
        return f"{length_ns // NS_PER_MS} ms"
    if length_ns < _DAYS_FROM * _DAY_NS:
        return duration(length_ns / NS_PER_S)
    return f"{length_ns // _DAY_NS:,} days"
