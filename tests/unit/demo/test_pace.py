"""A steady rate of actions under any scheduler."""

from __future__ import annotations

import pytest

from headgate.base.errors import InputError
from headgate.demo.pace import BEHIND_S_MAX, LATE_S_MAX, Pace, PhasedPace


def test_due_messages_add_up_for_any_number_of_calls() -> None:
    often, seldom = Pace(100, 5.0), Pace(100, 5.0)
    done = sum(often.due(5.0 + step * 0.002_102) for step in range(1, 2_001))
    assert done == 420
    assert sum(seldom.due(5.0 + step * 0.701) for step in range(1, 7)) == 420


def test_a_pause_is_not_followed_by_a_burst() -> None:
    pace = Pace(100, 0.0)
    assert pace.due(60.0) == 100 * BEHIND_S_MAX + 1
    assert pace.due(60.0) == 0
    assert pace.due(60.1) == 10


def test_nothing_is_due_before_the_first_step() -> None:
    assert Pace(10, 1.0).due(1.09) == 0


def test_waiting_keeps_the_rate_when_work_takes_time() -> None:
    pace, now_s = Pace(40, 0.0), 0.0
    for _ in range(400):
        now_s += pace.wait_s(now_s)
        now_s += 0.01
    assert now_s == pytest.approx(10.0, abs=0.03)


def test_a_worker_that_cannot_keep_up_never_waits() -> None:
    pace, now_s = Pace(40, 0.0), 10.0
    assert [pace.wait_s(now_s + 0.03 * step) for step in range(5)] == [0.0] * 5


def test_a_worker_does_not_catch_up_after_a_pause() -> None:
    pace, now_s = Pace(400, 0.0), 0.0
    for step in range(1_000):
        now_s += pace.wait_s(now_s) + (0.5 if step == 500 else 0.0)
    assert now_s == pytest.approx(1_000 / 400 + 0.5 - LATE_S_MAX, abs=0.01)


@pytest.mark.parametrize("rate", [0, -1])
def test_a_rate_must_be_positive(rate: float) -> None:
    with pytest.raises(InputError, match=f"rate_per_s is {rate}"):
        Pace(rate, 0.0)


def test_phases_add_up_for_any_number_of_calls() -> None:
    often, seldom = (PhasedPace((100, 300, 50), 10.0, 5.0) for _ in range(2))
    by_phase = [0, 0, 0, 0]
    for step in range(1, 2_001):
        by_phase[step * 2 // 1_001] += often.due(5.0 + step * 0.02)
    assert by_phase == pytest.approx([1_000, 3_000, 500, 500], abs=12)
    assert sum(seldom.due(5.0 + step * 0.7) for step in range(1, 58)) == pytest.approx(
        sum(by_phase), abs=12
    )


def test_a_pause_over_several_phases_drops_old_messages() -> None:
    pace = PhasedPace((100, 300, 50), 10.0, 0.0)
    assert pace.due(29.9) <= 100 + 300 + 50 + 3
    assert pace.due(30.9) == 50


def test_all_rates_must_be_positive() -> None:
    with pytest.raises(InputError, match="rate_per_s is 0"):
        PhasedPace((100, 0), 10.0, 0.0)
