"""The types of parameters, with ``pulsar-admin``'s texts for wrong values.

Each function reads one value from the command line and raises ``click.BadParameter`` if the
value is not allowed. The command puts the option's name before the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

import click

from headgate.base.names import InvalidNameError, NamespaceName, TopicName, parse_topic
from headgate.base.units import INT32_MAX, INT64_MAX, MS_PER_S, S_PER_DAY, US_PER_MS
from headgate.pipeline.time_span import since_epoch_us

_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,19}\Z")
_TIME: Final = re.compile(r"(-?[0-9]{1,12})([smhdwySMHDWY]?)\Z")
_SIZE: Final = re.compile(r"(-?[0-9]{1,18})([kKmMgGtT]?)\Z")
_MESSAGE_ID: Final = re.compile(r"(-?[0-9]{1,18}):(-?[0-9]{1,18})\Z")

_UNIT_S: Final = {
    "": 1, "s": 1, "m": 60, "h": 3600, "d": S_PER_DAY, "w": 7 * S_PER_DAY, "y": 365 * S_PER_DAY,
}  # fmt: skip
_UNIT_BYTES: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}

_PLACES: Final = {"latest": (INT64_MAX, INT64_MAX), "earliest": (-1, -1)}
_DOMAINS: Final = ("persistent", "non_persistent")
_MODES: Final = ("PERSISTENT", "NON_PERSISTENT", "ALL")


def int32(text: str) -> int:
    """A whole number that is a Java ``int``."""
    return _integer(text, INT32_MAX, "an int")


def int64(text: str) -> int:
    """A whole number that is a Java ``long``; without a unit."""
    return _integer(text, INT64_MAX, "a long")


def time_s(text: str) -> int:
    """A duration in seconds. Without a unit they are seconds; ``m`` is minutes."""
    match = _TIME.match(text)
    if match is None:
        raise click.BadParameter(f"'{text}' is not a time such as 90, 90s, 10m, 3h, 2d, 5w, 1y")
    return int(match[1]) * _UNIT_S[match[2].lower()]


def time_ms(text: str) -> int:
    """A duration as :func:`time_s` reads it, in milliseconds."""
    return time_s(text) * MS_PER_S


def size_bytes(text: str) -> int:
    """A number of bytes; units are powers of 1024."""
    match = _SIZE.match(text)
    if match is None:
        raise click.BadParameter(f"'{text}' is not a size such as 4096, 100K, 10M, 16G, 2T")
    return int(match[1]) * _UNIT_BYTES[match[2].lower()]


def instant_ms(text: str) -> int:
    """A time of ISO 8601 with its offset, in milliseconds since the epoch."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise click.BadParameter(
            f"'{text}' is not a time with its offset such as 2026-06-28T16:53:08Z"
        )
    return since_epoch_us(at) // US_PER_MS


def namespace(text: str) -> NamespaceName:
    """``tenant/namespace``."""
    try:
        return NamespaceName.parse(text)
    except InvalidNameError as error:
        raise click.BadParameter(str(error)) from error


def topic(text: str) -> TopicName:
    """A topic's full or short name. The broker has persistent ones alone."""
    try:
        name = parse_topic(text)
    except InvalidNameError as error:
        raise click.BadParameter(str(error)) from error
    if not name.is_persistent:
        raise click.BadParameter(f"Need to provide a persistent topic name, not '{text}'")
    return name


def message_id(text: str) -> tuple[int, int]:
    """A place in a topic, as the numbers of a ledger and an entry."""
    if text in _PLACES:
        return _PLACES[text]
    match = _MESSAGE_ID.match(text)
    if match is None:
        raise click.BadParameter(f"'{text}' is not latest, earliest or ledgerId:entryId")
    return int(match[1]), int(match[2])


def pairs(text: str) -> dict[str, str]:
    """``key=value``; several are separated by commas."""
    found = [item.partition("=") for item in text.split(",")]
    if not all(key and separator for key, separator, _ in found):
        raise click.BadParameter(f"'{text}' is not key=value")
    return {key: value for key, _, value in found}


def merged(given: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """The pairs of an option that may be repeated; of equal keys the last counts."""
    return {key: text for one in given for key, text in one.items()}


def names(text: str) -> list[str]:
    """Names separated by commas."""
    found = [name.strip() for name in text.split(",")]
    if not all(found):
        raise click.BadParameter(f"'{text}' has an empty name between its commas")
    return found


def topic_domain(text: str) -> str:
    """Which topics to list."""
    return _word(text, _DOMAINS)


def topic_mode(text: str) -> str:
    """Which topics of a namespace to list."""
    return _word(text, _MODES)


def _integer(text: str, maximum: int, kind: str) -> int:
    if _INTEGER.match(text) and -maximum - 1 <= int(text) <= maximum:
        return int(text)
    raise click.BadParameter(f"'{text}' is not {kind}")


def _word(text: str, allowed: tuple[str, ...]) -> str:
    for word in allowed:
        if word.lower() == text.lower():
            return word
    raise click.BadParameter(f"expected one of [{', '.join(allowed)}] but was '{text}'")
