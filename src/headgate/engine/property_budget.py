"""Counts what the properties of subscriptions take, by tenant.

They stay in memory without a client that would be charged, once for each partition of a topic. A
request of 64 KiB is thus 8 MiB, so all those of a tenant have a bound (``broker``). The log has
those of topics that are being unloaded, so they count until the topic is loaded again or deleted:
else a tenant could pass the bound by unloading its topics.
"""

from __future__ import annotations

from typing import Protocol

from headgate.base.names import TopicName
from headgate.base.sparse_counter import SparseCounter
from headgate.base.text_memory import properties_bytes


class _Log(Protocol):
    number: int


class _Topic(Protocol):
    @property
    def name(self) -> TopicName:
        """Its name."""

    @property
    def log(self) -> _Log:
        """What the log keeps of it, by its number."""


class PropertyHolder(Protocol):
    """A subscription, as far as the budget needs it."""

    properties: dict[str, str]
    removed: bool

    @property
    def topic(self) -> _Topic:
        """Its topic."""


class PropertyBudget:
    """What the subscriptions of all topics have. Each counts as it was measured last, so that
    exactly this is given back."""

    __slots__ = ("_by_holder", "_by_unloaded", "by_tenant")

    def __init__(self) -> None:
        self._by_holder: dict[PropertyHolder, int] = {}
        self._by_unloaded: SparseCounter[int] = SparseCounter()
        """Bytes of topics that are not loaded, by their numbers."""
        self.by_tenant: SparseCounter[str] = SparseCounter()
        """Bytes of each tenant that has some."""

    def measure(self, subscription: PropertyHolder) -> None:
        """Count what a subscription has now; nothing after its removal."""
        self.forget(subscription)
        if subscription.properties and not subscription.removed:
            size_bytes = properties_bytes(subscription.properties)
            self._by_holder[subscription] = size_bytes
            self.by_tenant[subscription.topic.name.tenant] += size_bytes

    def of(self, subscription: PropertyHolder) -> int:
        """What a subscription counts."""
        return self._by_holder.get(subscription, 0)

    def forget(self, subscription: PropertyHolder) -> None:
        """A subscription was removed."""
        size_bytes = self._by_holder.pop(subscription, 0)
        self.by_tenant[subscription.topic.name.tenant] -= size_bytes

    def unloaded(self, subscription: PropertyHolder) -> None:
        """A durable subscription has ended with its topic, which stays in the log."""
        size_bytes = self._by_holder.pop(subscription, 0)
        if size_bytes:
            self._by_unloaded[subscription.topic.log.number] += size_bytes

    def loaded_or_deleted(self, name: TopicName, number: int) -> None:
        """A topic is being loaded, so that its subscriptions are measured again, or is gone."""
        self.by_tenant[name.tenant] -= self._by_unloaded.pop(number, 0)
