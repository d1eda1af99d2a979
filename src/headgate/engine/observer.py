"""The events that an engine reports about topics, subscriptions, limits or quotas.

An observer may read the engine and never changes anything. Nothing on the path of a message calls
it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from headgate.engine.eviction import Eviction
    from headgate.engine.subscription import Subscription
    from headgate.engine.topic import Topic
    from headgate.flow.adaptive.cycle import Decision
    from headgate.flow.expiry import MessageTtl
    from headgate.flow.quota.backlog_quota import Quota


class Observer(Protocol):
    """Receives the engine's events."""

    def topic_loaded(self, topic: Topic, /) -> None:
        """A topic became live; its limits and subscriptions follow."""

    def topic_unloaded(self, topic: Topic, /) -> None:
        """A topic is about to be unloaded with all its subscriptions."""

    def subscription_added(self, subscription: Subscription, /) -> None:
        """A subscription became live; its limit follows."""

    def subscription_removed(self, subscription: Subscription, /) -> None:
        """A subscription is about to be removed."""

    def limits_changed(self, topic: Topic | None, subscription: Subscription | None, /) -> None:
        """The dispatch limit of a topic, of one of its subscriptions or, with (None, None), of the
        broker was applied, perhaps unchanged."""

    def publish_limits_changed(self, topic: Topic | None, /) -> None:
        """The publish limit of a topic, static or adaptive, or (None) of the broker was applied,
        perhaps unchanged. Not called for topics that never had one."""

    def quota_state_changed(self, topic: Topic, quota: Quota, exceeded: bool, /) -> None:
        """A topic reached a quota that stops producers, or has room again."""

    def evicted(self, topic: Topic, eviction: Eviction, /) -> None:
        """A quota took messages from subscriptions of a topic."""

    def expired(self, subscription: Subscription, ttl: MessageTtl, messages: int, /) -> None:
        """A TTL expired messages of a subscription, at least one."""

    def decided(self, topic: Topic, decision: Decision, /) -> None:
        """The adaptive controller started, changed or ended a limit, or would have."""


class NoObserver:
    """The observer of an engine without one: it ignores every event."""

    def topic_loaded(self, topic: Topic, /) -> None: ...

    def topic_unloaded(self, topic: Topic, /) -> None: ...

    def subscription_added(self, subscription: Subscription, /) -> None: ...

    def subscription_removed(self, subscription: Subscription, /) -> None: ...

    def limits_changed(self, topic: Topic | None, subscription: Subscription | None, /) -> None: ...

    def publish_limits_changed(self, topic: Topic | None, /) -> None: ...

    def quota_state_changed(self, topic: Topic, quota: Quota, exceeded: bool, /) -> None: ...

    def evicted(self, topic: Topic, eviction: Eviction, /) -> None: ...

    def expired(self, subscription: Subscription, ttl: MessageTtl, messages: int, /) -> None: ...

    def decided(self, topic: Topic, decision: Decision, /) -> None: ...
