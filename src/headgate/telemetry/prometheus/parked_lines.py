"""Samples of messages that wait before their append, by cause, on ``GET /metrics``."""

from __future__ import annotations

from headgate.base.park_cause import ParkCause
from headgate.base.units import NS_PER_S
from headgate.engine.topic import Topic
from headgate.telemetry.prometheus.series.definition import LinesOf, Series
from headgate.telemetry.prometheus.series.parked import (
    PARKED_BYTES_SERIES,
    PARKED_MESSAGES_SERIES,
    PARKED_SECONDS_SERIES,
)


class ParkedLines:
    """Adds the samples of messages that wait before their append to one page."""

    def __init__(self, lines_of: LinesOf) -> None:
        self._lines_of = lines_of

    def add_topic(self, topic: Topic, labels: str) -> None:
        """Add the samples of one topic, for each cause that ever made messages wait.

        ``labels`` name the topic and are still open.
        """
        parking, now_ns = topic.publishing.parking, topic.now_ns
        if parking is None:
            return
        parking.fix_causes(now_ns)
        for cause in parking.causes(now_ns):
            end, spent_ns = cause_label(cause), parking.parked_ns(cause, now_ns)
            self._add(PARKED_SECONDS_SERIES, labels, end, f"{spent_ns / NS_PER_S:.3f}")
            if cause is not ParkCause.MEMORY:
                waiting = parking.waiting(cause)
                self._add(PARKED_MESSAGES_SERIES, labels, end, waiting.messages)
                self._add(PARKED_BYTES_SERIES, labels, end, waiting.bytes)

    def _add(self, series: Series, labels: str, end: str, value: int | str) -> None:
        self._lines_of(series).append(f"{series.name}{labels}{end}{value}")


def cause_label(cause: ParkCause) -> str:
    """The end of a sample's labels."""
    return f',cause="{cause.label}"}} '
