"""The flow of bytes of ``fluid``, compiled: the same operations in the same order."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from headgate.pipeline.backtest.kernel_state import EVICTION, EXCEPTION, MS, Age, Flow, inlined


@inlined
def stretch(span: float, point: Any, step: Any, flow: Any, is_held: bool) -> Any:
    """Let so much time go by under constant rates."""
    while span > 0.0:
        until, flow = _to_next_event(span, step, flow, is_held)
        span -= until
        backlog, evicted = flow.backlog, flow.evicted
        if step.size_policy == EVICTION and backlog >= step.size_limit:
            unit = max(
                1.0, step.size_limit - np.floor(step.size_limit * point.eviction_percent / 100.0)
            )
            acts = np.floor((backlog - step.size_limit) / unit) + 1.0
            gone = min(backlog, acts * unit)
            evicted += gone
            backlog -= gone
        flow = Flow(
            backlog, flow.parked, flow.published, flow.was_parked, flow.was_slowed, flow.over_s,
            flow.offered, flow.wasted, flow.parked_s, max(flow.parked_max, flow.parked),
            max(flow.backlog_max, backlog), evicted,
        )  # fmt: skip
    return flow


@inlined
def _to_next_event(span: float, step: Any, flow: Any, is_held: bool) -> Any:
    backlog, parked, limit = flow.backlog, flow.parked, step.stop_limit
    ceiling = min(step.set_limit, step.adaptive_limit)
    is_full = backlog >= limit
    is_stopped = is_held or backlog > limit or limit <= 0.0
    refuses = is_held and step.time_policy == EXCEPTION
    if is_full:
        refuses = step.size_policy == EXCEPTION
    if refuses:
        parked = 0.0
    jump = 0.0
    if is_stopped:
        ceiling = 0.0
    elif is_full:
        ceiling = min(ceiling, step.capacity)
    elif ceiling == inf and parked > 0.0:
        jump = min(parked, limit - backlog)
        span = 0.0
    inflow = ceiling if parked > 0.0 else min(step.arrivals, ceiling)
    if jump > 0.0:
        inflow = 0.0
    gain, growth, served = step.arrivals - inflow, inflow - step.capacity, step.capacity
    if backlog <= 0.0 and growth <= 0.0:
        growth, served = 0.0, inflow
    until, to_backlog, to_parked = span, -1.0, -1.0
    if parked > 0.0 and gain < 0.0 and parked < -gain * until:
        until, to_parked = parked / -gain, 0.0
    if backlog > limit and growth < 0.0 and backlog - limit < -growth * until:
        until, to_backlog, to_parked = (backlog - limit) / -growth, limit, -1.0
    elif backlog < limit and growth > 0.0 and limit - backlog < growth * until:
        until, to_backlog, to_parked = (limit - backlog) / growth, limit, -1.0
    elif growth < 0.0 and backlog < -growth * until:
        until, to_backlog, to_parked = backlog / -growth, 0.0, -1.0
    parked_s, offered, wasted, over_s = flow.parked_s, flow.offered, flow.wasted, flow.over_s
    was_parked, was_slowed = flow.was_parked, flow.was_slowed
    if until > 0.0 and (parked > 0.0 or gain > 0.0):
        parked_s += until
        offered += step.capacity * until
        wasted += (step.capacity - served) * until
        was_parked = True
        by_quota = is_stopped or (is_full and step.capacity < step.adaptive_limit)
        is_adaptive = step.adaptive_limit < inf and not by_quota
        was_slowed = was_slowed or (is_adaptive and step.adaptive_limit <= step.set_limit)
    if is_stopped or (is_full and growth >= 0.0):
        over_s += until
    next_backlog, next_parked = backlog, parked
    if jump > 0.0:
        next_backlog = limit if jump == limit - backlog else backlog + jump
        next_parked -= jump
    else:
        next_backlog = to_backlog if to_backlog >= 0.0 else max(0.0, backlog + growth * until)
        if not refuses:
            next_parked = to_parked if to_parked >= 0.0 else max(0.0, parked + gain * until)
    return until, Flow(
        next_backlog, next_parked, flow.published + (jump if jump > 0.0 else inflow * until),
        was_parked, was_slowed, over_s, offered, wasted, parked_s, flow.parked_max,
        flow.backlog_max, flow.evicted,
    )  # fmt: skip


@inlined
def looked_at(flow: Any) -> Any:
    """What waited is told: it counts from now on."""
    return Flow(
        flow.backlog, flow.parked, flow.published, False, False, flow.over_s, flow.offered,
        flow.wasted, flow.parked_s, flow.parked_max, flow.backlog_max, flow.evicted,
    )  # fmt: skip


@inlined
def released(age: Any, step: Any) -> Any:
    """The age, held no more where no time quota stops producers."""
    is_held = age.is_held and 0.0 < step.time_policy < EVICTION
    return Age(age.age_s, is_held, age.now_s, age.oldest, age.last)


@inlined
def note_age(
    span: float, point: Any, flow: Any, age: Any, step: Any, start: float, at_s: Any, stored: Any
) -> Any:
    """Note what was stored by the end of ``span``, and do what a time quota asks. ``start`` is the
    first backlog."""
    last, now_s = age.last + 1, age.now_s + span
    at_s[last], stored[last] = now_s, start + flow.published
    age = aged(Age(age.age_s, age.is_held, now_s, age.oldest, last), flow, start, at_s, stored)
    age_ms = -1.0 if age.age_s < 0.0 else np.floor(age.age_s * MS)
    limit = step.time_limit
    exceeded = step.time_policy > 0.0 and age_ms >= limit
    is_held = False
    if 0.0 < step.time_policy < EVICTION:
        is_held = exceeded
        if age.is_held:
            is_held = not (age_ms < limit and age_ms * 100.0 <= limit * point.release_percent)
    age = Age(age.age_s, is_held, now_s, age.oldest, last)
    if step.time_policy != EVICTION or not exceeded:
        return flow, age
    than_s = now_s - np.ceil(limit * point.eviction_percent / 100.0) / MS
    place = age.oldest
    while place < last - 1 and at_s[place + 1] <= than_s:
        place += 1
    span_s = at_s[place + 1] - at_s[place]
    share = (than_s - at_s[place]) / span_s if span_s > 0.0 else 1.0
    before = stored[place] + share * (stored[place + 1] - stored[place])
    gone = min(flow.backlog, max(0.0, before - (start + flow.published - flow.backlog)))
    flow = Flow(
        flow.backlog - gone, flow.parked, flow.published, flow.was_parked, flow.was_slowed,
        flow.over_s, flow.offered, flow.wasted, flow.parked_s, flow.parked_max, flow.backlog_max,
        flow.evicted + gone,
    )  # fmt: skip
    return flow, aged(age, flow, start, at_s, stored)


@inlined
def aged(age: Any, flow: Any, start: float, at_s: Any, stored: Any) -> Any:
    """The age of the oldest byte now."""
    if flow.backlog <= 0.0:
        return Age(-1.0, age.is_held, age.now_s, age.oldest, age.last)
    done = start + flow.published - flow.backlog
    place = age.oldest
    while place < age.last - 1 and stored[place + 1] <= done:
        place += 1
    gain = stored[place + 1] - stored[place]
    share = (done - stored[place]) / gain if gain > 0.0 else 1.0
    age_s = max(0.0, age.now_s - (at_s[place] + share * (at_s[place + 1] - at_s[place])))
    return Age(age_s, age.is_held, age.now_s, place, age.last)
