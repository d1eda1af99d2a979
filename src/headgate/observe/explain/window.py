"""What is known about the partitions of a subscription at this instant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headgate.base.sliced import Sliced
from headgate.base.units import NS_PER_HOUR
from headgate.engine.subscription import Subscription
from headgate.explain.backlog_phase import first_phase
from headgate.explain.window import Past
from headgate.observe.history.present import point_now
from headgate.observe.history.tracks import History


@dataclass(frozen=True, slots=True)
class Part(Past):
    """One partition's part of a subscription, in the last hour and now."""

    subscription: Subscription


def part_of(history: History, subscription: Subscription) -> Part:
    """What is known about one partition's part of a subscription."""
    now = point_now(subscription)
    track = history.track(subscription)
    if track is None:
        return Part([now, now], now, now.at_ns, first_phase(now), subscription)
    hour = [*track.since(now.at_ns - NS_PER_HOUR), now]
    last = hour[-2]
    return Part(hour, last, track.seen_ns, track.phase.after(now), subscription)


def parts_of(history: History, subscriptions: Sequence[Subscription]) -> Sliced[list[Part]]:
    """What is known about each part. A part that is removed meanwhile is left out, unless all
    are."""
    parts: list[Part] = []
    for index, subscription in enumerate(subscriptions):
        if not subscription.removed or (not parts and index == len(subscriptions) - 1):
            parts.append(part_of(history, subscription))
        yield
    return parts
