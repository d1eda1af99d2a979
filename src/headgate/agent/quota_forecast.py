"""When the backlog quotas of a cluster's topics are reached, and which subscription causes it.

A law: looks come with their time. A size quota is compared with the largest backlog of a
subscription, a time quota with the age of the oldest message. A cluster computes that age once a
minute, so a level that did not change says nothing for a while: it counts as standing still only
when it stays for longer than that. An age grows by at most a second in a second.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final, NamedTuple

from headgate.agent.looks import SubscriptionLook, TopicLook
from headgate.base.texts import size_text, time_text
from headgate.base.units import NS_PER_S
from headgate.explain.states import QuotaState
from headgate.flow.quota.backlog_quota import Approach, QuotaType
from headgate.flow.quota.pace_band import Band
from headgate.flow.sentences.quota import quota_sentence

FAR_APART_S: Final = 15.0
"""Looks with more time between them give a rate that is said with it."""

UNCHANGED_NS: Final = 90 * NS_PER_S
"""A level that stays for so long stands still: longer than from one check of a cluster, or survey,
to the next."""

TOPICS_MAX: Final = 100_000
"""Topics with a quota that are followed; those that were not seen for longest go first."""


class Level(NamedTuple):
    """How full a quota of a topic is."""

    topic: str
    type: QuotaType
    limit: float
    """Bytes, or seconds."""
    used: float
    """Bytes of the largest backlog, or age of the oldest message in seconds."""
    subscription: str | None
    """Whose backlog or message that is."""
    oldest_age_s: float | None
    seconds_to_breach: float | None
    """At the smoothed present rate; 0 while the limit is reached, None if it does not approach."""
    period_s: float | None = None
    """Time between the last two looks, which the rate is from; None after one."""
    band: Band | None = None
    """From when to when it may be reached; None if that is not known."""

    @property
    def exceeded(self) -> bool:
        """Whether the limit is reached."""
        return self.used >= self.limit


class _Followed:
    """One quota of one topic."""

    __slots__ = (
        "_approach", "_changed_ns", "_looked_ns", "limit", "oldest_age_s", "period_s",
        "subscription", "used",
    )  # fmt: skip

    def __init__(self, used: float, at_ns: int) -> None:
        self._approach = Approach(used, at_ns)
        self._changed_ns = self._looked_ns = at_ns
        self.period_s: float | None = None
        self.used = used
        self.limit = 0.0
        self.subscription: str | None = None
        self.oldest_age_s: float | None = None

    def observe(self, used: float, at_ns: int) -> None:
        """Take a look."""
        if at_ns > self._looked_ns:
            self.period_s, self._looked_ns = (at_ns - self._looked_ns) / NS_PER_S, at_ns
        if used == self.used and at_ns - self._changed_ns < UNCHANGED_NS:
            return
        self._approach.observe(used, at_ns)
        self.used, self._changed_ns = used, at_ns

    def seconds_to_breach(self, kind: QuotaType) -> float | None:
        """Seconds until the limit is reached."""
        seconds = self._approach.seconds_to(self.limit, self.used)
        if seconds and kind is QuotaType.TIME:
            return max(seconds, self.limit - self.used)
        return seconds

    def band(self, kind: QuotaType) -> Band | None:
        """Between which seconds from now the limit is reached."""
        speed_max = 1.0 if kind is QuotaType.TIME else None
        return self._approach.band_to(self.limit, self.used, speed_max)


class QuotaForecast:
    """The quotas of one cluster's topics."""

    def __init__(self) -> None:
        self._topics: OrderedDict[str, dict[QuotaType, _Followed]] = OrderedDict()
        self._seen_ns: dict[str, int] = {}

    def note_look(self, look: TopicLook) -> None:
        """Take a look at a topic or partition. A figure that it does not tell stays as it was."""
        limits = {
            QuotaType.SIZE: _limit(look.quota_size_bytes),
            QuotaType.TIME: _limit(look.quota_age_s),
        }
        if all(limit is None for limit in limits.values()):
            # A survey tells no quotas: what is known from a closer look goes on.
            if not look.is_survey:
                self.note_gone(look.topic)
                return
            if look.topic not in self._topics:
                return
        followed = self._topics.setdefault(look.topic, {})
        self._topics.move_to_end(look.topic)
        self._seen_ns[look.topic] = look.at_ns
        for kind, limit in limits.items():
            if limit is None and not look.is_survey:
                followed.pop(kind, None)
            else:
                _note(followed, kind, limit, look)
        while len(self._topics) > TOPICS_MAX:
            topic, _ = self._topics.popitem(last=False)
            del self._seen_ns[topic]

    def note_gone(self, topic: str) -> None:
        """A topic was deleted or unloaded."""
        self._topics.pop(topic, None)
        self._seen_ns.pop(topic, None)

    def forget(self, before_ns: int) -> None:
        """Forget the topics that were not seen since an instant."""
        for topic in [topic for topic, seen_ns in self._seen_ns.items() if seen_ns < before_ns]:
            self.note_gone(topic)

    def __contains__(self, topic: str) -> bool:
        return topic in self._topics

    def of_topic(self, topic: str) -> list[Level]:
        """The quotas of a topic or partition that are known."""
        return [
            Level(
                topic, kind, each.limit, each.used, each.subscription, each.oldest_age_s,
                each.seconds_to_breach(kind), each.period_s, each.band(kind),
            )
            for kind, each in sorted(self._topics.get(topic, {}).items())
        ]  # fmt: skip

    def all(self) -> Iterator[Level]:
        """The quotas of all topics."""
        for topic in list(self._topics):
            yield from self.of_topic(topic)

    def ahead(self) -> list[Level]:
        """Quotas that are reached, then those that will be within a day, the soonest first."""
        ahead = [level for level in self.all() if level.seconds_to_breach is not None]
        ahead.sort(key=lambda level: (level.seconds_to_breach or 0.0, level.topic, level.type))
        return ahead


