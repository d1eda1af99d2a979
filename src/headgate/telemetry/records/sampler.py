"""From the broker's state to rows of the telemetry record.

The sampler is the engine's observer: it learns of every loading, removal and change of a limit at
once, and walks all subjects once a window, in slices. The broker's own topics have no rows.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from typing import Final, Protocol

from headgate.base.clock import Clock
from headgate.base.park_cause import ParkCause
from headgate.broker.slices import Turns
from headgate.engine.engine import Engine
from headgate.engine.eviction import Eviction
from headgate.engine.producer import Producer
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.flow.account.account import FIRST_THROTTLED, LABELS, Cell
from headgate.flow.adaptive.cycle import Decision
from headgate.flow.limits.precedence import ABOVE_PUBLISH_RATE, EffectiveLimit
from headgate.flow.limits.rate_limit import Dimension, Level
from headgate.flow.quota.backlog_quota import Quota
from headgate.policy.limits_in_force import (
    PUBLISH_BROKER,
    PUBLISH_TOPIC,
    DispatchLimitsInForce,
    PublishLimitsInForce,
)
from headgate.policy.resolver import PolicyResolver
from headgate.record.codec import Columns
from headgate.record.fields import Kind
from headgate.telemetry.records.controller_events import ControllerEvents
from headgate.telemetry.records.events import EventLog
from headgate.telemetry.records.limit_track import LimitChange, LimitTrack, limit_values
from headgate.telemetry.records.limiters import (
    LIMITER_COLUMNS,
    Gate,
    LimiterTrack,
    Waiter,
    subject_of,
    topic_of,
)
from headgate.telemetry.records.names import PLAIN, Names
from headgate.telemetry.records.publishing import Turn
from headgate.telemetry.records.quota_events import QuotaEvents
from headgate.telemetry.records.quotas import limit_values as quota_limit_values
from headgate.telemetry.records.subjects import (
    SUBSCRIPTION_COLUMNS,
    TOPIC_COLUMNS,
    Instant,
    Row,
    SubscriptionTrack,
    TopicTrack,
)

SLICE_SUBJECTS: Final = 64
"""Subjects of one slice, between which other work has its turn: about a millisecond."""

MESSAGE_ROWS: Final = 256
"""Rows that are encoded at a time: about a millisecond and 100 KiB."""

LAST_ROWS_MAX: Final = 4_096
"""Last rows of ended subjects, kept for one window; further ones are dropped."""

_COLUMNS: Final = {
    Kind.TOPIC: TOPIC_COLUMNS,
    Kind.SUBSCRIPTION: SUBSCRIPTION_COLUMNS,
    Kind.LIMITER: LIMITER_COLUMNS,
}

Tables = dict[Kind, Columns]


class LimitLookups(Protocol):
    """Where limits and quotas are looked up: a broker is one."""

    policies: PolicyResolver
    """The limits that are set."""
    in_force: DispatchLimitsInForce
    """The dispatch limits with their present amounts."""
    publish_in_force: PublishLimitsInForce
    """The publish limits with their present amounts."""


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
        self._limits = limits
        self._broker_id = broker_id
        self._names = names
        self.events = EventLog()
        self._quotas = QuotaEvents(self.events, names)
        self._controller = ControllerEvents(self.events, names)
        self._topics: dict[Topic, TopicTrack] = {}
        self._limiters: dict[tuple[Gate, Dimension], LimiterTrack] = {}
        self._last_rows: list[tuple[Kind, Row]] = []
        self.dropped_rows_count = 0
        """Last rows dropped since the start."""
        self._broker_limit = LimitTrack(0)
        self._publish_limit = LimitTrack(0)
        self._rows: dict[Kind, list[Row]] = {kind: [] for kind in _COLUMNS}
        self._rows_count = 0
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

    # -- the engine's observer -------------------------------------------------------------

    def topic_loaded(self, topic: Topic, /) -> None:
        if not topic.is_system:
            now_ns = self._clock.wall_ns()
            self._topics[topic] = TopicTrack(topic, now_ns, self._names)

    def topic_unloaded(self, topic: Topic, /) -> None:
        track = self._topics.get(topic)
        if track is None:
            return
        for subscription in list(track.subscriptions.values()):
            self.subscription_removed(subscription.subscription)
        self._end_limiters(topic.gate)
        if topic.publishing.gate is not None:
            self._end_limiters(topic.publishing.gate)
        self._quotas.topic_unloaded(topic)
        self._controller.topic_unloaded(topic)
        self._keep_last(Kind.TOPIC, track.row(self._ending()))
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
            self._end_limiters(subscription.gate)
            self._keep_last(Kind.SUBSCRIPTION, track.row(self._ending(), self._broker_limit.values))

    def limits_changed(self, topic: Topic | None, subscription: Subscription | None, /) -> None:
        """Only reads the budgets' figures; the limit itself is looked up at the end of the
        window."""
        now_ns = self._clock.wall_ns()
        if topic is None:
            self._broker_limit.changed_ns = now_ns
            self._follow_budgets(self._engine.gate, "broker", self._broker_id, 0, now_ns)
            return
        track = self._topics.get(topic)
        if track is None:
            return
        if subscription is None:
            track.limit.changed_ns = now_ns
            name = self._names.topic(topic.name)
            self._follow_budgets(topic.gate, "topic", name, topic.incarnation, now_ns)
            return
        own = track.subscriptions.get(subscription.name)
        if own is not None:
            own.limit.changed_ns = now_ns
            name = subject_of(subscription, self._names)
            gate = subscription.gate
            self._follow_budgets(gate, "subscription", name, topic.incarnation, now_ns)

    def publish_limits_changed(self, topic: Topic | None, /) -> None:
        now_ns = self._clock.wall_ns()
        if topic is None:
            self._publish_limit.changed_ns = now_ns
            gate = self._engine.admission.gate
            self._follow_budgets(gate, PUBLISH_BROKER, self._broker_id, 0, now_ns)
            return
        track = self._topics.get(topic)
        if track is not None and topic.publishing.gate is not None:
            track.publishing.limit.changed_ns = now_ns
            track.publishing.begin()
            name, incarnation = self._names.topic(topic.name), topic.incarnation
            self._follow_budgets(topic.publishing.gate, PUBLISH_TOPIC, name, incarnation, now_ns)

    def quota_state_changed(self, topic: Topic, quota: Quota, exceeded: bool, /) -> None:
        if topic in self._topics:
            at_ns = self._clock.wall_ns()
            self._quotas.quota_state_changed(topic, quota, exceeded=exceeded, at_ns=at_ns)

    def evicted(self, topic: Topic, eviction: Eviction, /) -> None:
        if topic in self._topics:
            self._quotas.evicted(topic, eviction, self._clock.wall_ns())

    def decided(self, topic: Topic, decision: Decision, /) -> None:
        if topic in self._topics:
            self._controller.decided(topic, decision, self._clock.wall_ns())

    def _follow_budgets(
        self, gate: Gate, level: str, subject: str, incarnation: int, since_ns: int
    ) -> None:
        in_force = {budget.dimension for budget in gate.budgets}
        self._end_limiters(gate, keep=in_force)
        for budget in gate.budgets:
            if (gate, budget.dimension) not in self._limiters:
                self._limiters[gate, budget.dimension] = LimiterTrack(
                    gate,
                    budget,
                    level,
                    subject,
                    incarnation=incarnation,
                    since_ns=since_ns,
                    now_ns=self._engine.now_ns,
                    names=self._names,
                )

    def _end_limiters(self, gate: Gate, keep: Collection[Dimension] = ()) -> None:
        for dimension in Dimension:
            if dimension not in keep and (gate, dimension) in self._limiters:
                track = self._limiters.pop((gate, dimension))
                row = track.row(self._ending(), self._engine.now_ns, self._sent_in_window)
                self._keep_last(Kind.LIMITER, row)

    def _ending(self) -> Instant:
        now_ns = self._clock.wall_ns()
        return Instant(now_ns, now_ns, gone=True)

    def _keep_last(self, kind: Kind, row: Row | None) -> None:
        if row is None:
            return
        if len(self._last_rows) >= LAST_ROWS_MAX:
            self.dropped_rows_count += 1
            return
        self._last_rows.append((kind, row))

    def clock_went_back(self, wall_ns: int) -> None:
        """Continue from ``wall_ns`` after the wall clock was set back. Otherwise no row would come
        until the clock reaches its old value, perhaps in years."""
        tracks: list[TopicTrack | SubscriptionTrack | LimiterTrack] = [*self._limiters.values()]
        for topic in self._topics.values():
            tracks += topic, *topic.subscriptions.values()
        for track in tracks:
            track.covered_ns = min(track.covered_ns, wall_ns)

    # -- the walk --------------------------------------------------------------------------

    async def tables(self, at: Instant) -> AsyncIterator[Tables]:
        """Rows of all subjects that changed since the last window (of all subjects if ``at.full``),
        in parts to be encoded one by one; no parts without changes."""
        self._turns.begin_turn()
        last_rows, self._last_rows = self._last_rows, []
        for kind, row in last_rows:
            self._add(kind, row)
        self._refresh_broker_limit()
        for limiter in self._limiters.values():
            limiter.waiting = 0
        looked = 0
        for topic in list(self._topics.values()):
            if self._topics.get(topic.topic) is not topic:
                continue
            self._refresh_topic_limit(topic)
            self._refresh_publish_limit(topic)
            self._add(Kind.TOPIC, topic.row(at))
            self._look_at_publishing(topic, at)
            # The topic counts as a subject itself: most topics may have no subscription.
            for track in (None, *topic.subscriptions.values()):
                if track is not None and not track.subscription.removed:
                    self._look_at(track, at)
                looked += 1
                if looked >= SLICE_SUBJECTS:
                    looked = 0
                    if self._rows_count >= MESSAGE_ROWS:
                        yield self._take()
                    await self._give_way()
        for limiter in list(self._limiters.values()):
            self._add(Kind.LIMITER, limiter.row(at, self._engine.now_ns, self._sent_in_window))
            looked += 1
            if looked >= SLICE_SUBJECTS:
                looked = 0
                await self._give_way()
        rest = self._take()
        self._quotas.end_window()
        self._controller.end_window()
        events = self.events.take()
        if events is not None:
            rest[Kind.EVENT] = events
        if rest:
            yield rest

    async def _give_way(self) -> None:
        await asyncio.sleep(0)
        self._turns.begin_turn()

    def _add(self, kind: Kind, row: Row | None) -> None:
        if row is not None:
            self._rows[kind].append(row)
            self._rows_count += 1

    def _take(self) -> Tables:
        tables: Tables = {}
        for kind, rows in self._rows.items():
            if rows:
                tables[kind] = dict(zip(_COLUMNS[kind], zip(*rows, strict=True), strict=True))
                rows.clear()
        self._rows_count = 0
        return tables

    def _look_at(self, track: SubscriptionTrack, at: Instant) -> None:
        self._refresh_subscription_limit(track)
        before = track.cells_ns
        self._add(Kind.SUBSCRIPTION, track.row(at, self._broker_limit.values))
        self._add_throttle_event(track, before, at)
        subscription = track.subscription
        if subscription.throttled:
            for gate in (subscription.gate, subscription.topic.gate, self._engine.gate):
                for budget in gate.budgets:
                    limiter = self._limiters.get((gate, budget.dimension))
                    if limiter is not None:
                        limiter.waiting += track.waiting_amount(budget.dimension)

    def _look_at_publishing(self, track: TopicTrack, at: Instant) -> None:
        topic, publishing = track.topic, track.publishing
        publishing.end_window()
        if (turn := publishing.turn()) is not None:
            self._add_holding_event(track, turn, at)
        own: tuple[Gate, ...] = () if topic.publishing.gate is None else (topic.publishing.gate,)
        for gate in (*own, self._engine.admission.gate):
            for budget in gate.budgets:
                limiter = self._limiters.get((gate, budget.dimension))
                if limiter is not None:
                    limiter.waiting += publishing.waiting(budget.dimension)

    def _sent_in_window(self, waiter: Waiter, dimension: Dimension) -> int:
        known = topic_of(waiter)
        topic = None if known is None else self._topics.get(known)
        if isinstance(waiter, Producer):
            return 0 if topic is None else topic.publishing.granted(waiter, dimension)
        track = topic.subscriptions.get(waiter.name) if topic is not None else None
        return track.sent_in_window[dimension] if track is not None else 0

    # -- limits and throttling -------------------------------------------------------------

    def _refresh_broker_limit(self) -> None:
        limit, limits = self._broker_limit, self._limits
        if limit.changed_ns:
            effective = limits.policies.dispatch_limits.of_broker()
            if (change := limit.change(effective, self._names)) is not None:
                self._add_limit_event(change, "broker")
            self._name_sources(self._engine.gate, effective)
        if limit.moves:
            limit.values = limit_values(limits.in_force.of_broker(), self._names)
        limit = self._publish_limit
        if limit.changed_ns:
            effective = limits.publish_in_force.of_broker()
            if (change := limit.change(effective, self._names)) is not None:
                self._add_limit_event(change, PUBLISH_BROKER)
            self._name_sources(self._engine.admission.gate, effective)

    def _refresh_topic_limit(self, track: TopicTrack) -> None:
        limit, topic = track.limit, track.topic
        if limit.changed_ns:
            effective = self._limits.policies.dispatch_limits.of_topic(topic.name)
            if (change := limit.change(effective, self._names)) is not None:
                self._add_limit_event(change, "topic", topic)
            self._name_sources(topic.gate, effective)
            track.quota_limits = quota_limit_values(
                self._limits.policies.shown_quotas(topic), self._names
            )
        if limit.moves:
            limit.values = limit_values(self._limits.in_force.of_topic(topic), self._names)

    def _refresh_publish_limit(self, track: TopicTrack) -> None:
        limit, topic = track.publishing.limit, track.topic
        if limit.changed_ns:
            # A change of the setting is an event here; the controller's changes are events of
            # another kind.
            effective = self._limits.policies.publish_limits.of_topic(topic.name)
            if (change := limit.change(effective, self._names)) is not None:
                self._add_limit_event(change, PUBLISH_TOPIC, topic)
            effective = self._limits.publish_in_force.of_topic(topic)
            limit.values = limit_values(effective, self._names)
            if topic.publishing.gate is not None:
                self._name_sources(topic.publishing.gate, effective)

    def _refresh_subscription_limit(self, track: SubscriptionTrack) -> None:
        limit, own = track.limit, track.subscription
        if limit.changed_ns:
            effective = self._limits.policies.dispatch_limits.of_subscription(
                own.topic.name, own.name
            )
            if (change := limit.change(effective, self._names)) is not None:
                self._add_limit_event(change, "subscription", own.topic, own.name)
            self._name_sources(own.gate, effective)
        if limit.moves:
            limit.values = limit_values(self._limits.in_force.of_subscription(own), self._names)

    def _name_sources(self, gate: Gate, effective: EffectiveLimit) -> None:
        moves = ABOVE_PUBLISH_RATE if effective.limit and effective.limit.relative else ""
        for dimension in Dimension:
            limiter = self._limiters.get((gate, dimension))
            if limiter is not None:
                limiter.source = self._names.limit_source(effective.source_of(dimension)) + moves

    def _add_limit_event(
        self,
        change: LimitChange,
        level: str,
        topic: Topic | None = None,
        subscription: str | None = None,
    ) -> None:
        self.events.add(
            change.at_ns,
            "limit_changed",
            topic=self._names.topic(topic.name) if topic is not None else None,
            subscription=self._names.part(subscription) if subscription is not None else None,
            incarnation=topic.incarnation if topic is not None else None,
            inputs={"level": level, "before": change.before._asdict()},
            outcome=change.after._asdict(),
        )

    def _add_holding_event(self, track: TopicTrack, turn: Turn, at: Instant) -> None:
        is_broker = turn.cause is ParkCause.BROKER_RATE
        limit = self._publish_limit if is_broker else track.publishing.limit
        self.events.add(
            max(at.window_start_ns, track.since_ns),
            "throttle_began" if turn.began else "throttle_ended",
            topic=self._names.topic(track.topic.name),
            incarnation=track.topic.incarnation,
            inputs={
                "level": PUBLISH_BROKER if is_broker else PUBLISH_TOPIC,
                **limit.values._asdict(),
            },
            outcome={"cause": turn.cause.label},
        )

    def _add_throttle_event(
        self, track: SubscriptionTrack, before: tuple[int, ...], at: Instant
    ) -> None:
        pairs = zip(before[FIRST_THROTTLED:], track.cells_ns[FIRST_THROTTLED:], strict=True)
        held = [b - a for a, b in pairs]
        held_ns = sum(held)
        if bool(held_ns) == (track.holding is not None):
            return
        if held_ns:
            event, track.holding = "throttle_began", Cell(FIRST_THROTTLED + held.index(max(held)))
            cell = track.holding
        elif track.holding is not None:
            event, cell = "throttle_ended", track.holding
            track.holding = None
        labels = LABELS[cell]
        level = labels.level or Level.SUBSCRIPTION
        topic = track.subscription.topic
        self.events.add(
            max(at.window_start_ns, track.since_ns),
            event,
            topic=self._names.topic(topic.name),
            subscription=track.name,
            incarnation=topic.incarnation,
            inputs={
                "level": level.name.lower(),
                "dimension": labels.dimension,
                **track.limit_at(level, self._broker_limit.values)._asdict(),
            },
            outcome={"consumer": labels.consumer},
        )
