"""Properties of topics as labels of their series, and attributes of their metrics (PIP-447)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from headgate.base.metric_labels import METRIC_LABEL_CHARACTERS_MAX
from headgate.base.names import NamespaceName, TopicName
from headgate.metadata.policies import NamespacePolicies
from headgate.policy.setting_info import names_of
from headgate.policy.settings import Settings

_NO_LABELS: Mapping[str, str] = {}


class Properties(Protocol):
    """The metadata, as far as labels need it."""

    def topic_properties(self, topic: TopicName) -> Mapping[str, str]:
        """The properties of a topic."""

    def namespace_policies(self, namespace: NamespaceName) -> NamespacePolicies:
        """The policies that are set on a namespace."""


class PropertyLabels:
    """The labels of one page or export. Only allowed properties have one, so their number is
    bounded. A namespace may allow others than the broker does, or none."""

    def __init__(self, settings: Settings, properties: Properties) -> None:
        self._is_on = settings.exposeCustomTopicMetricLabelsEnabled
        self._of_broker = _ordered(names_of(settings.allowedTopicPropertyKeysForMetrics))
        self._of_namespaces: dict[NamespaceName, tuple[str, ...]] = {}
        self._properties = properties

    def of(self, topic: TopicName) -> Mapping[str, str]:
        """The labels of a topic by their names, with short values. Those that it lacks are left
        out."""
        if not self._is_on:
            return _NO_LABELS
        names = self._names(topic.namespace)
        if not names:
            return _NO_LABELS
        found = self._properties.topic_properties(topic)
        return {name: found[name][:METRIC_LABEL_CHARACTERS_MAX] for name in names if name in found}

    def _names(self, namespace: NamespaceName) -> tuple[str, ...]:
        names = self._of_namespaces.get(namespace)
        if names is None:
            own = self._properties.namespace_policies(
                namespace
            ).allowed_topic_property_keys_for_metrics
            names = self._of_broker if own is None else _ordered(own)
            self._of_namespaces[namespace] = names
        return names


def _ordered(names: tuple[str, ...] | list[str]) -> tuple[str, ...]:
    return tuple(sorted(set(names)))
