"""The compiled form of a cycle of :mod:`headgate.flow.adaptive.topic`.

It has the same operations in the same order, without a branch: both alternatives are computed, and
one is selected.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from headgate.pipeline.backtest.kernel_block import where
from headgate.pipeline.backtest.kernel_state import (
    EVICTION,
    MS,
    NO_DRAIN_RATE,
    NO_QUOTA,
    NS,
    UNMARKED,
    ControlState,
    DrainRateState,
    LimitState,
    NaturalRateState,
    inlined,
)


@inlined
def next_cycle(control: Any) -> Any:
    """The state of the controller at the next cycle."""
    return ControlState(
        control.cycles + 1.0, control.messages_seen, control.is_present, control.messages,
        control.bytes, control.pressure, control.approaches, control.activations,
    )  # fmt: skip


@inlined
def evaluate(
    point: Any, step: Any, flow: Any, age_s: float, start: float, messages: float,
    natural: Any, drain: Any, limits: Any, control: Any, is_due: bool,
) -> Any:  # fmt: skip
    """One evaluation by the controller. ``start`` is the first backlog."""
    backlog, published = np.floor(flow.backlog), np.floor(flow.published)
    done = np.floor(start + flow.published - flow.backlog)
    age_ms = where(age_s < 0.0, -1.0, np.floor(age_s * MS))
    stops = (step.size_policy > 0.0) & (step.size_policy < EVICTION)
    limit = where(stops, step.size_limit, NO_QUOTA)
    stops = (step.time_policy > 0.0) & (step.time_policy < EVICTION)
    age_limit = where(stops, step.time_limit, NO_QUOTA)
    observes, drains = point.observe_only > 0.0, point.is_drain_law > 0.0
    is_limited = control.is_present & (not observes)
    is_sample, new_natural = _updated_natural_rate(
        point, natural, control.cycles, messages, published, flow.was_parked, is_limited
    )
    natural, had = where(is_due, new_natural, natural), drain
    has_quota = (limit >= 0.0) | (age_limit >= 0.0)
    drain = where(
        has_quota, _updated_drain_rate(point, had, control.cycles, done, backlog), NO_DRAIN_RATE
    )
    pressure = where(has_quota, _pressure(point, backlog, limit, age_ms, age_limit), 0.0)
    has_target = has_quota & drain.is_known & drains
    target = _drain_target(point, drain, backlog, limit, age_ms, age_limit)
    approaches = has_quota & _approaches(point, natural, drain, backlog, limit)
    control = ControlState(
        control.cycles, where(is_due, messages, control.messages_seen), control.is_present,
        control.messages, control.bytes, where(is_due, pressure, control.pressure),
        where(is_due, approaches, control.approaches), control.activations,
    )  # fmt: skip
    is_above = has_target & (natural.published > target)
    begins = (pressure > 0.0) & (not drains) & (natural.messages > 0.0)
    acts = is_due & (control.is_present | begins | is_above)
    pressed = where(drains, 0.0, pressure)
    new_natural, new_limits = _updated_pressure_limit(
        point, natural, limits, pressed, is_sample & flow.was_slowed
    )
    known = max(max(_natural_bytes(point, new_natural), drain.rate), 1.0)
    is_needed = where(observes, new_natural.published > new_limits.drain_bytes, flow.was_slowed)
    new_limits = _updated_drain_limit(
        point, new_limits, has_target, target, known, is_needed, is_above
    )
    new_control = _combined_limit(point, new_limits, control)
    return (
        where(acts, new_natural, natural), where(is_due, drain, had),
        where(acts, new_limits, limits), where(acts, new_control, control),
    )  # fmt: skip


@inlined
def _combined_limit(point: Any, limits: Any, control: Any) -> Any:
    """The tighter of both laws' limits, if it differs enough from the present one."""
    is_limited, was_limited = limits.presses | limits.drains, control.is_present
    messages = where(limits.presses, max(1.0, np.rint(limits.messages)), -1.0)
    is_drained = limits.drains & (limits.drain_bytes < limits.bytes)
    size_bytes = where(limits.presses & (not is_drained), limits.bytes, limits.drain_bytes)
    size_bytes = max(1.0, np.rint(size_bytes))
    differs = _differs(point, messages, control.messages)
    differs = differs | _differs(point, size_bytes, control.bytes)
    changes = is_limited & ((not was_limited) | differs)
    begins = is_limited & (not was_limited)
    return ControlState(
        control.cycles, control.messages_seen, is_limited,
        where(changes, messages, control.messages), where(changes, size_bytes, control.bytes),
        control.pressure, control.approaches, control.activations + where(begins, 1.0, 0.0),
    )  # fmt: skip


