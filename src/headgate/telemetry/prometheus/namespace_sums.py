"""Sums over the topics of each namespace, with ``exposeTopicLevelMetricsInPrometheus=false``.

They have the names of the topics' series, without the label of the topic, as Pulsar's have. With
``headgateMetricsSubjectsMax`` they are those of the topics that have no series of their own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from headgate.base.park_cause import ParkCause
from headgate.base.sliced import Sliced
from headgate.telemetry.prometheus.parked_lines import cause_label
from headgate.telemetry.prometheus.quota_lines import QUOTA_TYPES
from headgate.telemetry.prometheus.series.namespaces import (
    NAMESPACE_SERIES,
    SUMMED_SUBSCRIPTION_NAMES,
    SUMMED_TOPIC_NAMES,
)
from headgate.telemetry.prometheus.series.parked import PARKED_BYTES_SERIES, PARKED_MESSAGES_SERIES
from headgate.telemetry.prometheus.series.quotas import EVICTIONS_SERIES
from headgate.telemetry.prometheus.series.subscriptions import SUBSCRIPTION_SERIES
from headgate.telemetry.prometheus.series.topics import TOPIC_SERIES
from headgate.telemetry.prometheus.series.writes import WRITE_SERIES
from headgate.telemetry.prometheus.values import (
    SUBSCRIPTIONS_PER_YIELD,
    Number,
    subscription_values,
    write_values,
)

if TYPE_CHECKING:
    from headgate.engine.topic import Topic

_OF_TOPIC: Final = tuple(
    (place, series) for place, series in enumerate(TOPIC_SERIES)
    if series.name in SUMMED_TOPIC_NAMES
)  # fmt: skip
_OF_SUBSCRIPTION: Final = tuple(
    (place, series) for place, series in enumerate(SUBSCRIPTION_SERIES)
    if series.name in SUMMED_SUBSCRIPTION_NAMES
)  # fmt: skip
_BACKLOG: Final = "pulsar_msg_backlog"
"""Pulsar gives this sum one more label."""

_SERIES: Final = (
    NAMESPACE_SERIES[0],
    *(series for _, series in _OF_TOPIC),
    *(series for _, series in _OF_SUBSCRIPTION),
    *WRITE_SERIES,
)
_PARKED: Final = (PARKED_MESSAGES_SERIES, PARKED_BYTES_SERIES)


class NamespaceSums:
    """Sums of one page."""

    def __init__(self) -> None:
        self._sums: dict[str, list[Number]] = {}
        self._parked: defaultdict[tuple[str, ParkCause], list[int]] = defaultdict(lambda: [0, 0])
        """Messages and bytes that wait now, by namespace and cause."""

    def add(self, topic: Topic, values: tuple[Number, ...]) -> Sliced[None]:
        """Add a topic; ``values`` are those of :data:`TOPIC_SERIES`. Yields while it looks at the
        subscriptions."""
        namespace = str(topic.name.namespace)
        own: list[Number] = [1, *(values[place] for place, _ in _OF_TOPIC)]
        of_subscriptions: list[Number] = [0] * len(_OF_SUBSCRIPTION)
        for number, subscription in enumerate(list(topic.subscriptions.values()), start=1):
            part = subscription_values(subscription)
            for index, (place, _) in enumerate(_OF_SUBSCRIPTION):
                of_subscriptions[index] += part[place]
            if number % SUBSCRIPTIONS_PER_YIELD == 0:
                yield
        own += of_subscriptions
        own += write_values(topic)
        known = self._sums.get(namespace)
        self._sums[namespace] = (
            own if known is None else [a + b for a, b in zip(known, own, strict=True)]
        )
        if topic.publishing.parking is not None:
            for cause in ParkCause:
                waiting = topic.publishing.parking.waiting(cause)
                if waiting.messages:
                    parked = self._parked[namespace, cause]
                    parked[0] += waiting.messages
                    parked[1] += waiting.bytes

    def samples(
        self,
        evictions: Mapping[str, Sequence[int]],
        labels_of: Callable[[str], str],
        number: Callable[[Number], str],
        *,
        is_rest: bool = False,
    ) -> list[tuple[str, str]]:
        """Names, each with a whole line. ``is_rest``: other topics of the namespaces have series of
        their own, so that the number of topics is not told here.

        ``evictions`` are those of each namespace since the start: a sum over its topics would fall
        with each unloaded topic. ``labels_of`` gives a namespace's labels, still open.
        """
        found: list[tuple[str, str]] = []
        for namespace, sums in self._sums.items():
            labels = labels_of(namespace)
            for series, value in islice(zip(_SERIES, sums, strict=True), int(is_rest), None):
                more = ',remote_cluster="local"' if series.name == _BACKLOG else ""
                found.append((series.name, f"{series.name}{labels}{more}}} {number(value)}"))
        for (namespace, cause), parked in self._parked.items():
            labels, end = labels_of(namespace), cause_label(cause)
            for series, amount in zip(_PARKED, parked, strict=True):
                found.append((series.name, f"{series.name}{labels}{end}{amount}"))
        name = EVICTIONS_SERIES.name
        told = self._sums.keys() if is_rest else self._sums.keys() | evictions.keys()
        for namespace in told:
            labels = labels_of(namespace)
            for end, acts in zip(QUOTA_TYPES, evictions.get(namespace, (0, 0)), strict=True):
                found.append((name, f"{name}{labels}{end}{acts}"))
        return found
