"""What the agent knows of one topic or subscription, as values of telemetry fields.

A history gives one for each subject it follows. ``records`` makes rows of the telemetry of them,
``metrics`` series.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headgate.record.codec import Value


@dataclass(frozen=True, slots=True)
class SubjectFigures:
    """A topic, partition or subscription at its last look."""

    topic: str
    """Full name of the topic or partition."""
    subscription: str | None
    """None: of the topic itself."""
    since_ns: int
    """Monotonic: when its cumulative values were zero."""
    at_ns: int
    """Monotonic: the last look, to which the values apply."""
    owner: str
    """The broker that answered; empty if unknown."""
    values: Mapping[str, Value]
    """By field of :data:`headgate.record.fields.FIELDS`; a value that is None or absent is not
    known. Times in states add up to ``at_ns - since_ns``."""
