"""A cycle of ``flow.adaptive_topic``, compiled: the same operations in the same order."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from headgate.pipeline.backtest.kernel_state import (
    EVICTION,
    MS,
    NO_DRAIN,
    NO_QUOTA,
    NS,
    UNMARKED,
    Control,
    Drain,
    Limits,
    Natural,
    inlined,
)


@inlined
def counted(control: Any) -> Any:
    """One more cycle went by."""
    return Control(
        control.cycles + 1.0, control.seen, control.is_present, control.messages, control.bytes,
        control.pressure, control.approaches, control.activations,
    )  # fmt: skip


@inlined
def cycle_of(
    point: Any, step: Any, flow: Any, age_s: float, start: float, messages: float,
    natural: Any, drain: Any, limits: Any, control: Any,
) -> Any:  # fmt: skip
    """One look of the controller: learn, and decide. ``start`` is the first backlog."""
    backlog, published = np.floor(flow.backlog), np.floor(flow.published)
    done = np.floor(start + flow.published - flow.backlog)
    age_ms = -1.0 if age_s < 0.0 else np.floor(age_s * MS)
    limit = step.size_limit if 0.0 < step.size_policy < EVICTION else NO_QUOTA
    age_limit = step.time_limit if 0.0 < step.time_policy < EVICTION else NO_QUOTA
    observes, drains = point.observes > 0.0, point.drains > 0.0
    is_limited = control.is_present and not observes
    is_sample, natural = _look_natural(
        point, natural, control.cycles, messages, published, flow.was_parked, is_limited
    )
    target, has_target, pressure, approaches = 0.0, False, 0.0, control.approaches
    if limit >= 0.0 or age_limit >= 0.0:
        drain = _look_drain(point, drain, control.cycles, done, backlog)
        pressure = _backlog_pressure(point, backlog, limit, age_ms, age_limit)
        if drain.is_known and drains:
            has_target = True
            target = _drain_target(point, drain, backlog, limit, age_ms, age_limit)
        approaches = _approaches(point, natural, drain, backlog, limit)
    elif drain.samples >= 0.0:
        drain, approaches = NO_DRAIN, False
    control = Control(
        control.cycles, messages, control.is_present, control.messages, control.bytes, pressure,
        approaches, control.activations,
    )  # fmt: skip
    begins = pressure > 0.0 and not drains and natural.messages > 0.0
    begins = begins or (has_target and natural.published > target)
    if control.is_present or begins:
        pressed = 0.0 if drains else pressure
        natural, limits = _press(point, natural, limits, pressed, is_sample and flow.was_slowed)
        known = max(_natural_bytes(point, natural), drain.rate, 1.0)
        is_needed = natural.published > limits.drain_bytes if observes else flow.was_slowed
        is_above = has_target and natural.published > target
        limits = _limit_drain(point, limits, has_target, target, known, is_needed, is_above)
        control = _composed(point, limits, control)
    return natural, drain, limits, control


@inlined
def _composed(point: Any, limits: Any, control: Any) -> Any:
    """The tighter of both laws' limits, if it differs enough from the present one."""
    is_present, activations = control.is_present, control.activations
    of_messages, of_bytes = control.messages, control.bytes
    if not limits.presses and not limits.drains:
        is_present = False
    else:
        messages, size_bytes = -1.0, limits.drain_bytes
        if limits.presses:
            messages = max(1.0, np.rint(limits.messages))
            if not (limits.drains and limits.drain_bytes < limits.bytes):
                size_bytes = limits.bytes
        size_bytes = max(1.0, np.rint(size_bytes))
        if not is_present:
            activations += 1.0
        if (
            not is_present
            or _differs(point, messages, of_messages)
            or _differs(point, size_bytes, of_bytes)
        ):
            is_present, of_messages, of_bytes = True, messages, size_bytes
    return Control(
        control.cycles, control.seen, is_present, of_messages, of_bytes, control.pressure,
        control.approaches, activations,
    )  # fmt: skip


@inlined
def _differs(point: Any, new: float, old: float) -> bool:
    if new < 0.0 or old < 0.0:
        return new != old
    return abs(new - old) > point.change_min * old


