"""Changed limits in the telemetry: each is looked up once, and is an event if it differs."""

from __future__ import annotations

from typing import Protocol

from headgate.engine.engine import Engine
from headgate.engine.topic import Topic
from headgate.flow.limits.precedence import EffectiveLimit
from headgate.policy.current_limits import (
    PUBLISH_BROKER,
    PUBLISH_TOPIC,
    CurrentDispatchLimits,
    CurrentPublishLimits,
)
from headgate.policy.resolver import PolicyResolver
from headgate.telemetry.records.events import EventLog
from headgate.telemetry.records.limit_track import LimitTrack, limit_values
from headgate.telemetry.records.limiter_tracks import LimiterTracks
from headgate.telemetry.records.names import PLAIN, Names
from headgate.telemetry.records.quotas import limit_values as quota_limit_values
from headgate.telemetry.records.subjects import SubscriptionTrack, TopicTrack


class LimitLookups(Protocol):
    """Where limits and quotas are looked up: a broker is one."""

    policies: PolicyResolver
    """The limits that are set."""
    current_dispatch_limits: CurrentDispatchLimits
    """The dispatch limits with their present amounts."""
    current_publish_limits: CurrentPublishLimits
    """The publish limits with their present amounts."""


class LimitEvents:
    """Keeps the limit of each subject for its rows, and adds an event when a limit changed."""

    def __init__(
        self,
        engine: Engine,
        limits: LimitLookups,
        limiters: LimiterTracks,
        events: EventLog,
        names: Names = PLAIN,
    ) -> None:
        self._engine = engine
        self._limits = limits
        self._limiters = limiters
        self._events = events
        self._names = names
        self.broker = LimitTrack(0)
        """The dispatch limit of the broker."""
        self.publish_broker = LimitTrack(0)
        """The publish limit of the broker."""

    def refresh_broker(self) -> None:
        """Look up the limits of the broker."""
        limit, limits = self.broker, self._limits
        if limit.changed_ns:
            effective = limits.policies.dispatch_limits.of_broker()
            self._change(limit, effective, "broker")
            self._limiters.set_source(self._engine.gate, effective)
        if limit.moves:
            limit.values = limit_values(limits.current_dispatch_limits.of_broker(), self._names)
        if self.publish_broker.changed_ns:
            effective = limits.current_publish_limits.of_broker()
            self._change(self.publish_broker, effective, PUBLISH_BROKER)
            self._limiters.set_source(self._engine.admission.gate, effective)

    def refresh_topic(self, track: TopicTrack) -> None:
        """Look up the dispatch limit, the quotas and the publish limit of a topic."""
        limit, topic = track.limit, track.topic
        if limit.changed_ns:
            effective = self._limits.policies.dispatch_limits.of_topic(topic.name)
            self._change(limit, effective, "topic", topic)
            self._limiters.set_source(topic.gate, effective)
            track.quota_limits = quota_limit_values(
                self._limits.policies.shown_quotas(topic), self._names
            )
        if limit.moves:
            limit.values = limit_values(
                self._limits.current_dispatch_limits.of_topic(topic), self._names
            )
        self._refresh_publish_limit(track.publishing.limit, topic)

    def _refresh_publish_limit(self, limit: LimitTrack, topic: Topic) -> None:
        if limit.changed_ns:
            # A change of the setting is an event here; the controller's changes are events of
            # another kind.
            self._change(
                limit,
                self._limits.policies.publish_limits.of_topic(topic.name),
                PUBLISH_TOPIC,
                topic,
            )
            effective = self._limits.current_publish_limits.of_topic(topic)
            limit.values = limit_values(effective, self._names)
            if topic.publishing.gate is not None:
                self._limiters.set_source(topic.publishing.gate, effective)

    def refresh_subscription(self, track: SubscriptionTrack) -> None:
        """Look up the dispatch limit of a subscription."""
        limit, own = track.limit, track.subscription
        if limit.changed_ns:
            effective = self._limits.policies.dispatch_limits.of_subscription(
                own.topic.name, own.name
            )
            self._change(limit, effective, "subscription", own.topic, own.name)
            self._limiters.set_source(own.gate, effective)
        if limit.moves:
            limit.values = limit_values(
                self._limits.current_dispatch_limits.of_subscription(own), self._names
            )

    def _change(
        self,
        limit: LimitTrack,
        effective: EffectiveLimit,
        level: str,
        topic: Topic | None = None,
        subscription: str | None = None,
    ) -> None:
        """Take over the limit that is set now, with an event if it is another one."""
        change = limit.change(effective, self._names)
        if change is None:
            return
        self._events.add(
            change.at_ns,
            "limit_changed",
            topic=self._names.topic(topic.name) if topic is not None else None,
            subscription=self._names.part(subscription) if subscription is not None else None,
            incarnation=topic.incarnation if topic is not None else None,
            inputs={"level": level, "before": change.before._asdict()},
            outcome=change.after._asdict(),
        )
