"""Counts what the properties of subscriptions take, by tenant.

They stay in memory without a client that would be charged, once for each partition of a topic. A
request of 64 KiB is thus 8 MiB, so all those of a tenant have a bound (``broker``).
"""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from headgate.base.names import TopicName
from headgate.base.text_memory import properties_bytes


class _Topic(Protocol):
    @property
    def name(self) -> TopicName:
        """Its name."""


class PropertyHolder(Protocol):
    """A subscription, as far as the budget needs it."""

    properties: dict[str, str]
    removed: bool

    @property
    def topic(self) -> _Topic:
        """Its topic."""


class PropertyBudget:
    """What the subscriptions of all loaded topics have. Each counts as it was measured last, so
    that exactly this is given back."""

    __slots__ = ("_by_holder", "by_tenant")

    def __init__(self) -> None:
        self._by_holder: dict[PropertyHolder, int] = {}
        self.by_tenant: Counter[str] = Counter()
        """Bytes of each tenant that has some."""

    def measure(self, subscription: PropertyHolder) -> None:
        """Count what a subscription has now; nothing after its removal."""
        self.forget(subscription)
        if subscription.properties and not subscription.removed:
            size_bytes = properties_bytes(subscription.properties)
            self._by_holder[subscription] = size_bytes
            self.by_tenant[subscription.topic.name.namespace.tenant] += size_bytes

    def of(self, subscription: PropertyHolder) -> int:
        """What a subscription counts."""
        return self._by_holder.get(subscription, 0)

    def forget(self, subscription: PropertyHolder) -> None:
        """A subscription was removed, or its topic is unloaded."""
        size_bytes = self._by_holder.pop(subscription, 0)
        if size_bytes:
            tenant = subscription.topic.name.namespace.tenant
            self.by_tenant[tenant] -= size_bytes
            if not self.by_tenant[tenant]:
                del self.by_tenant[tenant]
