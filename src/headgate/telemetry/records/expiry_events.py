"""Messages that a TTL expired, in the events of the telemetry.

A broker with a TTL may expire messages of all its topics in each second. So an event sums up what
one TTL expired in a topic since its event before, a topic has about one event a minute, and a
window has :data:`EVENTS_PER_WINDOW` at most. What is due beyond that follows in the next windows.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field
from typing import Final

from headgate.base.units import NS_PER_S
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.flow.expiry import MessageTtl
from headgate.record.codec import Value
from headgate.telemetry.records.events import EventLog
from headgate.telemetry.records.names import Names
from headgate.telemetry.records.quotas import named_count

EVENTS_PER_WINDOW: Final = 200
"""A tenth of what a batch holds: expiry must not crowd out other events."""


def expired_by_values(ttl: MessageTtl | None, names: Names) -> tuple[Value, ...]:
    """The TTL that expired messages last, and where it is set."""
    if ttl is None:
        return (None, None)
    return (ttl.ttl_s * NS_PER_S, names.limit_source(ttl.source))


@dataclass(slots=True)
class _Expired:
    """What one TTL expired in a topic since the event before."""

    ttl: MessageTtl
    at_ns: int = 0
    messages: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    """By subscription."""


class ExpiryEvents:
    """Gathers what TTLs expire in one broker."""

    def __init__(self, events: EventLog, names: Names) -> None:
        self._events = events
        self._names = names
        self._gathered: OrderedDict[Topic, _Expired] = OrderedDict()
        """Reported from the next full window on."""
        self._due: OrderedDict[Topic, _Expired] = OrderedDict()
        """Reported in the next windows."""

    def expired(
        self, subscription: Subscription, ttl: MessageTtl, messages: int, at_ns: int
    ) -> None:
        """A TTL expired messages of a subscription."""
        topic = subscription.topic
        gathered = self._due if topic in self._due else self._gathered
        found = gathered.get(topic)
        if found is None or found.ttl != ttl:
            if found is not None:
                self._add(topic, found)
            found = gathered[topic] = _Expired(ttl)
        found.at_ns = at_ns
        found.messages[subscription.name] += messages

    def end_window(self, *, full: bool) -> None:
        """Add the events of the window; ``full``: it is one in which each subject has a row, as
        every minute has."""
        if full and not self._due:
            self._due, self._gathered = self._gathered, OrderedDict()
        for _ in range(min(EVENTS_PER_WINDOW, len(self._due))):
            self._add(*self._due.popitem(last=False))

    def topic_unloaded(self, topic: Topic) -> None:
        """Add the event of a topic, and forget it."""
        for gathered in (self._due, self._gathered):
            found = gathered.pop(topic, None)
            if found is not None:
                self._add(topic, found)

    def _add(self, topic: Topic, found: _Expired) -> None:
        ttl_ns, source = expired_by_values(found.ttl, self._names)
        losses = sorted(found.messages.items(), key=lambda loss: -loss[1])
        named = named_count(name for name, _ in losses)
        self._events.add(
            found.at_ns,
            "expiry",
            topic=self._names.topic(topic.name),
            incarnation=topic.incarnation,
            inputs={"ttl_ns": ttl_ns, "source": source},
            outcome={
                "messages": sum(found.messages.values()),
                "subscriptions": [
                    {"subscription": self._names.part(name), "messages": messages}
                    for name, messages in losses[:named]
                ],
                "subscriptions_more": len(losses) - named,
            },
        )
