"""Checks that adaptive throttling slows the producer that fills a backlog quota, and no other.

A snapshot has four responses of one broker, milliseconds apart. The messages published between two
snapshots are the difference of two sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from headgate.base.park_cause import ParkCause
from headgate.demo.follow import BUILT_SHARE
from headgate.demo.scenes import Scene, Subject
from headgate.demo.spans import Span, mean_over_time, spans

KEPT_SHARE: Final = 0.9
"""The neighbour keeps its rate if it publishes at least this part of it over the whole demo."""
SETTLED: Final = 1.2
"""A limit has settled at this multiple of the consumer's rate, or below."""


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Two scenes on one connection: one producer is slowed, the other is not."""

    slowed: tuple[Subject, Scene]
    other: tuple[Subject, Scene]


def neighbours(expected: Sequence[tuple[Subject, Scene]]) -> Neighbours:
    """The two scenes among all subscriptions of the demo."""
    slowed = next(each for each in expected if each[1].has_quota)
    other = next(
        each for each in expected if each[0].cluster == slowed[0].cluster and each != slowed
    )
    return Neighbours(slowed, other)


@dataclass(frozen=True, slots=True)
class Publishing:
    """The publishing side of one topic."""

    published: int
    """Messages stored, up to a constant."""
    waiting: int
    """Messages that wait in the broker now."""
    waited_s: Mapping[str, float]
    """Seconds in which any message waited, by cause."""
    address: str
    """The other end of its producer's connection."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of both topics at one instant."""

    at_s: float
    """By the broker's clock, since the epoch."""
    slowed: Publishing
    other: Publishing
    use: float
    """Use of the quota; 1 is full."""
    limit_per_s: float | None
    """The limit of the controller; None without one."""


def publishing(report: Mapping[str, Any], stats: Mapping[str, Any]) -> Publishing:
    """The publishing side, from explain and statistics of a topic with at most one producer."""
    parked = report["publishing"]["parked"]
    return Publishing(
        published=stats["msgInCounter"],
        waiting=sum(each["messages"] for each in parked),
        waited_s={each["cause"]: each["seconds"] for each in parked},
        address=next((each["address"] for each in stats["publishers"]), ""),
    )


def snapshot_of(report: Mapping[str, Any], slowed: Publishing, other: Publishing) -> Snapshot:
    """A snapshot, from explain's response about the topic with the quota and from both topics."""
    (quota,) = report["quotas"]
    adaptive = report["adaptive"]
    is_limited = adaptive is not None and adaptive["active"] > 0
    return Snapshot(
        at_s=datetime.fromisoformat(report["at"]).timestamp(),
        slowed=slowed,
        other=other,
        use=quota["use"],
        limit_per_s=adaptive["effectiveMessagesPerS"] if is_limited else None,
    )


@dataclass(frozen=True, slots=True)
class Row:
    """A few seconds of the demo, with mean rates per second."""

    span: Span
    use: float
    """Use of the quota at the end, as is the limit."""
    limit_per_s: float | None
    published_per_s: float
    wait_s: float
    """Mean time for which a message waited."""
    other_per_s: float


def rows(snapshots: Sequence[Snapshot], seconds: float) -> list[Row]:
    """The complete rows of a demo of ``seconds``; the last one may be short."""
    return [_row(span, seen) for span, seen in spans(snapshots, seconds)]


def _row(span: Span, snapshots: Sequence[Snapshot]) -> Row:
    first, last = snapshots[0], snapshots[-1]
    passed_s = last.at_s - first.at_s
    published_per_s = (last.slowed.published - first.slowed.published) / passed_s
    waiting = mean_over_time([(snapshot.at_s, snapshot.slowed.waiting) for snapshot in snapshots])
    return Row(
        span=span,
        use=last.use,
        limit_per_s=last.limit_per_s,
        published_per_s=published_per_s,
        # Little's law.
        wait_s=waiting / published_per_s if published_per_s else 0.0,
        other_per_s=(last.other.published - first.other.published) / passed_s,
    )


def is_settled(snapshots: Sequence[Snapshot], scene: Scene) -> bool:
    """Whether the limit at the end is about the rate of the scene's consumer."""
    limit = snapshots[-1].limit_per_s
    return limit is not None and limit <= SETTLED * (scene.consume_per_s or 0)


def problems(snapshots: Sequence[Snapshot], pair: Neighbours) -> list[str]:
    """A sentence for each unexpected result, from at least two snapshots."""
    (subject, scene), (other, other_scene) = pair.slowed, pair.other
    first, last = snapshots[0], snapshots[-1]
    found = []
    full = next((snapshot for snapshot in snapshots if snapshot.use >= 1), None)
    if full is not None:
        at_s = full.at_s - first.at_s
        found.append(f"{subject.text}: the quota was reached, after {at_s:.1f} s")
    most = BUILT_SHARE * scene.publish_per_s
    if last.limit_per_s is None or last.limit_per_s > most:
        limit = "no limit" if last.limit_per_s is None else f"a limit of {last.limit_per_s:.0f}/s"
        found.append(
            f"{subject.text}: its producer was to be slowed below {most:.0f}/s and has {limit} at"
            " the end"
        )
    found += _wait_problems(subject, last.slowed, {ParkCause.ADAPTIVE})
    found += _wait_problems(other, last.other, set())
    kept = (last.other.published - first.other.published) / (last.at_s - first.at_s)
    if kept < KEPT_SHARE * other_scene.publish_per_s:
        found.append(
            f"{other.text}: {kept:.0f}/s were published, its producer's"
            f" {other_scene.publish_per_s}/s were to be kept"
        )
    if any(snapshot.slowed.address != snapshot.other.address for snapshot in snapshots):
        found.append(f"{subject.text} and {other.text}: their producers do not share a connection")
    return found


def _wait_problems(subject: Subject, side: Publishing, due: set[ParkCause]) -> list[str]:
    """A line for each cause that wrongly held a topic's producer, or wrongly did not."""
    labels = {cause.label for cause in due}
    found = [
        f"{subject.text}: its producer waited {seconds:.1f} s for {cause}"
        for cause, seconds in side.waited_s.items()
        if cause not in labels
    ]
    return found + [
        f"{subject.text}: its producer never waited for {label}"
        for label in sorted(labels - side.waited_s.keys())
    ]
