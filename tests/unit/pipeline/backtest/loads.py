"""Random loads and policies, for the tests that compare two ways to replay them."""

from __future__ import annotations

from math import inf

from hypothesis import strategies as st

from headgate.base.units import NS_PER_S
from headgate.flow.adaptive.cycle import AdaptiveSettings, Law
from headgate.flow.quota.backlog_quota import Quota, QuotaPolicy, QuotaType
from headgate.pipeline.backtest.load import NO_LIMIT, Load, Step, steps_of
from headgate.pipeline.backtest.policy import RECORDED, Policy, Rates

RATE = 1_000_000.0

_policy_codes = st.integers(0, 3)
_rates = st.one_of(
    st.sampled_from([0.0, 0.1 * RATE, RATE, 2 * RATE]), st.floats(0, 4 * RATE, allow_nan=False)
)


@st.composite
def segments(draw: st.DrawFn) -> list[Step]:
    """Steps that are alike."""
    size, time = draw(_policy_codes), draw(st.sampled_from([0, 0, 1, 2, 3]))
    step = Step(
        arrivals_bytes_per_s=draw(_rates),
        message_bytes=draw(st.sampled_from([100.0, 1_000.0, 1_234.5])),
        capacity_bytes_per_s=draw(_rates),
        size_limit_bytes=draw(st.sampled_from([0.0, 5e6, 3e7])) if size else NO_LIMIT,
        size_policy=size,
        time_limit_ms=draw(st.sampled_from([1.0, 5_000.0, 30_000.0])) if time else NO_LIMIT,
        time_policy=time,
        limit_messages_per_s=draw(st.sampled_from([inf, inf, 700.0])),
        limit_bytes_per_s=draw(st.sampled_from([inf, inf, 0.8 * RATE])),
    )
    return [step] * draw(st.integers(1, 8))


@st.composite
def loads(draw: st.DrawFn) -> Load:
    """Up to 64 steps, with quotas and limits that come and go."""
    rows = [step for part in draw(st.lists(segments(), min_size=1, max_size=8)) for step in part]
    backlog = draw(st.sampled_from([0.0, 1e6, 5e7]))
    return Load(
        step_ns=draw(st.sampled_from([NS_PER_S, 10 * NS_PER_S, 60 * NS_PER_S])),
        steps=steps_of(rows),
        backlog_bytes=backlog,
        oldest_age_s=draw(st.floats(0.0, 60.0)) if backlog else 0.0,
    )


def _quotas(quota_type: QuotaType, limits: list[int]) -> st.SearchStrategy[object]:
    made = st.builds(
        Quota,
        st.just(quota_type),
        st.sampled_from(limits),
        st.sampled_from(list(QuotaPolicy)),
        st.just("grid"),
    )
    return st.one_of(st.just(RECORDED), st.none(), made)


_adaptive = st.builds(
    AdaptiveSettings,
    observe_only=st.sampled_from([False, False, False, True]),
    interval_ns=st.sampled_from([NS_PER_S // 2, NS_PER_S, 3 * NS_PER_S, 20 * NS_PER_S]),
    backlog_low=st.sampled_from([0.3, 0.75]),
    min_rate_factor=st.sampled_from([0.1, 1.0]),
    max_rate_change_factor=st.sampled_from([0.1, 0.25, 1.0]),
    law=st.sampled_from(list(Law)),
    drain_set_point=st.sampled_from([0.3, 0.7]),
    drain_horizon_ns=st.sampled_from([NS_PER_S, 10 * NS_PER_S]),
)

policies = st.builds(
    Policy,
    publish=st.sampled_from(
        [RECORDED, Rates(), Rates(bytes_per_s=600_000), Rates(500, 900_000), Rates(2_000)]
    ),
    adaptive=st.one_of(st.none(), _adaptive, _adaptive),
    size_quota=_quotas(QuotaType.SIZE, [4_000_000, 40_000_000]),
    time_quota=_quotas(QuotaType.TIME, [4_000, 40_000]),
)
"""Any policy of a grid."""
