"""Files whose names are instants."""

from __future__ import annotations

import pytest

from headgate.pipeline.timed_folders import time_of


@pytest.mark.parametrize(
    ("name", "ms"),
    [
        ("1763719200000.prom", 1_763_719_200_000),
        ("1763719200000.records", None),
        ("17.prom", None),
        ("9999999999999.prom", None),
        ("1763719200000.prom.gz", None),
    ],
)
def test_an_instant_has_thirteen_digits_and_the_suffix(name: str, ms: int | None) -> None:
    assert time_of(name, ".prom") == ms