@inlined
def _differs(point: Any, new: float, old: float) -> Any:
    is_without = (new < 0.0) | (old < 0.0)
    return where(is_without, new != old, abs(new - old) > point.change_min * old)


@inlined
def _natural_messages(point: Any, natural: Any) -> float:
    return max(natural.messages, natural.peak_messages * point.peak_share)


@inlined
def _natural_bytes(point: Any, natural: Any) -> float:
    return max(natural.bytes, natural.peak_bytes * point.peak_share)


@inlined
def _updated_natural_rate(
    point: Any, natural: Any, now: float, messages: float, size_bytes: float, waits: bool,
    is_limited: bool,
) -> Any:  # fmt: skip
    is_marked = natural.mark != UNMARKED
    waited = natural.waited | waits
    cycle_ns = point.cycle_ns
    span_ns = (now - natural.mark) * cycle_ns
    is_longer = span_ns > cycle_ns
    kept = where(is_longer, point.peak_decay_long, point.peak_decay)
    span_ns = where(is_longer & (span_ns > NS), max(cycle_ns, NS), span_ns)
    per_second = NS / span_ns
    published = (messages - natural.mark_messages) * per_second
    published_bytes = (size_bytes - natural.mark_bytes) * per_second
    is_free = (not waited) & (not natural.settling)
    has_sample = is_marked & (published > 0.0)
    adopts = has_sample & natural.stands_in & (is_free | (not is_limited))
    learns = has_sample & is_free & (not adopts)
    gain = published - natural.messages
    of_messages = natural.messages + gain * where(gain > 0.0, point.rise, point.fall)
    gain = published_bytes - natural.bytes
    of_bytes = natural.bytes + gain * where(gain > 0.0, point.rise, point.fall)
    peak_messages = max(published, natural.peak_messages * kept)
    peak_bytes = max(published_bytes, natural.peak_bytes * kept)
    return is_marked, NaturalRateState(
        now, messages, size_bytes,
        where(adopts, published, where(learns, of_messages, natural.messages)),
        where(adopts, published_bytes, where(learns, of_bytes, natural.bytes)),
        where(adopts, published, where(learns, peak_messages, natural.peak_messages)),
        where(adopts, published_bytes, where(learns, peak_bytes, natural.peak_bytes)),
        False, where(is_marked, waited, natural.settling),
        where(adopts, not is_free, natural.stands_in),
        where(is_marked, published_bytes, natural.published),
    )  # fmt: skip


@inlined
def _updated_drain_rate(point: Any, drain: Any, now: float, done: float, backlog: float) -> Any:
    is_first = (drain.mark == UNMARKED) | (done < drain.mark_bytes)
    sample = (
        (done - drain.mark_bytes)
        * point.rate_numerator
        / (point.rate_denominator * (now - drain.mark))
    )
    samples, known, typical = drain.samples + 1.0, drain.rate, drain.typical
    begins = (not drain.is_known) & ((sample > 0.0) | (backlog > 0.0))
    learns = drain.is_known & ((sample > known) | (backlog > known * point.starved_s))
    believed = min(sample, point.believed * max(max(known, typical), drain.seen))
    weight = where(believed > known, point.drain_rise, point.drain_fall)
    new_known = known + weight * (believed - known)
    weight = max(point.typical_weight, 1.0 / samples)
    new_typical = typical + weight * (believed - typical)
    seen = drain.seen * point.seen_kept
    sampled = DrainRateState(
        now, done, drain.is_known | begins, where(begins, sample, where(learns, new_known, known)),
        where(begins, sample, where(learns, new_typical, typical)), samples,
        where(sample > seen, sample, seen),
    )  # fmt: skip
    first = DrainRateState(now, done, drain.is_known, known, typical, drain.samples, drain.seen)
    return where(is_first, first, sampled)


@inlined
def _use(level: float, limit: float) -> Any:
    use = where(limit > 0.0, level / limit, 1.0)
    return where((limit < 0.0) | (level < 0.0), 0.0, use)


@inlined
def _pressure(point: Any, backlog: float, limit: float, age_ms: float, age_limit: float) -> Any:
    """The pressure of the backlog, 0 to 1."""
    use = max(_use(backlog, limit), _use(age_ms, age_limit))
    pressure = (use - point.backlog_low) / (point.backlog_high - point.backlog_low)
    return where(use <= point.backlog_low, 0.0, where(use >= point.backlog_high, 1.0, pressure))


