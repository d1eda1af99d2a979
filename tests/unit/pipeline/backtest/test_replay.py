"""The scalar replay: what its cycles are, and how well it forecasts another policy.

The truth is the flow model around the laws (:mod:`headgate.testing.adaptive_plant`), which steps
every 50 ms, with limits over sliding seconds and holds that end at 95 %.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from headgate.base.errors import InputError
from headgate.base.units import NS_PER_S
from headgate.flow.adaptive.cycle import AdaptiveSettings, Law
from headgate.flow.quota.backlog_quota import Quota, QuotaPolicy, QuotaType
from headgate.pipeline.backtest.load import Load, Outcome, Step, steps_of
from headgate.pipeline.backtest.policy import Policy, Rates
from headgate.pipeline.backtest.replay import Resolution, replay, timing
from headgate.pipeline.backtest.series import topic_loads
from headgate.testing.adaptive_plant import STEP_S, Plant, PlantTopic, Profile
from tests.unit.pipeline.backtest.rows import sample, table_of

S = NS_PER_S
SAMPLE_S = 10
DRAIN = 1_000_000.0
QUOTA = 30_000_000
SECONDS = 600
HOLD = Quota(QuotaType.SIZE, QUOTA, QuotaPolicy.HOLD, "grid")

DEMAND = Profile(
    [
        (0, 0.6 * DRAIN),
        (63, 1.8 * DRAIN),
        (127, 0.5 * DRAIN),
        (304, 1.3 * DRAIN),
        (478, 0.4 * DRAIN),
    ]
)
CAPACITY = Profile([(0, DRAIN), (203, 0.0), (232, DRAIN), (406, 0.5 * DRAIN), (441, 1.2 * DRAIN)])
"""Nothing changes where a sample ends."""


def plant(settings: AdaptiveSettings | None, seconds: int = SECONDS) -> PlantTopic:
    """Play the load; without settings nothing but the quota's own hold slows anybody."""
    topic = PlantTopic(DEMAND, CAPACITY, size_limit=QUOTA, pent_up_s=1e9)
    if settings is None:
        for _ in range(round(seconds / STEP_S)):
            topic.step(len(topic.looks) * STEP_S + STEP_S)
    else:
        Plant([topic], settings).run(seconds)
    return topic


def recorded(topic: PlantTopic) -> Load:
    """The load as ten-second telemetry tells it."""
    rows = []
    published = waited_s = 0.0
    for place, look in enumerate(topic.looks, 1):
        published += look.published * STEP_S
        waited_s += STEP_S * (look.parked_bytes > 1.0)
        if place % round(SAMPLE_S / STEP_S) == 0:
            rows.append(
                sample(
                    place * STEP_S,
                    msgs_in=round(published) // 1_000,
                    bytes_in=round(published),
                    backlog_bytes=round(look.backlog_bytes),
                    oldest_age_ns=max(look.age_ms, 0) * 1_000_000,
                    parked_bytes=round(look.parked_bytes),
                    parked_ns=round(waited_s * S),
                    quota_size_limit_bytes=QUOTA,
                    quota_size_policy=QuotaPolicy.HOLD.value,
                )
            )
    (found,) = topic_loads(table_of(rows), 0, 1 << 62)
    return found.load


def truth(topic: PlantTopic) -> dict[str, float]:
    """What the plant measured of what a replay forecasts."""
    full = [look for look in topic.looks if look.backlog_bytes >= 0.95 * QUOTA]
    return {
        "published_bytes": topic.accepted,
        "backlog_bytes_max": max(look.backlog_bytes for look in topic.looks),
        "parked_seconds": topic.waited_s,
        "parked_bytes_max": max(look.parked_bytes for look in topic.looks),
        "seconds_over_quota": len(full) * STEP_S,
    }


def far_off(forecast: Outcome, true: dict[str, float]) -> dict[str, float]:
    """Relative errors; of seconds over quota in parts of the whole time."""
    found = {name: getattr(forecast, name) for name in true}
    return {
        name: abs(found[name] - true[name])
        / (SECONDS if name == "seconds_over_quota" else max(true[name], 1.0))
        for name in true
    }


BOUNDS = {
    "published_bytes": 0.01,
    "backlog_bytes_max": 0.04,
    "parked_seconds": 0.04,
    "parked_bytes_max": 0.10,
    "seconds_over_quota": 0.04,
}
"""How far a forecast may be from the truth, relative; seconds over quota in parts of all time."""
DRAIN_LAW = AdaptiveSettings(law=Law.DRAIN)


