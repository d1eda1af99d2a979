"""Checks that a limit relative to the publish rate follows it.

A snapshot is one response of explain, so its figures belong to one instant. The rates between two
snapshots are differences of sums, so no message is missed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any, Final

from headgate.demo.scenes import Scene, Subject
from headgate.demo.spans import SNAPSHOT_PERIOD_S, Span, closest, mean_over_time, spans

RISE_S: Final = 2.0
"""The limit follows a rise within this time (law 1.7); several snapshots fit into it."""
TOLERANCE: Final = 0.10
"""How far the limit in force may be from what it should be."""
BUILT_SHARE: Final = 0.8
"""The highest rate counts as published if this part of it was, for :data:`RISE_S`."""
SHRINK_SHARE_MIN: Final = 0.3
"""The backlog shrinks by this part of what the limit is above the publish rate, at least: a busy
machine takes its toll from what is delivered, and the backlog's loss is only the difference."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of the topic at one instant. Counts are sums since the limit was set."""

    at_s: float
    """By the broker's clock, since the epoch."""
    published: int
    """Up to a constant."""
    delivered: int
    backlog: int
    limit_per_s: int
    """The limit in force; 0 when explain shows none."""
    source: str
    """Where the limit is set."""


def snapshot_of(report: Mapping[str, Any], subject: Subject) -> Snapshot:
    """A snapshot from explain's response about a topic with a limit and one subscription."""
    (row,) = [
        each for each in report["subscriptions"] if each["subscription"] == subject.subscription
    ]
    budgets = [
        budget
        for limit in report["limits"]
        if limit["subject"] == subject.topic
        for budget in limit["budgets"]
        if budget["dimension"] == "messages"
    ]
    delivered = budgets[0]["granted"] if budgets else 0
    backlog = row["backlogMessages"]
    return Snapshot(
        at_s=datetime.fromisoformat(report["at"]).timestamp(),
        # Of what was published a part waits, the rest was delivered; of that a part is not
        # acknowledged and counts in the backlog, too.
        published=backlog - row["unackedMessages"] + delivered,
        delivered=delivered,
        backlog=backlog,
        limit_per_s=budgets[0]["limit"] if budgets else 0,
        source=budgets[0]["source"] if budgets else "",
    )


@dataclass(frozen=True, slots=True)
class Row:
    """A few seconds of the demo, with mean rates per second."""

    span: Span
    published_per_s: float
    limit_per_s: float
    delivered_per_s: float
    growth_per_s: float
    backlog: int
    """At its end."""


def rows(snapshots: Sequence[Snapshot], seconds: float) -> list[Row]:
    """The complete rows of a demo of ``seconds``; the last one may be short."""
    return [_row(span, seen) for span, seen in spans(snapshots, seconds)]


def _row(span: Span, snapshots: Sequence[Snapshot]) -> Row:
    first, last = snapshots[0], snapshots[-1]
    passed_s = last.at_s - first.at_s
    return Row(
        span=span,
        published_per_s=(last.published - first.published) / passed_s,
        limit_per_s=mean_over_time(
            [(snapshot.at_s, snapshot.limit_per_s) for snapshot in snapshots]
        ),
        delivered_per_s=(last.delivered - first.delivered) / passed_s,
        growth_per_s=(last.backlog - first.backlog) / passed_s,
        backlog=last.backlog,
    )


def sustained_rate_per_s(snapshots: Sequence[Snapshot], at: int) -> float:
    """The publish rate during the whole :data:`RISE_S` before a look.

    It is the lower rate of both halves; 0 where the looks do not reach back so far.
    """
    now_s = snapshots[at].at_s
    if now_s - RISE_S < snapshots[0].at_s - SNAPSHOT_PERIOD_S / 2:
        return 0.0
    marks = [snapshots[closest(snapshots, now_s - ago_s)] for ago_s in (RISE_S, RISE_S / 2)]
    rates = [
        (end.published - begin.published) / (end.at_s - begin.at_s)
        for begin, end in pairwise([*marks, snapshots[at]])
        if end.at_s > begin.at_s
    ]
    return min(rates, default=0.0)


def problems(snapshots: Sequence[Snapshot], scene: Scene, seconds: float) -> list[str]:
    """A sentence for each difference from law 1.7, from the looks of a demo of ``seconds``."""
    above = scene.limit_per_s
    published = [sustained_rate_per_s(snapshots, at) for at in range(len(snapshots))]
    found = []
    for snapshot, per_s in zip(snapshots, published, strict=True):
        if snapshot.limit_per_s < (1 - TOLERANCE) * (per_s + above):
            found.append(
                f"at {snapshot.at_s - snapshots[0].at_s:.1f} s the limit in force was"
                f" {snapshot.limit_per_s}/s though {per_s:.0f}/s had been published for"
                f" {RISE_S:g} s: {per_s + above:.0f}/s were due"
            )
            break  # what follows would say the same
    top = max(scene.rates_per_s)
    if max(published, default=0.0) < BUILT_SHARE * top:
        found.append(f"{top}/s were to be published and never were for {RISE_S:g} s")
    due = scene.rates_per_s[-1] + above
    begin_s = seconds - scene.phase_s(seconds) / 4
    # One look is enough: where a busy machine publishes late and then at once, a limit that
    # follows the publish rate is right to be elsewhere for a moment.
    last = [
        snapshot.limit_per_s
        for snapshot in snapshots
        if snapshot.at_s - snapshots[0].at_s >= begin_s
    ]
    if not any(abs(limit - due) <= TOLERANCE * due for limit in last):
        found.append(
            f"at the end the limit in force was {last[-1] if last else 0}/s, {due}/s were due"
        )
    if snapshots:
        passed_s = snapshots[-1].at_s - snapshots[0].at_s
        shrunk = snapshots[0].backlog - snapshots[-1].backlog
        if shrunk < SHRINK_SHARE_MIN * above * passed_s:
            found.append(
                f"the backlog changed by {-shrunk:+,} in {passed_s:.0f} s, not by -{above}/s"
            )
    return found
