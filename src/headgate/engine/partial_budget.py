"""Bounds the memory of the partly acknowledged batches of all subscriptions together.

Each subscription has a bound of its own. A client could still fill one subscription after another
and leave, so that nobody is charged. Acknowledgements are promised and cannot be dropped: at the
bound the broker refuses that further batches begin to be partly acknowledged, first on those
subscriptions that hold at least as much as the others on average, at one and a half times the bound
on all of tenants for which the same holds, and at twice the bound on all.
"""

from __future__ import annotations

from itertools import islice
from typing import Final, Protocol

from headgate.base.ack_set import AckSet
from headgate.base.errors import InputError
from headgate.base.names import TopicName
from headgate.base.owner_shares import OWNERS_BOUNDS, SMALL_BOUNDS, OwnerShares
from headgate.base.sparse_counter import SparseCounter
from headgate.base.units import MIB

PARTIAL_BYTES_MAX: Final = 8 * MIB
"""The bound of one subscription: about 180,000 batches of 100 messages. Beyond it, batches are
acknowledged as a whole only."""
PARTIALS_BYTES_MAX: Final = 128 * MIB
"""The bound of all: 620,000 subscriptions with one batch of 100 messages each."""
PARTS_BATCH_MAX: Final = 1 << 16
"""Larger batches are acknowledged as a whole only: each acknowledgement of a part stores a bit for
each message."""
MEASURED_MAX: Final = 64
"""Subscriptions that are measured again when one asks for room at the bound."""


class _Topic(Protocol):
    @property
    def name(self) -> TopicName:
        """Its name."""


class PartialsHolder(Protocol):
    """A subscription, as far as the budget needs it."""

    name: str
    acks: AckSet
    removed: bool

    @property
    def topic(self) -> _Topic:
        """Its topic, which belongs to a tenant."""


class PartialBudget:
    """What partly acknowledged batches take, by subscription.

    A subscription is measured when a batch of it begins to be partly acknowledged, and when it is
    reset. What its cursor passes later makes it less: so the sum is never too small, and is
    corrected at the bound. The log has those of topics that are not loaded, so they count, too.
    """

    __slots__ = ("_by_holder", "_by_unloaded", "_bytes_max", "_shares")

    def __init__(self, bytes_max: int = PARTIALS_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._by_holder: dict[PartialsHolder, int] = {}
        """In the order in which they were measured, the latest last."""
        self._by_unloaded: SparseCounter[int] = SparseCounter()
        """Bytes of topics that are not loaded, by their numbers."""
        self._shares = OwnerShares()
        """Bytes of both, by tenant."""

    @property
    def held_bytes(self) -> int:
        """What all take together."""
        return self._shares.total

    def measure(self, subscription: PartialsHolder) -> None:
        """Count what a subscription holds now; nothing after its removal."""
        size_bytes = 0 if subscription.removed else subscription.acks.partial_bytes
        more_bytes = size_bytes - self._by_holder.pop(subscription, 0)
        self._count(subscription.topic.name, more_bytes)
        if size_bytes:
            self._by_holder[subscription] = size_bytes

    def forget(self, subscription: PartialsHolder) -> None:
        """A subscription was removed."""
        self._count(subscription.topic.name, -self._by_holder.pop(subscription, 0))

    def _count(self, name: TopicName, more_bytes: int) -> None:
        self._shares.count(name.tenant, more_bytes)

    def unloaded(self, subscription: PartialsHolder, number: int) -> None:
        """A durable subscription has ended with its topic, which stays in the log by that
        number."""
        self._by_unloaded[number] += self._by_holder.pop(subscription, 0)

    def loaded_or_deleted(self, name: TopicName, number: int) -> None:
        """A topic is being loaded, so that its subscriptions are measured again, or is gone."""
        self._count(name, -self._by_unloaded.pop(number, 0))

    def check_room(self, subscription: PartialsHolder) -> None:
        """Raise :class:`InputError` unless one more batch of a subscription may be partly
        acknowledged."""
        size_bytes = subscription.acks.partial_bytes
        if size_bytes >= PARTIAL_BYTES_MAX:
            raise InputError(
                f"subscription {subscription.name} has partly acknowledged batches of "
                f"{size_bytes:,} bytes; up to {PARTIAL_BYTES_MAX:,} are kept"
            )
        if not self.has_room(subscription):
            raise InputError(
                f"all subscriptions together have partly acknowledged batches of "
                f"{self.held_bytes:,} bytes; beyond {self._bytes_max:,} those with the most take "
                "no more"
            )

    def has_room(self, subscription: PartialsHolder) -> bool:
        """Whether all subscriptions together leave room for one more batch of a subscription."""
        if self.held_bytes < self._bytes_max:
            return True
        for holder in list(islice(self._by_holder, MEASURED_MAX)):
            self.measure(holder)
        if self.held_bytes < self._bytes_max:
            return True
        if not self._shares.takes_most(subscription.topic.name.tenant):
            return self.held_bytes < OWNERS_BOUNDS * self._bytes_max
        own_bytes = self._by_holder.get(subscription, 0)
        is_above_average = own_bytes * len(self._by_holder) >= self.held_bytes
        return not is_above_average and self.held_bytes < SMALL_BOUNDS * self._bytes_max