@inlined
def _drain_target(
    point: Any, drain: Any, backlog: float, size_limit: float, age_ms: float, age_limit: float
) -> Any:
    known, typical = drain.rate, drain.typical
    limit = where(size_limit >= 0.0, size_limit, inf)
    is_working = (typical > 0.0) & (2.0 * known >= typical)
    counts = is_working | (2.0 * age_ms >= point.drain_set_point * age_limit)
    of_age = where(counts & (age_limit >= 0.0), typical * age_limit / MS, inf)
    limit = min(limit, of_age)
    full = point.drain_set_point * limit
    missing = full - backlog
    is_open = (drain.samples < point.settled_samples) & (2.0 * missing > full)
    share = where(2.0 * missing < full, 2.0 * missing / full, 1.0)
    may_recover = (typical > known) & (missing > 0.0)
    known = where(may_recover, known + (typical - known) * share, known)
    return where(is_open | (limit == inf), inf, known + missing * NS / point.horizon_ns)


@inlined
def _approaches(point: Any, natural: Any, drain: Any, backlog: float, limit: float) -> Any:
    """Whether the seconds to the breach are known."""
    left = limit - backlog
    growth = natural.published - drain.rate
    return (limit >= 0.0) & ((left <= 0.0) | (growth * point.breach_s_max >= left))


@inlined
def _updated_pressure_limit(
    point: Any, natural: Any, limits: Any, pressure: float, may_probe: bool
) -> Any:
    of_messages, of_bytes = _natural_messages(point, natural), _natural_bytes(point, natural)
    is_pressed = pressure > 0.0
    begins = (not limits.presses) & is_pressed & (natural.messages > 0.0)
    presses, pressed = limits.presses | begins, where(begins, 1.0, limits.pressed)
    messages = where(begins, of_messages, limits.messages)
    size_bytes = where(begins, of_bytes, limits.bytes)
    clear = where(presses, where(is_pressed, 0.0, limits.clear + 1.0), limits.clear)
    moves = presses & (is_pressed | (clear >= point.clear_cycles))
    to_messages = _pressure_target(point, of_messages, pressure)
    to_bytes = _pressure_target(point, of_bytes, pressure)
    messages = where(
        moves, _stepped(messages, to_messages, of_messages * point.max_change_factor), messages
    )
    size_bytes = where(
        moves, _stepped(size_bytes, to_bytes, of_bytes * point.max_change_factor), size_bytes
    )
    at_target = (messages == to_messages) & (size_bytes == to_bytes)
    probes = moves & is_pressed & at_target & (pressure < 1.0) & may_probe & (pressure <= pressed)
    ends = moves & (not is_pressed) & (messages >= of_messages) & (size_bytes >= of_bytes)
    limits = LimitState(
        presses & (not ends), messages, size_bytes, clear,
        where(moves & is_pressed, pressure, pressed), limits.drains, limits.drain_bytes,
        limits.calm,
    )  # fmt: skip
    return where(probes, _probed_rate(point, natural), natural), limits


@inlined
def _probed_rate(point: Any, natural: Any) -> Any:
    messages = _natural_messages(point, natural) * point.probe
    size_bytes = _natural_bytes(point, natural) * point.probe
    is_much = messages > natural.peak_messages * point.probe_peaks_max
    messages = where(is_much, natural.messages, messages)
    is_much = size_bytes > natural.peak_bytes * point.probe_peaks_max
    size_bytes = where(is_much, natural.bytes, size_bytes)
    return NaturalRateState(
        natural.mark, natural.mark_messages, natural.mark_bytes, messages, size_bytes,
        natural.peak_messages, natural.peak_bytes, natural.waited, natural.settling,
        natural.stands_in, natural.published,
    )  # fmt: skip


@inlined
def _stepped(present: float, target: float, step: float) -> float:
    return min(max(target, present - step), present + step)


@inlined
def _pressure_target(point: Any, natural: float, pressure: float) -> float:
    floor_rate = max(1.0, natural * point.min_rate_factor)
    return max(floor_rate, natural * (1.0 - pressure * (1.0 - point.min_rate_factor)))


@inlined
def _updated_drain_limit(
    point: Any, limits: Any, has_target: bool, target: float, natural: float, is_needed: bool,
    is_above: bool,
) -> Any:  # fmt: skip
    calm = where(is_needed | is_above, 0.0, limits.calm + 1.0)
    risen = limits.drain_bytes + natural * point.max_change_factor
    rises = (not has_target) | (calm >= point.calm_cycles)
    held = where(rises, risen, max(1.0, min(target, risen)))
    first = where(is_above, max(1.0, target), limits.drain_bytes)
    return LimitState(
        limits.presses, limits.messages, limits.bytes, limits.clear, limits.pressed,
        where(limits.drains, (not rises) | (risen < natural), is_above),
        where(limits.drains, held, first),
        where(limits.drains, calm, where(is_above, 0.0, limits.calm)),
    )  # fmt: skip
