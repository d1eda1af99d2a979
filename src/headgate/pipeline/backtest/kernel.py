"""The same replay for many policies at once, compiled: topics one by one, points side by side.

What ``replay`` does with the broker's objects is done here with tuples of numbers, in the same
order of operations, so that every output is the same. A test compares the two over random loads
and policies: who changes a law changes ``kernel_law``, too.

numba keeps what it compiled in a cache that looks at this file alone. So the compiled code says
from which sources it was made, and is made anew where they are not the present ones.
"""

from __future__ import annotations

import zlib
from math import inf
from pathlib import Path
from typing import Any, Final

import numba
import numpy as np
from numba.np.unsafe.ndarray import to_fixed_tuple

from headgate.pipeline.backtest.kernel_flow import aged, looked_at, note_age, released, stretch
from headgate.pipeline.backtest.kernel_law import counted, cycle_of
from headgate.pipeline.backtest.kernel_state import (
    AS_RECORDED,
    EVICTION,
    MS,
    NO_CONTROL,
    NO_DRAIN,
    NO_LIMITS,
    NO_NATURAL,
    NS,
    POINT_COLUMNS,
    Acting,
    Age,
    Flow,
    Point,
    inlined,
)
from headgate.pipeline.backtest.load import OUTCOME_COLUMNS, Doubles, Load

_SOURCES: Final = ("kernel.py", "kernel_state.py", "kernel_flow.py", "kernel_law.py")


def _fingerprint() -> int:
    """Of the sources; 0 where they are not files, as in an archive: there is no cache, either."""
    try:
        texts = [Path(__file__).with_name(name).read_bytes() for name in _SOURCES]
    except OSError:
        return 0
    return zlib.crc32(b"".join(texts))


_FINGERPRINT: Final = _fingerprint()


def _cached(function: Any) -> Any:
    """Compile, and keep it for other processes where some folder can be written."""
    try:
        return numba.njit(cache=True, error_model="numpy")(function)
    except RuntimeError:
        return numba.njit(error_model="numpy")(function)


def replay_points(load: Load, points: Doubles) -> Doubles:
    """Play one topic under every point, a row of
    :func:`headgate.pipeline.backtest.kernel_points.point_rows` for its length of a step.

    Returns [points x :data:`OUTCOME_COLUMNS`].
    """
    outcomes = np.empty((len(points), len(OUTCOME_COLUMNS)))
    steps = np.ascontiguousarray(load.steps)
    start = float(load.backlog_bytes), float(load.oldest_age_s), load.step_ns / NS
    if _replay_all(steps, *start, points[:0], outcomes) != _FINGERPRINT:
        _replay_all.recompile()
    _replay_all(steps, *start, points, outcomes)
    return outcomes


@_cached
def _replay_all(
    steps: Any, backlog: float, age_s: float, step_s: float, points: Any, outcomes: Any
) -> int:
    """Which sources this was compiled from."""
    for number in range(points.shape[0]):
        point = Point(*to_fixed_tuple(points[number], POINT_COLUMNS))
        tracks = _tracks_age(steps, point)
        looks = 2
        if tracks:
            # Each look but a part's last one comes a second or more after the one before.
            looks += steps.shape[0] * int(point.parts * (np.ceil(point.part_s / point.check_s) + 1))
        at_s, stored = np.empty(looks), np.empty(looks)
        at_s[0], at_s[1], stored[0], stored[1] = -age_s, 0.0, 0.0, backlog
        _replay_point(steps, backlog, step_s, point, tracks, at_s, stored, outcomes[number])
    return _FINGERPRINT


@inlined
def _tracks_age(steps: Any, point: Any) -> bool:
    if point.time_policy != AS_RECORDED:
        return bool(point.time_policy > 0.0)
    return bool((steps[:, 6] > 0.0).any())