@pytest.mark.parametrize(
    ("played", "forecast"),
    [
        pytest.param(AdaptiveSettings(), None, id="from pressure to the quota alone"),
        pytest.param(None, AdaptiveSettings(), id="from the quota alone to pressure"),
        pytest.param(None, DRAIN_LAW, id="from the quota alone to drain"),
        pytest.param(DRAIN_LAW, AdaptiveSettings(), id="from drain to pressure"),
        pytest.param(
            AdaptiveSettings(),
            replace(DRAIN_LAW, drain_set_point=0.5),
            id="from pressure to drain at 50 %",
        ),
    ],
)
def test_a_replay_of_one_policy_predicts_a_run_under_another(
    played: AdaptiveSettings | None, forecast: AdaptiveSettings | None
) -> None:
    policy = Policy(adaptive=forecast, size_quota=HOLD)
    true = truth(plant(forecast))
    errors = far_off(replay(recorded(plant(played)), policy), true)
    assert {name: error for name, error in errors.items() if error > BOUNDS[name]} == {}
    other = truth(plant(played))
    assert any(far_apart(true[name], other[name]) > BOUNDS[name] for name in BOUNDS)


def far_apart(one: float, other: float) -> float:
    """A relative difference."""
    return abs(one - other) / max(one, other, 1.0)


@pytest.mark.parametrize("law", list(Law))
def test_an_evaluation_per_sample_predicts_worse_than_one_per_second(law: Law) -> None:
    """With a look in ten seconds a limit begins later and moves in larger steps: the backlog comes
    to the quota where the broker keeps it well below."""
    load = recorded(plant(None))
    policy = Policy(adaptive=AdaptiveSettings(law=law), size_quota=HOLD)
    true = truth(plant(policy.adaptive))
    fine = far_off(replay(load, policy), true)["backlog_bytes_max"]
    coarse = far_off(replay(load, policy, Resolution.SAMPLE), true)["backlog_bytes_max"]
    assert fine <= BOUNDS["backlog_bytes_max"]
    assert 0.10 <= coarse <= 0.40


def test_finer_samples_change_a_cycle_replay_little() -> None:
    coarse = recorded(plant(None))
    fine = replace(coarse, step_ns=S, steps=coarse.steps.repeat(SAMPLE_S, axis=0))
    policy = Policy(adaptive=AdaptiveSettings(law=Law.DRAIN), size_quota=HOLD)
    ten, one = replay(coarse, policy), replay(fine, policy)
    assert ten.published_bytes == pytest.approx(one.published_bytes)
    assert ten.backlog_bytes_max == pytest.approx(one.backlog_bytes_max)
    assert ten.activations == one.activations


@pytest.mark.parametrize(
    ("interval_ms", "resolution", "cycles", "steps"),
    [
        (1_000, Resolution.CYCLE, 10, 1),
        (500, Resolution.CYCLE, 20, 1),
        (3_000, Resolution.CYCLE, 4, 1),
        (10_000, Resolution.CYCLE, 1, 1),
        (60_000, Resolution.CYCLE, 1, 6),
        (1_000, Resolution.SAMPLE, 1, 1),
        (60_000, Resolution.SAMPLE, 1, 6),
    ],
)
def test_a_step_is_divided_into_whole_cycles(
    interval_ms: int, resolution: Resolution, cycles: int, steps: int
) -> None:
    when = timing(AdaptiveSettings(interval_ns=interval_ms * 1_000_000), 10 * S, resolution)
    assert (when.cycles_per_step, when.steps_per_cycle) == (cycles, steps)
    assert when.cycle_ns == 10 * S * steps // cycles


def test_an_interval_that_is_shorter_than_a_sample_of_the_laws_is_refused() -> None:
    with pytest.raises(InputError, match="interval_ms is 100; 500 or more is allowed"):
        timing(AdaptiveSettings(interval_ns=100_000_000), 10 * S)


def load_of(*steps: Step) -> Load:
    return Load(10 * S, steps_of(list(steps)))


def test_settings_absent_from_a_point_stay_as_recorded() -> None:
    step = Step(100.0, 10.0, 1_000.0, 400.0, 1, -1.0, 0, 5.0, 1_000.0)
    assert replay(load_of(step), Policy()).published_bytes == 10 * 50
    assert replay(load_of(step), Policy(publish=Rates())).published_bytes == 1_000
    assert replay(load_of(step), Policy(publish=Rates(bytes_per_s=20))).published_bytes == 200
    assert replay(load_of(step), Policy()).quota_seconds == 10
    assert replay(load_of(step), Policy(size_quota=None)).quota_seconds == 0


def test_jitter_is_the_changes_in_parts_of_all() -> None:
    steps = [Step(rate, 10.0, 1_000.0) for rate in (100.0, 200.0, 100.0)]
    assert replay(load_of(*steps), Policy()).jitter == 2_000 / 4_000
    assert replay(load_of(steps[0], steps[0]), Policy()).jitter == 0


def test_observe_only_counts_activations_and_changes_nothing() -> None:
    steps = [Step(2e6, 1e3, 1e6, 2e7, 1)] * 20
    off = replay(load_of(*steps), Policy())
    observed = replay(load_of(*steps), Policy(adaptive=AdaptiveSettings(observe_only=True)))
    assert observed.activations == 1
    assert replace(observed, activations=0.0).published_bytes == pytest.approx(off.published_bytes)
    assert observed.seconds_over_quota == pytest.approx(off.seconds_over_quota)
