"""Instants as text."""

from __future__ import annotations

import pytest

from headgate.base.instants import EPOCH_TEXT, LATEST_MS, iso_time, seconds_of


def test_instants_are_written_as_pulsar_writes_them() -> None:
    assert iso_time(1_795_218_393_103) == "2026-11-20T23:46:33.103Z"
    assert iso_time(1_795_218_393_000) == "2026-11-20T23:46:33.000Z"
    assert iso_time(0) == EPOCH_TEXT


@pytest.mark.parametrize("wall_ms", [LATEST_MS, LATEST_MS + 1, 2**63 - 1, 2**64 - 1])
def test_a_client_may_name_any_number(wall_ms: int) -> None:
    """A message with such a time could not be peeked at: each try was an error in the log."""
    assert iso_time(wall_ms) == "9999-12-31T23:59:59.999Z"


def test_an_instant_is_read() -> None:
    assert seconds_of(EPOCH_TEXT) == 0
    assert seconds_of("2027-01-15T08:00:00Z") == 1_800_000_000
    assert seconds_of(iso_time(1_800_000_000_250)) == 1_800_000_000.25


@pytest.mark.parametrize("text", ["", "Z", "2027-01-15", "2027-01-15T08:00:00", "1800000000Z", "x"])
def test_what_is_no_instant(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        seconds_of(text)
