"""The window of each consumer: the most permits that it ever has, which is its receiver queue.

A broker's statistics tell the permits of an instant. A client returns permits in lumps of half its
queue, so most instants show fewer than the window, and whether a consumer is hungry depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from headgate.agent.looks import ConsumerLook
from headgate.flow.account.account import is_hungry

GRANTS_MIN = 3
"""Different amounts of returned permits whose common divisor is a lump."""


class ConsumerWindow:
    """What the looks at one consumer, since it connected, say of its window.

    Permits plus messages sent is all that it ever granted. Between two looks that grows by whole
    lumps. So the window lies between the most permits seen and twice the least growth; it is twice
    the common divisor of the growths once :data:`GRANTS_MIN` of them differ. Where the broker
    counts what is not acknowledged, that and the permits together are at least half of the window,
    and at most about all of it, unless the consumer holds messages back.
    """

    __slots__ = (
        "_granted",
        "_grants",
        "_largest",
        "_least_grant",
        "_least_held",
        "_lump",
        "_most_held",
    )

    def __init__(self) -> None:
        self._largest = 0
        self._most_held = 0
        self._least_held: int | None = None
        self._granted: int | None = None
        self._least_grant = 0
        self._lump = 0
        self._grants: tuple[int, ...] = ()
        """Different ones."""

    def note(self, look: ConsumerLook, *, counts_unacked: bool) -> None:
        """A look at the consumer, later than those before. ``counts_unacked`` says whether the
        broker counts what is not acknowledged, which depends on the subscription's type."""
        if look.permits is None:
            return
        self._largest = max(self._largest, look.permits)
        if counts_unacked and look.unacked is not None:
            held = look.permits + look.unacked
            self._most_held = max(self._most_held, held)
            self._least_held = held if self._least_held is None else min(self._least_held, held)
        if look.sent is None:
            return
        before, self._granted = self._granted, look.permits + look.sent
        grant = 0 if before is None else self._granted - before
        if grant <= 0:
            return
        self._least_grant = min(self._least_grant or grant, grant)
        self._lump = gcd(self._lump, grant)
        if len(self._grants) < GRANTS_MIN and grant not in self._grants:
            self._grants += (grant,)
        if 2 * self._lump < self._largest:  # batches, or figures of two instants: no lumps
            self._lump = 0
            self._grants = ()

    @property
    def permits_max(self) -> int:
        """The window, as far as it is known."""
        found = self._most_held
        if self._lump and len(self._grants) >= GRANTS_MIN:
            found = 2 * self._lump
        elif self._least_grant:
            found = min(found, 2 * self._least_grant)
        if self._least_held is not None:
            found = min(found, 2 * max(self._least_held, 0))
        return max(found, self._largest)


class ConsumerWindows:
    """The windows of the consumers of one subscription; of those that left nothing is kept."""

    __slots__ = ("_windows",)

    def __init__(self) -> None:
        self._windows: dict[tuple[str, str, str], ConsumerWindow] = {}

    def note(self, consumers: Sequence[ConsumerLook], *, counts_unacked: bool) -> bool:
        """A look at all consumers; returns whether they are others than at the last one."""
        keys = [(one.name, one.address, one.connected_since) for one in consumers]
        changed = set(keys) != set(self._windows)
        if changed:
            old, self._windows = self._windows, {}
            for key in keys:
                self._windows[key] = old.get(key) or ConsumerWindow()
        for key, consumer in zip(keys, consumers, strict=True):
            self._windows[key].note(consumer, counts_unacked=counts_unacked)
        return changed

    def permits_max(self, consumer: ConsumerLook) -> int:
        """The window of one of them."""
        key = consumer.name, consumer.address, consumer.connected_since
        return self._windows[key].permits_max

    def is_hungry(self, consumers: Sequence[ConsumerLook]) -> bool:
        """Whether any of them has at least half of its window free."""
        return any(
            consumer.permits is not None and is_hungry(consumer.permits, self.permits_max(consumer))
            for consumer in consumers
        )
