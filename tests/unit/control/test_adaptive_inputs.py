"""What the adaptive laws get: settings by their own names, and quotas that stop producers."""

from __future__ import annotations

import pytest

from headgate.base.park_cause import ParkCause
from headgate.control.adaptive_inputs import adaptive_settings, stopping_quota, topic_signals
from headgate.flow.adaptive.cycle import AdaptiveSettings, Law
from headgate.flow.quota.backlog_quota import Quota, QuotaPolicy, Quotas, QuotaType
from headgate.policy.settings import Settings
from tests.unit.engine.harness import Rig


def test_the_defaults_of_the_settings_are_the_defaults_of_the_law() -> None:
    assert adaptive_settings(Settings()) == AdaptiveSettings()


def test_milliseconds_and_names_become_the_laws() -> None:
    settings = Settings(
        adaptivePublisherThrottlingIntervalMs=20,
        adaptivePublisherThrottlingLaw="drain",
        adaptivePublisherThrottlingDrainHorizonMs=300,
    )
    found = adaptive_settings(settings)
    assert (found.interval_ns, found.drain_horizon_ns) == (20_000_000, 300_000_000)
    assert found.law is Law.DRAIN


@pytest.mark.parametrize("policy", QuotaPolicy)
def test_only_a_quota_that_stops_producers_is_a_signal(policy: QuotaPolicy) -> None:
    quota = Quota(QuotaType.SIZE, 100, policy, "topic policy")
    stops = policy is not QuotaPolicy.EVICTION
    assert stopping_quota(quota) is (quota if stops else None)
    assert stopping_quota(None) is None
    rig = Rig(quotas=Quotas(quota, None))
    signals = topic_signals(rig.topic, 3, 30, {ParkCause.ADAPTIVE})
    assert signals.size_limit == (100 if stops else None)
    assert (signals.messages, signals.bytes, signals.age_limit_ms) == (3, 30, None)
    assert (signals.was_parked, signals.was_slowed) == (True, True)
