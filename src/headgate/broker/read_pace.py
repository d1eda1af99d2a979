"""How quickly old entries come into memory while others publish.

One loop does everything, and in Python a delivery of an old entry costs it as much as a publish.
A reader of a backlog asks for hundreds of entries at a time; done at once, they would stand between
each publish and its receipt (bench/latency.py: p99 three to six times as long). So while somebody
publishes they come in slices with rests between, and a publish meets one slice at most. The pace
never lets a backlog grow: each reader may read twice what all producers publish meanwhile, and
:data:`SLICE_ENTRIES` a rest beside. While nobody publishes there is no rest.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.base.units import KIB, NS_PER_S

SLICE_ENTRIES = 32
"""Entries of a slice beside a few publishes: about 0.2 ms of work with their delivery."""

SLICE_ENTRIES_MAX = 256
"""Entries of any slice: less than a millisecond for taking them out of what was read."""

ENTRY_BYTES = 8 * KIB
"""A slice has as many bytes as so large entries would have, or one entry."""

REST_S = 0.003
"""From one slice to the next while somebody publishes: several times what a slice takes."""

COMMIT_WAIT_S = 0.001
COMMIT_WAITS_MAX = 3
"""A slice that is due while a commit is under way waits for its end in such steps, at most so many:
where commits follow each other without a pause, reading goes on all the same."""

QUIET_NS = NS_PER_S
"""Nobody publishes when nothing became durable for so long."""

TIMES_WRITTEN = 2
"""What each reader may read of what is published meanwhile: it catches up in about the time in
which it fell behind, or sooner."""


@dataclass(frozen=True, slots=True)
class Slice:
    """What may be taken at once, and how long the loop then rests."""

    entries_max: int
    bytes_max: int
    rest_s: float
    """0: only until the loop has looked at its sockets."""


def next_slice(written_entries: int, quiet_ns: int, readers: int) -> Slice:
    """The slice for ``readers`` reads that are open, at least one.

    ``written_entries`` became durable since the last slice, the last of them ``quiet_ns`` ago.
    """
    if quiet_ns >= QUIET_NS:
        entries_max, rest_s = SLICE_ENTRIES_MAX, 0.0
    else:
        wanted = SLICE_ENTRIES + TIMES_WRITTEN * written_entries * readers
        entries_max, rest_s = min(wanted, SLICE_ENTRIES_MAX), REST_S
    return Slice(entries_max, entries_max * ENTRY_BYTES, rest_s)
