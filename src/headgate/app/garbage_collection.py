"""Plans Python's garbage collection in short pieces between which the loop serves others.

Reference counts free nearly everything at once; the collector only finds cycles, and for that it
visits objects that live on. Left to itself it runs when more objects were made than freed. A broker
that replaces objects, such as budgets at a change of policies, makes as many as it frees: then the
collector does not run for a long time, and visits hundreds of thousands in one turn, at 0.1 to 0.2
us each. So the broker collects young objects at a pace that follows how long the last time took.

An object that lived through two collections, or through one of Python's own, is *frozen*: the
collector visits it never again, so that no collection grows with the number of topics. A reference
count still frees it, so connections of both ports, and topics and subscriptions that end, leave no
cycles; tests hold that. Should some, a complete collection frees them while nobody publishes or
consumes, or at last when very many have ended and the process has grown. It also comes when the
process has grown by half: whatever other cycles a client can have made, such as an error that was
kept beside its own frame, do not pile up without a bound.

A complete collection holds the loop for as long as there are objects, and clients decide how many:
100,000 commands that wait, or 36,000 topics with subscriptions, are more than 2 s. So what clients
are charged with is no growth, nor is what tenants keep within their bounds, and clients that come
and go bring none about.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from headgate.base.units import MIB, NS_PER_MS, NS_PER_S
from headgate.broker.work.turn_meter import TurnMeter

AUTOMATIC: Final = (5_000, 1_000, 1_000_000)
"""Thresholds of Python's own collections: where very many objects are made, they come between two
planned ones. One that visits 5,000 objects takes 1 to 2 ms; 50,000 took 20 to 40 ms."""

AUTOMATIC_MAX: Final = 2
"""What so many of Python's own collections left is visited once more: at most 10,000 objects."""

AIM_NS: Final = 2 * NS_PER_MS
"""How long one collection should take."""

PAUSE_S_MIN: Final = 0.01
PAUSE_S_MAX: Final = 0.03
"""Bounds of the pause between two collections of young objects. The next one takes as long as what
is made meanwhile requires: after 100 ms of slices that replace objects, 20 ms."""

MIDDLE_NS: Final = 5 * NS_PER_MS
"""After so much time in collections of young objects, those that were left are visited once more,
and frozen: they take no longer than that."""

COMPLETE_PERIOD_S: Final = 600.0
"""Least time between two complete collections."""

ENDED_MIN: Final = 1_000
"""A complete collection waits until so many topics and subscriptions have ended ..."""

IDLE_S: Final = 5.0
"""... and until nobody has published or consumed for so long, ..."""

ENDED_MAX: Final = 50_000
ENDED_BYTES_MIN: Final = 128 * MIB
"""... but not if so many have ended, and the process has grown by so much since the last one: they
were cycles of about 4 KB each."""

GROWN_BYTES_MIN: Final = 512 * MIB
GROWN_SHARE: Final = 0.5
"""A complete collection comes as well when the process uses so much more than after the last one,
by both. What grows for good reasons costs few of them: the next growth counts from there."""

LOOK_S_MIN: Final = 1.0
LOOK_FACTOR: Final = 100
"""Least time between two looks at the memory, also as many times what the last one took."""

REST_S_MIN: Final = 5.0
REST_FACTOR: Final = 50
"""After a complete collection none comes for growth until this time, and this many times the time
that it took, have passed."""


class Activity(NamedTuple):
    """Counts since the start of the broker."""

    commits: int
    """Changes whenever anything was published or acknowledged."""
    ended: int
    """Topics and subscriptions that were removed or unloaded."""


class Memory(Protocol):
    """The memory of the process, without what has bounds of its own: caches, what clients are
    charged with, and what tenants keep."""

    def used_bytes_max(self) -> int:
        """What it uses, at most. Quick."""

    def used_bytes(self) -> int:
        """What it uses; what is free for its next objects does not count. May take
        milliseconds."""


@dataclass(frozen=True, slots=True)
class Collector:
    """Python's collector, or what stands in its place in a test."""

    collect: Callable[[int], int] = gc.collect
    """Collects the objects up to a generation."""
    freeze: Callable[[], None] = gc.freeze
    unfreeze: Callable[[], None] = gc.unfreeze
    used_ns: Callable[[], int] = time.thread_time_ns
    """CPU time of the calling thread."""
    young_count: Callable[[], int] = lambda: gc.get_count()[1]
    """Collections of young objects since the last one of an older generation or freezing, with
    Python's own."""


