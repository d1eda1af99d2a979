"""From the broker's state to rows of the telemetry record.

The sampler is the engine's observer: it learns of every loading, removal and change of a limit at
once, and walks all subjects once a window, in slices. The broker's own topics have no rows.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final, TypeVar

from headgate.base.clock import Clock
from headgate.base.drained import drained
from headgate.base.sliced import Sliced, at_once
from headgate.base.work_units import SLICE_UNITS
from headgate.broker.slices import Turns, in_slices
from headgate.engine.engine import Engine
from headgate.engine.eviction import Eviction
from headgate.engine.producer import Producer
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.flow.adaptive.cycle import Decision
from headgate.flow.expiry import MessageTtl
from headgate.flow.limits.rate_limit import Dimension
from headgate.flow.quota.backlog_quota import Quota
from headgate.policy.current_limits import PUBLISH_BROKER, PUBLISH_TOPIC
from headgate.record.fields import Kind
from headgate.telemetry.records.controller_events import ControllerEvents
from headgate.telemetry.records.events import EventLog
from headgate.telemetry.records.expiry_events import ExpiryEvents
from headgate.telemetry.records.limit_events import LimitEvents, LimitLookups
from headgate.telemetry.records.limiter_tracks import LimiterTracks
from headgate.telemetry.records.limiters import LimiterTrack, Waiter, subject_of, topic_of
from headgate.telemetry.records.names import PLAIN, Names
from headgate.telemetry.records.quota_events import QuotaEvents
from headgate.telemetry.records.row_buffer import RowBuffer, Tables
from headgate.telemetry.records.subjects import Instant, SubscriptionTrack, TopicTrack
from headgate.telemetry.records.throttle_events import ThrottleEvents

T = TypeVar("T")

SLICE_SUBJECTS: Final = 64
"""Subjects of one slice, between which other work has its turn: about a millisecond."""

MESSAGE_ROWS: Final = 256
"""Rows that are encoded at a time: about a millisecond and 100 KiB."""


class Sampler:
    """Follows one broker. Make it before the broker starts, so that it sees every subject from the
    beginning."""

    def __init__(
        self,
        engine: Engine,
        turns: Turns,
        clock: Clock,
        limits: LimitLookups,
        broker_id: str,
        names: Names = PLAIN,
    ) -> None:
        """``broker_id`` is the subject of the broker's own limits."""
        self._engine = engine
        self._turns = turns
        self._clock = clock
        self._broker_id = broker_id
        self._names = names
        self._topics: dict[Topic, TopicTrack] = {}
        self._rows = RowBuffer()
        self._limiters = LimiterTracks(engine, self._rows, self._sent_in_window, names)
        self.events = EventLog()
        self._limits = LimitEvents(engine, limits, self._limiters, self.events, names)
        self._throttling = ThrottleEvents(self.events, names)
        self._quotas = QuotaEvents(self.events, names)
        self._expiry = ExpiryEvents(self.events, names)
        self._controller = ControllerEvents(self.events, names)
        self._engine.observer = self
        for topic in self._engine.live_topics():
            self.topic_loaded(topic)
            self.limits_changed(topic, None)
            self.publish_limits_changed(topic)
            for subscription in topic.subscriptions.values():
                self.subscription_added(subscription)
                self.limits_changed(topic, subscription)
        self.limits_changed(None, None)
        self.publish_limits_changed(None)

    @property
    def dropped_rows_count(self) -> int:
        """Last rows of ended subjects that were dropped since the start."""
        return self._rows.dropped_count

    # -- the engine's observer -------------------------------------------------------------

    def topic_loaded(self, topic: Topic, /) -> None:
        if not topic.is_system:
            self._topics[topic] = TopicTrack(topic, self._clock.wall_ns(), self._names)

    def topic_unloaded(self, topic: Topic, /) -> None:
        track = self._topics.get(topic)
        if track is None:
            return
        for subscription in list(track.subscriptions.values()):
            self.subscription_removed(subscription.subscription)
        at_ns = self._clock.wall_ns()
        self._limiters.end(topic.gate, at_ns)
        if topic.publishing.gate is not None:
            self._limiters.end(topic.publishing.gate, at_ns)
        self._quotas.topic_unloaded(topic)
        self._expiry.topic_unloaded(topic)
        self._controller.topic_unloaded(topic)
        self._rows.add_last(Kind.TOPIC, track.row(Instant.end(at_ns)))
        del self._topics[topic]

    def subscription_added(self, subscription: Subscription, /) -> None:
        topic = self._topics.get(subscription.topic)
        if topic is not None:
            now_ns = self._clock.wall_ns()
            topic.subscriptions[subscription.name] = SubscriptionTrack(subscription, topic, now_ns)

    def subscription_removed(self, subscription: Subscription, /) -> None:
        topic = self._topics.get(subscription.topic)
        track = topic.subscriptions.pop(subscription.name, None) if topic is not None else None
        if track is not None:
            at_ns = self._clock.wall_ns()
            self._limiters.end(subscription.gate, at_ns)
            if self._rows.has_room_for_last:
                row = track.row(Instant.end(at_ns), self._limits.broker.values)
                self._rows.add_last(Kind.SUBSCRIPTION, row)
            else:
                self._rows.drop_last()

    def limits_changed(self, topic: Topic | None, subscription: Subscription | None, /) -> None:
        """Only reads the budgets' figures; the limit itself is looked up at the end of the
        window."""
        now_ns, follow = self._clock.wall_ns(), self._limiters.follow
        if topic is None:
            self._limits.broker.changed_ns = now_ns
            follow(self._engine.gate, "broker", self._broker_id, 0, now_ns)
            return
        track = self._topics.get(topic)
        if track is None:
            return
        if subscription is None:
            track.limit.changed_ns = now_ns
            name = self._names.topic(topic.name)
            follow(topic.gate, "topic", name, topic.incarnation, now_ns)
            return
        own = track.subscriptions.get(subscription.name)
        if own is not None:
            own.limit.changed_ns = now_ns
            name = subject_of(subscription, self._names)
            follow(subscription.gate, "subscription", name, topic.incarnation, now_ns)

    def publish_limits_changed(self, topic: Topic | None, /) -> None:
        now_ns, follow = self._clock.wall_ns(), self._limiters.follow
        if topic is None:
            self._limits.publish_broker.changed_ns = now_ns
            gate = self._engine.admission.gate
            follow(gate, PUBLISH_BROKER, self._broker_id, 0, now_ns)
            return
        track = self._topics.get(topic)
        if track is not None and topic.publishing.gate is not None:
            track.publishing.limit.changed_ns = now_ns
            track.publishing.begin()
            name = self._names.topic(topic.name)
            follow(topic.publishing.gate, PUBLISH_TOPIC, name, topic.incarnation, now_ns)

    def quota_state_changed(self, topic: Topic, quota: Quota, exceeded: bool, /) -> None:
        if topic in self._topics:
            at_ns = self._clock.wall_ns()
            self._quotas.quota_state_changed(topic, quota, exceeded=exceeded, at_ns=at_ns)

    def evicted(self, topic: Topic, eviction: Eviction, /) -> None:
        if topic in self._topics:
            self._quotas.evicted(topic, eviction, self._clock.wall_ns())

    def expired(self, subscription: Subscription, ttl: MessageTtl, messages: int, /) -> None:
        if subscription.topic in self._topics:
            self._expiry.expired(subscription, ttl, messages, self._clock.wall_ns())

    def decided(self, topic: Topic, decision: Decision, /) -> None:
        if topic in self._topics:
            self._controller.decided(topic, decision, self._clock.wall_ns())

    def clock_went_back(self, wall_ns: int) -> None:
        """Continue from ``wall_ns`` after the wall clock was set back. Otherwise no row would come
        until the clock reaches its old value, perhaps in years."""
        tracks: list[TopicTrack | SubscriptionTrack | LimiterTrack] = [*self._limiters]
        for topic in self._topics.values():
            tracks += topic, *topic.subscriptions.values()
        for track in tracks:
            track.covered_ns = min(track.covered_ns, wall_ns)

    # -- the walk --------------------------------------------------------------------------

    async def tables(self, at: Instant) -> AsyncIterator[Tables]:
        """Rows of all subjects that changed since the last window (of all subjects if ``at.full``),
        in parts to be encoded one by one; no parts without changes."""
        self._turns.begin_turn()
        self._rows.begin_window()
        self._limits.refresh_broker()
        self._limiters.begin_window()
        looked = 0
        for live in self._engine.live_topics():
            topic = self._topics.get(live)
            if topic is None:
                continue
            self._limits.refresh_topic(topic)
            row = await self._in_slices(topic, topic.row_in_steps(at))
            self._rows.add(Kind.TOPIC, row)
            await self._in_slices(topic, topic.publishing.end_window_in_steps())
            if self._topics.get(topic.topic) is not topic:
                continue
            self._look_at_publishing(topic, at)
            # The topic counts as a subject itself: most topics may have no subscription.
            for track in drained([None, *topic.subscriptions.values()]):
                if track is not None and not track.subscription.removed:
                    self._look_at(track, at)
                looked += 1
                if looked >= SLICE_SUBJECTS:
                    looked = 0
                    await self._give_way()
                    while self._rows.count >= MESSAGE_ROWS:
                        yield self._rows.take(MESSAGE_ROWS)
                        await self._give_way()
        for limiter in self._limiters:
            self._limiters.add_row(limiter, at)
            looked += 1
            if looked >= SLICE_SUBJECTS:
                looked = 0
                await self._give_way()
            while self._rows.count >= MESSAGE_ROWS:
                yield self._rows.take(MESSAGE_ROWS)
                await self._give_way()
        while self._rows.count >= MESSAGE_ROWS:
            yield self._rows.take(MESSAGE_ROWS)
            await self._give_way()
        rest = self._rows.take(MESSAGE_ROWS)
        await in_slices(self._turns, self._quotas.end_window())
        self._expiry.end_window(full=at.full)
        await in_slices(self._turns, self._controller.end_window())
        left = self.events.count  # those that come during a pause are for the next window
        while left > 0 and (events := self.events.take(min(left, MESSAGE_ROWS))) is not None:
            rest[Kind.EVENT] = events
            left -= MESSAGE_ROWS
            if left > 0:
                yield rest
                await self._give_way()
                rest = {}
        if rest:
            yield rest

    async def _give_way(self) -> None:
        await self._turns.give_way(SLICE_UNITS)

    async def _in_slices(self, track: TopicTrack, work: Sliced[T]) -> T:
        """Do ``work`` at once, unless the topic has many subscriptions or producers."""
        if len(track.subscriptions) + len(track.topic.producers) <= SLICE_SUBJECTS:
            return at_once(work)
        return await in_slices(self._turns, work)

    def _look_at(self, track: SubscriptionTrack, at: Instant) -> None:
        self._limits.refresh_subscription(track)
        before, broker_limit = track.cells_ns, self._limits.broker.values
        self._rows.add(Kind.SUBSCRIPTION, track.row(at, broker_limit))
        self._throttling.of_subscription(track, before, at, broker_limit)
        subscription = track.subscription
        if subscription.throttled:
            for gate in (subscription.gate, subscription.topic.gate, self._engine.gate):
                self._limiters.add_waiting(gate, track.waiting_amount)

    def _look_at_publishing(self, track: TopicTrack, at: Instant) -> None:
        publishing = track.publishing
        self._throttling.of_producers(track, at, self._limits.publish_broker.values)
        for gate in (track.topic.publishing.gate, self._engine.admission.gate):
            if gate is not None:
                self._limiters.add_waiting(gate, publishing.waiting)

    def _sent_in_window(self, waiter: Waiter, dimension: Dimension) -> int:
        known = topic_of(waiter)
        topic = None if known is None else self._topics.get(known)
        if isinstance(waiter, Producer):
            return 0 if topic is None else topic.publishing.granted(waiter, dimension)
        track = topic.subscriptions.get(waiter.name) if topic is not None else None
        return track.sent_in_window[dimension] if track is not None else 0
