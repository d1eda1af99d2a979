"""Backlog quotas in the events of the telemetry, one event for each window.

A quota beside a slow consumer is exceeded and released hundreds of times a second, and a quota
beside a fast producer evicts as often. So ``quota_exceeded`` has the instant at which a quota first
stopped producers, ``quota_released`` the last release of the first window at whose end it is
released, and the evictions of one window, topic and type are one event with their sums.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from headgate.base.sliced import Sliced
from headgate.engine.eviction import Eviction, SubscriptionLoss
from headgate.engine.topic import Topic
from headgate.flow.quota.backlog_quota import Quota, QuotaType
from headgate.telemetry.records.events import EVENTS_PER_YIELD, EventLog
from headgate.telemetry.records.names import Names
from headgate.telemetry.records.quotas import event_inputs, eviction_outcome, producers_outcome

Key = tuple[Topic, QuotaType]


@dataclass(frozen=True, slots=True)
class _Change:
    """The state of a quota at the instant at which it was exceeded or released."""

    at_ns: int
    quota: Quota
    backlog_bytes: int
    age_ms: int


@dataclass(slots=True)
class _Evictions:
    """The evictions of one window."""

    at_ns: int
    first: Eviction
    last: Eviction
    count: int = 0
    messages: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    bytes: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))

    def add(self, act: Eviction, at_ns: int) -> None:
        self.at_ns, self.last = at_ns, act
        self.count += 1
        for subscription, messages, size in act.losses:
            self.messages[subscription] += messages
            self.bytes[subscription] += size

    def sum(self) -> Eviction:
        """The sum as one eviction."""
        taken = [SubscriptionLoss(name, n, self.bytes[name]) for name, n in self.messages.items()]
        taken.sort(key=lambda loss: -loss.bytes)
        first, last = self.first, self.last
        return Eviction(
            last.quota,
            first.backlog_bytes_before,
            first.age_ms_before,
            taken,
            last.backlog_bytes,
            last.age_ms,
        )


class QuotaEvents:
    """Gathers what the quotas of one broker do until the window ends."""

    def __init__(self, events: EventLog, names: Names) -> None:
        self._events = events
        self._names = names
        self._exceeded: set[Key] = set()
        """Quotas with an event ``quota_exceeded`` and none ``quota_released`` yet."""
        self._released: dict[Key, _Change] = {}
        """Of these, the quotas that are released at present."""
        self._acts: dict[Key, _Evictions] = {}

    def quota_state_changed(
        self, topic: Topic, quota: Quota, *, exceeded: bool, at_ns: int
    ) -> None:
        """A quota stops producers from now on, or releases them."""
        key = topic, quota.type
        live = topic.quota
        backlog_bytes, age_ms = (0, -1) if live is None else (live.backlog_bytes(), live.age_ms())
        change = _Change(at_ns, quota, backlog_bytes, age_ms)
        if not exceeded:
            if key in self._exceeded:
                self._released[key] = change
        elif key in self._exceeded:
            self._released.pop(key, None)
        else:
            self._exceeded.add(key)
            self._add(topic, "quota_exceeded", change)

    def evicted(self, topic: Topic, act: Eviction, at_ns: int) -> None:
        """A quota evicted messages."""
        key = topic, act.quota.type
        acts = self._acts.get(key)
        if acts is None:
            acts = self._acts[key] = _Evictions(at_ns, act, act)
        acts.add(act, at_ns)

    def end_window(self) -> Sliced[None]:
        """Add the events of the window, with pauses: there may be one for each of 20,000 topics."""
        for number, key in enumerate([*self._released, *self._acts], start=1):
            # What changes in a pause: a topic may be gone, a quota may stop its producers again.
            self._end(key)
            if number % EVENTS_PER_YIELD == 0:
                yield

    def _end(self, key: Key) -> None:
        change = self._released.pop(key, None)
        if change is not None:
            self._exceeded.discard(key)
            self._add(key[0], "quota_released", change)
        acts = self._acts.pop(key, None)
        if acts is not None:
            self._add_evictions(key[0], acts)

    def topic_unloaded(self, topic: Topic) -> None:
        """Add the events of a topic and forget it."""
        for kind in QuotaType:
            self._end((topic, kind))
            self._exceeded.discard((topic, kind))

    def _add(self, topic: Topic, event: str, change: _Change) -> None:
        name = self._names.topic(topic.name)
        if not self._events.has_room(name):
            self._events.drop()
            return
        self._events.add(
            change.at_ns,
            event,
            topic=name,
            incarnation=topic.incarnation,
            inputs=event_inputs(change.quota, change.backlog_bytes, change.age_ms, self._names),
            outcome=producers_outcome(change.quota, event == "quota_exceeded"),
        )

    def _add_evictions(self, topic: Topic, acts: _Evictions) -> None:
        name = self._names.topic(topic.name)
        if not self._events.has_room(name):
            self._events.drop()
            return
        act = acts.sum()
        inputs = event_inputs(act.quota, act.backlog_bytes_before, act.age_ms_before, self._names)
        self._events.add(
            acts.at_ns,
            "eviction",
            topic=name,
            incarnation=topic.incarnation,
            inputs=inputs,
            outcome={"acts": acts.count} | eviction_outcome(act, self._names),
        )
