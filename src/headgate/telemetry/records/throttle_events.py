"""The begin and end of throttling in the events of the telemetry.

Throttling has events for windows, not for waits: a limiter refuses hundreds of times a second while
it holds a subscription. ``throttle_began`` has the start of the first window in which a limiter
held the subscription (or of the subscription itself, if that is later), ``throttle_ended`` the
start of the first window in which none did. For a topic the two events are about the publish limits
that hold its producers.
"""

from __future__ import annotations

from headgate.base.park_cause import ParkCause
from headgate.flow.account.account import FIRST_THROTTLED, LABELS, THROTTLED_STOP, Cell
from headgate.flow.limits.rate_limit import Level
from headgate.policy.current_limits import PUBLISH_BROKER, PUBLISH_TOPIC
from headgate.telemetry.records.events import EventLog
from headgate.telemetry.records.limit_track import LimitValues
from headgate.telemetry.records.names import PLAIN, Names
from headgate.telemetry.records.subjects import Instant, SubscriptionTrack, TopicTrack


class ThrottleEvents:
    """Compares each window with the one before."""

    def __init__(self, events: EventLog, names: Names = PLAIN) -> None:
        self._events = events
        self._names = names

    def of_subscription(
        self,
        track: SubscriptionTrack,
        before: tuple[int, ...],
        at: Instant,
        broker_limit: LimitValues,
    ) -> None:
        """Add the event of a subscription, if a limiter began or ceased to hold it.

        ``before`` is its account at the end of the window before.
        """
        cells = slice(FIRST_THROTTLED, THROTTLED_STOP)
        pairs = zip(before[cells], track.cells_ns[cells], strict=True)
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
        self._events.add(
            max(at.window_start_ns, track.since_ns),
            event,
            topic=self._names.topic(topic.name),
            subscription=track.name,
            incarnation=topic.incarnation,
            inputs={
                "level": level.name.lower(),
                "dimension": labels.dimension,
                **track.limit_at(level, broker_limit)._asdict(),
            },
            outcome={"consumer": labels.consumer},
        )

    def of_producers(self, track: TopicTrack, at: Instant, broker_limit: LimitValues) -> None:
        """Add the event of a topic, if publish limits began or ceased to hold its producers."""
        change = track.publishing.hold_change()
        if change is None:
            return
        is_broker = change.cause is ParkCause.BROKER_RATE
        limit = broker_limit if is_broker else track.publishing.limit.values
        self._events.add(
            max(at.window_start_ns, track.since_ns),
            "throttle_began" if change.began else "throttle_ended",
            topic=self._names.topic(track.topic.name),
            incarnation=track.topic.incarnation,
            inputs={"level": PUBLISH_BROKER if is_broker else PUBLISH_TOPIC, **limit._asdict()},
            outcome={"cause": change.cause.label},
        )
