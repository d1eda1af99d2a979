"""One sentence about what holds a topic's producers now, or held them lately.

``explain`` says it from the broker's own memory; of a stretch of the past
:mod:`headgate.flow.sentences.past_publish` says it. As in :mod:`headgate.flow.sentences.backlog`,
whatever is not known is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from headgate.base.park_cause import ParkCause
from headgate.base.units import S_PER_MINUTE
from headgate.flow.sentences.backlog import duration, percent

NOTHING_HOLDS: Final = "nothing holds publishing"

SEND_TIMEOUT_S: Final = 30.0
"""After which Pulsar's clients give a message up unless they are told otherwise."""

SHOWN_S_MIN: Final = 0.3
"""Half a percent of a minute; less reads as nothing."""

PENDING_SETTING: Final = "maxPendingPublishRequestsPerConnection"
"""What bounds the unanswered messages of a connection."""

PUBLISH_LIMITS: Final = (ParkCause.TOPIC_RATE, ParkCause.BROKER_RATE, ParkCause.ADAPTIVE)
"""The causes that are a publish limit."""

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
class PublishHold:
    """What one cause holds now, and for how long it held anything lately.

    ``limit_text`` and ``limit_source`` are those of the publish limit as it is now, if the cause is
    one. ``last_goes_s``: in what time the last of what waits goes under it. ``unread``: of how many
    of the producers the connection is not read, because they park too much. ``waiting_s``: for how
    long something has waited without a break, None if nothing does. ``partitions``: on how many the
    cause holds something by itself, each with such a limit.
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
    causes: Sequence[PublishHold],
    *,
    partitions: int = 1,
    stopped: bool = False,
    disk_full: bool = False,
) -> str:
    """Say what holds publishing; no line break, no full stop.

    ``partitions``: of how many the topic is made; each has its topic's limit by itself.
    ``stopped``: a backlog quota is reached, so that no message is accepted. Its producers may have
    been disconnected, so that nothing waits. ``disk_full``: no message is accepted either.
    """
    now = sorted(
        (held for held in causes if held.producers),
        key=lambda held: (-held.messages, held.cause),
    )
    if now:
        others = (_waits(held, partitions) for held in now[1:])
        return "; ".join([_now(now[0], partitions), *others])
    head = "nothing waits now"
    if stopped:
        head = "the backlog quota stops all publishing now"
    elif disk_full:
        head = "the disk is full: messages published now wait for room"
    for name, lately in (
        ("minute", [(held.minute_s, held) for held in causes]),
        ("hour", [(held.hour_s, held) for held in causes]),
    ):
        told = [
            f"{_subject(held, partitions)} held producers for {_part(seconds, name)}"
            for seconds, held in sorted(lately, key=lambda each: (-each[0], each[1].cause))
            if seconds >= SHOWN_S_MIN
        ]
        if told:
            return f"{head}; {' and '.join(told)} of the last {name}"
    return head if stopped or disk_full else NOTHING_HOLDS


def _now(held: PublishHold, partitions: int) -> str:
    text = _waits(held, partitions)
    if held.messages:
        is_one = held.messages == 1
        text += f": {held.messages:,} {'message is' if is_one else 'messages are'} parked"
        if held.last_goes_s is not None and held.last_goes_s >= SEND_TIMEOUT_S:
            text += (
                f", the last of which is accepted in {duration(held.last_goes_s)}, while clients"
                f" give up after {duration(SEND_TIMEOUT_S)} by default"
            )
        if held.unread:
            text += f"; {_unread(held)} until half of them are accepted"
    # All of the last minute's waiting is the present one.
    if held.waiting_s is not None and max(1.0, held.minute_s) <= held.waiting_s + SHOWN_S_MIN:
        return f"{text}; held for {duration(held.waiting_s)} without a break"
    if held.minute_s >= SHOWN_S_MIN:
        return f"{text}; held for {_share(held.minute_s)} of the last minute"
    return text


def _unread(held: PublishHold) -> str:
    if held.producers == 1:
        return "its connection is not read"
    if held.unread == held.producers:
        return "their connections are not read"
    return f"the connections of {held.unread:,} of them are not read"


def _share(minute_s: float) -> str:
    return percent(min(1.0, minute_s / S_PER_MINUTE))


def _part(seconds: float, name: str) -> str:
    """Of a minute the share, of an hour the time."""
    return _share(seconds) if name == "minute" else duration(seconds)


def _waits(held: PublishHold, partitions: int) -> str:
    """``2 producers wait for the topic's publish limit of 10 msg/s (topic policy)``."""
    is_one = held.producers == 1
    who = f"{held.producers:,} {'producer' if is_one else 'producers'}"
    if held.cause is ParkCause.MEMORY:
        of = "the connection of" if is_one else "the connections of"
        return f"{of} {who} {'is' if is_one else 'are'} not read, because too much waits in memory"
    wait = f"{who} {'waits' if is_one else 'wait'} for"
    if held.cause is ParkCause.BACKLOG_QUOTA:
        return f"{wait} room in the backlog quota"
    if held.cause is ParkCause.DISK_FULL:
        return f"{wait} room on the disk, which is full"
    if held.cause is ParkCause.PENDING_LIMIT:
        what = "what it" if is_one else "what they"
        return f"{wait} answers to {what} sent before ({PENDING_SETTING})"
    text = f"{wait} {holder(held.cause)}"
    if held.limit_text:
        text += f" of {held.limit_text}"
        if held.limit_source and held.cause is not ParkCause.ADAPTIVE:
            text += f" ({held.limit_source})"
    return text + _each(held, partitions)


def _subject(held: PublishHold, partitions: int) -> str:
    """``the topic's publish limit, now 10 msg/s (topic policy),``: it may have been another."""
    text = holder(held.cause)
    if held.limit_text and held.cause in PUBLISH_LIMITS:
        text += f", now {held.limit_text}"
        if held.limit_source and held.cause is not ParkCause.ADAPTIVE:
            text += f" ({held.limit_source})"
        text += f"{_each(held, partitions)},"
    return text


def holder(cause: ParkCause) -> str:
    """What a cause is, as the one that held: ``the topic's publish limit``."""
    return _HOLDERS[cause]


def _each(held: PublishHold, partitions: int) -> str:
    """The controller gives each partition a limit of its own, of which one is told."""
    if partitions == 1 or held.cause is ParkCause.BROKER_RATE:
        return ""
    if held.cause is ParkCause.ADAPTIVE:
        return " on one of the partitions"
    return f" on each of {partitions:,} partitions"
