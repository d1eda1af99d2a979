"""What a cluster's history says, in the JSON of a broker's explain.

Fields mean what :mod:`headgate.explain.reports` says; a figure that looks do not tell is null.
``evidence`` is ``inferred`` everywhere, and the sentence says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import msgspec

from headgate.agent.inferred_subscription import InferredSubscription
from headgate.agent.inferred_topic import InferredTopic
from headgate.agent.limit_reports import (
    broker_limits,
    publish_limits,
    subscription_limits,
    topic_limits,
)
from headgate.base.instants import iso_time
from headgate.base.largest import Largest
from headgate.base.names import NAME_CHARACTERS_MAX
from headgate.base.park_cause import ParkCause
from headgate.base.sliced import at_once
from headgate.base.units import NS_PER_HOUR, NS_PER_MINUTE, NS_PER_MS, NS_PER_S
from headgate.explain.delivery import (
    Instant,
    SubscriptionNow,
    subscription_fields,
    window_report,
)
from headgate.explain.diagnosis import SETTLED_NS, Diagnosis, diagnose
from headgate.explain.timeline import timeline
from headgate.explain.window import Past, Window, window
from headgate.flow.account.verdict import INFERRED
from headgate.flow.limits.precedence import NO_LIMIT
from headgate.flow.limits.rate_limit import Level
from headgate.flow.sentences.backlog import Circumstances

if TYPE_CHECKING:
    from headgate.agent.cluster_history import ClusterHistory

PERIODS_MIN: Final = 4
"""A verdict covers at least so many periods of looks, as far as they are known."""
STALE_PERIODS: Final = 3
"""A topic without a look for so many of its periods is unknown, not healthy."""

SUBSCRIPTIONS_MAX: Final = 200
"""Subscriptions of a topic, largest backlog first, that a report on it has: each takes a
millisecond, in which no look is told and no other report is made. Pulsar has no limit."""
UNKNOWN_SHOWN_MAX: Final = 5
"""Subscriptions without a known figure that are named."""

NO_EVENTS: Final = (
    "throttled events (Pulsar 4.0.4 and later tell them, and only in a topic's stats)"
)
NO_LIMITS: Final = "the limits in force"
NAMELESS: Final = f"subscriptions with names of more than {NAME_CHARACTERS_MAX} characters"
NO_STUCK_PROOF: Final = "what the dispatcher waits for (internalStats tells)"
NO_PROOF: Final = "whether the consumer has the whole backlog (internalStats tells)"


class ClusterReports:
    """Reports on one cluster, from its history."""

    def __init__(self, history: ClusterHistory) -> None:
        self._history = history

    def top(self, count: int, instant: Instant, *, with_timeline: bool = False) -> dict[str, Any]:
        """``explain`` without a topic."""
        worst = Largest[tuple[str, list[tuple[InferredTopic, InferredSubscription]]]](count)
        total = with_backlog = 0
        for (topic, _), parts in self._subscriptions(instant.now_ns).items():
            total += 1
            backlog = _backlog_of(parts)
            if backlog > 0:
                with_backlog += 1
                worst.add(backlog, (topic, parts))
        return {
            "at": iso_time(instant.now_ms),
            "broker": self._history.name,
            "subscriptionsTotal": total,
            "withBacklog": with_backlog,
            "storage": None,
            "subscriptions": [
                self._report(*found, instant, with_timeline=with_timeline)
                for found in worst.items()
            ],
            "quotas": [],
            "publishing": self._held_publishing(count, instant),
            "damaged": [],
            "evidence": INFERRED,
            "notSeen": self._unreachable(instant) + self._unknown(self._history.topics.values()),
        }

    def topic(self, name: str, instant: Instant, *, with_timeline: bool = False) -> dict[str, Any]:
        """``explain TOPIC``."""
        topics = self._history.parts(name)
        if not topics:
            raise LookupError(f"no look has shown {name}")
        # Partitions that are gone do not count with those that are there.
        topics = [topic for topic in topics if not topic.is_gone(instant.now_ns)] or topics
        by_name: dict[str, list[tuple[InferredTopic, InferredSubscription]]] = {}
        for topic in topics:
            for subscription in topic.subscriptions.values():
                by_name.setdefault(subscription.name, []).append((topic, subscription))
        largest = sorted(by_name.values(), key=_backlog_of, reverse=True)[:SUBSCRIPTIONS_MAX]
        reports = [
            self._account(name, parts, instant, with_timeline=with_timeline) for parts in largest
        ]
        reports.sort(key=lambda report: -report["backlogMessages"])
        none = (
            "the state of its subscriptions is not known."
            if any(topic.unknown or _nameless(topic) for topic in topics)
            else "this topic has no subscription."
        )
        first = f"{reports[0]['subscription']}: {reports[0]['sentence']}" if reports else none
        return {
            "topic": name,
            "at": iso_time(instant.now_ms),
            "partitions": 0 if topics[0].name == name else len(topics),
            "sentence": first,
            "damage": None,
            "storageBytes": _sum([topic.look and topic.look.storage_bytes for topic in topics]),
            "storage": None,
            "publishing": _publishing(topics, instant),
            "quotas": [],
            "adaptive": None,
            "limits": _limits(topics, instant),
            "subscriptions": reports,
            "perPartition": None,
            "changes": _plain(self._history.changes.of_topic(topics, instant).report())
            if with_timeline
            else None,
            "evidence": INFERRED,
            "notSeen": [
                *self._unreachable(instant),
                *self._unknown(topics),
                *_left_out(len(by_name)),
                *(
                    f"{each.name}: no broker has it now"
                    for each in topics
                    if each.gone_ns is not None
                ),
            ],
        }

    def _subscriptions(
        self, now_ns: int
    ) -> dict[tuple[str, str], list[tuple[InferredTopic, InferredSubscription]]]:
        """All subscriptions by topic and name; those of partitions together. What was deleted has
        no backlog any more."""
        found: dict[tuple[str, str], list[tuple[InferredTopic, InferredSubscription]]] = {}
        for topic in self._history.topics.values():
            if topic.is_gone(now_ns):
                continue
            base = self._history.base_of(topic.name)
            for subscription in topic.subscriptions.values():
                found.setdefault((base, subscription.name), []).append((topic, subscription))
        return found

    def _account(
        self,
        name: str,
        parts: Sequence[tuple[InferredTopic, InferredSubscription]],
        instant: Instant,
        *,
        with_timeline: bool,
    ) -> dict[str, Any]:
        pasts = [past_of(part) for _, part in parts]
        period_ns = period_ns_of([part for _, part in parts])
        minute, hour = max(NS_PER_MINUTE, 2 * period_ns), NS_PER_HOUR
        return self._report(name, parts, instant, with_timeline=with_timeline) | {
            "minute": _window_report(window(pasts, minute), parts),
            "hour": _window_report(window(pasts, hour), parts),
            "limits": None
            if any(topic.limits is None for topic, _ in parts)
            else [
                limit
                for topic, part in parts
                for limit in subscription_limits(topic, part, instant.now_ns)
            ],
            "spared": None,
            "heldBack": None,
        }

    def _report(
        self,
        name: str,
        parts: Sequence[tuple[InferredTopic, InferredSubscription]],
        instant: Instant,
        *,
        with_timeline: bool,
    ) -> dict[str, Any]:
        subscriptions = [part for _, part in parts]
        found, pasts = diagnosed(subscriptions), [past_of(part) for part in subscriptions]
        largest = max(subscriptions, key=lambda part: part.sample.backlog)
        look = largest.look
        consumers = [c for part in subscriptions if part.look for c in part.look.consumers]
        permits = _sum([None if c.permits is None else max(0, c.permits) for c in consumers])
        permits_max = sum(
            part.windows.permits_max(c)
            for part in subscriptions
            if part.look
            for c in part.look.consumers
        )
        now = SubscriptionNow(
            topic=name,
            subscription=largest.name,
            partitions=0 if parts[0][0].name == name else len(parts),
            type="" if look is None else look.type,
            consumers=len(consumers),
            cell=found.window.end[0].cell if look is None else _cell(largest),
            backlog_bytes=_sum([part.look and part.look.backlog_bytes for part in subscriptions]),
            permits=permits,
            permits_max=permits_max if consumers and permits is not None else None,
        )
        without = sum(not (part.look and part.look.consumers) for part in subscriptions)
        sentence = found.sentence(
            Circumstances(
                permits=permits if consumers else None,
                permits_max=permits_max if consumers else None,
                partitions_without_consumer=without if consumers else 0,
                one_at_a_time=look is not None and look.type in ("Exclusive", "Failover"),
            )
        )
        fields = subscription_fields(found, sentence, now, instant)
        if "acked" in found.unknown:
            fields["proven_ack_per_s"] = None
        return {_camel(key): _plain(value) for key, value in fields.items()} | {
            "evidence": INFERRED,
            "looks": min(part.looks for part in subscriptions),
            "lookedForS": min(part.at_ns - part.opened_ns for part in subscriptions) / NS_PER_S,
            "notSeen": self._not_seen(parts, instant),
            "proof": _stuck_proof(largest, instant),
            "beforeGrowth": self._before_growth(found, fields["verdict"], parts, instant),
            "timeline": _plain(at_once(timeline(pasts, is_inferred=True)))
            if with_timeline
            else None,
        }

    def _before_growth(
        self,
        found: Diagnosis,
        verdict: str,
        parts: Sequence[tuple[InferredTopic, InferredSubscription]],
        instant: Instant,
    ) -> dict[str, Any] | None:
        """What looks have shown to change before the backlog of a subscription grew."""
        if found.backlog_since_ns is None:
            return None
        changes = self._history.changes.of_topic([topic for topic, _ in parts], instant)
        began_ms = instant.now_ms - (instant.now_ns - found.backlog_since_ns) // NS_PER_MS
        name = parts[0][1].name
        growth = changes.before_growth(verdict, name, began_ms)
        return None if growth is None else _plain(growth)

    def _not_seen(
        self, parts: Sequence[tuple[InferredTopic, InferredSubscription]], instant: Instant
    ) -> list[str]:
        """What the looks at a subscription leave open, in words."""
        found = []
        subscriptions = [part for _, part in parts]
        if any(part.look is not None and part.look.events is None for part in subscriptions):
            found.append(NO_EVENTS)
        for topic, _ in parts:
            if topic.limits is None:
                found.append(NO_LIMITS)
            else:
                found += topic.limits.unknown
            if topic.owner in self._history.unreachable:
                found.append(
                    f"what {topic.owner} does: {self._history.unreachable[topic.owner][1]}"
                )
        if any(part.sample.is_stuck and part.stuck_proof is None for part in subscriptions):
            found.append(NO_STUCK_PROOF)
        elif any(part.is_open for part in subscriptions):
            found.append(NO_PROOF)
        period_ns = period_ns_of(subscriptions)
        late_ns = instant.now_ns - min(part.at_ns for part in subscriptions)
        if late_ns > STALE_PERIODS * max(period_ns, NS_PER_S):
            found.append(f"the last {late_ns // NS_PER_S} s: there was no look")
        return list(dict.fromkeys(found))

    def _held_publishing(self, count: int, instant: Instant) -> list[dict[str, Any]]:
        """Topics whose producers a publish limit holds; how much waits is not known."""
        found = (
            (topic.name, sentence)
            for topic in self._history.topics.values()
            if (sentence := topic.held_publishing(instant.now_ns))
        )
        return [
            {
                "topic": name,
                "causes": [ParkCause.TOPIC_RATE.label],
                "messages": None,
                "bytes": None,
                "sentence": sentence,
            }
            for name, sentence in islice(found, count)
        ]

    def _unknown(self, topics: Iterable[InferredTopic]) -> list[str]:
        """Figures that are no numbers, and subscriptions that are left out."""
        names: dict[str, list[str]] = {}
        nameless = []
        for topic in topics:
            for name, missing in topic.unknown.items():
                names.setdefault(missing, []).append(f"{topic.name} {name}")
            if count := _nameless(topic):
                nameless.append(f"{count:,} of {topic.name}")
        told = [f"{missing} of {_shown(found)}: the broker tells no number"
                for missing, found in sorted(names.items())]  # fmt: skip
        if nameless:
            told.append(f"{NAMELESS}: {_shown(nameless)}")
        return told

    def _unreachable(self, instant: Instant) -> list[str]:
        return [
            f"{broker}, for {max(0, instant.now_ns - at_ns) // NS_PER_S} s: {reason}"
            for broker, (at_ns, reason) in sorted(self._history.unreachable.items())
        ]


def diagnosed(subscriptions: Sequence[InferredSubscription]) -> Diagnosis:
    """Judge one subscription, given as its partitions' parts, all of which had a look."""
    limits = next((part.limits for part in subscriptions if part.limits is not None), None)
    seen_all = all(part.look is not None and part.look.events is not None for part in subscriptions)
    period_ns = period_ns_of(subscriptions)
    found = at_once(
        diagnose(
            [past_of(part) for part in subscriptions],
            limits or (NO_LIMIT,) * len(Level),
            is_inferred=True,
            completeness=1.0 if seen_all else 0.5,
            window_ns=max(NS_PER_MINUTE, PERIODS_MIN * period_ns),
            window_min_ns=SETTLED_NS + 2 * period_ns,
        )
    )
    unknown = unknown_counters(subscriptions, found.window.length_ns)
    return replace(found, unknown=unknown) if unknown else found


