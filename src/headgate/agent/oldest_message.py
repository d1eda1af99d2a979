"""The age of the oldest message of a backlog, from looks at a broker that does not tell it.

What the looks prove counts, not what is likely: a burst that one look happens to see is not old.
"""

from __future__ import annotations

from headgate.base.units import NS_PER_S

EVEN_NS = 10 * NS_PER_S
"""Half of what arrives in this long a time is no burst."""
ARRIVALS_MAX = 48
"""Looks that are kept of what had been published by then."""
SHORT = 3
"""As many of them while nothing is to explain."""


class OldestMessage:
    """The arrivals on a topic, as one subscription's looks show them.

    Two facts bound an age from below. If more messages wait than arrived since a look, the oldest
    is older than that look. If messages waited at a look and the broker has not moved the
    mark-delete position since, the oldest of then is still there; this holds in whatever order they
    are acknowledged. If messages waited at both ends of an interval in which the oldest arrived,
    or at least half of a long one's, they arrived evenly in it.
    """

    __slots__ = ("_arrivals", "_held_moved_ms", "_held_since_ns")

    def __init__(self) -> None:
        # Lists: an empty deque takes 760 bytes, and a cluster has 100,000 subscriptions.
        self._arrivals: list[tuple[int, float, bool]] = []
        self._held_since_ns: int | None = None
        self._held_moved_ms: int | None = None

    def note(
        self, at_ns: int, appended: float, waiting: float, moved_ms: int | None, *, delayed: bool
    ) -> int:
        """A look at ``waiting`` messages that are due, of ``appended`` in all; returns the age of
        the oldest in nanoseconds, 0 without one. ``moved_ms`` says when the mark-delete position
        last moved; a ``delayed`` message may hold it."""
        held_ns = self._held(at_ns, waiting, None if delayed else moved_ms)
        age_ns = self._by_arrivals(at_ns, appended, waiting) if waiting >= 1 else 0
        self._arrivals.append((at_ns, appended, waiting >= 1))
        if len(self._arrivals) > ARRIVALS_MAX:
            self._thin()
        return max(age_ns, held_ns)

    def shorten(self) -> None:
        """Keep the newest looks only: nothing waits."""
        del self._arrivals[:-SHORT]

    def _held(self, at_ns: int, waiting: float, moved_ms: int | None) -> int:
        if waiting < 1 or moved_ms is None:
            self._held_since_ns = None
            return 0
        if self._held_since_ns is None or moved_ms != self._held_moved_ms:
            self._held_since_ns, self._held_moved_ms = at_ns, moved_ms
        return at_ns - self._held_since_ns

    def _by_arrivals(self, at_ns: int, appended: float, waiting: float) -> int:
        newer_ns, newer_appended, newer_waits = at_ns, appended, True
        for older_ns, older_appended, older_waits in reversed(self._arrivals):
            since = appended - older_appended
            if waiting <= since:
                is_burst = newer_ns - older_ns < EVEN_NS or waiting < since / 2
                if is_burst and not (older_waits and newer_waits):
                    return at_ns - newer_ns
                part = (waiting - 1 - (appended - newer_appended)) / max(
                    newer_appended - older_appended, 1
                )
                return at_ns - newer_ns + round((newer_ns - older_ns) * min(max(part, 0.0), 1.0))
            newer_ns, newer_appended, newer_waits = older_ns, older_appended, older_waits
        return at_ns - newer_ns

    def _thin(self) -> None:
        """Keep the newer half, and every second of the older one."""
        kept = self._arrivals
        half = len(kept) // 2
        self._arrivals = [*kept[:half:2], *kept[half:]]
