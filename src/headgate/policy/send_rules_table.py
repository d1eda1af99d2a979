"""The rules for SENDs that policies and settings define."""

from __future__ import annotations

from collections.abc import Collection

from headgate.base.names import TopicName
from headgate.engine.send_rules import SendRules
from headgate.metadata.catalog import Catalog
from headgate.policy.settings import Settings


class SendRulesTable:
    """The rules for each topic; a partition has those of its topic."""

    def __init__(
        self, catalog: Catalog, settings: Settings, system_topics: Collection[str] = ()
    ) -> None:
        """``system_topics`` are full names; these topics have no rules."""
        self._catalog = catalog
        self._settings = settings
        self._system_topics = system_topics

    def of_topic(self, topic: TopicName) -> SendRules | None:
        """The rules of a topic; None without any."""
        if topic.full in self._system_topics:
            return None
        catalog = self._catalog
        encrypted = (
            self._settings.encryptionRequireOnProducer
            or catalog.namespace_policies(topic.namespace).encryption_required
        )
        bytes_max = catalog.topic_policies(topic).max_message_size or 0
        return SendRules(encrypted, bytes_max) if encrypted or bytes_max else None
