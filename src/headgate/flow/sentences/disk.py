"""Sentences about the disk under the messages: that it is full, slow, or how much room it has.

``explain``, the health check and the broker's log print them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headgate.flow.sentences.backlog import duration

ALL_WELL: Final = ""
"""The text without any finding."""

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

    It has taken no entry for ``full_s`` seconds; None while it takes entries. ``free_bytes`` and
    ``size_bytes`` are those of the file system, None while unknown. The log needs
    ``segment_bytes`` at once to go on.
    """

    full_s: float | None = None
    free_bytes: int | None = None
    size_bytes: int | None = None
    segment_bytes: int = 0

    @property
    def is_low(self) -> bool:
        """Whether the disk is nearly full: an operator still has time to make room."""
        if self.full_s is not None or self.free_bytes is None or self.size_bytes is None:
            return False
        some = min(LOW_SEGMENTS * self.segment_bytes, self.size_bytes // 10)
        return self.free_bytes < max(some, self.segment_bytes)


def low_disk_sentence(facts: DiskFacts) -> str:
    """That the disk is nearly full, without line break and full stop; empty if it is not, or is
    full."""
    if not facts.is_low:
        return ALL_WELL
    return f"the disk is nearly full, and producers wait once it is: {room_text(facts)}"


def disk_sentence(facts: DiskFacts) -> str:
    """What a full disk does to producers, without line break and full stop; empty if it is not
    full."""
    if facts.full_s is None:
        return ALL_WELL
    since = f", for {duration(facts.full_s)} now" if facts.full_s >= 1 else ""
    text = f"the disk is full: producers wait for room{since}, consumers continue"
    room = room_text(facts)
    return f"{text}; {room}" if room else text


def room_text(facts: DiskFacts) -> str:
    """``1,048,576 of 8,388,608 bytes are free, the log needs 67,108,864``; empty while unknown."""
    if facts.free_bytes is None or facts.size_bytes is None:
        return ""
    free = f"{facts.free_bytes:,} of {facts.size_bytes:,} bytes are free"
    return f"{free}, the log needs {facts.segment_bytes:,}"


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
