"""Prepared findings and reports for the demo's tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from headgate.base.units import NS_PER_S
from headgate.demo import adaptive
from headgate.demo.findings import Finding
from headgate.demo.follow import Snapshot
from headgate.demo.scenes import SCENES, Scene, Subject, subjects
from headgate.demo.spans import SNAPSHOT_PERIOD_S
from headgate.flow.limits.rate_limit import Level
from headgate.flow.limits.relative import SAMPLE_NS, PublishRate

SUBJECTS = dict(subjects())
"""Every subscription of the demo with its scene."""


def scene(name: str) -> Scene:
    """A scene by its name."""
    return next(each for each in SCENES if each.name == name)


def subject(text: str) -> Subject:
    """A subscription by ``topic / subscription``."""
    return next(each for each in SUBJECTS if each.text == text)


def finding(text: str, backlog: int = 1_000, **changes: Any) -> Finding:
    """What explain says of a subscription when it is right."""
    what = subject(text)
    built = SUBJECTS[what]
    held = built.verdict.value.startswith("THROTTLED_") and built.level is not None
    right = Finding(
        subject=what,
        backlog=backlog,
        growth=backlog - 1,
        verdict=built.verdict.value,
        confidence=0.97,
        shares={built.verdict.value: 0.97, "BROKER": 0.03, "NONE": 0.0},
        sentence=f"{built.verdict.value}: this is why.",
        state="no_permits",
        confidence_level="high",
        limit_level=Level(built.level).name.lower() if held and built.level is not None else "",
        limit_text=f"{built.limit_per_s} msg/s" if held else "",
        limit_source="topic policy" if held else "",
    )
    return replace(right, **changes)


def all_findings(backlog: int = 1_000) -> dict[Subject, Finding]:
    """Everything as it was built to be."""
    return {each: finding(each.text, backlog) for each in _shuffled()}


MOVING = subject("parcels / tracking")
"""The one under a limit that follows the publish rate."""
_OLD = 5_000
"""Messages that wait; about: some are published before the first look."""


def snapshots(
    seconds: float,
    rates_per_s: Sequence[int] = (100, 300, 100),
    *,
    above_per_s: int = 50,
    late_s: float = 0.0,
    stays: bool = False,
    delivers: float = 1.0,
) -> list[Snapshot]:
    """What is seen of a limit as the law has it: with ``late_s`` (at most 1.9) that much later,
    with ``stays`` it never falls. Of what it allows the part ``delivers`` is delivered."""
    each_s = SAMPLE_NS / NS_PER_S
    before, steps = round(2 / each_s), round(seconds / each_s)
    rate = PublishRate((0,), 0)
    timelines: list[float] = []
    published = delivered = 0.0
    found = []
    for step in range(-before + 1, steps + 1):
        phase = max(0, step - 1) * len(rates_per_s) // steps
        published += rates_per_s[phase] * each_s
        rate.sample((round(published),), (step + before) * SAMPLE_NS)
        timelines.append(max([*timelines, *rate.per_second] if stays else rate.per_second))
        if step < 0:
            continue
        limit = round(timelines[-1 - round(late_s / each_s)]) + above_per_s
        delivered += limit * each_s * delivers if step else 0.0
        if step % round(SNAPSHOT_PERIOD_S / each_s) == 0:
            at_s = 1_000.0 + step * each_s
            counts = round(published), round(delivered), round(_OLD + published - delivered)
            found.append(Snapshot(at_s, *counts, limit, "topic policy"))
    return found


PAIR = adaptive.neighbours(list(subjects()))
"""Who is slowed by the adaptive controller, and who is not."""


def adaptive_snapshots(
    seconds: float, *, other_per_s: int = 100, slows: bool = True
) -> list[adaptive.Snapshot]:
    """What is seen of a quota of 6,000 messages under law drain; without ``slows`` it fills."""
    drained, wanted, quota, horizon_s = 100, 400, 6_000, 10
    backlog = published = other = waited_s = 0.0
    found = []
    for step in range(round(seconds / SNAPSHOT_PERIOD_S) + 1):
        asked = drained + (0.7 * quota - backlog) / horizon_s
        limit = asked if slows and asked < wanted else None
        waited_s += 0.0 if limit is None else SNAPSHOT_PERIOD_S
        slowed = adaptive.Publishing(
            published=round(published),
            waiting=0 if limit is None else 50,
            waited_s={"adaptive": waited_s} if waited_s else {},
            address="127.0.0.1:40404",
        )
        beside = adaptive.Publishing(round(other), 0, {}, "127.0.0.1:40404")
        at_s = 1_000.0 + step * SNAPSHOT_PERIOD_S
        found.append(adaptive.Snapshot(at_s, slowed, beside, backlog / quota, limit))
        rate = wanted if limit is None else limit
        published += rate * SNAPSHOT_PERIOD_S
        other += other_per_s * SNAPSHOT_PERIOD_S
        backlog = min(quota, backlog + (rate - drained) * SNAPSHOT_PERIOD_S)
    return found


def _shuffled() -> Iterator[Subject]:
    """Brokers answer largest backlog first, not in the order of the scenes."""
    yield from reversed(SUBJECTS)
