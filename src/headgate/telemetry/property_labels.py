"""Properties of topics as labels of their series, and attributes of their metrics (PIP-447)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headgate.base.names import TopicName
from headgate.policy.metric_labels import METRIC_LABEL_CHARACTERS_MAX
from headgate.policy.setting_info import names_of
from headgate.policy.settings import Settings

_NO_LABELS: Mapping[str, str] = {}


class PropertyLabels:
    """The labels of one page or export. Only allowed properties have one, so their number is
    bounded."""

    def __init__(
        self, settings: Settings, properties_of: Callable[[TopicName], Mapping[str, str]]
    ) -> None:
        """``properties_of`` gives the properties of a topic."""
        is_on = settings.exposeCustomTopicMetricLabelsEnabled
        names = names_of(settings.allowedTopicPropertiesForMetrics) if is_on else ()
        self._names = tuple(sorted(set(names)))
        self._properties_of = properties_of

    def of(self, topic: TopicName) -> Mapping[str, str]:
        """The labels of a topic by their names, with short values. Those that it lacks are left
        out."""
        if not self._names:
            return _NO_LABELS
        found = self._properties_of(topic)
        return {
            name: found[name][:METRIC_LABEL_CHARACTERS_MAX] for name in self._names if name in found
        }
