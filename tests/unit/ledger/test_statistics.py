"""Statistics are a frozen snapshot of plain values."""

from __future__ import annotations

import dataclasses

import pytest

from headgate.fs import MemFs
from tests.unit.ledger.support import append, open_log


def test_a_snapshot_does_not_move() -> None:
    log = open_log(MemFs())
    before = log.statistics()
    append(log, 1, b"a")
    assert before.records == 0
    assert log.statistics().records == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        before.records = 5  # type: ignore[misc]
