"""Forecasts follow from the hour before, evictions from their hour alone."""

from __future__ import annotations

from headgate.pipeline.derived.quotas import Evictions, QuotaUsage
from headgate.pipeline.tables.bronze import BRONZE_EVENTS
from tests.unit.pipeline.derived.source_files import HOUR, file, is_input, touched


def test_forecasts_follow_from_the_hour_before() -> None:
    usage = QuotaUsage()
    live = [file(HOUR + ahead, "topic") for ahead in (-2, -1, 0, 1, 2)]
    assert set(touched(usage, live[2:3], live)) == {HOUR, HOUR + 1}
    assert set(touched(usage, live[2:3], live[:3])) == {HOUR}
    assert [is_input(usage, f, {HOUR}) for f in live] == [False, True, True, False, False]
    assert not is_input(usage, file(HOUR), {HOUR})


def test_evictions_follow_from_the_same_hour_alone() -> None:
    evictions = Evictions()
    assert evictions.source is BRONZE_EVENTS
    assert set(touched(evictions, [file(HOUR, None)], [file(HOUR + 1, None)])) == {HOUR}
    assert is_input(evictions, file(HOUR, None), {HOUR, HOUR + 5})
