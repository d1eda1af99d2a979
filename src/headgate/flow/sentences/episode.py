"""One sentence about a backlog from its beginning to its end.

As in :mod:`headgate.flow.sentences.backlog`, whatever is not known is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from headgate.flow.account.verdict import Verdict
from headgate.flow.sentences.backlog import duration, percent

_BLAMED: Final = {
    Verdict.CONSUMER: "the consumer",
    Verdict.NO_CONSUMER: "a missing consumer",
    Verdict.THROTTLED_SUBSCRIPTION: "the subscription limit",
    Verdict.THROTTLED_TOPIC: "the topic limit",
    Verdict.THROTTLED_BROKER: "the broker-wide limit",
    Verdict.BROKER: "the broker itself",
}


class Ending(Enum):
    """How what is told of a backlog ends. The values are what tables have."""

    OVER = "over"
    SKIPPED = "skipped"
    """Somebody skipped, cleared or sought forward past all of it."""
    UNSEEN = "unseen"
    """There is no telemetry of what came then, while there is of others."""
    CONTINUES = "continues"
    """It goes on after the stretch that is told of."""
    OPEN = "open"
    """It was there at the end of the newest telemetry."""


@dataclass(frozen=True, slots=True)
class EpisodeFacts:
    """One backlog from ``since`` to ``until``, ``seconds`` later, at its largest at ``peak_at``;
    instants as people read them.

    ``begins_before``: it was there before ``since``. ``cause`` and ``second`` are to blame for
    ``share`` and ``second_share`` of the time.
    """

    since: str
    until: str
    seconds: float
    ending: Ending
    peak_messages: int
    peak_at: str
    begins_before: bool = False
    cause: Verdict | None = None
    share: float = 0.0
    second: Verdict | None = None
    second_share: float = 0.0


def episode_sentence(facts: EpisodeFacts) -> str:
    """Say what is known of a backlog; no line break, no full stop."""
    goes_on = facts.ending in (Ending.OPEN, Ending.CONTINUES)
    since = "before " * facts.begins_before + facts.since
    if goes_on:
        verb = "still going on" if facts.ending is Ending.OPEN else "going on"
        text = f"a backlog since {since}, {verb} at {facts.until}"
    else:
        text = f"a backlog from {since} to {facts.until}"
        if not facts.begins_before:
            text += f" ({duration(facts.seconds)})"
    is_one = facts.peak_messages == 1
    text += f", at most {facts.peak_messages:,} {'message' if is_one else 'messages'}"
    text += f" (at {facts.peak_at})"
    if facts.cause is not None:
        text += f"; {_BLAMED[facts.cause]} is to blame for {percent(facts.share)} of the time"
        if facts.second is not None:
            text += f", {_BLAMED[facts.second]} for {percent(facts.second_share)}"
    if facts.ending is Ending.SKIPPED:
        text += "; it ended when the waiting messages were skipped"
    elif facts.ending is Ending.UNSEEN:
        text += "; its telemetry ends there, so the end of the backlog is not known"
    return text