@inlined
def _natural_messages(point: Any, natural: Any) -> float:
    return max(natural.messages, natural.peak_messages * point.peak_share)


@inlined
def _natural_bytes(point: Any, natural: Any) -> float:
    return max(natural.bytes, natural.peak_bytes * point.peak_share)


@inlined
def _look_natural(
    point: Any, natural: Any, now: float, messages: float, size_bytes: float, waits: bool,
    is_limited: bool,
) -> Any:  # fmt: skip
    if natural.mark == UNMARKED:
        return False, Natural(
            now, messages, size_bytes, natural.messages, natural.bytes, natural.peak_messages,
            natural.peak_bytes, False, natural.settling, natural.stands_in, natural.published,
        )  # fmt: skip
    waited = natural.waited or waits
    cycle_ns = point.cycle_ns
    span_ns, kept = (now - natural.mark) * cycle_ns, point.kept
    if span_ns > cycle_ns:
        kept = point.kept_long
        if span_ns > NS:
            span_ns = max(cycle_ns, NS)
    per_second = NS / span_ns
    published = (messages - natural.mark_messages) * per_second
    published_bytes = (size_bytes - natural.mark_bytes) * per_second
    of_messages, of_bytes = natural.messages, natural.bytes
    peak_messages, peak_bytes = natural.peak_messages, natural.peak_bytes
    free, stands_in = not waited and not natural.settling, natural.stands_in
    if published > 0.0:
        if stands_in and (free or not is_limited):
            stands_in = not free
            of_messages = peak_messages = published
            of_bytes = peak_bytes = published_bytes
        elif free:
            gain = published - of_messages
            of_messages += gain * (point.rise if gain > 0.0 else point.fall)
            gain = published_bytes - of_bytes
            of_bytes += gain * (point.rise if gain > 0.0 else point.fall)
            peak_messages = max(published, peak_messages * kept)
            peak_bytes = max(published_bytes, peak_bytes * kept)
    return True, Natural(
        now, messages, size_bytes, of_messages, of_bytes, peak_messages, peak_bytes, False, waited,
        stands_in, published_bytes,
    )  # fmt: skip


@inlined
def _look_drain(point: Any, drain: Any, now: float, done: float, backlog: float) -> Any:
    if drain.mark == UNMARKED or done < drain.mark_bytes:
        return Drain(
            now, done, drain.is_known, drain.rate, drain.typical, drain.samples, drain.seen
        )
    sample = (done - drain.mark_bytes) * point.up / (point.down * (now - drain.mark))
    samples, known, typical = drain.samples + 1.0, drain.rate, drain.typical
    is_known = drain.is_known
    if not is_known:
        if sample > 0.0 or backlog > 0.0:
            is_known, known, typical = True, sample, sample
    elif sample > known or backlog > known * point.starved_s:
        believed = min(sample, point.believed * max(known, typical, drain.seen))
        weight = point.drain_rise if believed > known else point.drain_fall
        known += weight * (believed - known)
        typical += max(point.typical_weight, 1.0 / samples) * (believed - typical)
    seen = drain.seen * point.seen_kept
    return Drain(now, done, is_known, known, typical, samples, sample if sample > seen else seen)


@inlined
def _use(level: float, limit: float) -> float:
    if limit < 0.0 or level < 0.0:
        return 0.0
    return level / limit if limit > 0.0 else 1.0


@inlined
def _backlog_pressure(
    point: Any, backlog: float, limit: float, age_ms: float, age_limit: float
) -> float:
    use = max(_use(backlog, limit), _use(age_ms, age_limit))
    if use <= point.low:
        return 0.0
    return 1.0 if use >= point.high else (use - point.low) / (point.high - point.low)


