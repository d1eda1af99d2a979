"""One sentence about what parked a topic's SENDs in a past interval.

The pipeline prints it for a minute and for a range, in the words that ``explain`` uses for the
present (:mod:`headgate.flow.sentences.publish`). It leaves out whatever is not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from headgate.base.park_cause import ParkCause
from headgate.base.texts import duration, number, percent
from headgate.base.units import S_PER_MINUTE
from headgate.flow.sentences.publish import PENDING_SETTING, SHOWN_S_MIN, holder

NOTHING_HELD: Final = "nothing held publishing"

_BOUNDS: Final = {
    ParkCause.PENDING_LIMIT: PENDING_SETTING,
    ParkCause.MEMORY: "headgateMaxParkedBytesPerConnection, maxMessagePublishBufferSizeInMB",
}
"""The settings of the causes that are not a topic's limit."""


@dataclass(frozen=True, slots=True)
class PastParkSummary:
    """The SENDs that one cause parked in a past interval.

    At least one was parked for ``seconds``, and ``messages`` are at the end. ``limit_text`` and
    ``limit_source`` are those of the limit or quota meanwhile. ``limit_at_end`` is another
    limit that was in force at the end (``900 msg/s``, ``gone``); empty if it did not change.
    """

    cause: ParkCause
    seconds: float = 0.0
    messages: int = 0
    limit_text: str = ""
    limit_source: str = ""
    limit_at_end: str = ""


def past_publish_sentence(
    causes: Sequence[PastParkSummary], *, range_s: float | None = None, duplicates: int = 0
) -> str:
    """What held publishing, without line break and full stop.

    ``range_s`` is the length of the interval in seconds, None if it is one minute. Deduplication
    dropped ``duplicates`` messages in it.
    """
    shown = [park for park in causes if park.seconds >= SHOWN_S_MIN]
    shown.sort(key=lambda park: (-park.seconds, park.cause))
    if shown:
        text = f"{_subject(shown[0])} held producers for {_time(shown[0].seconds)}"
        text += "".join(f" and {_subject(park)} for {_time(park.seconds)}" for park in shown[1:])
        text += _of(shown[0].seconds, range_s)
        text += "".join(
            f"; by the end {holder(park.cause)} was {park.limit_at_end}"
            for park in shown
            if park.limit_at_end
        )
    elif any(park.seconds > 0 for park in causes):
        text = f"{NOTHING_HELD} for as long as {number(SHOWN_S_MIN)} s"
    else:
        text = NOTHING_HELD
    waiting = sum(park.messages for park in causes)
    if waiting:
        who = "1 message waits" if waiting == 1 else f"{waiting:,} messages wait"
        text += f"; {who} at {'its' if range_s is None else 'their'} end"
    if duplicates:
        what = "1 message" if duplicates == 1 else f"{duplicates:,} messages"
        text += f"; deduplication dropped {what} that had been stored before"
    return text


def _subject(park: PastParkSummary) -> str:
    """``the topic's publish limit of 10 msg/s (topic policy)``."""
    text = holder(park.cause)
    if park.limit_text:
        text += f" of {park.limit_text}"
    why = park.limit_source or _BOUNDS.get(park.cause, "")
    # The controller's limit has no policy as its source.
    return f"{text} ({why})" if why and park.cause is not ParkCause.ADAPTIVE else text


def _of(seconds: float, range_s: float | None) -> str:
    if range_s is None:
        return " of this minute"
    share = percent(min(1.0, seconds / range_s)) if range_s > 0 else percent(1.0)
    return f" of these {_time(range_s)} ({share})"


def _time(seconds: float) -> str:
    return f"{number(seconds)} s" if seconds < 2 * S_PER_MINUTE else duration(seconds)
