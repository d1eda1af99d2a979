"""How quickly old entries come into memory while others publish.

One loop does everything, and in Python a delivery of an old entry costs it as much as a publish.
A reader of a backlog asks for hundreds of entries at a time; done at once, they would stand between
each publish and its receipt (bench/latency.py: p99 three times as long). So while somebody
publishes, such a burst comes in slices with rests between, and a publish meets one slice at most.
Whoever is at it for longer than a burst has a backlog to work off: then there are slices but no
rests, and reading takes what the loop has left.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.base.units import KIB, MIB, NS_PER_MS, NS_PER_S


@dataclass(frozen=True, slots=True)
class Slice:
    """What may be taken at once, and how long the loop then rests."""

    entries_max: int
    bytes_max: int
    """One entry may go beyond."""
    rest_s: float
    """0: only until the loop has looked at its sockets."""


BURST = Slice(32, 256 * KIB, 0.003)
"""Beside publishes, at first: about 0.2 ms of work with the delivery, then many times that of
rest; up to 10,000 entries a second."""

STREAM = Slice(64, 512 * KIB, 0.0)
"""Beside publishes, after :data:`BURST_NS` without a break."""

ALONE = Slice(256, 2 * MIB, 0.0)
"""While nobody publishes."""

BURST_NS = NS_PER_S
"""What is read in this time may be a burst, or a consumer that is merely behind the cache."""

BREAK_NS = 5 * NS_PER_MS
"""A pause of reading that ends a burst. Shorter ones lie between one read and the next."""

COMMIT_WAIT_S = 0.001
COMMIT_WAITS_MAX = 3
"""A slice that is due after a rest while a commit is under way waits for its end in such steps, at
most so many."""

QUIET_NS = NS_PER_S
"""Nobody publishes when nothing became durable for so long."""


def next_slice(quiet_ns: int, busy_ns: int) -> Slice:
    """The slice to take now: the last entry became durable ``quiet_ns`` ago, and since ``busy_ns``
    there has always been something to read."""
    if quiet_ns >= QUIET_NS:
        return ALONE
    return BURST if busy_ns < BURST_NS else STREAM
