"""What changed about topics between two looks: consumers, subscriptions, limits, the broker.

Two looks tell what is different, not who made it so, nor when in between. So each change names the
time between the two, and is dated by the look that showed it. What came and left between two looks
is not known; nor are producers, which looks at many topics leave out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from headgate.agent.inferred_topic import SURVEY_AGE_NS, InferredTopic
from headgate.agent.looks import ConsumerLook, LimitsLook, SubscriptionLook, TopicLook
from headgate.base.instants import iso_time
from headgate.base.texts import printable, time_text
from headgate.base.units import MS_PER_S, NS_PER_MS, NS_PER_S
from headgate.explain.change_log import (
    CHANGES_MAX,
    HOUR_MS,
    NAME_MAX,
    NAMES_MAX,
    REPORTED_MAX,
    TOPIC_MAX,
    ChangeLog,
)
from headgate.explain.changes import (
    CONSUMERS,
    LATE_MS,
    LEVELS,
    POLICY,
    SETTING,
    SOUGHT_S,
    SUBSCRIPTION,
    TOPIC,
    BeforeGrowth,
    Changes,
    PlainChange,
    before_growth,
    change_reports,
)
from headgate.explain.delivery import Instant
from headgate.flow.limits.precedence import EffectiveLimit
from headgate.flow.limits.rate_limit import Dimension, Level
from headgate.flow.sentences.backlog import limit_text
from headgate.flow.sentences.changes import ClientsFacts, clients_clause, value_clause

SUBSCRIPTION_MAX: Final = 200

_LIMIT_NAMES: Final = {
    Level.SUBSCRIPTION: "the dispatch limit of each subscription of the topic",
    Level.TOPIC: "the dispatch limit of the topic",
    Level.BROKER: "the dispatch limit of the broker",
}


@dataclass(frozen=True, slots=True)
class LookChange(PlainChange):
    """A change that a look showed."""

    gap_ms: int = 0
    """It was made at most so long before that look."""


@dataclass(frozen=True, slots=True)
class TopicLookChanges:
    """What looks have shown to change about one topic in the last hour."""

    changes: Sequence[LookChange]
    """On the wall clock."""
    complete_since_ms: int

    def report(self) -> Changes:
        """All of it as a report."""
        found = sorted(self.changes, key=lambda each: each.at_ms)
        complete_ms = self.complete_since_ms
        if len(found) > REPORTED_MAX:
            found = found[-REPORTED_MAX:]
            complete_ms = max(complete_ms, found[0].at_ms)
        return Changes(complete_since=iso_time(complete_ms), changes=change_reports(found, LEVELS))

    def before_growth(self, verdict: str, subscription: str, began_ms: int) -> BeforeGrowth | None:
        """What changed before the backlog of a subscription grew, which began at ``began_ms`` of
        the wall clock; None if that is not known. The look that shows a change may be later than
        the growth that it causes."""
        if began_ms <= self.complete_since_ms:
            return None  # the first look may have found it growing
        possible = [each for each in self.changes if each.at_ms - each.gap_ms <= began_ms + LATE_MS]
        found = before_growth(
            possible,
            verdict=verdict,
            subscription=subscription,
            began_ms=began_ms,
            complete_since_ms=self.complete_since_ms,
            roles_of=LEVELS,
            late_ms=LATE_MS + max((each.gap_ms for each in possible), default=0),
        )
        if found is None or found.changed_at is not None:
            return found
        # That there was none is known only of a time that was looked at.
        return found if began_ms - SOUGHT_S * MS_PER_S >= self.complete_since_ms else None


class LookChanges:
    """The changes of one cluster."""

    def __init__(self) -> None:
        self.log: ChangeLog[LookChange] = ChangeLog(CHANGES_MAX, TOPIC_MAX)
        """By the full name of a topic or partition. Instants are monotonic, in milliseconds."""

    def note_look(self, before: TopicLook, after: TopicLook) -> None:
        """Two looks at one topic that follow each other."""
        gap_ns = after.at_ns - before.at_ns + (SURVEY_AGE_NS if before.is_survey else 0)
        known = {each.name: each for each in before.subscriptions}
        for kind, subscription, clause, relieves in (
            *_topic_clauses(before, after),
            *_subscription_clauses(known, after.subscriptions),
        ):
            level = "subscription" if subscription else "topic"
            self._add(after.topic, after.at_ns, gap_ns, kind, level, clause, subscription, relieves)

    def note_limits(self, before: LimitsLook, after: LimitsLook) -> None:
        """The limits of a topic were read twice. Where not the same could be read, they cannot be
        compared."""
        if before.unknown != after.unknown:
            return
        gap_ns = after.at_ns - before.at_ns
        pairs = [
            (_LIMIT_NAMES[level], "", before.dispatch[level], after.dispatch[level])
            for level in Level
        ]
        pairs.append(("the publish limit of the topic", "", before.publish, after.publish))
        for name in sorted(before.by_subscription.keys() & after.by_subscription.keys()):
            shown = printable(name[:SUBSCRIPTION_MAX])
            pair = before.by_subscription[name], after.by_subscription[name]
            pairs.append((f"the dispatch limit of subscription {shown}", name, *pair))
        for name, subscription, old, new in pairs:
            if _limit_text(old) != _limit_text(new):
                source = new.source or old.source
                clause = value_clause(name, _limit_text(old), _limit_text(new))
                kind, level = _place(source)
                text = f"{clause} ({source})"
                self._add(after.topic, after.at_ns, gap_ns, kind, level, text, subscription)

    def _add(
        self,
        topic: str,
        at_ns: int,
        gap_ns: int,
        kind: str,
        level: str,
        clause: str,
        subscription: str,
        relieves: bool = False,
    ) -> None:
        text = f"{clause}, within {time_text(gap_ns / NS_PER_S)} before this look"
        name = subscription[:SUBSCRIPTION_MAX]
        change = LookChange(
            at_ns // NS_PER_MS, kind, level, text, name,
            relieves=relieves, gap_ms=gap_ns // NS_PER_MS,
        )  # fmt: skip
        self.log.add(topic, change)

    def of_topic(self, topics: Sequence[InferredTopic], instant: Instant) -> TopicLookChanges:
        """What is known of a topic, given as itself or as its partitions."""
        now_ms = instant.now_ns // NS_PER_MS
        ahead_ms = instant.now_ms - now_ms
        found: list[LookChange] = []
        complete_ms = now_ms - HOUR_MS
        for topic in topics:
            found += self.log.since(topic.name, now_ms - HOUR_MS)
            opened = [each.opened_ns for each in topic.subscriptions.values()]
            first_ms = min(opened, default=topic.at_ns) // NS_PER_MS
            lost_ms = self.log.complete_since_ms(topic.name, now_ms)
            complete_ms = max(complete_ms, first_ms, lost_ms)
        return TopicLookChanges(
            [replace(each, at_ms=each.at_ms + ahead_ms) for each in found], complete_ms + ahead_ms
        )


def _topic_clauses(before: TopicLook, after: TopicLook) -> Iterator[tuple[str, str, str, bool]]:
    if before.owner and after.owner and before.owner != after.owner:
        owners = (
            f"{printable(after.owner[:NAME_MAX])} instead of {printable(before.owner[:NAME_MAX])}"
        )
        yield TOPIC, "", f"another broker loaded the topic: {owners}", False
    elif (
        before.published is not None
        and after.published is not None
        and after.published < before.published
    ):
        yield TOPIC, "", "the topic was unloaded and loaded again", False


def _subscription_clauses(
    before: dict[str, SubscriptionLook], after: Iterable[SubscriptionLook]
) -> Iterator[tuple[str, str, str, bool]]:
    """Kind, subscription, clause, and whether it can only make a backlog smaller."""
    left = dict(before)
    for look in after:
        old = left.pop(look.name, None)
        if not look.is_durable:
            continue
        shown = printable(look.name[:SUBSCRIPTION_MAX])
        if old is None:
            yield SUBSCRIPTION, look.name, f"subscription {shown} was created", False
        elif not _are_same(old.consumers, look.consumers):
            clause = _consumers_clause(shown, old.consumers, look.consumers)
            have_only_come = {*map(_key, old.consumers)} <= {*map(_key, look.consumers)}
            yield CONSUMERS, look.name, clause, have_only_come
    for name, old in left.items():
        if old.is_durable:
            shown = printable(name[:SUBSCRIPTION_MAX])
            yield SUBSCRIPTION, name, f"subscription {shown} was deleted", False


def _key(consumer: ConsumerLook) -> tuple[str, str, str]:
    return consumer.name, consumer.address, consumer.connected_since


def _are_same(before: Sequence[ConsumerLook], after: Sequence[ConsumerLook]) -> bool:
    """Whether they are the same connections; nearly always in the same order."""
    if len(before) != len(after):
        return False
    return all(_key(a) == _key(b) for a, b in zip(before, after, strict=True)) or {
        *map(_key, before)
    } == {*map(_key, after)}


def _consumers_clause(
    subscription: str, before: Sequence[ConsumerLook], after: Sequence[ConsumerLook]
) -> str:
    old, new = {_key(each): each.name for each in before}, {_key(each): each.name for each in after}
    left = [name for key, name in old.items() if key not in new]
    came = [name for key, name in new.items() if key not in old]
    back = {*left} & {*came}
    return clients_clause(
        ClientsFacts(
            subscription=subscription,
            came=len(came),
            left=len(left),
            came_names=_names(name for name in came if name not in back),
            left_names=_names(name for name in left if name not in back),
            came_back=len(back),
            before=len(before),
            after=len(after),
            came_versions=(),
            left_versions=(),
        )
    )


def _names(names: Iterable[str]) -> list[str]:
    return [printable(name[:NAME_MAX]) for name in names if name][:NAMES_MAX]


def _limit_text(effective: EffectiveLimit) -> str | None:
    """``100 msg/s and 5,000 B/s``; None without a limit."""
    limit = effective.limit
    if limit is None:
        return None
    amounts = [limit_text(limit, each) for each in Dimension if limit.amount(each) is not None]
    return " and ".join(amounts) + (" above the publish rate" if limit.relative else "")


def _place(source: str) -> tuple[str, str]:
    """Kind and level of a change of a limit, by where the limit is set."""
    if source.startswith("broker"):
        return SETTING, "broker"
    if source.startswith("namespace"):
        return POLICY, "namespace"
    return POLICY, "subscription" if source.startswith("subscription") else "topic"