class GarbageCollection:
    """Collects garbage in the broker's loop, from :meth:`start` to :meth:`stop`."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        meter: TurnMeter,
        activity: Callable[[], Activity],
        memory: Memory,
        collector: Collector,
    ) -> None:
        self._loop = loop
        self._meter = meter
        self._activity = activity
        self._memory = memory
        self._collector = collector
        self._pause_s = PAUSE_S_MAX
        self._young_ns = 0
        """Time in collections of young objects since the last one of the middle generation."""
        self._young_count = 0
        """So many collections."""
        self._last = self._last_complete = activity()
        self._idle_since_s = self._complete_s = loop.time()
        self._usual_bytes = 0
        """What the process used at the start, or after the last complete collection."""
        self._rests_until_s = self._look_s = loop.time()
        self._next: asyncio.TimerHandle | None = None
        self.complete_count = 0
        """Complete collections since the start."""

    def start(self) -> None:
        """Freeze what there is, and begin."""
        self._collector.freeze()
        self._usual_bytes = self._memory.used_bytes()
        self._next = self._loop.call_later(self._pause_s, self._run)

    def stop(self) -> None:
        """Collect no more."""
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def _run(self) -> None:
        took_ns = self._collect(0)
        self._young_ns += took_ns
        self._young_count += 1
        automatic = self._collector.young_count() - self._young_count
        self._pause_s = PAUSE_S_MIN if automatic else pause_after(self._pause_s, took_ns)
        self._complete_if_due()
        if automatic > AUTOMATIC_MAX:
            self._freeze()  # they left too much for a visit
        elif automatic == AUTOMATIC_MAX or self._young_ns >= MIDDLE_NS:
            self._next = self._loop.call_later(0, self._visit_again)
            return
        self._next = self._loop.call_later(self._pause_s, self._run)

    def _visit_again(self) -> None:
        """Visit what young collections left, in a turn of its own."""
        if self._collector.young_count() - self._young_count <= AUTOMATIC_MAX:
            self._collect(1)
        self._freeze()
        self._next = self._loop.call_later(self._pause_s, self._run)

    def _freeze(self) -> None:
        self._collector.freeze()
        self._young_ns = self._young_count = 0

    def _complete_if_due(self) -> None:
        now_s, activity = self._loop.time(), self._activity()
        if activity != self._last:
            self._last = activity
            self._idle_since_s = now_s
        is_due = now_s - self._complete_s >= COMPLETE_PERIOD_S
        ended = activity.ended - self._last_complete.ended if is_due else 0
        is_idle = now_s - self._idle_since_s >= IDLE_S
        may_look = now_s >= max(self._look_s, self._rests_until_s)
        if (is_idle and ended >= ENDED_MIN) or (may_look and self._has_grown(now_s, ended)):
            self._complete(now_s, activity)

    def _has_grown(self, now_s: float, ended: int) -> bool:
        """Whether the process has grown by as much as makes a collection due after so many topics
        and subscriptions have ended."""
        grown_bytes_min = max(GROWN_BYTES_MIN, GROWN_SHARE * self._usual_bytes)
        if ended >= ENDED_MAX:
            grown_bytes_min = ENDED_BYTES_MIN
        used_bytes_min = self._usual_bytes + grown_bytes_min
        began_ns = self._collector.used_ns()
        # What was freed mostly stays with the process: only the second one tells it.
        found = (
            self._memory.used_bytes_max() >= used_bytes_min
            and self._memory.used_bytes() >= used_bytes_min
        )
        took_ns = self._collector.used_ns() - began_ns
        self._look_s = now_s + max(LOOK_S_MIN, LOOK_FACTOR * took_ns / NS_PER_S)
        return found

    def _complete(self, now_s: float, activity: Activity) -> None:
        self._complete_s, self._last_complete = now_s, activity
        self.complete_count += 1
        self._collector.unfreeze()
        took_ns = self._collect(2)
        self._collector.freeze()
        self._rests_until_s = now_s + max(REST_S_MIN, REST_FACTOR * took_ns / NS_PER_S)
        self._usual_bytes = self._memory.used_bytes()

    def _collect(self, generation: int) -> int:
        """Collect up to a generation; returns how long it took."""
        began_ns = self._collector.used_ns()
        self._collector.collect(generation)
        took_ns = self._collector.used_ns() - began_ns
        name = f"garbage collection of generation {generation}"
        self._meter.ended(name, self._meter.now_ns() - took_ns)
        return took_ns


def pause_after(pause_s: float, took_ns: int) -> float:
    """The pause before the next collection, after a pause and a collection that took so long.

    The pause that would have met the aim, but at most twice as long as the last one.
    """
    fitting_s = pause_s * AIM_NS / max(took_ns, 1)
    return min(max(min(fitting_s, 2 * pause_s), PAUSE_S_MIN), PAUSE_S_MAX)
