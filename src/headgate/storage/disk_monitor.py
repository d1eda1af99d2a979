"""The disk under the messages, watched: whether the log takes entries, how much room is left.

The log says itself when it is full. Whatever may have changed that is followed by a look, in the
same turn, so that the engine parks what is sent while there is no room and nothing else. A
beginning and an end are a line each in the log; so are many that follow each other closely, as on a
disk where consumers make room for one segment after the other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from headgate.base.errors import NoRoomError
from headgate.base.units import NS_PER_S
from headgate.engine.engine import Engine
from headgate.flow.sentences.backlog import duration
from headgate.flow.sentences.disk import DiskFacts, room_text
from headgate.ledger import CommitLog, Space
from headgate.storage.lanes import Lane
from headgate.storage.repeated_failures import QUIET_NS

logger = logging.getLogger("headgate.disk")

SPACE_PERIOD_NS: Final = 5 * NS_PER_S
"""How often the file system is asked for its room."""


class DiskMonitor:
    """Whether one broker's log has room, since when, and how much there is."""

    def __init__(self, log: CommitLog, lane: Lane, engine: Engine) -> None:
        """``lane`` is where the file system is asked: that may block."""
        self._log = log
        self._lane = lane
        self._engine = engine
        self.keep_reserve: Callable[[], None] = lambda: None
        """Called on the lane now and then while there is room; assign another to keep some."""
        self.space: Space | None = None
        """As last asked; None before."""
        self.full_since_ns: int | None = None
        """Since when no entry has been taken; None while they are."""
        self._spent_ns = 0
        self._asked_ns: int | None = None
        self._is_asking = False
        self._reason = ""
        self._began_ns: int | None = None
        """When the trouble began that the log was told of and not yet of its end."""
        self._spent_before_ns = 0
        self._ended_ns = 0

    def full_ns(self, now_ns: int) -> int:
        """Time in which no entry was taken since the start, until now."""
        running_ns = 0 if self.full_since_ns is None else now_ns - self.full_since_ns
        return self._spent_ns + running_ns

    def facts(self) -> DiskFacts:
        """The disk as it is now."""
        since_ns, space = self.full_since_ns, self.space
        return DiskFacts(
            full_s=None if since_ns is None else (self._engine.now_ns - since_ns) / NS_PER_S,
            free_bytes=None if space is None else space.free_bytes,
            size_bytes=None if space is None else space.size_bytes,
            segment_bytes=self._log.segment_bytes,
        )

    def no_room(self, error: NoRoomError) -> None:
        """The disk refused something, for that reason. Look next."""
        self._reason = str(error).removeprefix("the disk is full: ")
        self._asked_ns = None

    def look(self) -> None:
        """The log may have become full, or have room again."""
        full = self._log.full and self._log.failed is None
        if full is (self.full_since_ns is not None):
            return
        now_ns = self._engine.now_ns
        if full:
            self.full_since_ns = now_ns
            if self._began_ns is None:
                self._begin(now_ns)
        else:
            self._spent_ns = self.full_ns(now_ns)
            self.full_since_ns, self._ended_ns = None, now_ns
        self._engine.disk_hold.turned(full=full)

    def watch(self) -> None:
        """Call about once a second."""
        now_ns = self._engine.now_ns
        over = self._began_ns is not None and self.full_since_ns is None
        if over and now_ns - self._ended_ns >= QUIET_NS:
            self._end()
        due = self._asked_ns is None or now_ns - self._asked_ns >= SPACE_PERIOD_NS
        if due and not self._is_asking:
            self._asked_ns, self._is_asking = now_ns, True
            self._lane.submit(partial(self._ask, self.full_since_ns is None), self._answered)

    def _ask(self, has_room: bool) -> Space:
        """On the lane."""
        space = self._log.space()
        if has_room and space.free_bytes > self._log.segment_bytes:
            self.keep_reserve()
        return space

    def _answered(self, space: Space | None, error: BaseException | None) -> None:
        self._is_asking = False
        if error is not None and not isinstance(error, OSError):
            raise error
        self.space = space

    def _begin(self, now_ns: int) -> None:
        self._began_ns, self._spent_before_ns = now_ns, self._spent_ns
        reason = self._reason or f"no segment of {self._log.segment_bytes:,} bytes can be made"
        logger.error(
            "the disk is full: what producers send waits for room, consumers go on (%s)", reason
        )

    def _end(self) -> None:
        began_ns, self._began_ns, self._reason = self._began_ns or 0, None, ""
        held_s = (self._spent_ns - self._spent_before_ns) / NS_PER_S
        since_s = (self._ended_ns - began_ns) / NS_PER_S
        of = f" of {duration(since_s)}" if since_s - held_s >= 1 else ""
        room = room_text(self.facts())
        logger.warning(
            "the disk has room again: what producers sent waited for %s%s%s",
            duration(held_s),
            of,
            f"; {room}" if room else "",
        )