def unknown_counters(parts: Sequence[InferredSubscription], length_ns: int) -> frozenset[str]:
    """The counters of points that are not known for all of the last ``length_ns``."""
    found: set[str] = set()
    for part in parts:
        begin_ns = part.at_ns - length_ns
        if part.sent_unknown_ns is not None and part.sent_unknown_ns > begin_ns:
            found.add("sent")
        if part.published_unknown_ns is not None and part.published_unknown_ns > begin_ns:
            # What was acknowledged follows from it and the backlog.
            found |= {"appended", "acked"}
    return frozenset(found)


def past_of(part: InferredSubscription) -> Past:
    """The hour of one part, which ends with its last look."""
    if part.track is None:
        raise LookupError(f"no look has shown the subscription {part.name}")
    now = part.track.phase.last
    hour = part.track.since(now.at_ns - NS_PER_HOUR)
    if len(hour) == 1:
        hour = [hour[0], now]
    return Past(hour, hour[-2], now.at_ns, part.track.phase)


def period_ns_of(parts: Sequence[InferredSubscription]) -> int:
    """The mean time between the last looks."""
    return max(part.period_ns for part in parts)


_AMOUNTS: Final = {
    "sent": ("delivered", "deliveredPerS"),
    "appended": ("appended", "appendedPerS"),
    "acked": ("acked", "ackedPerS", "skipped", "rewound", "evicted"),
}
"""Fields of a window's report, by the counter that they need."""


