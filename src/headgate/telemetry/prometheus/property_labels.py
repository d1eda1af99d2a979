"""Properties of topics as labels of their series (PIP-447)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headgate.base.names import TopicName
from headgate.policy.metric_labels import METRIC_LABEL_CHARACTERS_MAX
from headgate.policy.setting_info import names_of
from headgate.policy.settings import Settings
from headgate.telemetry.prometheus.page import escape


class PropertyLabels:
    """The labels of one page. Only allowed properties have one, so their number is bounded."""

    def __init__(
        self, settings: Settings, properties_of: Callable[[TopicName], Mapping[str, str]]
    ) -> None:
        """``properties_of`` gives the properties of a topic."""
        is_on = settings.exposeCustomTopicMetricLabelsEnabled
        names = names_of(settings.allowedTopicPropertiesForMetrics) if is_on else ()
        self._names = tuple(sorted(set(names)))
        self._properties_of = properties_of

    def of(self, topic: TopicName) -> str:
        """The labels of a topic, each with a comma before it; those that it lacks are left out."""
        if not self._names:
            return ""
        found = self._properties_of(topic)
        return "".join(
            f',{name}="{escape(found[name][:METRIC_LABEL_CHARACTERS_MAX])}"'
            for name in self._names
            if name in found
        )
