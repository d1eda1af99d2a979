"""Samples of the registry of schemas on ``GET /metrics``."""

from __future__ import annotations

from collections.abc import Callable

from headgate.base.units import NS_PER_MS
from headgate.broker.schemas.figures import SchemaFigures, SchemaOperation
from headgate.telemetry.prometheus.series.definition import LinesOf, Series
from headgate.telemetry.prometheus.series.schemas import (
    COMPATIBLE_SERIES,
    INCOMPATIBLE_SERIES,
    SCHEMA_FAILED_SERIES,
    SCHEMA_LATENCY_SERIES,
)


class SchemaLines:
    """Adds the samples of schemas to one page."""

    def __init__(self, figures: SchemaFigures, lines_of: LinesOf) -> None:
        self._figures = figures
        self._lines_of = lines_of

    def add(self, labels_of: Callable[[str], str]) -> None:
        """Add all; ``labels_of`` gives the labels of a namespace, still open."""
        for namespace, figures in self._figures.by_namespace():
            labels = labels_of(str(namespace))
            for operation in SchemaOperation:
                found, series = figures.operations[operation], SCHEMA_LATENCY_SERIES[operation]
                self._add(series, "_count", labels, str(found.done))
                self._add(series, "_sum", labels, f"{found.took_ns / NS_PER_MS:.3f}")
                self._add(SCHEMA_FAILED_SERIES[operation], "", labels, str(found.failed))
            self._add(COMPATIBLE_SERIES, "", labels, str(figures.compatible))
            self._add(INCOMPATIBLE_SERIES, "", labels, str(figures.incompatible))

    def _add(self, series: Series, end: str, labels: str, value: str) -> None:
        self._lines_of(series).append(f"{series.name}{end}{labels}}} {value}")
