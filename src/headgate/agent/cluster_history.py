"""The last hour of all subscriptions of one cluster, by what looks at it showed.

Memory is bounded: a busy subscription has some forty points of its hour, as in a broker's own
history, and one that surveys alone show has :data:`SURVEYED_POINTS` unless it has a backlog.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from headgate.agent.cluster_reports import ClusterReports
from headgate.agent.inferred_subscription import InferredSubscription
from headgate.agent.inferred_topic import InferredTopic
from headgate.agent.look_changes import LookChanges
from headgate.agent.looks import LimitsLook, ProofLook, SubscriptionLook, TopicLook
from headgate.base.largest import Largest
from headgate.base.names import PARTITION_SUFFIX, parse_topic
from headgate.base.units import NS_PER_MINUTE, NS_PER_S
from headgate.explain.delivery import Instant
from headgate.explain.points import Point

SURVEYED_POINTS: Final = 3
"""Most points of a subscription without backlog that only surveys look at."""

LIMITS_NS: Final = NS_PER_MINUTE
"""Limits that were read longer ago may have changed."""
DOUBTED_LIMITS_NS: Final = 15 * NS_PER_S
"""The same where a limiter throttles below the limit that was read."""
PROOF_NS: Final = 15 * NS_PER_S
"""A proof of this age is worth another."""
OUTLIVED_NS: Final = 5 * NS_PER_MINUTE
"""A topic that was seen so much later than the one of its name without a number has taken its place
as a partition. Until then it is a topic of its own: whoever may create topics chooses its name."""
ABSENT_NS: Final = 5 * NS_PER_MINUTE
"""A topic that surveys of its broker have not shown for so long is absent: deleted, or unloaded."""
ABSENT_MAX: Final = 20_000
"""Absent topics that are kept, of some 4 KB each; those that were seen last stay. Whoever may
create topics chooses how many come and go in an hour."""


class SubscriptionTotals(NamedTuple):
    """What the looks at one subscription add up to, for telemetry. Counts are cumulative since
    ``opened_ns``."""

    topic: str
    subscription: str
    opened_ns: int
    point: Point
    look: SubscriptionLook
    owner: str


class ClusterHistory:
    """What is known of one cluster. ``name`` tells it from others in reports and telemetry."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.topics: dict[str, InferredTopic] = {}
        self.unreachable: dict[str, tuple[int, str]] = {}
        """Brokers that did not answer the last request: since when, and why."""
        self._unanswered_ns: dict[str, int] = {}
        """The last request that each of them did not answer."""
        self._surveyed_ns: dict[str, int] = {}
        """The last survey of each broker."""
        self._partitioned: dict[str, set[str]] = {}
        """Names of partitions by the name of their topic."""
        self.changes = LookChanges()
        self._reports = ClusterReports(self)

    # -- what the looks show -------------------------------------------------------------------

    def note_look(self, look: TopicLook) -> None:
        """A look at a topic or partition."""
        self._note_answer(look.owner)
        topic = self.topics.get(look.topic)
        if topic is None:
            topic = self.topics[look.topic] = InferredTopic(look.topic, look.owner)
            name = parse_topic(look.topic)
            if name.partition >= 0:
                self._partitioned.setdefault(name.base.full, set()).add(look.topic)
        before = topic.look
        topic.note_look(look)
        if before is not None and topic.look is look:
            self.changes.note_look(before, look)
        if look.is_survey:
            topic.forget_past(SURVEYED_POINTS)
            self._surveyed_ns[look.owner] = max(look.at_ns, self._surveyed_ns.get(look.owner, 0))

    def note_proof(self, proof: ProofLook) -> None:
        """``internalStats`` of a topic or partition; nothing if it is not known."""
        if (topic := self.topics.get(proof.topic)) is not None:
            topic.note_proof(proof)

    def note_limits(self, limits: LimitsLook) -> None:
        """The limits in force for a topic or partition; nothing if it is not known."""
        if (topic := self.topics.get(limits.topic)) is not None:
            if topic.limits is not None:
                self.changes.note_limits(topic.limits, limits)
            topic.note_limits(limits)

    def note_gone(self, topic: str, at_ns: int) -> None:
        """The broker answered 404: the topic was deleted, or another broker loads it."""
        if (known := self.topics.get(topic)) is not None:
            known.note_gone(at_ns)

    def note_unreachable(self, broker: str, at_ns: int, reason: str) -> None:
        """A broker did not answer: of its topics nothing new is known."""
        since_ns = self.unreachable.get(broker, (at_ns, ""))[0]
        self.unreachable[broker] = (since_ns, reason)
        self._unanswered_ns[broker] = at_ns

    def forget(self, before_ns: int) -> None:
        """Forget topics that no look has shown since an instant, all but the last ones that became
        absent, and brokers that did not answer since then."""
        for name in [name for name, topic in self.topics.items() if topic.at_ns < before_ns]:
            self._drop(name)
        absent = [topic for topic in self.topics.values() if self._is_absent(topic)]
        if len(absent) > ABSENT_MAX:
            absent.sort(key=lambda topic: topic.at_ns)
            for topic in absent[: len(absent) - ABSENT_MAX]:
                self._drop(topic.name)
        for broker in [b for b, at_ns in self._unanswered_ns.items() if at_ns < before_ns]:
            self._note_answer(broker)
        for broker in [b for b, at_ns in self._surveyed_ns.items() if at_ns < before_ns]:
            del self._surveyed_ns[broker]

    def _is_absent(self, topic: InferredTopic) -> bool:
        return topic.at_ns < self._surveyed_ns.get(topic.owner, 0) - ABSENT_NS

    def _drop(self, name: str) -> None:
        del self.topics[name]
        base = name.rpartition(PARTITION_SUFFIX)[0]
        parts = self._partitioned.get(base)
        if parts is not None:
            parts.discard(name)
            if not parts:
                del self._partitioned[base]

    def _note_answer(self, broker: str) -> None:
        self.unreachable.pop(broker, None)
        self._unanswered_ns.pop(broker, None)

    # -- what is worth a look ------------------------------------------------------------------

    def suspects(self, count: int, now_ns: int) -> list[str]:
        """The topics and partitions with the largest backlogs, the worst first; at most ``count``.

        A backlog that lasts counts before one that may be messages in flight.
        """
        worst = Largest[str](count)
        for topic in self.topics.values():
            if topic.is_gone(now_ns):
                continue
            key = max(map(_badness, topic.subscriptions.values()), default=(False, 0.0))
            if key[1] > 0:
                worst.add(key, topic.name)
        return worst.items()

    def proofs_wanted(self, count: int, now_ns: int) -> list[str]:
        """Topics of which ``internalStats`` would tell more than looks do, the worst first."""
        worst = Largest[str](count)
        for topic in self.topics.values():
            if topic.proof_ns is not None and now_ns - topic.proof_ns < PROOF_NS:
                continue
            doubtful = [each for each in topic.subscriptions.values() if each.is_doubtful]
            if doubtful and topic.gone_ns is None:
                worst.add(max(map(_badness, doubtful)), topic.name)
        return worst.items()

    def limits_wanted(self, count: int, now_ns: int) -> list[str]:
        """Suspects whose limits are not known, then those whose limits were read long ago."""
        wanted = Largest[str](count)
        for name in self.suspects(4 * count, now_ns):
            topic = self.topics[name]
            limits = topic.limits
            if limits is None:
                wanted.add((1, 0), name)
                continue
            doubted = any(each.contradicts_limits for each in topic.subscriptions.values())
            if now_ns - limits.at_ns >= (DOUBTED_LIMITS_NS if doubted else LIMITS_NS):
                wanted.add((0, -limits.at_ns), name)
        return wanted.items()

    # -- what it says --------------------------------------------------------------------------

    def parts(self, topic: str) -> list[InferredTopic]:
        """The topic of a name, or its partitions in order; empty if none is known."""
        if names := self.partitions(topic):
            return [self.topics[name] for name in names]
        return [self.topics[topic]] if topic in self.topics else []

    def partitions(self, topic: str) -> list[str]:
        """The names of a partitioned topic's partitions that are known, in order."""
        names = [n for n in self._partitioned.get(topic, ()) if self.base_of(n) == topic]
        return sorted(names, key=lambda name: int(name.rpartition("-")[2]))

    def base_of(self, topic: str) -> str:
        """The partitioned topic of a partition; any other name itself."""
        base = topic.rpartition(PARTITION_SUFFIX)[0]
        if topic not in self._partitioned.get(base, ()):
            return topic
        whole = self.topics.get(base)
        if whole is None or whole.gone_ns is not None:
            return base
        return base if self.topics[topic].at_ns - whole.at_ns >= OUTLIVED_NS else topic

    def top(self, count: int, instant: Instant, *, with_timeline: bool = False) -> dict[str, Any]:
        """``explain`` without a topic: the ``count`` largest backlogs, in the broker's JSON."""
        return self._reports.top(count, instant, with_timeline=with_timeline)

    def topic(self, name: str, instant: Instant, *, with_timeline: bool = False) -> dict[str, Any]:
        """``explain TOPIC``, in the broker's JSON.

        Raises:
            LookupError: no look has shown the topic.
        """
        return self._reports.topic(name, instant, with_timeline=with_timeline)

    def totals(self) -> Iterator[SubscriptionTotals]:
        """What the looks at each subscription add up to, in no order."""
        for topic in list(self.topics.values()):
            for each in topic.subscriptions.values():
                if each.track is not None and each.look is not None:
                    point = each.track.phase.last
                    yield SubscriptionTotals(
                        topic.name, each.name, each.opened_ns, point, each.look, topic.owner
                    )


def _badness(subscription: InferredSubscription) -> tuple[bool, float]:
    track = subscription.track
    return bool(track is not None and track.phase.has_backlog), subscription.sample.due
