"""What settings must be beside each other, where each looks well by itself.

Asked at the start about all of them, and for every change of a dynamic one.
"""

from __future__ import annotations

from typing import NamedTuple

from headgate.policy.settings import Settings


class Watermarks(NamedTuple):
    """Two keys of which the first must be below the second."""

    low: str
    high: str


WATERMARKS = tuple(
    Watermarks(
        f"adaptivePublisherThrottling{what}LowWatermarkPct",
        f"adaptivePublisherThrottling{what}HighWatermarkPct",
    )
    for what in ("Memory", "Backlog")
)


def crossed(settings: Settings) -> list[Watermarks]:
    """The pairs of watermarks of which the low one is not below the high one."""
    return [
        pair for pair in WATERMARKS if getattr(settings, pair.low) >= getattr(settings, pair.high)
    ]


def what_is_allowed(settings: Settings, pair: Watermarks, name: str) -> str:
    """A sentence about one key of a crossed pair: its value, and what the other one leaves it."""
    if name == pair.low:
        allowed = f"a number above 0 and below {pair.high} ({settings.text(pair.high)})"
    else:
        allowed = f"a number above {pair.low} ({settings.text(pair.low)}) and up to 1"
    return f"{name}={settings.text(name)!r} is not allowed: {allowed} is"


def check_together(settings: Settings) -> list[str]:
    """What is wrong with values that do not go together, one sentence for each."""
    return [what_is_allowed(settings, pair, pair.low) for pair in crossed(settings)]
