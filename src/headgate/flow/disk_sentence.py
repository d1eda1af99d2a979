"""What is to be said about the disk under the messages: that it is full, how much room there is.

``explain``, the health check and the broker's log say it with the same words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headgate.flow.sentence import duration

ALL_WELL: Final = ""
"""Nothing is to be said."""


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
    text = f"the disk is full: what producers send waits for room{since}, consumers go on"
    room = room_text(facts)
    return f"{text}; {room}" if room else text


def room_text(facts: DiskFacts) -> str:
    """``1,048,576 of 8,388,608 bytes are free, the log goes on with 67,108,864``; empty while that
    is not known."""
    if facts.free_bytes is None or facts.size_bytes is None:
        return ""
    free = f"{facts.free_bytes:,} of {facts.size_bytes:,} bytes are free"
    return f"{free}, the log goes on with {facts.segment_bytes:,}"
