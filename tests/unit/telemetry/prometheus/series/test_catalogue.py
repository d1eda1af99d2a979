"""The table of series, held against a scrape of a real broker."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headgate.broker.schemas.figures import SchemaOperation
from headgate.telemetry.prometheus.series.catalogue import SERIES
from headgate.telemetry.prometheus.series.definition import Series
from headgate.telemetry.prometheus.series.limits import HELD_BACK_SERIES
from headgate.telemetry.prometheus.series.schemas import SCHEMA_LATENCY_SERIES, SCHEMA_SERIES
from headgate.telemetry.prometheus.series.subscriptions import BACKLOG_AGE_SERIES, STATE_SERIES
from tests.unit.telemetry.support import read_page

GOLDEN = (Path(__file__).parents[1] / "golden" / "metrics-4.0.8.txt").read_text()
TYPES, SAMPLES = read_page(GOLDEN)
OURS = tuple(series for series in SERIES if series.name.startswith("headgate_"))
LATER = (BACKLOG_AGE_SERIES, *HELD_BACK_SERIES)
"""Of releases after the one that was scraped; no release has those of PIP-406's first form."""
UNSEEN = tuple(
    series
    for series in SCHEMA_SERIES
    if series.type == "counter" or series is SCHEMA_LATENCY_SERIES[SchemaOperation.DELETE]
)
"""Nothing failed, was compared or was deleted there."""


@pytest.mark.parametrize(
    "series", [s for s in SERIES if s not in OURS + LATER + UNSEEN], ids=lambda s: s.name
)
def test_pulsars_series_have_pulsars_types_and_labels(series: Series) -> None:
    assert TYPES[series.family] == series.type
    name = f"{series.name}_count" if series.type in ("histogram", "summary") else series.name
    seen = [sample for sample in SAMPLES if sample.name == name]
    assert seen
    for sample in seen:
        assert tuple(sample.labels) == series.labels


def test_every_name_stands_once_and_is_explained() -> None:
    names = [series.name for series in SERIES]
    assert len(set(names)) == len(names)
    for series in SERIES:
        assert re.fullmatch(r"[a-z0-9_]+", series.name)
        assert series.unit
        assert series.meaning.endswith(".")


def test_counters_are_those_that_pulsar_calls_so_and_headgates() -> None:
    counters = {s.name: s.family for s in SERIES if s.type == "counter"}
    assert counters == {
        "pulsar_broker_lookup_answers_total": "pulsar_broker_lookup_answers",
        "pulsar_broker_lookup_failures_total": "pulsar_broker_lookup_failures",
        **{s.name: s.family for s in UNSEEN if s.type == "counter"},
        **{series.name: series.name for series in OURS if series.name.endswith("_total")},
    }
    assert STATE_SERIES in OURS
