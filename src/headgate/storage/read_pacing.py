"""How fast backlog entries are decoded while producers publish.

On the event loop, delivering a backlog entry costs as much as a publish. A consumer of a backlog
requests hundreds of entries at a time; decoded at once, they would delay every receipt
(bench/latency.py: p99 three times as long). So while producers publish, the broker decodes such a
burst in slices with pauses between, and a publish waits for one slice at most. Reading that lasts
longer than a burst serves a backlog: then slices have no pauses, and reading takes the rest of the
loop's time.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.base.units import KIB, MIB, NS_PER_MS, NS_PER_S


@dataclass(frozen=True, slots=True)
class Slice:
    """How much to decode at once, and how long the pause is after it."""

    entries_max: int
    bytes_max: int
    """One entry may exceed this."""
    pause_s: float
    """0 lets the loop poll its sockets once."""


BURST = Slice(32, 256 * KIB, 0.003)
"""At first, while producers publish: about 0.2 ms of work with the delivery, then a far longer
pause; up to 10,000 entries a second."""

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
"""A slice that is due while a commit is in flight waits for its end: in at most so many steps of
this length."""

QUIET_NS = NS_PER_S
"""Producers do not publish if no entry became durable for this long."""


def next_slice(quiet_ns: int, busy_ns: int) -> Slice:
    """The next slice. The last entry became durable ``quiet_ns`` ago, and reading has been busy for
    ``busy_ns``."""
    if quiet_ns >= QUIET_NS:
        return ALONE
    return BURST if busy_ns < BURST_NS else STREAM
