"""Everybody in the crowd is held at exactly one message a second."""

from __future__ import annotations

import pytest

from bench.crowd import Crowd, Timers, core_share
from headgate.flow.limits.rate_limit import Level


@pytest.mark.parametrize("level", [Level.SUBSCRIPTION, Level.TOPIC])
def test_each_gets_one_message_a_second(level: Level) -> None:
    crowd = Crowd(200, level)
    assert crowd.run(1) == pytest.approx(200, abs=1)
    # A wake-up is up to a millisecond late, which each round carries on.
    assert crowd.run(10) == pytest.approx(2_000, abs=20)


def test_the_bare_timers_go_as_often() -> None:
    assert Timers(200).run(3) == 600


def test_the_share_of_a_core_and_the_cost_of_one_are_the_same_time() -> None:
    percent, cost_us = core_share(Timers(1_000), 2)
    assert percent == pytest.approx(cost_us * 1_000 / 1e6 * 100)