def _window_report(
    seen: Window, parts: Sequence[tuple[InferredTopic, InferredSubscription]]
) -> dict[str, Any]:
    unknown = unknown_counters([part for _, part in parts], seen.length_ns)
    report: dict[str, Any] = _plain(window_report(seen))
    return report | {name: None for counter in unknown for name in _AMOUNTS[counter]}


def _backlog_of(parts: Sequence[tuple[InferredTopic, InferredSubscription]]) -> float:
    return sum(part.sample.backlog for _, part in parts)


def _left_out(subscriptions: int) -> list[str]:
    """That a report has not all subscriptions of its topic; empty if it has."""
    more = subscriptions - SUBSCRIPTIONS_MAX
    return [f"{more:,} more subscriptions, with smaller backlogs"] if more > 0 else []


def _nameless(topic: InferredTopic) -> int:
    return 0 if topic.look is None else topic.look.nameless


def _shown(names: Sequence[str]) -> str:
    more = len(names) - UNKNOWN_SHOWN_MAX
    return ", ".join(names[:UNKNOWN_SHOWN_MAX]) + (f" and {more:,} more" if more > 0 else "")


def _stuck_proof(part: InferredSubscription, instant: Instant) -> dict[str, Any] | None:
    """What ``internalStats`` said of a dispatcher that is stuck; None if it is not, or there is no
    such look."""
    if (found := part.stuck_proof) is None:
        return None
    proof, cursor = found
    at, ago_s = instant.at(proof.at_ns)
    return {
        "at": at,
        "agoS": ago_s,
        "readPosition": _position(cursor.read_position),
        "lastPosition": _position(proof.last_position),
        "pendingReads": cursor.pending_reads,
        "waitsForEntry": cursor.is_waiting,
        "hasPendingRead": cursor.has_pending_read,
        "hasPendingReplay": cursor.has_pending_replay,
    }


