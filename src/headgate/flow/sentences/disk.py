"""What is to be said about the disk under the messages: that it is full or slow, how much room it
has.

``explain``, the health check and the broker's log say it with the same words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headgate.flow.sentences.backlog import duration

ALL_WELL: Final = ""
"""Nothing is to be said."""

SLOW_COMMIT_S: Final = 0.1
"""A disk is slow when a commit takes so long on average: ten times what one of a spinning disk
does. Every receipt comes late by that, and every producer that waits for one."""

COMMITS_MIN: Final = 3
"""A slow one by itself is an accident."""

SLOW_RUNNING_S: Final = 1.0
"""A disk is slow, too, when a commit takes so long or has not ended for so long."""


@dataclass(frozen=True, slots=True)
class DiskFacts:
    """The disk as it is now.

    ``full_s``: for how long it has taken no entry, None while it takes them. ``free_bytes`` and
    ``size_bytes`` are the file system's, None while not known. ``segment_bytes``: what the log
    needs at once to go on.
    """

    full_s: float | None = None
    free_bytes: int | None = None
    size_bytes: int | None = None
    segment_bytes: int = 0


def disk_sentence(facts: DiskFacts) -> str:
    """Say what the disk does to producers; no line break, no full stop, empty if nothing."""
    if facts.full_s is None:
        return ALL_WELL
    since = f", for {duration(facts.full_s)} now" if facts.full_s >= 1 else ""
    text = f"the disk is full: producers wait for room{since}, consumers continue"
    room = room_text(facts)
    return f"{text}; {room}" if room else text


def room_text(facts: DiskFacts) -> str:
    """``1,048,576 of 8,388,608 bytes are free, the log needs 67,108,864``; empty while that
    is not known."""
    if facts.free_bytes is None or facts.size_bytes is None:
        return ""
    free = f"{facts.free_bytes:,} of {facts.size_bytes:,} bytes are free"
    return f"{free}, the log needs {facts.segment_bytes:,}"


@dataclass(frozen=True, slots=True)
class PaceFacts:
    """The commits of the last ``window_s`` seconds: how many, their mean and the longest.
    ``running_s``: for how long the one in hand has run."""

    commits: int = 0
    mean_s: float = 0.0
    longest_s: float = 0.0
    running_s: float = 0.0
    window_s: float = 0.0

    @property
    def is_slow(self) -> bool:
        """Whether it is worth a word."""
        if self.running_s >= SLOW_RUNNING_S or self.mean_s >= SLOW_RUNNING_S:
            return True
        return self.mean_s >= SLOW_COMMIT_S and self.commits >= COMMITS_MIN


def pace_sentence(facts: PaceFacts) -> str:
    """Say that the disk is slow; no line break, no full stop, empty if it is not."""
    if not facts.is_slow:
        return ALL_WELL
    told = []
    if facts.commits:
        text = f"a commit takes {_seconds(facts.mean_s)}"
        if facts.commits > 1:
            text += f" (the mean of {facts.commits:,} in the last {facts.window_s:g} s; the longest"
            text += f" took {_seconds(facts.longest_s)})"
        told.append(text)
    if facts.running_s >= SLOW_RUNNING_S:
        told.append(f"one has run for {duration(facts.running_s)} now")
    return f"the disk is slow: {' and '.join(told)}, and no receipt is sent before it ends"


def _seconds(value: float) -> str:
    return f"{value * 1_000:.0f} ms" if value < 1 else f"{value:.1f} s"
