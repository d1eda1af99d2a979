"""The table of series, held against a scrape of a real broker."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headgate.telemetry.series import LIMIT_SERIES, SERIES, STATE_SERIES, Series
from tests.unit.telemetry.support import read_page

GOLDEN = (Path(__file__).parent / "golden" / "metrics-4.0.8.txt").read_text()
TYPES, SAMPLES = read_page(GOLDEN)
OURS = (STATE_SERIES, LIMIT_SERIES)


@pytest.mark.parametrize("series", [s for s in SERIES if s not in OURS], ids=lambda s: s.name)
def test_pulsars_series_have_pulsars_types_and_labels(series: Series) -> None:
    assert TYPES[series.name] == series.type
    for sample in SAMPLES:
        if sample.name == series.name:
            assert tuple(sample.labels) == series.labels


def test_every_name_stands_once_and_is_explained() -> None:
    names = [series.name for series in SERIES]
    assert len(set(names)) == len(names)
    for series in SERIES:
        assert re.fullmatch(r"[a-z_]+", series.name)
        assert series.unit
        assert series.meaning.endswith(".")


def test_only_headgates_counters_are_called_counters() -> None:
    assert [s.name for s in SERIES if s.type == "counter"] == [STATE_SERIES.name]
