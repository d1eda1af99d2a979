"""The rules about schemas that policies and settings define."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.base.names import NamespaceName, TopicName
from headgate.base.schema_types import CompatibilityStrategy
from headgate.metadata.catalog import Catalog
from headgate.metadata.policies import NO_TOPIC_POLICIES, NamespacePolicies, TopicPolicies
from headgate.policy.settings import Settings


@dataclass(frozen=True, slots=True)
class SchemaRules:
    """What is in force for the schema of one topic."""

    strategy: CompatibilityStrategy
    """Which definitions may follow those that the topic has; never UNDEFINED."""
    auto_update: bool
    """Whether clients may bring new definitions."""
    validation_enforced: bool
    """Whether producers without a schema are refused once the topic has one."""


class SchemaTable:
    """The rules for each name; a partition has those of its topic."""

    def __init__(self, catalog: Catalog, settings: Settings) -> None:
        self._catalog = catalog
        self._settings = settings

    def of_topic(self, topic: TopicName) -> SchemaRules:
        """The rules of a topic or partition. The most specific policy that is set counts; but a
        broker that enforces validation does so everywhere, as in Pulsar."""
        return self._rules(topic.namespace, self._catalog.topic_policies(topic))

    def of_namespace(self, namespace: NamespaceName) -> SchemaRules:
        """The rules of the topics of a namespace that have no policies."""
        return self._rules(namespace, NO_TOPIC_POLICIES)

    def _rules(self, name: NamespaceName, own: TopicPolicies) -> SchemaRules:
        namespace = self._catalog.namespace_policies(name)
        enforced = own.schema_validation_enforced
        if enforced is None:
            enforced = namespace.schema_validation_enforced
        auto_update = namespace.is_allow_auto_update_schema
        if auto_update is None:
            auto_update = self._settings.isAllowAutoUpdateSchemaEnabled
        return SchemaRules(
            strategy=_first_defined(
                own.schema_compatibility_strategy,
                _strategy_of(namespace),
                CompatibilityStrategy(self._settings.schemaCompatibilityStrategy),
                CompatibilityStrategy.FULL,
            ),
            auto_update=auto_update,
            validation_enforced=enforced or self._settings.isSchemaValidationEnforced,
        )


def _strategy_of(policies: NamespacePolicies) -> CompatibilityStrategy | None:
    """The strategy that a namespace sets: that of its older policy if the newer one is not set."""
    found = policies.schema_compatibility_strategy
    older = policies.schema_auto_update_compatibility_strategy
    if found in (None, CompatibilityStrategy.UNDEFINED) and older is not None:
        return older.strategy
    return found


def _first_defined(*strategies: CompatibilityStrategy | None) -> CompatibilityStrategy:
    return next(
        found
        for found in strategies
        if found is not None and found is not CompatibilityStrategy.UNDEFINED
    )
