"""Policies as rows of numbers for the compiled replay."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, inf

import numpy as np

from headgate.base.units import NS_PER_S
from headgate.flow.adaptive.cycle import AdaptiveSettings, Law
from headgate.flow.adaptive.drain import HORIZON_INTERVALS_MIN
from headgate.flow.adaptive.natural_rate import PEAK_HALVING_NS
from headgate.flow.quota.backlog_quota import Quota
from headgate.pipeline.backtest.kernel_state import AS_RECORDED, POINT_COLUMNS, PointRow
from headgate.pipeline.backtest.load import POLICY_CODES
from headgate.pipeline.backtest.policy import Policy, Rates, Recorded
from headgate.pipeline.backtest.replay import Resolution, timing
from headgate.pipeline.kernels.array_types import Doubles


def point_row(policy: Policy, step_ns: int, resolution: Resolution) -> list[float]:
    """A policy as a row for the kernel.

    Raises:
        InputError: its interval is too short for a replay.
    """
    row: dict[str, float] = {}
    publish, settings = policy.publish, policy.adaptive
    if isinstance(publish, Rates):
        row["sets_limit"] = 1.0
        row["messages_per_s"] = inf if publish.messages_per_s is None else publish.messages_per_s
        row["bytes_per_s"] = inf if publish.bytes_per_s is None else publish.bytes_per_s
    for name, quota in (("size", policy.size_quota), ("time", policy.time_quota)):
        if isinstance(quota, Recorded):
            row[f"{name}_policy"] = AS_RECORDED
        elif isinstance(quota, Quota):
            row[f"{name}_policy"], row[f"{name}_limit"] = POLICY_CODES[quota.policy], quota.limit
    when = timing(settings, step_ns, resolution)
    row |= {
        "parts_per_step": when.cycles_per_step,
        "steps_per_cycle": when.steps_per_cycle,
        "part_s": when.part_s,
    }
    if settings is not None:
        row |= _adaptive_row(settings, when.cycle_ns)
    return [float(value) for value in PointRow(**row)]


def _adaptive_row(settings: AdaptiveSettings, cycle_ns: int) -> dict[str, float]:
    shared = gcd(NS_PER_S, cycle_ns)
    shortest_ns = HORIZON_INTERVALS_MIN * settings.interval_ns
    return {
        "is_adaptive": 1.0,
        "observe_only": settings.observe_only,
        "is_drain_law": settings.law is Law.DRAIN,
        "backlog_low": settings.backlog_low,
        "backlog_high": settings.backlog_high,
        "min_rate_factor": settings.min_rate_factor,
        "max_change_factor": settings.max_rate_change_factor,
        "drain_set_point": settings.drain_set_point,
        "horizon_ns": max(settings.drain_horizon_ns, shortest_ns),
        "cycle_ns": cycle_ns,
        "rate_numerator": NS_PER_S // shared,
        "rate_denominator": cycle_ns // shared,
        "peak_decay": 0.5 ** (cycle_ns / PEAK_HALVING_NS),
        "peak_decay_long": 0.5 ** (max(cycle_ns, NS_PER_S) / PEAK_HALVING_NS),
    }


def point_rows(
    policies: Sequence[Policy], step_ns: int, resolution: Resolution = Resolution.CYCLE
) -> Doubles:
    """Policies as input of :func:`replay_points`, [points x columns].

    Raises:
        InputError: an interval is too short for a replay.
    """
    rows = [point_row(policy, step_ns, resolution) for policy in policies]
    return np.array(rows, dtype=np.float64).reshape(len(rows), POINT_COLUMNS)
