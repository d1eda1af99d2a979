"""What backlog quotas do, as events of the telemetry: told by windows, not by turns.

A quota beside a slow consumer turns over hundreds of times a second, and one that evicts beside a
quick producer acts as often. So ``quota_exceeded`` stands at the instant at which a quota first
stopped producers, ``quota_released`` at the last release of the first window at whose end it does
not, and the acts of eviction of one window, topic and type are one event with their sums.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from headgate.engine.eviction import Eviction, SubscriptionLoss
from headgate.engine.topic import Topic
from headgate.flow.quota.backlog_quota import Quota, QuotaType
from headgate.telemetry.records.events import EventLog
from headgate.telemetry.records.names import Names
from headgate.telemetry.records.quotas import event_inputs, eviction_outcome, turned_outcome

Key = tuple[Topic, QuotaType]


@dataclass(frozen=True, slots=True)
class _Turn:
    """A quota as it was when it turned."""

    at_ns: int
    quota: Quota
    backlog_bytes: int
    age_ms: int


@dataclass(slots=True)
class _Acts:
    """Acts of eviction of one window."""

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
        """All of them as one act."""
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
    """Gathers what the quotas of one broker do until a window ends."""

    def __init__(self, events: EventLog, names: Names) -> None:
        self._events = events
        self._names = names
        self._told: set[Key] = set()
        """Quotas of which was told that they stop producers."""
        self._released: dict[Key, _Turn] = {}
        """Of these, those that do not any more, or not now."""
        self._acts: dict[Key, _Acts] = {}

    def turned(self, topic: Topic, quota: Quota, *, exceeded: bool, at_ns: int) -> None:
        """A quota stops producers from now on, or lets them go on."""
        key = topic, quota.type
        live = topic.quota
        backlog_bytes, age_ms = (0, -1) if live is None else (live.backlog_bytes(), live.age_ms())
        turn = _Turn(at_ns, quota, backlog_bytes, age_ms)
        if not exceeded:
            if key in self._told:
                self._released[key] = turn
        elif key in self._told:
            self._released.pop(key, None)
        else:
            self._told.add(key)
            self._tell(topic, "quota_exceeded", turn)

    def evicted(self, topic: Topic, act: Eviction, at_ns: int) -> None:
        """A quota took messages from subscriptions."""
        key = topic, act.quota.type
        acts = self._acts.get(key)
        if acts is None:
            acts = self._acts[key] = _Acts(at_ns, act, act)
        acts.add(act, at_ns)

    def end_window(self) -> None:
        """Tell what has been gathered."""
        for key, turn in self._released.items():
            self._told.discard(key)
            self._tell(key[0], "quota_released", turn)
        self._released.clear()
        for (topic, _), acts in self._acts.items():
            self._tell_acts(topic, acts)
        self._acts.clear()

    def topic_unloaded(self, topic: Topic) -> None:
        """Nothing more is known of it: tell what it did, and forget it."""
        for kind in QuotaType:
            key = topic, kind
            self._told.discard(key)
            turn = self._released.pop(key, None)
            if turn is not None:
                self._tell(topic, "quota_released", turn)
            acts = self._acts.pop(key, None)
            if acts is not None:
                self._tell_acts(topic, acts)

    def _tell(self, topic: Topic, event: str, turn: _Turn) -> None:
        self._events.add(
            turn.at_ns,
            event,
            topic=self._names.topic(topic.name),
            incarnation=topic.incarnation,
            inputs=event_inputs(turn.quota, turn.backlog_bytes, turn.age_ms, self._names),
            outcome=turned_outcome(turn.quota, event == "quota_exceeded"),
        )

    def _tell_acts(self, topic: Topic, acts: _Acts) -> None:
        act = acts.sum()
        inputs = event_inputs(act.quota, act.backlog_bytes_before, act.age_ms_before, self._names)
        self._events.add(
            acts.at_ns,
            "eviction",
            topic=self._names.topic(topic.name),
            incarnation=topic.incarnation,
            inputs=inputs,
            outcome={"acts": acts.count} | eviction_outcome(act, self._names),
        )
