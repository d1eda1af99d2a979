"""One sentence about the use of a limiter in one minute.

Like :mod:`headgate.flow.sentences.backlog`, it leaves out whatever is not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from headgate.base.park_cause import ParkCause
from headgate.base.texts import number, percent
from headgate.flow.sentences.publish import holder

_NAMES: Final = {
    "subscription": "the subscription's dispatch limit",
    "topic": "the topic's dispatch limit",
    "broker": "the broker-wide dispatch limit",
    "publish_topic": holder(ParkCause.TOPIC_RATE),
    "publish_broker": holder(ParkCause.BROKER_RATE),
}
"""Names of limiters, by the record's field ``level``."""

_UNITS: Final = {"messages": ("message", "messages"), "bytes": ("byte", "bytes")}
_WAITERS_SHOWN_MAX: Final = 3

SHARE_SHOWN_MIN: Final = 0.005
"""A smaller share would show as 0 %."""


@dataclass(frozen=True, slots=True)
class LimiterFacts:
    """One limiter over one minute.

    ``level`` and ``dimension`` are the record's names. ``limit_text`` (``10 msg/s``) and ``source``
    are those of the limit at the end of the minute. It granted ``granted``, which is the part
    ``use`` of what it allows; what waits for it grew by ``held``. It had waiters for
    ``waiting_share`` of the time, at most ``waiters_max`` at once. ``waiters`` has each of them
    with what it was granted, the largest first.
    """

    level: str
    dimension: str
    limit_text: str = ""
    source: str = ""
    granted: int | None = None
    held: int | None = None
    use: float | None = None
    waiting_share: float | None = None
    waiters_max: int | None = None
    waiters: Sequence[tuple[str, int | None]] = ()


def limiter_sentence(facts: LimiterFacts) -> str:
    """What a limiter let through and which waiters it held, without line break and full stop."""
    text = _NAMES.get(facts.level, f"the {facts.level} limit")
    if facts.limit_text:
        text += f" of {facts.limit_text}"
    if facts.source:
        text += f" ({facts.source})"
    if facts.granted is not None:
        text += f" let {_amount(facts.granted, facts.dimension)} through"
        if facts.use is not None:
            text += f", {percent(facts.use)} of what it allows"
    else:
        text += " was in force"
    if not facts.waiting_share or facts.waiting_share < SHARE_SHOWN_MIN:
        return f"{text}; it had no waiters"
    text += f"; it had waiters for {percent(facts.waiting_share)} of the time"
    if facts.waiters_max:
        text += f", at most {facts.waiters_max:,} at once"
    if facts.held:
        text += f", and what waits grew by {_amount(facts.held, facts.dimension)}"
    if facts.waiters:
        text += f"; it held {_waiters(facts)}"
    return text


def _amount(count: int, dimension: str) -> str:
    one, many = _UNITS.get(dimension, ("", ""))
    return f"{count:,} {one if count == 1 else many}".rstrip()


def _waiters(facts: LimiterFacts) -> str:
    """``one (granted 6,000), two (granted 300) and 4 others``."""
    shown = [
        name if granted is None else f"{name} (granted {number(granted)})"
        for name, granted in facts.waiters[:_WAITERS_SHOWN_MAX]
    ]
    rest = len(facts.waiters) - len(shown)
    if rest:
        return f"{', '.join(shown)} and {rest} {'other' if rest == 1 else 'others'}"
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
