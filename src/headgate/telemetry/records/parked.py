"""Published messages that wait before their append, by cause, in a topic's row."""

from __future__ import annotations

from typing import Final

from headgate.base.park_cause import ParkCause
from headgate.engine.topic import Topic
from headgate.record.fields import PARKED_FIELD_NAMES

PARKED_COLUMNS: Final = PARKED_FIELD_NAMES
"""For each cause nanoseconds, messages and bytes; for ``memory`` only nanoseconds."""

_NOTHING: Final = (0,) * len(PARKED_COLUMNS)


def parked_values(topic: Topic) -> tuple[int, ...]:
    """In the order of :data:`PARKED_COLUMNS`."""
    parking = topic.parking
    if parking is None:
        return _NOTHING
    values: list[int] = []
    for cause in ParkCause:
        values.append(parking.parked_ns(cause, topic.engine.now_ns))
        if cause is not ParkCause.MEMORY:
            waiting = parking.waiting(cause)
            values += (waiting.messages, waiting.bytes)
    return tuple(values)