def _position(position: tuple[int, int] | None) -> str | None:
    return None if position is None else f"{position[0]}:{position[1]}"


def _cell(part: InferredSubscription) -> Any:
    return past_of(part).now.cell


def _limits(topics: Sequence[InferredTopic], instant: Instant) -> list[dict[str, Any]] | None:
    """The dispatch limits of a topic, one for each partition, and of its brokers; None while its
    policies were not read."""
    if any(topic.limits is None for topic in topics):
        return None
    owners = {topic.owner: topic for topic in topics}
    return [
        *(limit for topic in topics for limit in topic_limits(topic, instant.now_ns)),
        *(limit for topic in owners.values() for limit in broker_limits(topic)),
    ]


def _publishing(topics: Sequence[InferredTopic], instant: Instant) -> dict[str, Any]:
    rates = [topic.publish_rates() for topic in topics]
    messages_per_s = _sum([rate for rate, _ in rates])
    addresses = {a for topic in topics if topic.look for a in topic.look.publisher_addresses}
    return {
        # Looks at many topics leave the publishers out.
        "producers": None if messages_per_s and not addresses else len(addresses),
        "messagesPerS": messages_per_s,
        "bytesPerS": _sum([rate for _, rate in rates]),
        "pendingEntries": None,
        "parked": None,
        "longestWaiting": None,
        "limits": None
        if any(topic.limits is None for topic in topics)
        else [limit for topic in topics for limit in publish_limits(topic, instant.now_ns)],
        "waitingForAccess": None,
        "delaysIgnored": None,
        "duplicatesDropped": None,
        "sentence": next(filter(None, (t.held_publishing(instant.now_ns) for t in topics)), ""),
        "lastPublish": None,
    }


def _sum(figures: Sequence[Any]) -> Any:
    """The sum; None if any figure is not known."""
    return None if None in figures else sum(figures)


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
