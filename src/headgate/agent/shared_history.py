"""A cluster's history as several threads use it: looks come from one, questions from others.

Each call takes a lock. Figures are read topic by topic, so that looks wait for one topic at most.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, Protocol

import msgspec

from headgate.agent.figures import SubjectFigures
from headgate.agent.history_figures import TopicTotals, figures_of
from headgate.agent.inferred_topic import InferredTopic
from headgate.agent.limit_reports import limits_report
from headgate.agent.looks import LimitsLook, ProofLook, QuotaLook, TopicLook
from headgate.agent.quota_forecast import Level, quota_state
from headgate.agent.quota_guard import QuotaGuard
from headgate.agent.quota_outlooks import with_outlooks
from headgate.agent.stats_reports import stats_report
from headgate.agent.storage_reports import storage_report
from headgate.base.errors import HeadgateError
from headgate.base.units import NS_PER_S
from headgate.explain.delivery import Instant
from headgate.flow.quota.backlog_quota import QuotaType
from headgate.record.codec import Value


class UnknownTopicError(HeadgateError):
    """The agent has not seen a topic; the text is one sentence."""


class JudgedHistory(Protocol):
    """The last hour of a cluster, as ``cluster_history`` keeps it: what looks are told to, and what
    they say together."""

    def note_look(self, look: TopicLook) -> None:
        """The figures of a topic or partition."""

    def note_proof(self, proof: ProofLook) -> None:
        """Where the cursors of a topic or partition are."""

    def note_limits(self, limits: LimitsLook) -> None:
        """The limits in force for a topic."""

    def note_gone(self, topic: str, at_ns: int) -> None:
        """No broker has the topic any more."""

    def note_unreachable(self, broker: str, at_ns: int, reason: str) -> None:
        """A broker does not answer, so its topics are not known."""

    def suspects(self, count: int, now_ns: int) -> list[str]:
        """Topics and partitions that are worth a close look, the worst first."""
        ...

    def proofs_wanted(self, count: int, now_ns: int) -> list[str]:
        """Those whose cursors are worth a look."""
        ...

    def limits_wanted(self, count: int, now_ns: int) -> list[str]:
        """Those whose limits matter."""
        ...

    def forget(self, before_ns: int) -> None:
        """Forget what is older."""

    def top(self, count: int, instant: Instant, *, with_timeline: bool = False) -> dict[str, Any]:
        """The JSON of explain without a topic."""
        ...

    def topic(self, name: str, instant: Instant, *, with_timeline: bool = False) -> dict[str, Any]:
        """Raises :class:`LookupError` for one that no look has shown."""
        ...

    def partitions(self, topic: str) -> list[str]:
        """The partitions that it knows of a partitioned topic, by full name, in order."""
        ...

    @property
    def topics(self) -> Mapping[str, InferredTopic]:
        """The topics and partitions that it knows, by full name."""
        ...

    @property
    def unreachable(self) -> Mapping[str, tuple[int, str]]:
        """Brokers that did not answer the last request: since when (monotonic), and why."""
        ...


_LIMIT_FIELDS: Final = {
    QuotaType.SIZE: ("quota_size_limit_bytes", 1),
    QuotaType.TIME: ("quota_time_limit_ns", NS_PER_S),
}
"""The field of a topic's row with a quota's limit, and how many of its unit are one of ours."""


class SharedHistory:
    """A history, the forecast of quotas beside it, and how much was looked at."""

    def __init__(self, history: JudgedHistory) -> None:
        self._history = history
        self._quotas = QuotaGuard()
        self._forecast = self._quotas.forecast
        self._totals = TopicTotals()
        self._lock = threading.Lock()
        self.looks = 0
        """Looks at topics and partitions, those of surveys included."""
        self.unreachable = 0
        """Looks that no broker answered."""
        self.last_look_ns: int | None = None
        """Monotonic; None before the first."""

    # -- what the scout tells ------------------------------------------------------------------

    def note_look(self, look: TopicLook) -> None:
        """A topic or partition was looked at."""
        with self._lock:
            known = self._history.topics.get(look.topic)
            before = None if known is None else known.look
            self._history.note_look(look)
            if self._history.topics[look.topic].look is look:
                # The history ignores a survey that may be older than the look before.
                self._quotas.note_look(look, before)
                self._totals.note_look(look)
            self.looks += 1
            self.last_look_ns = max(look.at_ns, self.last_look_ns or look.at_ns)

    def note_proof(self, proof: ProofLook) -> None:
        """The cursors of a topic were looked at."""
        with self._lock:
            self._history.note_proof(proof)

    def note_limits(self, limits: LimitsLook) -> None:
        """The limits of a topic were read."""
        with self._lock:
            self._history.note_limits(limits)

    def note_gone(self, topic: str, at_ns: int) -> None:
        """A topic is not there any more."""
        with self._lock:
            self._history.note_gone(topic, at_ns)
            self._quotas.note_gone(topic)

    def note_quotas(self, quotas: QuotaLook) -> None:
        """The quotas of a namespace were read."""
        with self._lock:
            self._quotas.note_quotas(quotas)

    def note_unreachable(self, broker: str, at_ns: int, reason: str) -> None:
        """A broker did not answer."""
        with self._lock:
            self._history.note_unreachable(broker, at_ns, reason)
            self.unreachable += 1

    def suspects(self, count: int, now_ns: int) -> list[str]:
        """Topics that are worth a close look: for their quotas, then for their backlogs."""
        with self._lock:
            near = self._quotas.suspects(count, now_ns, self._history.topics)
            found = self._history.suspects(count, now_ns)
        return list(dict.fromkeys([*near, *found]))[:count]

    def quotas_wanted(self, count: int, now_ns: int) -> list[str]:
        """Namespaces whose quotas are wanted."""
        with self._lock:
            return self._quotas.quotas_wanted(count, now_ns)

    def proofs_wanted(self, count: int, now_ns: int) -> list[str]:
        """Topics whose cursors are worth a look."""
        with self._lock:
            return self._history.proofs_wanted(count, now_ns)

    def limits_wanted(self, count: int, now_ns: int) -> list[str]:
        """Topics whose limits are wanted."""
        with self._lock:
            return self._history.limits_wanted(count, now_ns)

    def forget(self, before_ns: int) -> None:
        """Forget what was not seen since an instant."""
        with self._lock:
            self._history.forget(before_ns)
            self._quotas.forget(before_ns, self._history.topics)
            self._totals.forget(before_ns, self._history.topics)

    # -- what others ask -----------------------------------------------------------------------

    def top(self, count: int, instant: Instant, *, with_timeline: bool = False) -> dict[str, Any]:
        """The JSON of explain without a topic."""
        with self._lock:
            report = self._history.top(count, instant, with_timeline=with_timeline)
            ahead = self._forecast.ahead()
        subscriptions = with_outlooks(report["subscriptions"], ahead)
        quotas = [{"topic": each.topic, "quota": _quota_report(each)} for each in ahead[:count]]
        return report | {"quotas": quotas, "subscriptions": subscriptions}

    def topic(self, name: str, instant: Instant, *, with_timeline: bool = False) -> dict[str, Any]:
        """The JSON of explain for a topic.

        Raises:
            UnknownTopicError: it was not seen.
        """
        with self._lock:
            try:
                report = self._history.topic(name, instant, with_timeline=with_timeline)
            except LookupError as error:
                raise _unknown_topic(name) from error
            known = self._forecast.of_topic(name)
            levels = known or self._levels_of_partitions(name)
            if not known:
                known = _fullest(levels)
        subscriptions = with_outlooks(report["subscriptions"], levels)
        quotas = [_quota_report(each) for each in known]
        return report | {"quotas": quotas, "subscriptions": subscriptions}

    def _levels_of_partitions(self, name: str) -> list[Level]:
        parts = self._history.partitions(name)
        return [level for part in parts for level in self._forecast.of_topic(part)]

    def partitions(self, name: str) -> list[str]:
        """The full names of a partitioned topic's partitions that are known, in order."""
        with self._lock:
            return self._history.partitions(name)

    def topics(self) -> list[str]:
        """The full names of the topics and partitions that are known."""
        with self._lock:
            return list(self._history.topics)

    def limits(self, cluster: str, count: int, instant: Instant) -> dict[str, Any]:
        """The JSON of the limits in force that are known."""
        with self._lock:
            return limits_report(cluster, self._history.topics.values(), count, instant)

    def storage(self, cluster: str, count: int, instant: Instant) -> dict[str, Any]:
        """The JSON of what takes the disks."""
        with self._lock:
            return storage_report(cluster, self._history.topics.values(), count, instant)

    def stats(self, name: str) -> dict[str, Any]:
        """The last look at a topic, or at all of its partitions, as Pulsar's ``stats``.

        Raises:
            UnknownTopicError: it was not seen.
        """
        with self._lock:
            known = self._history.topics
            found = [known[each] for each in self._history.partitions(name)]
            if not found and name in known:
                found = [known[name]]
            if not found:
                raise _unknown_topic(name)
            return stats_report(found)

    def backlogs(self, now_ns: int) -> tuple[int, int | None]:
        """Messages and bytes of all backlogs; the bytes are those of each topic's slowest
        subscription, None if one does not tell them."""
        messages, size = 0, 0
        are_told = True
        for name in self.topics():
            with self._lock:
                topic = self._history.topics.get(name)
                if topic is None or topic.is_gone(now_ns):
                    continue
                found = [
                    each.track.phase.last.backlog
                    for each in topic.subscriptions.values()
                    if each.track is not None
                ]
                messages += sum(found)
                told = None if topic.look is None else topic.look.backlog_bytes
            if any(found) and told is None:
                are_told = False
            elif any(found):
                size += told or 0
        return messages, size if are_told else None

    def unreachable_brokers(self) -> list[tuple[str, int, str]]:
        """Brokers that do not answer, since when (monotonic), and why."""
        with self._lock:
            found = self._history.unreachable.items()
            return sorted((broker, since_ns, reason) for broker, (since_ns, reason) in found)

    def levels(self) -> list[Level]:
        """How full the quotas of all topics are."""
        with self._lock:
            return list(self._forecast.all())

    def figures(self) -> Iterator[SubjectFigures]:
        """Of all topics and subscriptions."""
        for topic in self.topics():
            with self._lock:
                known = self._history.topics.get(topic)
                found = [] if known is None else figures_of(known, self._totals)
                levels = self._forecast.of_topic(topic)
            for each in found:
                if each.subscription is None and levels:
                    yield replace(each, values={**each.values, **_quota_values(levels)})
                else:
                    yield each


