"""Names and colours of the verdicts in a terminal."""

from __future__ import annotations

from typing import Final

THROTTLED_COLOR: Final = "red"
"""Of a verdict that is not listed."""

CAUSES: Final = {
    "CONSUMER": ("Consumer", "yellow", "c"),
    "NO_CONSUMER": ("No consumer", "cyan", "n"),
    "THROTTLED_SUBSCRIPTION": ("Subscription limit", THROTTLED_COLOR, "S"),
    "THROTTLED_TOPIC": ("Topic limit", THROTTLED_COLOR, "T"),
    "THROTTLED_BROKER": ("Broker limit", THROTTLED_COLOR, "B"),
    "BROKER": ("Broker", "magenta", "b"),
    "NONE": ("Keeps up", "green", "."),
    "SETTLING": ("Settling", "bright_black", "?"),
}
"""By verdict: its name, its colour, and the letter that stands for it where there is no colour.
The order is that in which a reader may choose one."""


def cause_name(verdict: str) -> str:
    """As the page of the broker calls it; the verdict itself if it is newer than this release."""
    return CAUSES[verdict][0] if verdict in CAUSES else verdict


def cause_color(verdict: str) -> str:
    """A colour that click and rich know."""
    return CAUSES[verdict][1] if verdict in CAUSES else THROTTLED_COLOR


def cause_letter(verdict: str) -> str:
    """One character."""
    return CAUSES[verdict][2] if verdict in CAUSES else "x"
