"""Bounds the memory of acknowledgements of one kind, of all subscriptions together.

They stay when the client that made them has left, so that nobody is charged, and a client could
fill one subscription after another. Acknowledgements are promised and cannot be dropped: at the
bound the broker refuses what takes more, first on those subscriptions that hold at least as much as
the others on average, at one and a half times the bound on all of tenants for which the same holds,
and at twice the bound on all.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Final, Protocol

from headgate.base.ack_set import AckSet
from headgate.base.errors import InputError
from headgate.base.names import TopicName
from headgate.base.owner_shares import OWNERS_BOUNDS, SMALL_BOUNDS, OwnerShares
from headgate.base.sparse_counter import SparseCounter

MEASURED_MAX: Final = 64
"""Subscriptions that are measured again when one asks for room at the bound."""


class NoAckRoomError(InputError):
    """All subscriptions together leave no room for more acknowledgements of one."""


class _Topic(Protocol):
    @property
    def name(self) -> TopicName:
        """Its name."""


class AcksHolder(Protocol):
    """A subscription, as far as the budget needs it."""

    name: str
    acks: AckSet
    removed: bool

    @property
    def topic(self) -> _Topic:
        """Its topic, which belongs to a tenant."""


class AckBudget:
    """What acknowledgements of one kind take, by subscription.

    A subscription is measured when it takes more, and when it is loaded. What its cursor passes
    later makes it less: so the sum is never too small, and is corrected at the bound. The log has
    those of topics that are not loaded, so they count, too.
    """

    __slots__ = ("_by_holder", "_by_unloaded", "_bytes_max", "_shares", "_size_of", "part")

    def __init__(self, size_of: Callable[[AckSet], int], bytes_max: int) -> None:
        """``size_of`` tells what a set takes in bytes of memory, ``bytes_max`` is the bound."""
        self._size_of = size_of
        self._bytes_max = bytes_max
        self.part = 1.0
        """The part of it that the tenants with the most have: less while the process nears the
        limit on its memory."""
        self._by_holder: dict[AcksHolder, int] = {}
        """In the order in which they were measured, the latest last."""
        self._by_unloaded: SparseCounter[int] = SparseCounter()
        """Bytes of topics that are not loaded, by their numbers."""
        self._shares = OwnerShares()
        """Bytes of both, by tenant."""

    @property
    def held_bytes(self) -> int:
        """What all take together."""
        return self._shares.total

    def measure(self, subscription: AcksHolder) -> None:
        """Count what a subscription holds now; nothing after its removal."""
        size_bytes = 0 if subscription.removed else self._size_of(subscription.acks)
        more_bytes = size_bytes - self._by_holder.pop(subscription, 0)
        self._count(subscription.topic.name, more_bytes)
        if size_bytes:
            self._by_holder[subscription] = size_bytes

    def forget(self, subscription: AcksHolder) -> None:
        """A subscription was removed."""
        self._count(subscription.topic.name, -self._by_holder.pop(subscription, 0))

    def _count(self, name: TopicName, more_bytes: int) -> None:
        self._shares.count(name.tenant, more_bytes)

    def unloaded(self, subscription: AcksHolder, number: int) -> None:
        """A durable subscription has ended with its topic, which stays in the log by that
        number. It counts with what it holds now: nobody measures it again."""
        self.measure(subscription)
        self._by_unloaded[number] += self._by_holder.pop(subscription, 0)

    def loaded_or_deleted(self, name: TopicName, number: int) -> None:
        """A topic is being loaded, so that its subscriptions are measured again, or is gone."""
        self._count(name, -self._by_unloaded.pop(number, 0))

    def has_room(self, subscription: AcksHolder) -> bool:
        """Whether all subscriptions together leave room for more of a subscription."""
        bytes_max = self.part * self._bytes_max
        if self.held_bytes < bytes_max:
            return True
        for holder in list(islice(self._by_holder, MEASURED_MAX)):
            self.measure(holder)
        if self.held_bytes < bytes_max:
            return True
        if not self._shares.takes_most(subscription.topic.name.tenant):
            return self.held_bytes < OWNERS_BOUNDS * self._bytes_max
        own_bytes = self._by_holder.get(subscription, 0)
        is_above_average = own_bytes * len(self._by_holder) >= self.held_bytes
        return not is_above_average and self.held_bytes < SMALL_BOUNDS * bytes_max