def _fullest(levels: list[Level]) -> list[Level]:
    """Of each type the quota on the fullest of a topic's partitions."""
    found: dict[QuotaType, Level] = {}
    for level in levels:
        before = found.get(level.type)
        if before is None or level.used * before.limit > before.used * level.limit:
            found[level.type] = level
    return [found[kind] for kind in sorted(found)]


def _unknown_topic(name: str) -> UnknownTopicError:
    return UnknownTopicError(
        f"Topic {name} was not seen: the agent has not looked at it yet, or the cluster does not "
        "have it"
    )


_NOT_TOLD: Final = (
    "policy", "source", "stoppedS", "producersClosed", "producersRefused", "evictions",
    "evictedMessages", "evictedBytes",
)  # fmt: skip
"""What a survey or a topic's statistics do not tell of a quota."""


def _quota_report(level: Level) -> dict[str, Any]:
    """A quota as explain shows it, with the time between the looks that its rate is from. What a
    cluster does not tell is null."""
    report: dict[str, Any] = msgspec.to_builtins(quota_state(level))
    return report | dict.fromkeys(_NOT_TOLD) | {"lookPeriodS": level.period_s}


def _quota_values(levels: list[Level]) -> dict[str, Value]:
    """The fields of a topic's row about its quotas."""
    values: dict[str, Value] = {}
    for level in levels:
        field, factor = _LIMIT_FIELDS[level.type]
        seconds = level.seconds_to_breach
        values[field] = round(level.limit * factor)
        values[f"quota_{level.type.label}_breach_ns"] = (
            None if seconds is None else round(seconds * NS_PER_S)
        )
    return values
