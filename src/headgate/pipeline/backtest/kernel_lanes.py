"""The passes of the compiled replay over the lanes of a block.

Only the search for ages has branches.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numba
import numpy as np

from headgate.pipeline.backtest.kernel_block import WIDTH, load_lane, offsets, store_lane, where
from headgate.pipeline.backtest.kernel_flow import (
    advance,
    record_age,
    with_age,
    with_flags_reset,
    with_hold_released,
)
from headgate.pipeline.backtest.kernel_law import evaluate, next_cycle
from headgate.pipeline.backtest.kernel_state import (
    AS_RECORDED,
    EVICTION,
    MS,
    NO_AGE,
    NO_CONTROL,
    NO_DRAIN_RATE,
    NO_LIMITS,
    NO_NATURAL_RATE,
    NO_PROGRESS,
    AgeState,
    ControlState,
    DrainRateState,
    EffectiveStep,
    FlowState,
    LimitState,
    NaturalRateState,
    PointRow,
    ReplayProgress,
    inlined,
)

POINT, STEP, FLOW, AGE, NATURAL_RATE, DRAIN_RATE, LIMITS, CONTROL, PROGRESS, BLOCK_LENGTH = offsets(
    (
        PointRow,
        EffectiveStep,
        FlowState,
        AgeState,
        NaturalRateState,
        DrainRateState,
        LimitState,
        ControlState,
        ReplayProgress,
    )
)
"""The begin of each tuple in a block, and the length of the block."""

compiled_pass: Any = numba.njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""Compiles a pass, which is called once for each block."""


@inlined
def _effective_step(
    arrivals: float, message: float, capacity: float, size_limit: float, size_policy: float,
    time_limit: float, time_policy: float, of_messages: float, of_bytes: float, point: Any,
) -> Any:  # fmt: skip
    """A step under a point; the columns of :class:`headgate.pipeline.backtest.load.Step`."""
    is_recorded = point.size_policy == AS_RECORDED
    size_policy = where(is_recorded, size_policy, point.size_policy)
    size_limit = where(is_recorded, size_limit, point.size_limit)
    is_recorded = point.time_policy == AS_RECORDED
    time_policy = where(is_recorded, time_policy, point.time_policy)
    time_limit = where(is_recorded, time_limit, point.time_limit)
    of_messages = where(point.sets_limit > 0.0, point.messages_per_s, of_messages)
    of_bytes = where(point.sets_limit > 0.0, point.bytes_per_s, of_bytes)
    stops = (size_policy > 0.0) & (size_policy < EVICTION)
    unit = size_limit - np.floor(size_limit * point.eviction_percent / 100.0)
    return EffectiveStep(
        arrivals, capacity, message, min(of_bytes, of_messages * message), inf, size_policy,
        size_limit, where(stops, size_limit, inf), time_policy, time_limit, max(1.0, unit),
    )  # fmt: skip


@inlined
def _with_adaptive_limit(step: Any, point: Any, control: Any) -> Any:
    """The step with the controller's limit."""
    of_messages = where(control.messages > 0.0, control.messages * step.message_bytes, inf)
    slows = control.is_present & (point.observe_only == 0.0)
    limit = where(slows, min(control.bytes, of_messages), inf)
    return EffectiveStep(
        step.arrivals, step.capacity, step.message_bytes, step.set_limit, limit, step.size_policy,
        step.size_limit, step.stop_limit, step.time_policy, step.time_limit, step.evicted_unit,
    )  # fmt: skip


@compiled_pass
def begin_replay(groups: int, block: Any, backlog: float) -> None:
    """Initialize all points."""
    flow = FlowState(backlog, 0.0, 0.0, False, False, 0.0, 0.0, 0.0, 0.0, 0.0, backlog, 0.0)
    for lane in range(WIDTH * groups):
        store_lane(block, FLOW, lane, flow)
        store_lane(block, AGE, lane, NO_AGE)
        store_lane(block, NATURAL_RATE, lane, NO_NATURAL_RATE)
        store_lane(block, DRAIN_RATE, lane, NO_DRAIN_RATE)
        store_lane(block, LIMITS, lane, NO_LIMITS)
        store_lane(block, CONTROL, lane, NO_CONTROL)
        store_lane(block, PROGRESS, lane, NO_PROGRESS)


