"""The sweeps that end what nobody needs any more: messages, subscriptions, topics."""

from __future__ import annotations

from typing import Protocol

from headgate.base.units import S_PER_MINUTE
from headgate.broker.registry import TopicRegistry
from headgate.broker.slices import Turns
from headgate.broker.sweeps.inactive_topics import InactiveTopics
from headgate.broker.sweeps.message_expiry import MessageExpiry
from headgate.broker.sweeps.subscription_changes import SubscriptionChanges
from headgate.broker.sweeps.subscription_expiry import SubscriptionExpiry
from headgate.broker.sweeps.sweeps import Sweeps
from headgate.broker.work.turn_meter import TurnMeter
from headgate.engine.engine import Engine
from headgate.metadata.catalog import Catalog
from headgate.policy.resolver import PolicyResolver
from headgate.policy.settings import Settings
from headgate.storage.managed_logs import ManagedLogs
from headgate.storage.metadata_writer import MetadataWriter


class EndingBroker(Turns, Protocol):
    """The broker, as far as these sweeps need it."""

    engine: Engine
    settings: Settings
    policies: PolicyResolver
    catalog: Catalog
    writer: MetadataWriter
    logs: ManagedLogs
    registry: TopicRegistry
    turns: TurnMeter

    @property
    def subscriptions(self) -> SubscriptionChanges:
        """What moves and deletes subscriptions."""


class Endings:
    """The three sweeps of one broker."""

    def __init__(self, broker: EndingBroker) -> None:
        self._settings = broker.settings
        engine, policies, subscriptions = broker.engine, broker.policies, broker.subscriptions
        self.messages = MessageExpiry(
            engine,
            broker.logs,
            broker.settings,
            policies.expiry.message_ttl,
            subscriptions,
            broker,
            broker.turns.measured,
        )
        self.subscriptions = SubscriptionExpiry(
            engine, broker.catalog, broker.writer, policies.expiry, subscriptions, broker
        )
        self.topics = InactiveTopics(engine, broker.settings, broker.registry, policies, broker)

    def add_to(self, sweeps: Sweeps) -> None:
        """Have them run."""
        settings = self._settings
        sweeps.add("the message expiry sweep", self.messages.expire, lambda: 1.0)
        sweeps.add(
            "the subscription expiry sweep",
            self.subscriptions.expire,
            lambda: settings.subscriptionExpiryCheckIntervalInMinutes * S_PER_MINUTE,
        )
        sweeps.add(
            "the inactive topic sweep",
            self.topics.delete,
            lambda: settings.brokerDeleteInactiveTopicsFrequencySeconds,
        )
