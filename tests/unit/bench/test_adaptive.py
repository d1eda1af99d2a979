"""What the bench of adaptive throttling drives does what it says."""

from __future__ import annotations

from bench.adaptive import MESSAGES, Crowd, state_bytes
from headgate.flow.adaptive.cycle import Law


def test_calm_topics_learn_their_rate() -> None:
    crowd = Crowd(3)
    for _ in range(3):
        crowd.calm()
    crowd.quotas(Law.PRESSURE)
    crowd.quotas(Law.DRAIN)
    for control in crowd.controls:
        assert round(control.natural.messages) == MESSAGES
        assert control.limit is None


def test_under_pressure_all_have_a_limit() -> None:
    crowd = Crowd(3)
    for _ in range(3):
        crowd.quotas(Law.PRESSURE)
    crowd.slowed()
    assert all(control.limit is not None for control in crowd.controls)


def test_a_state_takes_hundreds_of_bytes() -> None:
    assert 200 < state_bytes(100) < 1_000