def _limit(value: int | None) -> int | None:
    """None for the value that stands for no quota; brokers report -1 or 0."""
    return value if value is not None and value > 0 else None


def _note(
    followed: dict[QuotaType, _Followed], kind: QuotaType, limit: int | None, look: TopicLook
) -> None:
    used, subscription = _used(kind, look)
    known = followed.get(kind)
    if used is None or (known is None and limit is None):
        return
    if known is None:
        known = followed[kind] = _Followed(used, look.at_ns)
    if limit is not None:
        known.limit = float(limit)
    known.observe(used, look.at_ns)
    known.subscription = subscription or known.subscription
    known.oldest_age_s = look.oldest_age_s


def _used(kind: QuotaType, look: TopicLook) -> tuple[float | None, str | None]:
    """How much of a quota is used, and whose that is."""
    if kind is QuotaType.TIME:
        age_s = look.oldest_age_s
        return (None if age_s is None or age_s < 0 else age_s), look.oldest_subscription or None
    slowest = max(
        (each for each in look.subscriptions if each.is_durable), key=_backlog, default=None
    )
    if slowest is not None and slowest.backlog_bytes is not None and slowest.backlog_bytes >= 0:
        return float(slowest.backlog_bytes), slowest.name
    known = look.backlog_bytes
    name = None if slowest is None or not slowest.backlog else slowest.name
    return (None if known is None or known < 0 else float(known)), name


def _backlog(each: SubscriptionLook) -> tuple[int, int]:
    return (
        -1 if each.backlog_bytes is None else each.backlog_bytes,
        -1 if each.backlog is None else each.backlog,
    )


def quota_state(level: Level) -> QuotaState:
    """A quota as explain shows it. A cluster does not tell its policy; amounts that only a broker
    counts are 0."""
    use = level.used / level.limit
    return QuotaState(
        topic=level.topic,
        type=level.type.label,
        policy="",
        source="",
        limit=level.limit,
        used=level.used,
        use=use,
        subscription=level.subscription,
        exceeded=level.exceeded,
        seconds_to_breach=level.seconds_to_breach,
        seconds_to_breach_earliest=None if level.band is None else level.band.earliest_s,
        seconds_to_breach_latest=None if level.band is None else level.band.latest_s,
        stopped_s=0.0,
        producers_closed=0,
        producers_refused=0,
        evictions=0,
        evicted_messages=0,
        evicted_bytes=0,
        sentence=_sentence(level, use),
    )


def _sentence(level: Level, use: float) -> str:
    is_size = level.type is QuotaType.SIZE
    text = quota_sentence(
        use=use,
        limit_text=size_text(level.limit) if is_size else time_text(level.limit),
        source="",
        kind="size" if is_size else "time",
        policy="",
        subscription=None if is_size else level.subscription,
        oldest_age_s=None if is_size else level.oldest_age_s,
        seconds_to_breach=level.seconds_to_breach,
        exceeded=level.exceeded,
        slowest=level.subscription if is_size else None,
    )
    period_s = level.period_s
    if level.seconds_to_breach and period_s is not None and period_s >= FAR_APART_S:
        text += f" (the rate is from looks {time_text(period_s)} apart)"
    return text
