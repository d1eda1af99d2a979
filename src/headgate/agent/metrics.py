"""The text of the agent's ``GET /metrics``: what it infers of clusters, and about itself.

Series that mean the same as a broker's have its name. A value that is not known has no sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Final

from headgate.agent import series
from headgate.agent.figures import SubjectFigures
from headgate.agent.quota_forecast import Level
from headgate.agent.series import AgentSeries
from headgate.base.largest import Largest
from headgate.base.names import parse_topic, tenant_of
from headgate.base.texts import label_value
from headgate.base.units import NS_PER_S
from headgate.flow.account.account import LABELS, State
from headgate.record.fields import STATE_FIELD_NAMES

SUBSCRIPTIONS_MAX: Final = 10_000
"""Subscriptions of one cluster with series: about 10 MB of text. Beyond it the tenants with most
leave room to the others: a client may have very many on one topic."""

QUOTAS_MAX: Final = 10_000
"""Quotas of one cluster with series, those that will be reached soonest."""

_QUIET: Final = frozenset({State.CAUGHT_UP, State.NOT_DUE, State.TRANSITION})
"""States that need no attention; a subscription that was only in these has no series."""


@dataclass(slots=True)
class SinkCounts:
    """What one place got of the telemetry, since the start."""

    records: int = 0
    bytes: int = 0
    failures: int = 0
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class PortCertificate:
    """The certificate of the agent's own port."""

    expires_at_s: int
    """Seconds since 1970."""
    reload_failures: int
    """Looks at changed files that cannot be used."""
    problem: str
    """Why the newest files are not in force, or that it ends soon; empty if neither."""


@dataclass(slots=True)
class ClusterCounts:
    """The agent's own figures about one cluster."""

    name: str
    last_look_age_s: float
    looks: int
    errors: Mapping[str, int]
    """By kind of look."""
    requests: int
    budget_per_s: int
    topics: int
    failures: int
    sinks: Mapping[str, SinkCounts] = field(default_factory=dict)
    files: int | None = None
    """None without files; so are the following."""
    files_removed: int = 0
    folder_bytes: int = 0


@dataclass(slots=True)
class ClusterPage:
    """All that the page says of one cluster."""

    counts: ClusterCounts
    levels: Sequence[Level]
    figures: Iterable[SubjectFigures]


def metrics_text(
    pages: Iterable[ClusterPage], certificate: PortCertificate | None = None
) -> Iterator[str]:
    """The page, in pieces of whole lines."""
    lines: dict[str, list[str]] = {each.name: [] for each in series.AGENT_SERIES}
    if certificate is not None:
        _add(lines, series.CERTIFICATE_EXPIRES, certificate.expires_at_s)
        _add(lines, series.RELOAD_FAILURES, certificate.reload_failures)
    for page in pages:
        cluster = label_value(page.counts.name)
        left_out = _add_states(lines, cluster, page.figures)
        _add_counts(lines, cluster, page.counts, left_out)
        _add_quotas(lines, cluster, page.levels)
    for each in series.AGENT_SERIES:
        if lines[each.name]:
            yield f"# TYPE {each.name} {each.type}\n"
            yield "".join(lines[each.name])


def _add_counts(
    lines: dict[str, list[str]], cluster: str, counts: ClusterCounts, left_out: int
) -> None:
    def add(of: AgentSeries, value: float, *labels: str) -> None:
        _add(lines, of, value, cluster, *labels)

    add(series.LAST_LOOK_AGE, counts.last_look_age_s)
    add(series.LOOKS, counts.looks)
    for kind, errors in counts.errors.items():
        add(series.LOOK_ERRORS, errors, kind)
    add(series.REQUESTS, counts.requests)
    add(series.BUDGET, counts.budget_per_s)
    add(series.TOPICS, counts.topics)
    add(series.LEFT_OUT, left_out)
    add(series.FAILURES, counts.failures)
    for sink, stored in counts.sinks.items():
        add(series.RECORDS, stored.records, sink)
        add(series.RECORD_BYTES, stored.bytes, sink)
        add(series.RECORD_FAILURES, stored.failures, sink)
        add(series.RECORDS_DROPPED, stored.dropped, sink)
    if counts.files is not None:
        add(series.RECORD_FILES, counts.files)
        add(series.FILES_REMOVED, counts.files_removed)
        add(series.FOLDER_BYTES, counts.folder_bytes)


