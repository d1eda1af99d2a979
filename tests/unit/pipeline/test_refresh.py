"""Progress of refreshes and recomputations; the Spark lane tests the tables."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any, cast

import pytest

from headgate.pipeline import refresh as refreshing
from headgate.pipeline.derived.catalogue import DERIVED
from headgate.pipeline.derived.derived_table import PASS_HOURS
from headgate.pipeline.derived.quotas import Evictions
from headgate.pipeline.refresh import recompute, refresh
from tests.unit.pipeline.derived.source_files import HOUR, change_of, file


def test_passes_move_a_bar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By hours: those of a long first read one pass after the other, of a recomputed day table by
    table; where one pass does all there is nothing to tell."""
    told: list[tuple[int, int]] = []
    done: list[int] = []

    def at(hours: int, total: int) -> None:
        told.append((hours, total))

    def compute(*words: Any) -> None:
        done.append(len(words[4]))

    monkeypatch.setattr(refreshing, "_compute_pass", compute)
    session = cast(Any, None)
    days = date(2025, 11, 21), date(2025, 11, 24)
    recompute(session, str(tmp_path), *days, at)
    total = 96 * len(DERIVED)
    assert told == [(96 * i + more, total) for i in range(len(DERIVED)) for more in (0, 0, 72)]
    assert sum(done) == total
    told.clear()
    for hours, passes in ((PASS_HOURS, []), (150, [(0, 150), (72, 150), (144, 150)])):
        (tmp_path / str(hours)).mkdir()
        live = [file(HOUR + hour, None) for hour in range(hours)]
        monkeypatch.setattr(refreshing, "change_since", lambda *_, live=live: change_of(live))
        refresh(session, str(tmp_path / str(hours)), Evictions(), at)
        assert told == passes
