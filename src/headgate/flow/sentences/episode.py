"""One sentence about a backlog from its beginning to its end.

Like :mod:`headgate.flow.sentences.backlog`, it leaves out whatever is not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from headgate.base.texts import duration, percent
from headgate.flow.account.verdict import Verdict
from headgate.flow.sentences.backlog import UNLOAD
from headgate.flow.sentences.lost import evicted_text, expired_text, unacknowledged_text

_BLAMED: Final = {
    Verdict.CONSUMER: "the consumer",
    Verdict.NO_CONSUMER: "a missing consumer",
    Verdict.THROTTLED_SUBSCRIPTION: "the subscription limit",
    Verdict.THROTTLED_TOPIC: "the topic limit",
    Verdict.THROTTLED_BROKER: "the broker-wide limit",
    Verdict.BROKER: "the broker itself",
}


class Ending(Enum):
    """How the record of a backlog ends. The values are those in tables."""

    OVER = "over"
    SKIPPED = "skipped"
    """An administrator or a client skipped or cleared all of it."""
    UNSEEN = "unseen"
    """Its telemetry ends there, while other telemetry goes on."""
    CONTINUES = "continues"
    """It goes on after the range of the report."""
    OPEN = "open"
    """It exists at the end of the newest telemetry."""


@dataclass(frozen=True, slots=True)
class EpisodeFacts:
    """One backlog from ``since`` to ``until``, ``seconds`` later; largest at ``peak_at``.

    Instants are formatted texts. If ``begins_before``, the backlog existed before ``since``.
    ``cause`` and ``second`` are to blame for ``share`` and ``second_share`` of the time; if
    ``is_stuck``, the broker was because its dispatcher was stuck. Backlog
    quotas evicted ``evicted`` messages, ``evicted_by`` last
    (:func:`headgate.flow.sentences.quota.quota_text`), and ``expired`` reached their age, by the
    TTL ``expired_by`` last (:func:`headgate.flow.expiry.ttl_text`).
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
    is_stuck: bool = False
    evicted: int = 0
    evicted_by: str = ""
    expired: int = 0
    expired_by: str = ""


def _blamed(facts: EpisodeFacts, cause: Verdict) -> str:
    if facts.is_stuck and cause is Verdict.BROKER:
        return "the broker's dispatcher, which was stuck,"
    return _BLAMED[cause]


def episode_sentence(facts: EpisodeFacts) -> str:
    """What is known of a backlog, without line break and full stop."""
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
        text += (
            f"; {_blamed(facts, facts.cause)} is to blame for {percent(facts.share)} of the time"
        )
        if facts.second is not None:
            text += f", {_blamed(facts, facts.second)} for {percent(facts.second_share)}"
    if facts.is_stuck and goes_on:
        text += f"; {UNLOAD}"
    if facts.evicted:
        lost = evicted_text(facts.evicted, facts.evicted_by)
        text += f"; {lost} {unacknowledged_text(facts.evicted)}"
    if facts.expired:
        lost = expired_text(facts.expired, facts.expired_by)
        text += f"; {lost} {unacknowledged_text(facts.expired)}"
    if facts.ending is Ending.SKIPPED:
        text += "; it ended when the waiting messages were skipped"
    elif facts.ending is Ending.UNSEEN:
        text += "; its telemetry ends there, so the end of the backlog is not known"
    return text
