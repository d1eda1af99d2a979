"""The limits on numbers of clients and subscriptions that policies and settings define."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, cast

from headgate.base.names import TopicName
from headgate.metadata.catalog import Catalog
from headgate.metadata.policies import COUNT_NAMES, TOPICS_MAX, CountField
from headgate.policy.settings import Settings


class CountTable:
    """The limits for each name; a partition has the limits of its topic."""

    def __init__(
        self, catalog: Catalog, settings: Settings, system_topics: Collection[str] = ()
    ) -> None:
        """``system_topics`` are full names; these topics have no limits."""
        self._catalog = catalog
        self._settings = settings
        self._system_topics = system_topics

    def of_address(self, topic: TopicName, kind: Literal["Producers", "Consumers"]) -> int:
        """The most clients of a topic from one IP address; 0 is no limit."""
        if topic.full in self._system_topics:
            return 0
        return cast(int, getattr(self._settings, f"maxSameAddress{kind}PerTopic"))

    def of_topic(self, topic: TopicName, field: CountField) -> int:
        """One limit of a topic or partition: its topic policy, else its namespace policy, else the
        broker's setting, which also bounds the policies unless they may raise it. 0 is no limit.
        """
        if topic.full in self._system_topics:
            return 0
        catalog = self._catalog
        for policies in (
            catalog.topic_policies(topic),
            catalog.namespace_policies(topic.namespace),
        ):
            count_max = cast(int | None, getattr(policies, field))
            if count_max is not None:
                return self._of_policy(count_max, COUNT_NAMES[field])
        return cast(int, getattr(self._settings, COUNT_NAMES[field]))

    def topics_of_namespace(self, policy: int | None) -> int:
        """The most topics of a namespace with this policy; 0 or less is no limit."""
        if policy is None:
            return self._settings.maxTopicsPerNamespace
        return self._of_policy(policy, COUNT_NAMES[TOPICS_MAX])

    def subscriptions_of_tenant(self) -> int:
        """The most durable subscriptions of a tenant; 0 or less is no limit."""
        return self._settings.headgateMaxSubscriptionsPerTenant

    def _of_policy(self, policy: int, name: str) -> int:
        """The limit in force where a policy sets one, and the broker's setting ``name``, too."""
        if self._settings.headgatePoliciesRaiseCounts:
            return policy
        setting = cast(int, getattr(self._settings, name))
        return min((count for count in (policy, setting) if count > 0), default=0)