@inlined
def _acting(
    arrivals: float, message: float, capacity: float, size_limit: float, size_policy: float,
    time_limit: float, time_policy: float, of_messages: float, of_bytes: float, point: Any,
) -> Any:  # fmt: skip
    """A step under a point; the columns of :class:`headgate.pipeline.backtest.load.Step`."""
    if point.size_policy != AS_RECORDED:
        size_policy, size_limit = point.size_policy, point.size_limit
    if point.time_policy != AS_RECORDED:
        time_policy, time_limit = point.time_policy, point.time_limit
    if point.sets_limit > 0.0:
        of_messages, of_bytes = point.messages_per_s, point.bytes_per_s
    set_limit = min(of_bytes, of_messages * message)
    stop_limit = size_limit if 0.0 < size_policy < EVICTION else inf
    return Acting(
        arrivals, capacity, message, set_limit, inf, size_policy, size_limit, stop_limit,
        time_policy, time_limit,
    )  # fmt: skip


@inlined
def _slowed_by(step: Any, point: Any, control: Any) -> Any:
    """The step with the controller's limit in it."""
    limit = inf
    if control.is_present and point.observes == 0.0:
        limit = control.bytes
        if control.messages > 0.0:
            limit = min(limit, control.messages * step.message)
    return Acting(
        step.arrivals, step.capacity, step.message, step.set_limit, limit, step.size_policy,
        step.size_limit, step.stop_limit, step.time_policy, step.time_limit,
    )  # fmt: skip


@inlined
def _replay_point(
    steps: Any, backlog: float, step_s: float, point: Any, tracks: bool, at_s: Any, stored: Any,
    outcome: Any,
) -> None:  # fmt: skip
    flow = Flow(backlog, 0.0, 0.0, False, False, 0.0, 0.0, 0.0, 0.0, 0.0, backlog, 0.0)
    age = Age(-1.0, False, 0.0, 0, 1)
    if tracks:
        age = aged(age, flow, backlog, at_s, stored)
    natural, drain, limits, control = NO_NATURAL, NO_DRAIN, NO_LIMITS, NO_CONTROL
    wanted = moved = before = messages = quota_s = 0.0
    parts, every = int(point.parts), int(point.every)
    for number in range(steps.shape[0]):
        step = _acting(
            steps[number, 0], steps[number, 1], steps[number, 2], steps[number, 3],
            steps[number, 4], steps[number, 5], steps[number, 6], steps[number, 7],
            steps[number, 8], point,
        )  # fmt: skip
        start, age = flow.published, released(age, step)
        for _ in range(parts):
            step = _slowed_by(step, point, control)
            had, left = flow.published, point.part_s
            while left > 0.0:
                span = left
                if step.time_policy > 0.0:
                    room_s = step.time_limit / MS - max(age.age_s, 0.0)
                    span = min(span, point.check_s if age.is_held else max(point.check_s, room_s))
                if step.size_policy > 0.0 or step.time_policy > 0.0:
                    quota_s += span
                flow = stretch(span, point, step, flow, age.is_held)
                left -= span
                if tracks:
                    flow, age = note_age(span, point, flow, age, step, backlog, at_s, stored)
            messages += (flow.published - had) / step.message
            if point.adaptive > 0.0 and (number + 1) % every == 0:
                looked = np.floor(messages) != control.seen or (
                    control.is_present or control.pressure > 0.0 or control.approaches
                )
                control = counted(control)
                if looked:
                    natural, drain, limits, control = cycle_of(
                        point, step, flow, age.age_s, backlog, np.floor(messages),
                        natural, drain, limits, control,
                    )  # fmt: skip
                    flow = looked_at(flow)
        published = flow.published - start
        if number > 0:
            moved += abs(published - before)
        before = published
        wanted += step.arrivals * step_s
    outcome[0], outcome[1] = flow.over_s, quota_s
    outcome[2] = 1.0 - flow.wasted / flow.offered if flow.offered > 0.0 else 1.0
    outcome[3], outcome[4], outcome[5] = wanted, flow.published, flow.parked_s
    outcome[6], outcome[7], outcome[8] = flow.parked_max, flow.backlog_max, control.activations
    outcome[9] = moved / flow.published if flow.published > 0.0 else 0.0
    outcome[10] = flow.evicted
