"""Wakes subscriptions when their delayed entries become due, and bounds what all of them hold."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, Protocol

from headgate.base.lazy_min_heap import LazyMinHeap
from headgate.base.owner_shares import OWNERS_BOUNDS, SMALL_BOUNDS, OwnerShares
from headgate.base.units import MIB, NS_PER_MS
from headgate.engine.delayed_index import INDEXED_BYTES

NEVER_MS = 1 << 62
"""Later than any due time."""

MEMORY_BYTES_MAX = 256 * MIB
"""The default of :attr:`DelaySchedule.memory_bytes_max`."""

SMALL_SHARE = 1 / 16
"""A subscription that holds less than this part of the bound puts entries aside beyond it: far
delays on one subscription do not stop all others."""


class DelayedSubscription(Protocol):
    """The delayed entries of one subscription, as far as the schedule needs them."""

    next_due_ms: int
    """When the next of them is due, or earlier; :data:`NEVER_MS` if none is to be woken for. When
    it falls, :meth:`DelaySchedule.changed` must be called."""

    def became_due(self) -> None:
        """Some may be due. ``next_due_ms`` is :data:`NEVER_MS` when this returns, until the
        subscription has looked."""

    def has_room(self) -> None:
        """Entries may be put aside again."""


TOLD_MAX: Final = 512
"""Subscriptions that one flush tells: one message may become due for 100,000 at the same instant,
which took 0.16 s."""

ROOM_TOLD_MAX: Final = 16
"""Subscriptions that are told at once when entries leave a memory that was full: 20,000 may wait,
and each entry that is delivered leaves room for one."""


class DelaySchedule:
    """The subscriptions of one engine that have entries which are not due.

    Due times are wall clock. The engine asks for the next one at the end of each turn, so exactly
    one timer runs for all subscriptions, and a step of the clock moves nothing but that timer.
    """

    __slots__ = ("_heap", "_part", "_shares", "_stalled", "memory_bytes_max")

    def __init__(self) -> None:
        self._heap: LazyMinHeap[DelayedSubscription] = LazyMinHeap(_next_due_of, ())
        self._stalled: OrderedDict[DelayedSubscription, None] = OrderedDict()
        """Subscriptions that found the memory full, the longest waiting first."""
        self._shares = OwnerShares()
        """The entries that are put aside."""
        self.memory_bytes_max = MEMORY_BYTES_MAX
        """What their indexes may take together."""
        self._part = 1.0

    def use_part(self, part: float) -> None:
        """The tenants with the most have this part of the bound: less than 1 while the process
        nears the limit on its memory. Call it again and again: those that wait for room go on a few
        at a time."""
        self._part = part
        self._tell_of_room(TOLD_MAX)

    @property
    def entries(self) -> int:
        """Entries that all subscriptions have put aside."""
        return self._shares.total

    @property
    def held_bytes(self) -> int:
        """What the indexes of all subscriptions take, about."""
        return self.entries * INDEXED_BYTES

    @property
    def is_full(self) -> bool:
        """Whether only subscriptions with few entries, and those of tenants with few, may put more
        aside."""
        return self.held_bytes >= self._part * self.memory_bytes_max

    def has_room_for(self, entries: int, tenant: str) -> bool:
        """Whether a subscription of ``tenant`` that has put so many entries aside may put one more
        aside."""
        bytes_max = self._part * self.memory_bytes_max
        if not self.is_full:
            return True
        if not self._shares.takes_most(tenant):
            return self.held_bytes < OWNERS_BOUNDS * self.memory_bytes_max
        is_small = entries * INDEXED_BYTES < SMALL_SHARE * bytes_max
        return is_small and self.held_bytes < SMALL_BOUNDS * bytes_max

    def stall(self, subscription: DelayedSubscription) -> None:
        """Call ``has_room`` of a subscription when entries may be put aside again."""
        self._stalled[subscription] = None

    def count(self, entries: int, tenant: str) -> None:
        """Account that ``entries`` more (or, negative, fewer) of a tenant are put aside."""
        self._shares.count(tenant, entries)
        if self._stalled:
            self._tell_of_room(ROOM_TOLD_MAX)

    def _tell_of_room(self, count_max: int) -> None:
        for _ in range(min(len(self._stalled), count_max)):
            if self.is_full:
                return
            self._stalled.popitem(last=False)[0].has_room()

    def changed(self, subscription: DelayedSubscription) -> None:
        """The next due time of a subscription is known now, or earlier than before."""
        self._heap.changed(subscription)

    def unschedule(self, subscription: DelayedSubscription) -> None:
        """A subscription has nothing left to wake for."""
        self._heap.discard(subscription)

    def forget(self, subscription: DelayedSubscription) -> None:
        """A subscription is gone."""
        self._heap.discard(subscription)
        self._stalled.pop(subscription, None)

    def wake_due(self, now_ms: int) -> None:
        """Tell subscriptions that have due entries, and those for which there is room again,
        :data:`TOLD_MAX` of each at most: then :meth:`next_wake_ns` is now."""
        self._tell_of_room(TOLD_MAX)
        for _ in range(TOLD_MAX):
            first = self._heap.top()
            if first is None or first.next_due_ms > now_ms:
                return
            first.became_due()

    def next_wake_ns(self, now_ns: int, now_ms: int) -> int | None:
        """The monotonic instant of the next due time, by the two clocks of this turn; None without
        one."""
        if self._stalled and not self.is_full:
            return now_ns
        first = self._heap.top()
        if first is None or first.next_due_ms == NEVER_MS:
            return None
        return now_ns + max(first.next_due_ms - now_ms, 0) * NS_PER_MS


def _next_due_of(subscription: DelayedSubscription) -> int:
    return subscription.next_due_ms
