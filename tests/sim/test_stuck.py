"""The simulation notices a broker that forgets to wake a dispatcher."""

from __future__ import annotations

import random

import pytest

from headgate.engine.consumer import Consumer
from headgate.engine.engine import Engine
from headgate.engine.subscription import Subscription
from tests.sim.brokersim.model import ViolationError
from tests.sim.brokersim.story import Story


def _play(stories: int) -> None:
    for seed in range(stories):
        Story(seed).play()


def test_a_forgotten_wake_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """One time in five, returned permits wake nothing."""
    chance, flow, wake = random.Random(5), Subscription.flow, Subscription.wake
    forgets = False

    def forgetful_flow(subscription: Subscription, consumer: Consumer, permits: int) -> None:
        nonlocal forgets
        forgets = chance.random() < 0.2
        flow(subscription, consumer, permits)
        forgets = False

    monkeypatch.setattr(Subscription, "wake", lambda s: None if forgets else wake(s))
    monkeypatch.setattr(Subscription, "flow", forgetful_flow)
    with pytest.raises(ViolationError, match="stuck: messages wait, a consumer is ready"):
        _play(10)


def test_a_forgotten_timer_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A waiter at a limit whose release time no timer has."""
    monkeypatch.setattr(Engine, "next_wake_ns", lambda e: e.admission.gate.next_wake_ns())
    with pytest.raises(ViolationError, match="stuck: it waits for a limit, and no timer is set"):
        _play(20)
