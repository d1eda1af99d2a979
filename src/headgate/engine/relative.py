"""Keeps limits relative to the publish rate in force (law 1.7, PIP-52).

A topic is followed while a relative limit concerns it: its own, one of its subscriptions' or the
broker's. Its publish rate is sampled while something is published or the followed rate still falls;
a topic that rests costs nothing.

A subscription's limit is the publish rate plus what is configured. A topic's limit is shared by its
subscriptions, and each of them needs what is published: so it is k times the publish rate plus what
is configured, k being those that have a consumer and are not exempt, at least one. The broker's is
the sum of that over its topics, plus what is configured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.flow.limits import DispatchLimit, PerSecond
from headgate.flow.relative import SAMPLE_NS, PublishRate

if TYPE_CHECKING:
    from headgate.engine.engine import Engine
    from headgate.engine.subscription import Subscription
    from headgate.engine.topic import Topic

NOTHING = PerSecond(0.0, 0.0)


class RelativeLimits:
    """The relative limits of one engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._moving: dict[Topic, None] = {}
        """Followed topics whose rates are not at rest, in the order in which they began."""
        self._is_armed = False

    # -- who is followed -------------------------------------------------------------------

    def limits_set(self, topic: Topic) -> None:
        """Limits of the topic, of a subscription of it or of the broker were set."""
        if not self._concerns(topic):
            topic.publish_rate = None
            self._moving.pop(topic, None)
        elif topic.publish_rate is None:
            engine = self._engine
            # What the stats know of the last seconds spares a limit that is set on a topic in full
            # swing the second that a measurement takes.
            known = topic.rates.per_second(topic.counters(), engine.now_ns)[:3]
            topic.publish_rate = PublishRate(_counts(topic), engine.now_ns, known=known)
            self._move(topic)

    def loaded(self, topic: Topic, known: PublishRate | None) -> None:
        """A topic was loaded, its limits are set; ``known`` if it was followed when it was
        unloaded."""
        if known is not None:
            topic.publish_rate = known
            known.resume(_counts(topic), self._engine.now_ns)
            self._move(topic)
            self._put_in_force(topic)

    def unloaded(self, topic: Topic) -> PublishRate | None:
        """A topic is unloaded: what is to be known of it when it is loaded again."""
        self._moving.pop(topic, None)
        return topic.publish_rate

    def published(self, topic: Topic, first: int) -> None:
        """A followed topic got entries, the first of which is ``first``."""
        if topic not in self._moving and topic.publish_rate is not None:
            topic.publish_rate.resume(_counts(topic, first), self._engine.now_ns)
            self._move(topic)

    def _concerns(self, topic: Topic) -> bool:
        if topic.is_system:
            return False
        limits = [s.limit for s in topic.subscriptions.values()]
        limits += [topic.limit, self._engine.broker_limit]
        return any(limit is not None and limit.relative for limit in limits)

    def _move(self, topic: Topic) -> None:
        self._moving[topic] = None
        if not self._is_armed:
            self._is_armed = True
            self._engine.wake_at(self._engine.now_ns + SAMPLE_NS, self._sample)

    # -- what they amount to ---------------------------------------------------------------

    def published_per_second(self, topic: Topic) -> PerSecond:
        """The followed publish rate of a topic, as its limits count messages."""
        if topic.publish_rate is None:
            return NOTHING
        messages, size, entries = topic.publish_rate.per_second
        return PerSecond(entries if self._engine.throttle_counts_entries else messages, size)

    def owed_per_second(self, topic: Topic) -> PerSecond:
        """What the topic's subscriptions need together to keep up."""
        followers = sum(
            bool(s.consumers) and not s.gate.exempt for s in topic.subscriptions.values()
        )
        published = self.published_per_second(topic)
        return PerSecond(*(max(1, followers) * rate for rate in published))

    def owed_in_all_per_second(self) -> PerSecond:
        """What all topics' subscriptions need together to keep up."""
        owed = [self.owed_per_second(topic) for topic in self._moving]
        return PerSecond(sum(o.messages for o in owed), sum(o.bytes for o in owed))

    def of_subscription(self, subscription: Subscription) -> DispatchLimit | None:
        """The limit in force on a subscription."""
        limit = subscription.limit
        if limit is None or not limit.relative:
            return limit
        return limit.over(self.published_per_second(subscription.topic))

    def of_topic(self, topic: Topic) -> DispatchLimit | None:
        """The limit in force on a topic."""
        limit = topic.limit
        if limit is None or not limit.relative:
            return limit
        return limit.over(self.owed_per_second(topic))

    def of_broker(self) -> DispatchLimit | None:
        """The limit in force on the broker."""
        limit = self._engine.broker_limit
        if limit is None or not limit.relative:
            return limit
        return limit.over(self.owed_in_all_per_second())

    # -- the samples -----------------------------------------------------------------------

    def _sample(self) -> None:
        engine = self._engine
        self._is_armed = False
        for topic in list(self._moving):
            rate = topic.publish_rate
            goes_on = rate is not None and rate.sample(_counts(topic), engine.now_ns)
            self._put_in_force(topic)
            if not goes_on:
                del self._moving[topic]
        limit = engine.broker_limit
        if limit is not None and limit.relative:
            engine.gate.set_limit(self.of_broker(), engine.now_ns)
        if self._moving:
            self._is_armed = True
            engine.wake_at(engine.now_ns + SAMPLE_NS, self._sample)

    def _put_in_force(self, topic: Topic) -> None:
        now_ns = self._engine.now_ns
        if topic.limit is not None and topic.limit.relative:
            topic.gate.set_limit(self.of_topic(topic), now_ns)
        for subscription in topic.subscriptions.values():
            if subscription.limit is not None and subscription.limit.relative:
                subscription.gate.set_limit(self.of_subscription(subscription), now_ns)


def _counts(topic: Topic, ordinal: int | None = None) -> tuple[int, int, int]:
    """Messages, bytes and entries published before ``ordinal``; before the topic's end if None."""
    log = topic.log
    end = log.end if ordinal is None else ordinal
    return log.messages_before(end), log.bytes_before(end), end
