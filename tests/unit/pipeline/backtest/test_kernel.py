"""The compiled replay equals the scalar one, output by output."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headgate.flow.adaptive.cycle import AdaptiveSettings, Law
from headgate.flow.quota.backlog_quota import Quota, QuotaPolicy, QuotaType
from headgate.pipeline.backtest import kernel, kernel_state
from headgate.pipeline.backtest.kernel import replay_points
from headgate.pipeline.backtest.kernel_block import LANES
from headgate.pipeline.backtest.kernel_points import point_rows
from headgate.pipeline.backtest.load import (
    NO_LIMIT,
    OUTCOME_COLUMNS,
    POLICY_CODES,
    Load,
    Step,
    outcome_row,
    steps_of,
)
from headgate.pipeline.backtest.policy import Policy
from headgate.pipeline.backtest.replay import Resolution, replay
from tests.unit.pipeline.backtest.loads import loads, policies

EXACT = 1e-9
S = 1_000_000_000


@settings(max_examples=150, deadline=None)
@given(loads(), st.lists(policies, min_size=1, max_size=4), st.sampled_from(list(Resolution)))
def test_every_output_equals_that_of_the_laws(
    load: Load, some: list[Policy], resolution: Resolution
) -> None:
    found = replay_points(load, point_rows(some, load.step_ns, resolution))
    wanted = [outcome_row(replay(load, policy, resolution)) for policy in some]
    np.testing.assert_allclose(found, wanted, rtol=EXACT, atol=EXACT)


REMOVED = Load(
    60 * S,
    steps_of([Step(100.0, 10.0, 0.0, time_limit_ms=10_000, time_policy=1), Step(100.0, 10.0, 0.0)]),
)
"""A time quota that holds, and is gone in the second step."""


@settings(max_examples=150, deadline=None)
@given(loads(), policies)
@example(REMOVED, Policy())
def test_time_over_the_quota_is_at_most_the_time_with_a_quota(load: Load, policy: Policy) -> None:
    compiled = replay_points(load, point_rows([policy], load.step_ns))[0]
    for found in (compiled.tolist(), outcome_row(replay(load, policy))):
        values = dict(zip(OUTCOME_COLUMNS, found, strict=True))
        assert values["seconds_over_quota"] <= values["quota_seconds"] * (1 + EXACT)


def test_a_removed_time_quota_holds_no_producer_in_the_compiled_replay() -> None:
    found = replay_points(REMOVED, point_rows([Policy()], REMOVED.step_ns))[0]
    values = dict(zip(OUTCOME_COLUMNS, found.tolist(), strict=True))
    assert values["published_bytes"] == 12_000
    assert (values["seconds_over_quota"], values["quota_seconds"]) == (50, 60)


def test_a_whole_day_of_every_law_equals_the_laws() -> None:
    random = np.random.default_rng(7)
    rows = [
        Step(
            arrivals_bytes_per_s=float(random.uniform(0.3, 2.5)) * 1e6,
            message_bytes=float(random.uniform(200, 2_000)),
            capacity_bytes_per_s=float(random.choice([0.0, 0.5, 1.0, 2.0])) * 1e6,
            size_limit_bytes=4e7,
            size_policy=POLICY_CODES[QuotaPolicy.HOLD],
        )
        for _ in range(400)
    ]
    load = Load(10 * S, steps_of(rows))
    some = [Policy(adaptive=AdaptiveSettings(law=law)) for law in Law]
    found = replay_points(load, point_rows(some, load.step_ns))
    np.testing.assert_allclose(
        found, [outcome_row(replay(load, policy)) for policy in some], rtol=EXACT
    )
    assert (found[:, OUTCOME_COLUMNS.index("activations")] >= 1).all()


def test_points_do_not_affect_each_other() -> None:
    rows = [Step(2e6, 1e3, 1e6, 2e7, 1.0, 2e4, 1.0)] * 30
    load = Load(10 * S, steps_of(rows), 1e6, 5.0)
    some = [Policy(), Policy(time_quota=None), Policy(adaptive=AdaptiveSettings(law=Law.DRAIN))]
    together = replay_points(load, point_rows([*some, *some], load.step_ns))
    alone = [replay_points(load, point_rows([policy], load.step_ns))[0] for policy in some]
    np.testing.assert_array_equal(together, [*alone, *alone])


def test_more_points_than_a_block_holds_give_the_same_outcomes() -> None:
    rows = [Step(rate * 1e6, 1e3, 1e6, 2e7, 1.0) for rate in (0.5, 2.0, 3.0, 0.1)] * 10
    load = Load(10 * S, steps_of(rows), 1e6, 5.0)
    # Two intervals by turns, so that the blocks are gathered from all over the grid.
    some = [
        Policy(adaptive=AdaptiveSettings(interval_ns=(1 + n % 2) * S, backlog_low=0.2 + n / 200))
        for n in range(2 * LANES + 5)
    ]
    together = replay_points(load, point_rows(some, load.step_ns))
    alone = [replay_points(load, point_rows([policy], load.step_ns))[0] for policy in some]
    np.testing.assert_array_equal(together, alone)
    assert len({tuple(row) for row in together.tolist()}) == len(some)


def test_ages_from_long_ago_equal_those_of_the_laws() -> None:
    busy, calm = Step(2e6, 1e3, 1e5, time_limit_ms=3_600_000, time_policy=1), 50
    rows = [busy] * 200 + [replace(busy, arrivals_bytes_per_s=0.0, capacity_bytes_per_s=1e7)] * calm
    load = Load(10 * S, steps_of(rows * 2))
    some = [Policy(), Policy(time_quota=Quota(QuotaType.TIME, 900_000, QuotaPolicy.EVICTION, ""))]
    found = replay_points(load, point_rows(some, load.step_ns))
    wanted = [outcome_row(replay(load, policy)) for policy in some]
    np.testing.assert_allclose(found, wanted, rtol=EXACT, atol=EXACT)
    assert found[1, OUTCOME_COLUMNS.index("evicted_bytes")] > 0


def test_the_compiled_codes_are_those_of_loads() -> None:
    assert POLICY_CODES[QuotaPolicy.EXCEPTION] == kernel_state.EXCEPTION
    assert POLICY_CODES[QuotaPolicy.EVICTION] == kernel_state.EVICTION
    assert NO_LIMIT == kernel_state.NO_QUOTA
    assert POLICY_CODES[QuotaPolicy.HOLD] == 1


def test_code_compiled_from_other_sources_is_recompiled(monkeypatch: object) -> None:
    calls = []

    class Stale:
        """Compiled code of an older version, until it is asked to compile."""

        def __call__(self, *arguments: object) -> int:
            calls.append(len(arguments[4]))  # type: ignore[arg-type]
            return kernel._FINGERPRINT if "anew" in calls else -1

        def recompile(self) -> None:
            calls.append("anew")

    patch = monkeypatch
    patch.setattr(kernel, "_replay_all", Stale())  # type: ignore[attr-defined]
    load = replace(Load(10 * S, steps_of([Step(1.0, 1.0, 1.0)])))
    replay_points(load, point_rows([Policy()], load.step_ns))
    assert calls == [0, "anew", 1]