@compiled_pass
def begin_step(
    groups: int, block: Any, arrivals: float, message: float, capacity: float, size_limit: float,
    size_policy: float, time_limit: float, time_policy: float, of_messages: float, of_bytes: float,
) -> None:  # fmt: skip
    """Begin a step: apply the policy of each point to the recorded values."""
    for lane in range(WIDTH * groups):
        step = _effective_step(
            arrivals, message, capacity, size_limit, size_policy, time_limit, time_policy,
            of_messages, of_bytes, load_lane(PointRow, block, POINT, lane),
        )  # fmt: skip
        store_lane(block, STEP, lane, step)
        store_lane(
            block, AGE, lane, with_hold_released(load_lane(AgeState, block, AGE, lane), step)
        )
        flow = load_lane(FlowState, block, FLOW, lane)
        progress = load_lane(ReplayProgress, block, PROGRESS, lane)
        progress = ReplayProgress(
            0.0, 0.0, 0.0, 0.0, flow.published, progress.before_published, progress.messages,
            progress.quota_s, progress.moved,
        )  # fmt: skip
        store_lane(block, PROGRESS, lane, progress)


@compiled_pass
def begin_part(groups: int, block: Any) -> None:
    """Begin a part: the time between two evaluations of the controller, or a step."""
    for lane in range(WIDTH * groups):
        point = load_lane(PointRow, block, POINT, lane)
        flow = load_lane(FlowState, block, FLOW, lane)
        control = load_lane(ControlState, block, CONTROL, lane)
        progress = load_lane(ReplayProgress, block, PROGRESS, lane)
        step = _with_adaptive_limit(load_lane(EffectiveStep, block, STEP, lane), point, control)
        store_lane(block, STEP, lane, step)
        progress = ReplayProgress(
            point.part_s, 0.0, 0.0, flow.published, progress.step_published,
            progress.before_published, progress.messages, progress.quota_s, progress.moved,
        )  # fmt: skip
        store_lane(block, PROGRESS, lane, progress)


@compiled_pass
def begin_span(groups: int, block: Any) -> int:
    """Begin a span: up to the next evaluation of ages, or the end of the part; returns the number
    of lanes with time left."""
    count = 0
    for lane in range(WIDTH * groups):
        point = load_lane(PointRow, block, POINT, lane)
        step = load_lane(EffectiveStep, block, STEP, lane)
        age = load_lane(AgeState, block, AGE, lane)
        progress = load_lane(ReplayProgress, block, PROGRESS, lane)
        room_s = step.time_limit / MS - max(age.age_s, 0.0)
        span = where(age.is_held, point.check_s, max(point.check_s, room_s))
        span = where(step.time_policy > 0.0, min(progress.part_left_s, span), progress.part_left_s)
        counts = (step.size_policy > 0.0) | (step.time_policy > 0.0)
        progress = ReplayProgress(
            progress.part_left_s - span, span, span, progress.part_published,
            progress.step_published, progress.before_published, progress.messages,
            progress.quota_s + where(counts, span, 0.0), progress.moved,
        )  # fmt: skip
        store_lane(block, PROGRESS, lane, progress)
        count += where(span > 0.0, 1, 0)
    return count


@compiled_pass
def advance_lanes(groups: int, block: Any) -> int:
    """Advance each point to its next event in the span; returns the number with time left."""
    count = 0
    for lane in range(WIDTH * groups):
        step = load_lane(EffectiveStep, block, STEP, lane)
        flow = load_lane(FlowState, block, FLOW, lane)
        age = load_lane(AgeState, block, AGE, lane)
        progress = load_lane(ReplayProgress, block, PROGRESS, lane)
        left_s, flow = advance(progress.left_s, step, flow, age.is_held)
        progress = ReplayProgress(
            progress.part_left_s, progress.span_s, left_s, progress.part_published,
            progress.step_published, progress.before_published, progress.messages, progress.quota_s,
            progress.moved,
        )  # fmt: skip
        store_lane(block, FLOW, lane, flow)
        store_lane(block, PROGRESS, lane, progress)
        count += where(left_s > 0.0, 1, 0)
    return count


@compiled_pass
def begin_ages(groups: int, block: Any, backlog: float, at_s: Any, stored: Any) -> None:
    """Set the age of the first backlog."""
    for lane in range(WIDTH * groups):
        age = load_lane(AgeState, block, AGE, lane)
        flow = load_lane(FlowState, block, FLOW, lane)
        store_lane(block, AGE, lane, with_age(age, flow, backlog, at_s[lane], stored[lane]))