@inlined
def _drain_target(
    point: Any, drain: Any, backlog: float, size_limit: float, age_ms: float, age_limit: float
) -> float:
    known, typical = drain.rate, drain.typical
    limit = size_limit if size_limit >= 0.0 else inf
    if age_limit >= 0.0:
        works = typical > 0.0 and 2.0 * known >= typical
        if works or 2.0 * age_ms >= point.set_point * age_limit:
            limit = min(limit, typical * age_limit / MS)
    if limit == inf:
        return limit
    full = point.set_point * limit
    missing = full - backlog
    if drain.samples < point.settled_samples and 2.0 * missing > full:
        return inf
    if typical > known and missing > 0.0:
        known += (typical - known) * (2.0 * missing / full if 2.0 * missing < full else 1.0)
    return known + missing * NS / point.horizon_ns


@inlined
def _approaches(point: Any, natural: Any, drain: Any, backlog: float, limit: float) -> bool:
    """Whether the seconds to the breach are known."""
    left = limit - backlog
    growth = natural.published - drain.rate
    return limit >= 0.0 and (left <= 0.0 or growth * point.breach_s_max >= left)


@inlined
def _press(point: Any, natural: Any, limits: Any, pressure: float, may_probe: bool) -> Any:
    presses, clear, pressed = limits.presses, limits.clear, limits.pressed
    messages, size_bytes = limits.messages, limits.bytes
    if not presses and pressure > 0.0 and natural.messages > 0.0:
        presses, clear, pressed = True, 0.0, 1.0
        messages, size_bytes = _natural_messages(point, natural), _natural_bytes(point, natural)
    if presses:
        clear = 0.0 if pressure > 0.0 else clear + 1.0
        if pressure > 0.0 or clear >= point.clear_cycles:
            of_messages, of_bytes = (
                _natural_messages(point, natural),
                _natural_bytes(point, natural),
            )
            to_messages = _pressure_target(point, of_messages, pressure)
            to_bytes = _pressure_target(point, of_bytes, pressure)
            messages = _stepped(messages, to_messages, of_messages * point.step)
            size_bytes = _stepped(size_bytes, to_bytes, of_bytes * point.step)
            at_target = messages == to_messages and size_bytes == to_bytes
            if pressure > 0.0:
                if at_target and pressure < 1.0 and may_probe and pressure <= pressed:
                    natural = _probed(point, natural)
                pressed = pressure
            elif messages >= of_messages and size_bytes >= of_bytes:
                presses = False
    return natural, Limits(
        presses, messages, size_bytes, clear, pressed, limits.drains, limits.drain_bytes,
        limits.calm,
    )  # fmt: skip


@inlined
def _probed(point: Any, natural: Any) -> Any:
    messages, size_bytes = (
        _natural_messages(point, natural) * point.probe,
        _natural_bytes(point, natural) * point.probe,
    )
    if messages > natural.peak_messages * point.probe_peaks_max:
        messages = natural.messages
    if size_bytes > natural.peak_bytes * point.probe_peaks_max:
        size_bytes = natural.bytes
    return Natural(
        natural.mark, natural.mark_messages, natural.mark_bytes, messages, size_bytes,
        natural.peak_messages, natural.peak_bytes, natural.waited, natural.settling,
        natural.stands_in, natural.published,
    )  # fmt: skip


@inlined
def _stepped(present: float, target: float, step: float) -> float:
    return min(max(target, present - step), present + step)


@inlined
def _pressure_target(point: Any, natural: float, pressure: float) -> float:
    floor_rate = max(1.0, natural * point.floor)
    return max(floor_rate, natural * (1.0 - pressure * (1.0 - point.floor)))


@inlined
def _limit_drain(
    point: Any, limits: Any, has_target: bool, target: float, natural: float, is_needed: bool,
    is_above: bool,
) -> Any:  # fmt: skip
    drains, size_bytes, calm = limits.drains, limits.drain_bytes, limits.calm
    if not drains:
        if is_above:
            drains, size_bytes, calm = True, max(1.0, target), 0.0
    else:
        calm = 0.0 if is_needed or is_above else calm + 1.0
        risen = size_bytes + natural * point.step
        if not has_target or calm >= point.calm_cycles:
            size_bytes, drains = risen, risen < natural
        else:
            size_bytes = max(1.0, min(target, risen))
    return Limits(
        limits.presses, limits.messages, limits.bytes, limits.clear, limits.pressed, drains,
        size_bytes, calm,
    )  # fmt: skip
