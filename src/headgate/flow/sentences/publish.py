"""One sentence about what parks a topic's SENDs now, or parked them lately.

``explain`` prints it from the broker's own memory; :mod:`headgate.flow.sentences.past_publish` is
about past intervals. Like :mod:`headgate.flow.sentences.backlog`, it leaves out whatever is not
known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from headgate.base.park_cause import ParkCause
from headgate.base.texts import duration, percent
from headgate.base.units import S_PER_MINUTE

NOTHING_HOLDS: Final = "nothing holds publishing"

SEND_TIMEOUT_S: Final = 30.0
"""The default of ``sendTimeout``, the setting after which a Pulsar client gives a message up."""

SHOWN_S_MIN: Final = 0.3
"""A shorter time is not shown: half a percent of a minute."""

PENDING_SETTING: Final = "maxPendingPublishRequestsPerConnection"
"""The setting that bounds the unanswered messages of a connection."""

PUBLISH_LIMITS: Final = (ParkCause.TOPIC_RATE, ParkCause.BROKER_RATE, ParkCause.ADAPTIVE)
"""The causes that are publish limits."""

_HOLDERS: Final = {
    ParkCause.TOPIC_RATE: "the topic's publish limit",
    ParkCause.BROKER_RATE: "the broker-wide publish limit",
    ParkCause.ADAPTIVE: "the adaptive controller's publish limit",
    ParkCause.BACKLOG_QUOTA: "the backlog quota",
    ParkCause.PENDING_LIMIT: "too many unanswered messages of a connection",
    ParkCause.MEMORY: "too much that waited in memory",
    ParkCause.DISK_FULL: "the full disk",
}


@dataclass(frozen=True, slots=True)
class ParkSummary:
    """The SENDs that one cause parks now, and for how long it parked any lately.

    If the cause is a publish limit, ``limit_text`` and ``limit_source`` are its present ones, and
    it accepts the last parked SEND in ``last_goes_s``. The broker does not read the connections
    of ``unread`` of the producers, because they park too much. A SEND has been parked without a
    break for ``waiting_s``; None if none is.
    """

    cause: ParkCause
    producers: int = 0
    messages: int = 0
    minute_s: float = 0.0
    hour_s: float = 0.0
    waiting_s: float | None = None
    limit_text: str = ""
    limit_source: str = ""
    last_goes_s: float | None = None
    unread: int = 0


def publish_sentence(
    causes: Sequence[ParkSummary],
    *,
    partitions: int = 1,
    stopped: bool = False,
    disk_full: bool = False,
    tenant_full: str = "",
) -> str:
    """What holds publishing, without line break and full stop.

    The topic has ``partitions``, each with the topic's limit for itself. If ``stopped``, a backlog
    quota is exceeded and no message is accepted; nothing may wait, because the quota may have
    disconnected the producers. If ``disk_full``, no message is accepted either. ``tenant_full``
    says how much the tenant stores if that is too much, so that producers are refused.
    """
    now = sorted(
        (park for park in causes if park.producers),
        key=lambda park: (-park.messages, park.cause),
    )
    if now:
        others = (_waits(park, partitions) for park in now[1:])
        return "; ".join([_now(now[0], partitions), *others])
    head = "nothing waits now"
    if stopped:
        head = "the backlog quota stops all publishing now"
    elif tenant_full:
        head = f"{tenant_full}: its producers are refused"
    elif disk_full:
        head = "the disk is full: messages published now wait for room"
    for name, lately in (
        ("minute", [(park.minute_s, park) for park in causes]),
        ("hour", [(park.hour_s, park) for park in causes]),
    ):
        shown = [
            f"{_subject(park, partitions)} held producers for {_part(seconds, name)}"
            for seconds, park in sorted(lately, key=lambda each: (-each[0], each[1].cause))
            if seconds >= SHOWN_S_MIN
        ]
        if shown:
            return f"{head}; {' and '.join(shown)} of the last {name}"
    return head if stopped or disk_full or tenant_full else NOTHING_HOLDS


def _now(park: ParkSummary, partitions: int) -> str:
    text = _waits(park, partitions)
    if park.messages:
        is_one = park.messages == 1
        text += (
            f": {park.messages:,} {'message waits' if is_one else 'messages wait'} in the broker"
        )
        if park.last_goes_s is not None and park.last_goes_s >= SEND_TIMEOUT_S:
            text += (
                f", the last of which is accepted in {duration(park.last_goes_s)}, while clients"
                f" give up after their sendTimeout (default {duration(SEND_TIMEOUT_S)})"
            )
        if park.unread:
            text += f"; {_unread(park)} until half of them are accepted"
    # The present wait is the only one of the last minute.
    if park.waiting_s is not None and max(1.0, park.minute_s) <= park.waiting_s + SHOWN_S_MIN:
        return f"{text}; held for {duration(park.waiting_s)} without a break"
    if park.minute_s >= SHOWN_S_MIN:
        return f"{text}; held for {_share(park.minute_s)} of the last minute"
    return text


def _unread(park: ParkSummary) -> str:
    if park.producers == 1:
        return "its connection is not read"
    if park.unread == park.producers:
        return "their connections are not read"
    return f"the connections of {park.unread:,} of them are not read"


def _share(minute_s: float) -> str:
    return percent(min(1.0, minute_s / S_PER_MINUTE))


def _part(seconds: float, name: str) -> str:
    """A share of the last minute, or a time in the last hour."""
    return _share(seconds) if name == "minute" else duration(seconds)


def _waits(park: ParkSummary, partitions: int) -> str:
    """``2 producers wait for the topic's publish limit of 10 msg/s (topic policy)``."""
    is_one = park.producers == 1
    who = f"{park.producers:,} {'producer' if is_one else 'producers'}"
    if park.cause is ParkCause.MEMORY:
        of = "the connection of" if is_one else "the connections of"
        return f"{of} {who} {'is' if is_one else 'are'} not read, because too much waits in memory"
    wait = f"{who} {'waits' if is_one else 'wait'} for"
    if park.cause is ParkCause.BACKLOG_QUOTA:
        return f"{wait} room in the backlog quota"
    if park.cause is ParkCause.DISK_FULL:
        return f"{wait} room on the disk, which is full"
    if park.cause is ParkCause.PENDING_LIMIT:
        what = "what it" if is_one else "what they"
        return f"{wait} answers to {what} sent before ({PENDING_SETTING})"
    text = f"{wait} {holder(park.cause)}"
    if park.limit_text:
        text += f" of {park.limit_text}"
        if park.limit_source and park.cause is not ParkCause.ADAPTIVE:
            text += f" ({park.limit_source})"
    return text + _each(park, partitions)


def _subject(park: ParkSummary, partitions: int) -> str:
    """``the topic's publish limit, now 10 msg/s (topic policy),``: it may have been another
    then."""
    text = holder(park.cause)
    if park.limit_text and park.cause in PUBLISH_LIMITS:
        text += f", now {park.limit_text}"
        if park.limit_source and park.cause is not ParkCause.ADAPTIVE:
            text += f" ({park.limit_source})"
        text += f"{_each(park, partitions)},"
    return text


def holder(cause: ParkCause) -> str:
    """The name of a cause in a sentence: ``the topic's publish limit``."""
    return _HOLDERS[cause]


def _each(park: ParkSummary, partitions: int) -> str:
    """On how many partitions the limit holds. Adaptive limits differ, and one of them is shown."""
    if partitions == 1 or park.cause is ParkCause.BROKER_RATE:
        return ""
    if park.cause is ParkCause.ADAPTIVE:
        return " on one of the partitions"
    return f" on each of {partitions:,} partitions"
