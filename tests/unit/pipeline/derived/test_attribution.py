"""Verdicts follow from the minutes before them in their hour, and from the day before that."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.pipeline.derived.attribution import Attribution, DemonstratedRates
from headgate.pipeline.store.log_changes import SourceChange
from headgate.pipeline.tables.touched_minutes import TouchedMinutes
from tests.unit.pipeline.derived.source_files import HOUR, Live, file, is_input, touched


def test_a_verdict_reads_its_own_hour() -> None:
    """The day before is in the table of demonstrated rates."""
    for derivation in (Attribution(), DemonstratedRates()):
        assert [is_input(derivation, file(HOUR + ahead), {HOUR}) for ahead in (-1, 0, 1)] == [
            False, True, False,
        ]  # fmt: skip
        assert not is_input(derivation, file(HOUR, "topic"), {HOUR})


def test_later_minutes_follow_from_earlier_ones() -> None:
    live = [file(HOUR + ahead) for ahead in (-1, 0, 1, 24, 25)]
    change = SourceChange([], TouchedMinutes({HOUR: range(20, 23)}))
    found = Attribution().touched("", change, Live(live))
    whole = range(60)
    assert dict(found) == {HOUR: range(20, 60), HOUR + 1: whole, HOUR + 24: whole}
    assert dict(DemonstratedRates().touched("", change, Live(live))) == {HOUR: range(20, 23)}


@given(st.sets(st.integers(0, 120)), st.sets(st.integers(0, 120)), st.integers(0, 120))
def test_hours_touched_by_a_new_hour_are_recomputed(
    new: set[int], old: set[int], hour: int
) -> None:
    live = [file(h) for h in new | old]
    found = touched(Attribution(), [file(h) for h in new], live)
    changes = any(0 <= hour - h <= 24 for h in new)
    assert (hour in found) == (changes and hour in new | old)
