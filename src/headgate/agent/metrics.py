"""The text of the agent's ``GET /metrics``: what it infers of clusters, and about itself.

Series that mean the same as a broker's have its name. A value that is not known has no sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from headgate.agent import series
from headgate.agent.configuration import CLUSTERS_MAX
from headgate.agent.fair_lines import FairLines, Owner
from headgate.agent.figures import SubjectFigures
from headgate.agent.quota_forecast import Level
from headgate.agent.series import AgentSeries
from headgate.base.fair_largest import FairLargest
from headgate.base.names import parse_topic, tenant_of
from headgate.base.texts import label_value
from headgate.base.units import MIB, NS_PER_S
from headgate.flow.account.account import LABELS, State
from headgate.record.fields import STATE_FIELD_NAMES

SUBSCRIPTIONS_MAX: Final = 10_000
"""Subscriptions of one cluster with series: about 10 MB of text. Beyond it the tenants with most
leave room to the others: a client may have very many on one topic."""

QUOTAS_MAX: Final = 10_000
"""Quotas of one cluster with series, of each tenant those that will be reached soonest. Beyond it
the tenants with most leave room to the others: one may have very many that are reached."""

STATES_BYTES_MAX: Final = 16 * MIB
"""All series of subscriptions of all clusters, which clients give long names."""
QUOTAS_BYTES_MAX: Final = 8 * MIB
"""The same of quotas. Both together must be less than the port lets an answer be."""

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
    states = FairLines(SUBSCRIPTIONS_MAX * CLUSTERS_MAX, STATES_BYTES_MAX)
    quotas = FairLines(QUOTAS_MAX * CLUSTERS_MAX, QUOTAS_BYTES_MAX)
    clusters = []
    for page in pages:
        cluster = label_value(page.counts.name)
        clusters.append(cluster)
        _add_counts(lines, cluster, page.counts)
        _add_states(states, cluster, page.figures)
        _add_quotas(quotas, cluster, page.levels)
    for cluster in clusters:
        _add(lines, series.LEFT_OUT, states.left_out[cluster], cluster)
    lines[series.STATE_SECONDS.name] += (text for _, text in states)
    for _, text in quotas:
        for line in text.split("\n")[:-1]:  # names may have other ends of lines
            lines[line.partition("{")[0]].append(f"{line}\n")
    for each in series.AGENT_SERIES:
        if lines[each.name]:
            yield f"# TYPE {each.name} {each.type}\n"
            yield "".join(lines[each.name])


def _add_counts(lines: dict[str, list[str]], cluster: str, counts: ClusterCounts) -> None:
    def add(of: AgentSeries, value: float, *labels: str) -> None:
        _add(lines, of, value, cluster, *labels)

    add(series.LAST_LOOK_AGE, counts.last_look_age_s)
    add(series.LOOKS, counts.looks)
    for kind, errors in counts.errors.items():
        add(series.LOOK_ERRORS, errors, kind)
    add(series.REQUESTS, counts.requests)
    add(series.BUDGET, counts.budget_per_s)
    add(series.TOPICS, counts.topics)
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


def _add_quotas(lines: FairLines, cluster: str, levels: Sequence[Level]) -> None:
    soonest = FairLargest[tuple[float, Level]](QUOTAS_MAX)
    for level in levels:
        if (seconds := level.seconds_to_breach) is not None:
            soonest.add(tenant_of(level.topic), -seconds, (seconds, level))
    for tenant, found in soonest.taken().items():
        owner = Owner(cluster, tenant)
        for _, (seconds, level) in found:
            lines.add(owner, _quota_lines(cluster, seconds, level))


def _quota_lines(cluster: str, seconds: float, level: Level) -> str:
    of_topic = (*_topic_labels(cluster, level.topic), level.type.label)
    text = _line(series.SECONDS_TO_BREACH, seconds, *of_topic)
    if level.period_s is not None:
        text += _line(series.QUOTA_PERIOD, level.period_s, *of_topic)
    if level.subscription is not None:
        name = label_value(level.subscription)
        text += _line(series.QUOTA_SUBSCRIPTION, 1, *of_topic, name)
    return text


def _add_states(lines: FairLines, cluster: str, figures: Iterable[SubjectFigures]) -> None:
    own = FairLines(SUBSCRIPTIONS_MAX, STATES_BYTES_MAX)
    for each in figures:
        if each.subscription is not None and _is_shown(each):
            owner = Owner(cluster, tenant_of(each.topic))
            own.add(owner, _state_lines(cluster, each, each.subscription))
    lines.left_out += own.left_out
    for owner, text in own:
        lines.add(owner, text)


def _state_lines(cluster: str, figures: SubjectFigures, subscription: str) -> str:
    of_subscription = (*_topic_labels(cluster, figures.topic), label_value(subscription))
    found: list[str] = []
    for name, labels in zip(STATE_FIELD_NAMES, LABELS, strict=True):
        spent_ns = figures.values.get(name)
        if isinstance(spent_ns, int) and spent_ns:
            told = labels.state.value, labels.dimension, labels.consumer
            found.append(_line(series.STATE_SECONDS, spent_ns / NS_PER_S, *of_subscription, *told))
    return "".join(found)


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
