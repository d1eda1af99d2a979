"""The compiled form of :mod:`headgate.pipeline.backtest.fluid`.

It has the same operations in the same order. Advancing to the next event has no branch; the search
for ages has branches.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from headgate.pipeline.backtest.kernel_block import where
from headgate.pipeline.backtest.kernel_state import (
    EVICTION,
    EXCEPTION,
    MS,
    AgeState,
    FlowState,
    inlined,
)


@inlined
def advance(left_s: float, step: Any, flow: Any, is_held: bool) -> Any:
    """Advance to the next event under constant rates, at most ``left_s``; returns the time left and
    the flow. With no time left the flow is unchanged."""
    until, found = _to_next_event(left_s, step, flow, is_held)
    found = _after_eviction(step, found)
    has_time = left_s > 0.0
    return where(has_time, left_s - until, left_s), where(has_time, found, flow)


@inlined
def _after_eviction(step: Any, flow: Any) -> Any:
    """The flow after the eviction of a size quota, with its maxima."""
    evicts = (step.size_policy == EVICTION) & (flow.backlog >= step.size_limit)
    acts = np.floor((flow.backlog - step.size_limit) / step.evicted_unit) + 1.0
    evicted_bytes = where(evicts, min(flow.backlog, acts * step.evicted_unit), 0.0)
    backlog = flow.backlog - evicted_bytes
    return FlowState(
        backlog, flow.parked, flow.published, flow.was_parked, flow.was_slowed, flow.over_s,
        flow.offered, flow.wasted, flow.parked_s, max(flow.parked_max, flow.parked),
        max(flow.backlog_max, backlog), flow.evicted + evicted_bytes,
    )  # fmt: skip


@inlined
def _to_next_event(span: float, step: Any, flow: Any, is_held: bool) -> Any:
    backlog, limit, capacity = flow.backlog, step.stop_limit, step.capacity
    ceiling = min(step.set_limit, step.adaptive_limit)
    is_full, is_over = backlog >= limit, backlog > limit
    is_stopped = is_held | is_over | (limit <= 0.0)
    refuses = where(
        is_full, step.size_policy == EXCEPTION, is_held & (step.time_policy == EXCEPTION)
    )
    parked = where(refuses, 0.0, flow.parked)
    waits = parked > 0.0
    jumps = (not is_stopped) & (not is_full) & (ceiling == inf) & waits
    room = limit - backlog
    jump = min(parked, room)
    span = where(jumps, 0.0, span)
    ceiling = where(is_stopped, 0.0, where(is_full, min(ceiling, capacity), ceiling))
    inflow = where(waits, ceiling, min(step.arrivals, ceiling))
    inflow = where(jumps, 0.0, inflow)
    gain, growth = step.arrivals - inflow, inflow - capacity
    is_idle = (backlog <= 0.0) & (growth <= 0.0)
    served, growth = where(is_idle, inflow, capacity), where(is_idle, 0.0, growth)
    clears = waits & (gain < 0.0) & (parked < -gain * span)
    until = where(clears, parked / -gain, span)
    falls, rises = growth < 0.0, (growth > 0.0) & (backlog < limit)
    target = where(rises | is_over, limit, 0.0)
    distance, rate = abs(backlog - target), abs(growth)
    hits = (falls | rises) & (distance < rate * until)
    until, clears = where(hits, distance / rate, until), clears & (not hits)
    is_wait = (until > 0.0) & (waits | (gain > 0.0))
    by_quota = is_stopped | (is_full & (capacity < step.adaptive_limit))
    slows = (not by_quota) & (step.adaptive_limit < inf)
    slows = slows & (step.adaptive_limit <= step.set_limit)
    is_reached = is_stopped | (is_full & (growth >= 0.0))
    next_backlog = where(hits, target, max(0.0, backlog + growth * until))
    next_parked = where(clears, 0.0, max(0.0, parked + gain * until))
    next_parked = where(refuses, parked, next_parked)
    return until, FlowState(
        where(jumps, where(jump == room, limit, backlog + jump), next_backlog),
        where(jumps, parked - jump, next_parked),
        flow.published + where(jumps, jump, inflow * until),
        flow.was_parked | is_wait,
        flow.was_slowed | (is_wait & slows),
        flow.over_s + where(is_reached, until, 0.0),
        flow.offered + where(is_wait, capacity * until, 0.0),
        flow.wasted + where(is_wait, (capacity - served) * until, 0.0),
        flow.parked_s + where(is_wait, until, 0.0),
        flow.parked_max, flow.backlog_max, flow.evicted,
    )  # fmt: skip


@inlined
def with_flags_reset(flow: Any) -> Any:
    """The flow with its flags reset, after an evaluation of the controller."""
    return FlowState(
        flow.backlog, flow.parked, flow.published, False, False, flow.over_s, flow.offered,
        flow.wasted, flow.parked_s, flow.parked_max, flow.backlog_max, flow.evicted,
    )  # fmt: skip


@inlined
def with_hold_released(age: Any, step: Any) -> Any:
    """The age; if no time quota stops producers, it holds none."""
    is_held = age.is_held & (step.time_policy > 0.0) & (step.time_policy < EVICTION)
    return AgeState(age.age_s, is_held, age.now_s, age.oldest_index, age.last_index)


@inlined
def record_age(
    span: float, point: Any, flow: Any, age: Any, step: Any, start: float, at_s: Any, stored: Any
) -> Any:
    """Record the bytes stored by the end of ``span``, and apply the time quota. ``start`` is the
    first backlog."""
    last, now_s = age.last_index + 1, age.now_s + span
    at_s[last], stored[last] = now_s, start + flow.published
    age = with_age(
        AgeState(age.age_s, age.is_held, now_s, age.oldest_index, last), flow, start, at_s, stored
    )
    age_ms = -1.0 if age.age_s < 0.0 else np.floor(age.age_s * MS)
    limit = step.time_limit
    exceeded = step.time_policy > 0.0 and age_ms >= limit
    is_held = False
    if 0.0 < step.time_policy < EVICTION:
        is_held = exceeded
        if age.is_held:
            is_held = not (age_ms < limit and age_ms * 100.0 <= limit * point.release_percent)
    age = AgeState(age.age_s, is_held, now_s, age.oldest_index, last)
    if step.time_policy != EVICTION or not exceeded:
        return flow, age
    than_s = now_s - np.ceil(limit * point.eviction_percent / 100.0) / MS
    place = age.oldest_index
    while place < last - 1 and at_s[place + 1] <= than_s:
        place += 1
    span_s = at_s[place + 1] - at_s[place]
    share = (than_s - at_s[place]) / span_s if span_s > 0.0 else 1.0
    before = stored[place] + share * (stored[place + 1] - stored[place])
    evicted_bytes = min(flow.backlog, max(0.0, before - (start + flow.published - flow.backlog)))
    flow = FlowState(
        flow.backlog - evicted_bytes, flow.parked, flow.published, flow.was_parked, flow.was_slowed,
        flow.over_s, flow.offered, flow.wasted, flow.parked_s, flow.parked_max, flow.backlog_max,
        flow.evicted + evicted_bytes,
    )  # fmt: skip
    return flow, with_age(age, flow, start, at_s, stored)


@inlined
def with_age(age: Any, flow: Any, start: float, at_s: Any, stored: Any) -> Any:
    """``age`` with the present age of the oldest byte."""
    if flow.backlog <= 0.0:
        return AgeState(-1.0, age.is_held, age.now_s, age.oldest_index, age.last_index)
    done = start + flow.published - flow.backlog
    place = age.oldest_index
    while place < age.last_index - 1 and stored[place + 1] <= done:
        place += 1
    gain = stored[place + 1] - stored[place]
    share = (done - stored[place]) / gain if gain > 0.0 else 1.0
    age_s = max(0.0, age.now_s - (at_s[place] + share * (at_s[place + 1] - at_s[place])))
    return AgeState(age_s, age.is_held, age.now_s, place, age.last_index)
