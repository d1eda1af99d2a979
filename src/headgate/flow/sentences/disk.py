"""Sentences about the disk under the messages: that it is full, slow, or how much room it has.

``explain``, the health check and the broker's log print them. They say what happens, since when,
and what to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headgate.base.texts import duration, size_text

ALL_WELL: Final = ""
"""The text without any finding."""

MAKE_ROOM: Final = (
    "`headgate explain --storage` shows what takes it, and what to consume, skip or delete"
)
"""What an operator does about a disk that is full or will be."""

SLOW_COMMIT_S: Final = 0.1
"""A disk is slow if a commit takes this long on average: ten times as long as on a spinning disk.
Each receipt is late by that time."""

COMMITS_MIN: Final = 3
"""The fewest commits that show a slow disk; a single slow commit does not."""

SLOW_RUNNING_S: Final = 1.0
"""A disk is also slow if a single commit takes this long, or has run for this long."""


LOW_SEGMENTS: Final = 16
"""The disk is nearly full with room for fewer segments than this, and less than a tenth free."""


@dataclass(frozen=True, slots=True)
class DiskFacts:
    """The state of the disk.

    It has taken no entry for ``full_s`` seconds; None while it takes entries. It has been full or
    nearly full for ``low_s`` seconds; None if it was not, or that is unknown. ``free_bytes`` and
    ``size_bytes`` are those of the file system, None while unknown. The log needs
    ``segment_bytes`` at once to go on.
    """

    full_s: float | None = None
    free_bytes: int | None = None
    size_bytes: int | None = None
    segment_bytes: int = 0
    low_s: float | None = None

    @property
    def is_low(self) -> bool:
        """Whether the disk is nearly full: an operator still has time to make room."""
        if self.full_s is not None or self.free_bytes is None or self.size_bytes is None:
            return False
        some = min(LOW_SEGMENTS * self.segment_bytes, self.size_bytes // 10)
        return self.free_bytes < max(some, self.segment_bytes)


def low_disk_sentence(facts: DiskFacts, *, has_forecast: bool = False) -> str:
    """That the disk is nearly full, without line break and full stop; empty if it is not, or is
    full. What happens when it is full is left out before a forecast, which says it."""
    if not facts.is_low:
        return ALL_WELL
    text = f"the disk is nearly full{_since(facts.low_s)}: {room_text(facts)}"
    return text if has_forecast else f"{text}; without that room producers wait"


def disk_sentence(facts: DiskFacts) -> str:
    """What a full disk does to producers, without line break and full stop; empty if it is not
    full."""
    if facts.full_s is None:
        return ALL_WELL
    text = f"the disk is full: producers wait for room{_since(facts.full_s)}, consumers continue"
    room = room_text(facts)
    return f"{text}; {room}" if room else text


def room_text(facts: DiskFacts) -> str:
    """``27.2 MiB of 220 MiB are free, the log needs 64 MiB at once``; empty while unknown."""
    free = free_text(facts)
    return f"{free}, the log needs {size_text(facts.segment_bytes)} at once" if free else ""


def free_text(facts: DiskFacts) -> str:
    """``27.2 MiB of 220 MiB are free``; empty while unknown."""
    if facts.free_bytes is None or facts.size_bytes is None:
        return ""
    return f"{size_text(facts.free_bytes)} of {size_text(facts.size_bytes)} are free"


def _since(seconds: float | None) -> str:
    return "" if seconds is None or seconds < 1 else f", for {duration(seconds)} now"


@dataclass(frozen=True, slots=True)
class CommitLatencyFacts:
    """The commits of the last ``window_s`` seconds: how many, their mean and the longest. The
    present commit has run for ``running_s``."""

    commits: int = 0
    mean_s: float = 0.0
    longest_s: float = 0.0
    running_s: float = 0.0
    window_s: float = 0.0

    @property
    def is_slow(self) -> bool:
        """Whether the disk is slow."""
        if self.running_s >= SLOW_RUNNING_S or self.mean_s >= SLOW_RUNNING_S:
            return True
        return self.mean_s >= SLOW_COMMIT_S and self.commits >= COMMITS_MIN


def commit_latency_sentence(facts: CommitLatencyFacts) -> str:
    """That the disk is slow, without line break and full stop; empty if it is not."""
    if not facts.is_slow:
        return ALL_WELL
    findings = []
    if facts.commits:
        text = f"a commit takes {_seconds(facts.mean_s)}"
        if facts.commits > 1:
            text += f" (the mean of {facts.commits:,} in the last {facts.window_s:g} s; the longest"
            text += f" took {_seconds(facts.longest_s)})"
        findings.append(text)
    if facts.running_s >= SLOW_RUNNING_S:
        findings.append(f"one has run for {duration(facts.running_s)} now")
    return f"the disk is slow: {' and '.join(findings)}, and no receipt is sent before it ends"


def _seconds(value: float) -> str:
    return f"{value * 1_000:.0f} ms" if value < 1 else f"{value:.1f} s"
