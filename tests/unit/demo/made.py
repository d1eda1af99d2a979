"""Findings and reports as the demo meets them, for its tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from headgate.demo.findings import Finding
from headgate.demo.scenes import SCENES, Scene, Subject, subjects
from headgate.flow.limits import Level

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


def _shuffled() -> Iterator[Subject]:
    """Brokers answer largest backlog first, not in the order of the scenes."""
    yield from reversed(SUBJECTS)
