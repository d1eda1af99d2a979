"""The definition of one series of ``GET /metrics``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

BROKER_LABELS: Final = ("cluster",)
NAMESPACE_LABELS: Final = ("cluster", "namespace")
TOPIC_LABELS: Final = ("cluster", "namespace", "topic")
SUBSCRIPTION_LABELS: Final = ("cluster", "namespace", "topic", "subscription")


@dataclass(frozen=True, slots=True)
class Series:
    """One name on the page."""

    name: str
    type: str
    """``gauge``, ``counter``, ``histogram`` or ``summary``, as its TYPE line says."""
    labels: tuple[str, ...]
    unit: str
    meaning: str

    @property
    def family(self) -> str:
        """The name on its TYPE line: without ``_total`` where it is a counter of Pulsar's."""
        of_pulsar = self.type == "counter" and self.name.startswith("pulsar_")
        return self.name.removesuffix("_total") if of_pulsar else self.name


LinesOf = Callable[[Series], list[str]]
"""Gives the lines of a series on a page, each a whole line without its end."""


def broker_gauge(name: str, unit: str, meaning: str, *labels: str) -> Series:
    """A gauge of Pulsar's about the broker; ``labels`` are those besides the cluster."""
    return Series(f"pulsar_{name}", "gauge", (*BROKER_LABELS, *labels), unit, meaning)


def broker_counter(name: str, unit: str, meaning: str) -> Series:
    """A counter of Pulsar's about the broker."""
    return Series(f"pulsar_{name}_total", "counter", BROKER_LABELS, unit, meaning)


def topic_gauge(name: str, unit: str, meaning: str, *labels: str) -> Series:
    """A gauge of Pulsar's about each topic; ``labels`` are those besides the topic's."""
    return Series(f"pulsar_{name}", "gauge", (*TOPIC_LABELS, *labels), unit, meaning)


def subscription_gauge(name: str, unit: str, meaning: str, *labels: str) -> Series:
    """A gauge of Pulsar's about each subscription; ``labels`` are those besides its own."""
    return Series(f"pulsar_{name}", "gauge", (*SUBSCRIPTION_LABELS, *labels), unit, meaning)


def own_broker_series(name: str, kind: str, unit: str, meaning: str) -> Series:
    """A series of Headgate's own about the broker."""
    return Series(f"headgate_{name}", kind, BROKER_LABELS, unit, meaning)


def own_topic_series(name: str, kind: str, unit: str, meaning: str, *labels: str) -> Series:
    """A series of Headgate's own about each topic; ``labels`` are those besides the topic's."""
    return Series(f"headgate_{name}", kind, (*TOPIC_LABELS, *labels), unit, meaning)
