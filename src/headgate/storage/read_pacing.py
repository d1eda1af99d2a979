"""How fast backlog entries are decoded while producers publish.

The event loop does everything, and in Python delivering a backlog entry costs it as much as a
publish. A reader of a backlog requests hundreds of entries at a time; decoded at once, they would
delay every receipt (bench/latency.py: p99 three times as long). So while producers publish, such a
burst is decoded in slices with pauses between, and a publish waits for one slice at most. A reader
that stays busy for longer than a burst has a backlog to catch up on: then there are slices without
pauses, and reading takes the rest of the loop's time.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.base.units import KIB, MIB, NS_PER_MS, NS_PER_S


@dataclass(frozen=True, slots=True)
class Slice:
    """How much to decode at once, and how long the pause is after it."""

    entries_max: int
    bytes_max: int
    """One entry may exceed it."""
    rest_s: float
    """0: until the loop has polled its sockets."""


BURST = Slice(32, 256 * KIB, 0.003)
"""While producers publish, at first: about 0.2 ms of work with the delivery, then a pause of many
times that; up to 10,000 entries a second."""

STREAM = Slice(64, 512 * KIB, 0.0)
"""While producers publish, after :data:`BURST_NS` without a break."""

ALONE = Slice(256, 2 * MIB, 0.0)
"""While no producer publishes."""

BURST_NS = NS_PER_S
"""Reading for up to this long may be a burst, or a consumer that is just behind the cache."""

BREAK_NS = 5 * NS_PER_MS
"""A break of this length ends a burst. Shorter ones occur between two reads."""

COMMIT_WAIT_S = 0.001
COMMIT_WAITS_MAX = 3
"""If a commit is in flight when a slice is due, the slice waits for its end: in steps of this
length, and at most this many."""

QUIET_NS = NS_PER_S
"""No producer publishes if no entry became durable for this long."""


def next_slice(quiet_ns: int, busy_ns: int) -> Slice:
    """The next slice. The last entry became durable ``quiet_ns`` ago, and reading has been busy for
    ``busy_ns``."""
    if quiet_ns >= QUIET_NS:
        return ALONE
    return BURST if busy_ns < BURST_NS else STREAM
