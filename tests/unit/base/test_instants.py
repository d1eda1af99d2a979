"""Instants as text."""

from __future__ import annotations

from headgate.base.instants import EPOCH_TEXT, iso_time


def test_instants_are_written_as_pulsar_writes_them() -> None:
    assert iso_time(1_795_218_393_103) == "2026-11-20T23:46:33.103Z"
    assert iso_time(1_795_218_393_000) == "2026-11-20T23:46:33.000Z"
    assert iso_time(0) == EPOCH_TEXT
