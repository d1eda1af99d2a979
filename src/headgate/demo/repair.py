"""The last step of the demo: raises the limit that explain names."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from headgate.demo.admin import HttpCall, limit_calls
from headgate.demo.findings import Finding
from headgate.demo.scenes import Scene, Subject
from headgate.flow.limits.rate_limit import Level

DRAIN_S: Final = 8
"""The new limit drains the backlog in about this time."""
_ROUND_PER_S: Final = 100


@dataclass(frozen=True, slots=True)
class Repair:
    """The limit to raise, and the subscriptions that it holds."""

    scene: Scene
    named: Finding
    """The finding that names the limit: the worst one."""
    held: tuple[Subject, ...]
    """All subscriptions that the limit holds."""
    new_per_s: int

    @property
    def calls(self) -> list[HttpCall]:
        """The requests that raise the limit."""
        return limit_calls(self.scene, self.new_per_s)


def plan_repair(
    expected: Iterable[tuple[Subject, Scene]], findings: Mapping[Subject, Finding]
) -> Repair | None:
    """Choose the largest backlog that explain blames on a limit; None without one.

    A limit relative to the publish rate needs no repair: its backlog drains at every publish rate.
    The new limit is the publish rate plus the backlog over :data:`DRAIN_S`.
    """
    scenes = dict(expected)
    throttled = [
        finding
        for subject, finding in findings.items()
        if finding.is_throttled
        and finding.limit_level
        and scenes[subject].level is not None
        and not scenes[subject].relative
        and scenes[subject].level == _level(finding)
    ]
    if not throttled:
        return None
    named = max(throttled, key=lambda finding: finding.backlog)
    scene = scenes[named.subject]
    held = tuple(subject for subject, each in scenes.items() if each is scene)
    backlog = sum(findings[subject].backlog for subject in held if subject in findings)
    needed = scene.publish_per_s * len(held) + backlog / DRAIN_S
    return Repair(scene, named, held, math.ceil(needed / _ROUND_PER_S) * _ROUND_PER_S)


def is_drained(repair: Repair, findings: Mapping[Subject, Finding]) -> bool:
    """Whether nothing waits but what was published in the last half second."""
    most = max(10, repair.scene.publish_per_s // 2)
    return all(findings[subject].backlog <= most for subject in repair.held)


def _level(finding: Finding) -> object:
    levels = {level.name.lower(): level for level in Level}
    return levels.get(finding.limit_level)
