"""Monitors whether the disk has space for the main log.

The commit log knows when it is full. After each event that may change this the monitor checks it in
the same turn, so that the engine parks SENDs exactly while there is no space. The broker logs one
line when a full period begins and one when it ends. Periods that follow each other closely count as
one, for example while consumers free one segment after the other.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final, Protocol

from headgate.base.errors import InvariantError, NoRoomError
from headgate.base.texts import duration
from headgate.base.units import NS_PER_S
from headgate.engine.engine import Engine
from headgate.flow.disk_forecast import DiskForecast
from headgate.flow.sentences.disk import MAKE_ROOM, DiskFacts, free_text, low_disk_sentence
from headgate.ledger import CommitLog, Space
from headgate.storage.disk_growth import DiskGrowth
from headgate.storage.lanes import Lane
from headgate.storage.repeated_failures import QUIET_NS, RepeatedFailureLogger

logger = logging.getLogger("headgate.disk")

SPACE_PERIOD_NS: Final = 5 * NS_PER_S
"""How often the monitor asks the file system for its free space."""


class Reserve(Protocol):
    """Disk space that is reserved for something else than the logs."""

    @property
    def kept_bytes(self) -> int:
        """Bytes that are reserved now."""

    def keep(self) -> None:
        """Fill the reserve up. Called while there is space; blocks, and raises nothing."""


class NoReserve:
    """No space is reserved."""

    kept_bytes = 0

    def keep(self) -> None:
        """Nothing to do."""


class DiskMonitor:
    """The space for one broker's main log."""

    def __init__(
        self, log: CommitLog, lane: Lane, engine: Engine, logs: Sequence[CommitLog] = ()
    ) -> None:
        """``lane`` runs the calls to the file system, which may block. ``logs`` are the other logs
        on the disk."""
        self._log = log
        self.growth = DiskGrowth(log, logs)
        self._lane = lane
        self._engine = engine
        self.reserve: Reserve = NoReserve()
        """The owner of the disk reserve assigns it. It is used on the lane."""
        self.space: Space | None = None
        """The last answer of the file system; None before the first."""
        self._failures = RepeatedFailureLogger(logger, "asking for the free space")
        self.full_since_ns: int | None = None
        """When the log stopped accepting entries; None while it accepts them."""
        self._full_before_ns = 0
        """Length of all full periods that have ended."""
        self._asked_ns: int | None = None
        self._is_asking = False
        self._reason = ""
        self._logged_begin_ns: int | None = None
        """When the full period began whose end the broker has not logged yet."""
        self._full_at_begin_ns = 0
        self._ended_ns = 0
        self._low_since_ns: int | None = None
        """When the broker logged that the disk is nearly full; None since there is room again."""

    def full_ns(self, now_ns: int) -> int:
        """How long the log accepted no entries since the start, until now."""
        running_ns = 0 if self.full_since_ns is None else now_ns - self.full_since_ns
        return self._full_before_ns + running_ns

    def facts(self) -> DiskFacts:
        """The disk as it is now."""
        space = self.space
        return DiskFacts(
            full_s=self._seconds_since(self.full_since_ns),
            low_s=self._seconds_since(self._low_since_ns),
            free_bytes=None if space is None else space.free_bytes,
            size_bytes=None if space is None else space.size_bytes,
            segment_bytes=self._log.segment_bytes,
        )

    def _seconds_since(self, since_ns: int | None) -> float | None:
        return None if since_ns is None else (self._engine.now_ns - since_ns) / NS_PER_S

    def no_room(self, error: NoRoomError) -> None:
        """The disk refused a write for this reason. Call :meth:`check_full` next."""
        self._reason = str(error).removeprefix("the disk is full: ")
        self._asked_ns = None

    def internal_errors(self) -> list[str]:
        """The internal error with which asking for the space fails at present, if any."""
        return [self._failures.internal_error] if self._failures.internal_error else []

    def check_full(self) -> None:
        """Check whether the log became full, or has space again."""
        full = self._log.full and self._log.failed is None
        if full is (self.full_since_ns is not None):
            return
        now_ns = self._engine.now_ns
        if full:
            self.full_since_ns = now_ns
            if self._logged_begin_ns is None:
                self._begin(now_ns)
        else:
            self._full_before_ns = self.full_ns(now_ns)
            self.full_since_ns, self._ended_ns = None, now_ns
        self._engine.disk_full_hold.disk_changed(full=full)

    def refresh(self) -> None:
        """Ask the file system for its space if that is due, and log the end of a full period. Call
        it about once a second."""
        now_ns = self._engine.now_ns
        over = self._logged_begin_ns is not None and self.full_since_ns is None
        if over and now_ns - self._ended_ns >= QUIET_NS:
            self._end()
        due = self._asked_ns is None or now_ns - self._asked_ns >= SPACE_PERIOD_NS
        if due and not self._is_asking:
            self._asked_ns, self._is_asking = now_ns, True
            self._lane.submit(partial(self._ask, self.full_since_ns is None), self._answered)

    def full_in_s(self) -> float | None:
        """Seconds until producers wait for room: 0 while they do; None without a forecast."""
        if self.full_since_ns is not None:
            return 0.0
        return self.forecast().full_in_s_from(self._engine.now_ns)

    def forecast(self) -> DiskForecast:
        """Whether the disk fills up, as it is known now."""
        return self.growth.forecast(self._engine.now_ns)

    def _ask(self, has_room: bool) -> tuple[Space, int]:
        """The space, and the size of the reserve in it. Runs on the lane."""
        reserve_bytes, space = self.reserve.kept_bytes, self._log.space()
        if has_room and space.free_bytes > self._log.segment_bytes:
            self.reserve.keep()
        return space, reserve_bytes

    def _answered(self, answer: tuple[Space, int] | None, error: BaseException | None) -> None:
        self._is_asking = False
        if isinstance(error, InvariantError):
            raise error
        if error is None:
            self._failures.succeeded(self._engine.now_ns)
        elif not isinstance(error, OSError):
            self._failures.failed(error, self._engine.now_ns)
        self.space = None if answer is None else answer[0]
        if answer is not None:
            self.growth.add(*answer, self._engine.now_ns)
        self._check_low()

    def _check_low(self) -> None:
        """Log once that the disk is nearly full. Only twice the room lets the line come again."""
        facts = self.facts()
        if facts.is_low:
            if self._low_since_ns is None:
                logger.warning("%s; %s", low_disk_sentence(facts), MAKE_ROOM)
                self._low_since_ns = self._engine.now_ns
        elif facts.full_s is None and facts.free_bytes is not None:
            half = replace(facts, free_bytes=facts.free_bytes // 2)
            if not half.is_low:
                self._low_since_ns = None

    def _begin(self, now_ns: int) -> None:
        self._logged_begin_ns, self._full_at_begin_ns = now_ns, self._full_before_ns
        reason = self._reason or f"no segment of {self._log.segment_bytes:,} bytes can be created"
        text = "the disk is full: producers wait for room, consumers continue; %s (%s)"
        logger.error(text, MAKE_ROOM, reason)

    def _end(self) -> None:
        began_ns, self._logged_begin_ns, self._reason = self._logged_begin_ns or 0, None, ""
        held_s = (self._full_before_ns - self._full_at_begin_ns) / NS_PER_S
        since_s = (self._ended_ns - began_ns) / NS_PER_S
        of = f" of {duration(since_s)}" if since_s - held_s >= 1 else ""
        free = free_text(self.facts())
        logger.warning(
            "the disk has room again: producers waited for %s%s%s",
            duration(held_s),
            of,
            f"; {free}" if free else "",
        )