def _add_quotas(lines: dict[str, list[str]], cluster: str, levels: Sequence[Level]) -> None:
    soonest = Largest[tuple[float, Level]](QUOTAS_MAX)
    for level in levels:
        if (seconds := level.seconds_to_breach) is not None:
            soonest.add(-seconds, (seconds, level))
    for seconds, level in soonest.items():
        of_topic = (*_topic_labels(cluster, level.topic), level.type.label)
        _add(lines, series.SECONDS_TO_BREACH, seconds, *of_topic)
        if level.period_s is not None:
            _add(lines, series.QUOTA_PERIOD, level.period_s, *of_topic)
        if level.subscription is not None:
            name = label_value(level.subscription)
            _add(lines, series.QUOTA_SUBSCRIPTION, 1, *of_topic, name)


def _add_states(
    lines: dict[str, list[str]], cluster: str, figures: Iterable[SubjectFigures]
) -> int:
    """The number of subscriptions that are left out."""
    shown = _FairLines(SUBSCRIPTIONS_MAX)
    for each in figures:
        if each.subscription is not None and _is_shown(each):
            shown.add(tenant_of(each.topic), _state_lines(cluster, each, each.subscription))
    lines[series.STATE_SECONDS.name] += shown.all()
    return shown.left_out


def _state_lines(cluster: str, figures: SubjectFigures, subscription: str) -> str:
    of_subscription = (*_topic_labels(cluster, figures.topic), label_value(subscription))
    found: list[str] = []
    for name, labels in zip(STATE_FIELD_NAMES, LABELS, strict=True):
        spent_ns = figures.values.get(name)
        if isinstance(spent_ns, int) and spent_ns:
            told = labels.state.value, labels.dimension, labels.consumer
            found.append(_line(series.STATE_SECONDS, spent_ns / NS_PER_S, *of_subscription, *told))
    return "".join(found)


class _FairLines:
    """The lines of a bounded number of subscriptions, of which no tenant takes the place of
    another one that has fewer."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._by_tenant: dict[str, list[str]] = {}
        self._sizes: list[tuple[int, str]] = []
        """A heap with the largest first. Those that a tenant had before are passed over."""
        self._count = 0
        self.left_out = 0

    def add(self, tenant: str, text: str) -> None:
        """Add the lines of one subscription, if there is room or another tenant has more."""
        own = self._by_tenant.setdefault(tenant, [])
        if self._count < self._most:
            self._count += 1
        else:
            self.left_out += 1
            largest = self._largest()
            others = self._by_tenant[largest]
            if len(others) <= len(own) + 1:
                return
            others.pop()
            heappush(self._sizes, (-len(others), largest))
        own.append(text)
        heappush(self._sizes, (-len(own), tenant))

    def all(self) -> list[str]:
        """All lines, by tenant."""
        return [text for found in self._by_tenant.values() for text in found]

    def _largest(self) -> str:
        while len(self._by_tenant[self._sizes[0][1]]) != -self._sizes[0][0]:
            heappop(self._sizes)
        return self._sizes[0][1]


def _is_shown(figures: SubjectFigures) -> bool:
    return any(
        figures.values.get(name)
        for name, labels in zip(STATE_FIELD_NAMES, LABELS, strict=True)
        if labels.state not in _QUIET
    )


def _topic_labels(cluster: str, topic: str) -> tuple[str, str, str]:
    return cluster, str(parse_topic(topic).namespace), label_value(topic)


def _add(lines: dict[str, list[str]], of: AgentSeries, value: float, *labels: str) -> None:
    lines[of.name].append(_line(of, value, *labels))


def _line(of: AgentSeries, value: float, *labels: str) -> str:
    pairs = ",".join(f'{name}="{text}"' for name, text in zip(of.labels, labels, strict=True))
    number = f"{value:.3f}" if isinstance(value, float) else str(value)
    return f"{of.name}{f'{{{pairs}}}' if pairs else ''} {number}\n"
