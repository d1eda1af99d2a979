"""Time that a test turns."""

from __future__ import annotations

import pytest

from headgate.base.errors import InputError
from headgate.base.units import NS_PER_S
from headgate.testing.clock import START_NS, START_WALL_NS, ManualClock


def test_it_stands_still_until_it_is_turned() -> None:
    clock = ManualClock()
    assert (clock.monotonic_ns(), clock.wall_ns()) == (START_NS, START_WALL_NS)
    clock.advance(3)
    assert (clock.monotonic_ns(), clock.wall_ns()) == (START_NS + 3, START_WALL_NS + 3)


def test_the_wall_clock_can_be_set_and_monotonic_time_does_not_notice() -> None:
    clock = ManualClock(now_ns=5, wall_ns=100)
    clock.step_wall(-NS_PER_S)
    clock.advance(1)
    assert (clock.monotonic_ns(), clock.wall_ns()) == (6, 101 - NS_PER_S)


def test_monotonic_time_never_goes_back() -> None:
    with pytest.raises(InputError, match="duration_ns is -1"):
        ManualClock().advance(-1)


def test_a_machine_that_sleeps_leaves_monotonic_time_behind() -> None:
    clock = ManualClock(now_ns=5, wall_ns=100)
    clock.sleep(NS_PER_S)
    clock.advance(1)
    assert (clock.monotonic_ns(), clock.running_ns(), clock.wall_ns()) == (
        6, 6 + NS_PER_S, 101 + NS_PER_S,
    )  # fmt: skip
    with pytest.raises(InputError, match="duration_ns is -1"):
        clock.sleep(-1)
