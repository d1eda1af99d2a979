"""Refuses producers, consumers and subscriptions beyond the limits on their number.

The broker looks a limit up when a client wants to connect, so a new limit acts at once. Those that
are connected stay when a limit is lowered below their number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from headgate.base.memory_room import MemoryRoom
from headgate.base.names import TopicName
from headgate.broker.connection.address_counts import host_of
from headgate.engine.errors import ConsumerBusyError, ProducerBusyError, TooManySubscriptionsError
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.engine.types import SubscriptionType
from headgate.metadata.errors import no_memory_reason
from headgate.policy.count_table import CountTable

CONSUMERS_OF_SUBSCRIPTION_MAX: Final = 50_000
"""Consumers of one subscription, whatever policies and settings say. A dispatch that finds none of
them ready looks at each, 0.26 us, and so does an acknowledgement of what none of them holds."""


class CountLimits:
    """The limits on numbers of one broker. The texts of the refusals are Pulsar's."""

    def __init__(self, table: CountTable, memory_room: MemoryRoom) -> None:
        """``memory_room``: what the memory of the process leaves to tenants."""
        self._table = table
        self._memory_room = memory_room

    def check_producer(self, topic: Topic) -> None:
        """Check that a topic may have one more producer.

        Raises:
            ProducerBusyError: it may not.
        """
        count_max = self._table.of_topic(topic.name, "max_producers_per_topic")
        if 0 < count_max <= len(topic.producers):
            raise ProducerBusyError(f"Topic '{topic.name}' reached max producers limit")

    def check_producer_address(self, topic: Topic, address: str) -> None:
        """Check that a topic may have one more producer from the host of ``address``.

        Raises:
            ProducerBusyError: it may not.
        """
        count_max = self._table.of_address(topic.name, "Producers")
        if 0 < count_max <= _count_of(address, (p.address for p in topic.producers.values())):
            raise ProducerBusyError(
                f"Topic '{topic.name}' reached max same address producers limit"
            )

    def check_consumer_address(self, topic: Topic, address: str) -> None:
        """Check that a topic may have one more consumer from the host of ``address``.

        Raises:
            ConsumerBusyError: it may not.
        """
        count_max = self._table.of_address(topic.name, "Consumers")
        if count_max <= 0:
            return
        present = (c.address for s in topic.subscriptions.values() for c in s.consumers)
        if _count_of(address, present) >= count_max:
            raise ConsumerBusyError("Topic reached max same address consumers limit")

    def check_consumer(
        self, topic: Topic, subscription: Subscription | None, kind: SubscriptionType
    ) -> None:
        """Check that a topic, and its ``subscription`` if that exists, may have one more consumer.
        An exclusive subscription has one consumer in any case.

        Raises:
            ConsumerBusyError: it may not.
        """
        count_max = self._table.of_topic(topic.name, "max_consumers_per_topic")
        if 0 < count_max <= topic.consumers_count:
            raise ConsumerBusyError("Topic reached max consumers limit")
        if subscription is None or kind is SubscriptionType.EXCLUSIVE:
            return
        count_max = self._table.of_topic(topic.name, "max_consumers_per_subscription")
        if 0 < count_max <= len(subscription.consumers):
            raise ConsumerBusyError("Subscription reached max consumers limit")

    def check_crowd(self, subscription: Subscription) -> None:
        """Check that a subscription has less than :data:`CONSUMERS_OF_SUBSCRIPTION_MAX` consumers.

        Raises:
            ConsumerBusyError: it may not have one more.
        """
        if len(subscription.consumers) >= CONSUMERS_OF_SUBSCRIPTION_MAX:
            raise ConsumerBusyError(
                f"Subscription {subscription.name} has {CONSUMERS_OF_SUBSCRIPTION_MAX} consumers: "
                "no more are allowed"
            )

    def check_subscription(self, topic: Topic, creating: int, of_tenant: int) -> None:
        """Check that a topic may have one more durable subscription; ``creating`` are those of it
        that are being stored, ``of_tenant`` all that its tenant has, with those.

        Raises:
            TooManySubscriptionsError: it may not.
        """
        count_max = self._table.of_topic(topic.name, "max_subscriptions_per_topic")
        if 0 < count_max <= topic.durable_count + creating:
            raise TooManySubscriptionsError(
                f"Exceed the maximum number of subscriptions of the topic: {topic.name}"
            )
        count_max = self._table.subscriptions_of_tenant()
        if 0 < count_max <= of_tenant and not topic.is_system:
            raise TooManySubscriptionsError(_too_many_of_tenant(topic.name, count_max))
        if not (topic.is_system or self._memory_room.may_keep_more(topic.name.tenant)):
            raise TooManySubscriptionsError(no_memory_reason(topic.name.tenant))

    def check_partitions(
        self, topic: TopicName, added: int, count: Callable[[], int], of_tenant: int
    ) -> int:
        """Check that a topic may have so many partitions more. Each gets as many subscriptions as
        ``count`` returns, which is called if there is a limit. ``of_tenant`` are all that its
        tenant has. Returns how many those partitions get, 0 without a limit.

        Raises:
            TooManySubscriptionsError: it may not.
        """
        if added and not self._memory_room.may_keep_more(topic.tenant) and count():
            raise TooManySubscriptionsError(no_memory_reason(topic.tenant))
        topic_max = self._table.of_topic(topic, "max_subscriptions_per_topic")
        tenant_max = self._table.subscriptions_of_tenant()
        if topic_max <= 0 and tenant_max <= 0:
            return 0
        subscriptions = count()
        if 0 < topic_max < subscriptions:
            raise TooManySubscriptionsError(
                f"New partitions of {topic} would get the {subscriptions} subscriptions of the "
                f"others: {topic_max} are allowed for each"
            )
        if subscriptions and 0 < tenant_max < of_tenant + added * subscriptions:
            raise TooManySubscriptionsError(_too_many_of_tenant(topic, tenant_max))
        return added * subscriptions


def _too_many_of_tenant(topic: TopicName, count_max: int) -> str:
    return (
        f"Tenant {topic.tenant} may have {count_max} subscriptions on all of its topics "
        "together, where each partition has its own (headgateMaxSubscriptionsPerTenant)"
    )


def _count_of(address: str, others: Iterable[str]) -> int:
    """How many of ``others`` are from the host of ``address``."""
    host = f"/{host_of(address)}:"
    return sum(other.startswith(host) for other in others)