@compiled_pass
def record_ages(groups: int, block: Any, backlog: float, at_s: Any, stored: Any) -> None:
    """Record the bytes stored by the end of a span, and apply the time quotas."""
    for lane in range(WIDTH * groups):
        progress = load_lane(ReplayProgress, block, PROGRESS, lane)
        if progress.span_s <= 0.0:
            continue
        flow, age = record_age(
            progress.span_s, load_lane(PointRow, block, POINT, lane),
            load_lane(FlowState, block, FLOW, lane), load_lane(AgeState, block, AGE, lane),
            load_lane(EffectiveStep, block, STEP, lane), backlog, at_s[lane], stored[lane],
        )  # fmt: skip
        store_lane(block, FLOW, lane, flow)
        store_lane(block, AGE, lane, age)


@compiled_pass
def end_part(groups: int, block: Any) -> None:
    """End a part: count its messages."""
    for lane in range(WIDTH * groups):
        flow = load_lane(FlowState, block, FLOW, lane)
        progress = load_lane(ReplayProgress, block, PROGRESS, lane)
        step = load_lane(EffectiveStep, block, STEP, lane)
        messages = (
            progress.messages + (flow.published - progress.part_published) / step.message_bytes
        )
        progress = ReplayProgress(
            0.0, 0.0, 0.0, 0.0, progress.step_published, progress.before_published, messages,
            progress.quota_s, progress.moved,
        )  # fmt: skip
        store_lane(block, PROGRESS, lane, progress)


@compiled_pass
def run_cycle(groups: int, block: Any, backlog: float) -> None:
    """Run one cycle of the controller."""
    for lane in range(WIDTH * groups):
        point = load_lane(PointRow, block, POINT, lane)
        step = load_lane(EffectiveStep, block, STEP, lane)
        flow = load_lane(FlowState, block, FLOW, lane)
        age = load_lane(AgeState, block, AGE, lane)
        messages = np.floor(load_lane(ReplayProgress, block, PROGRESS, lane).messages)
        natural = load_lane(NaturalRateState, block, NATURAL_RATE, lane)
        drain = load_lane(DrainRateState, block, DRAIN_RATE, lane)
        limits = load_lane(LimitState, block, LIMITS, lane)
        control = next_cycle(load_lane(ControlState, block, CONTROL, lane))
        is_due = (messages != control.messages_seen) | control.is_present
        is_due = is_due | (control.pressure > 0.0) | control.approaches
        new_natural, new_drain, new_limits, new_control = evaluate(
            point, step, flow, age.age_s, backlog, messages, natural, drain, limits, control, is_due
        )
        store_lane(block, NATURAL_RATE, lane, new_natural)
        store_lane(block, DRAIN_RATE, lane, new_drain)
        store_lane(block, LIMITS, lane, new_limits)
        store_lane(block, CONTROL, lane, new_control)
        store_lane(block, FLOW, lane, where(is_due, with_flags_reset(flow), flow))


@compiled_pass
def end_step(groups: int, block: Any, is_first: bool) -> None:
    """End a step: add the change of the published bytes."""
    for lane in range(WIDTH * groups):
        flow = load_lane(FlowState, block, FLOW, lane)
        progress = load_lane(ReplayProgress, block, PROGRESS, lane)
        published = flow.published - progress.step_published
        moved = where(is_first, 0.0, abs(published - progress.before_published))
        progress = ReplayProgress(
            0.0, 0.0, 0.0, 0.0, 0.0, published, progress.messages, progress.quota_s,
            progress.moved + moved,
        )  # fmt: skip
        store_lane(block, PROGRESS, lane, progress)


@inlined
def write_outcome(block: Any, lane: int, wanted: float, outcome: Any) -> None:
    """Write the columns of :data:`headgate.pipeline.backtest.load.OUTCOME_COLUMNS` of one point."""
    flow = load_lane(FlowState, block, FLOW, lane)
    control = load_lane(ControlState, block, CONTROL, lane)
    progress = load_lane(ReplayProgress, block, PROGRESS, lane)
    outcome[0], outcome[1] = flow.over_s, progress.quota_s
    outcome[2] = 1.0 - flow.wasted / flow.offered if flow.offered > 0.0 else 1.0
    outcome[3], outcome[4], outcome[5] = wanted, flow.published, flow.parked_s
    outcome[6], outcome[7], outcome[8] = flow.parked_max, flow.backlog_max, control.activations
    outcome[9] = progress.moved / flow.published if flow.published > 0.0 else 0.0
    outcome[10] = flow.evicted
