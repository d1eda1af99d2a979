"""The compiled replay of one topic under many policies at once.

``replay`` uses the broker's objects. This module uses tuples of numbers with the same operations in
the same order, so that every output is the same. A test compares the two over random loads and
policies: a change of a law also needs a change of ``kernel_law``. Points that evaluate at the same
instants share a block (:mod:`headgate.pipeline.backtest.kernel_block`).

numba's cache checks this file only. So the compiled code returns a fingerprint of all its sources,
and is compiled again if that differs from the present one.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any, Final

import numba
import numpy as np

from headgate.pipeline.backtest.kernel_block import LANES, WIDTH
from headgate.pipeline.backtest.kernel_lanes import (
    AGE,
    BLOCK_LENGTH,
    POINT,
    advance_lanes,
    begin_ages,
    begin_part,
    begin_replay,
    begin_span,
    begin_step,
    compiled_pass,
    end_part,
    end_step,
    record_ages,
    run_cycle,
    write_outcome,
)
from headgate.pipeline.backtest.kernel_state import (
    AS_RECORDED,
    NS,
    POINT_COLUMNS,
    AgeState,
    PointRow,
)
from headgate.pipeline.backtest.load import OUTCOME_COLUMNS, Load
from headgate.pipeline.kernels.array_types import Doubles

_SOURCES: Final = (
    "kernel.py",
    "kernel_state.py",
    "kernel_flow.py",
    "kernel_law.py",
    "kernel_block.py",
    "kernel_lanes.py",
)


def _fingerprint() -> int:
    """A checksum of the sources; 0 if they are not files, as in an archive, where numba has no
    cache."""
    try:
        texts = [Path(__file__).with_name(name).read_bytes() for name in _SOURCES]
    except OSError:
        return 0
    return zlib.crc32(b"".join(texts))


_FINGERPRINT: Final = _fingerprint()

_TIME_POLICY: Final = PointRow._fields.index("time_policy")
_PARTS_PER_STEP, _STEPS_PER_CYCLE, _PART_S, _ADAPTIVE, _CHECK_S = _SHARED = tuple(
    PointRow._fields.index(name)
    for name in ("parts_per_step", "steps_per_cycle", "part_s", "is_adaptive", "check_s")
)
"""Columns that are equal in all points of a block: the times of evaluations."""
_OLDEST, _LAST = AgeState._fields.index("oldest_index"), AgeState._fields.index("last_index")


def _cached(function: Any) -> Any:
    """Compile a function, and cache it for other processes if a folder is writable."""
    try:
        return numba.njit(cache=True, error_model="numpy")(function)
    except RuntimeError:
        return numba.njit(error_model="numpy")(function)


def replay_points(load: Load, points: Doubles) -> Doubles:
    """Replay one topic under every point, a row of
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
    """Replay all points; returns the fingerprint of the compiled sources."""
    count = points.shape[0]
    assigned, members = np.zeros(count, np.bool_), np.empty(LANES, np.intp)
    block, time_quotas = np.empty(BLOCK_LENGTH), (steps[:, 6] > 0.0).any()
    for first in range(count):
        if assigned[first]:
            continue
        own = _gather(points, first, time_quotas, assigned, members)
        for lane in range(LANES):
            for column in range(POINT_COLUMNS):
                block[POINT + column * LANES + lane] = points[members[lane], column]
        tracks = _tracks_age(points[first], time_quotas)
        wanted = _replay_block(own, steps, backlog, age_s, step_s, block, tracks)
        for lane in range(own):
            write_outcome(block, lane, wanted, outcomes[members[lane]])
    return _FINGERPRINT


@compiled_pass
def _tracks_age(point: Any, time_quotas: bool) -> bool:
    policy = point[_TIME_POLICY]
    return bool(time_quotas if policy == AS_RECORDED else policy > 0.0)


@compiled_pass
def _gather(points: Any, first: int, time_quotas: bool, assigned: Any, members: Any) -> int:
    """Fill a block with points that have the timing of the first one, and the remaining lanes with
    copies of it; returns the number of points."""
    count, tracks = 0, _tracks_age(points[first], time_quotas)
    for number in range(first, points.shape[0]):
        if assigned[number] or _tracks_age(points[number], time_quotas) != tracks:
            continue
        is_shared = True
        for column in _SHARED:
            is_shared = is_shared and points[number, column] == points[first, column]
        if is_shared:
            assigned[number], members[count] = True, number
            count += 1
            if count == LANES:
                break
    # A loop instead of a slice: compiling an assignment to a slice takes a second.
    for lane in range(count, LANES):
        members[lane] = first
    return count


@compiled_pass
def _replay_block(
    own: int, steps: Any, backlog: float, age_s: float, step_s: float, block: Any, tracks: bool
) -> float:
    """Replay one topic under the points of a block; returns the bytes that producers wanted."""
    groups = (own + WIDTH - 1) // WIDTH
    parts_per_step = int(block[_PARTS_PER_STEP * LANES])
    steps_per_cycle = int(block[_STEPS_PER_CYCLE * LANES])
    is_adaptive, wanted = block[_ADAPTIVE * LANES] > 0.0, 0.0
    # Ages are evaluated at most once per second, and at the end of a part.
    evaluations = parts_per_step * int(
        np.ceil(block[_PART_S * LANES] / block[_CHECK_S * LANES]) + 1
    )
    room = 2 + 4 * evaluations
    at_s, stored = np.empty((WIDTH * groups, room)), np.empty((WIDTH * groups, room))
    for lane in range(WIDTH * groups):
        at_s[lane, 0], at_s[lane, 1], stored[lane, 0], stored[lane, 1] = -age_s, 0.0, 0.0, backlog
    begin_replay(groups, block, backlog)
    if tracks:
        begin_ages(groups, block, backlog, at_s, stored)
    for number in range(steps.shape[0]):
        begin_step(
            groups, block, steps[number, 0], steps[number, 1], steps[number, 2], steps[number, 3],
            steps[number, 4], steps[number, 5], steps[number, 6], steps[number, 7],
            steps[number, 8],
        )  # fmt: skip
        if tracks:
            at_s, stored = _with_room(evaluations, WIDTH * groups, block, at_s, stored)
        for _ in range(parts_per_step):
            begin_part(groups, block)
            while begin_span(groups, block):
                while advance_lanes(groups, block):
                    pass
                if not tracks:
                    break
                record_ages(groups, block, backlog, at_s, stored)
            end_part(groups, block)
            if is_adaptive and (number + 1) % steps_per_cycle == 0:
                run_cycle(groups, block, backlog)
        end_step(groups, block, number == 0)
        wanted += steps[number, 0] * step_s
    return wanted


@compiled_pass
def _with_room(evaluations: int, lanes: int, block: Any, at_s: Any, stored: Any) -> Any:
    """The recorded ages, from the oldest byte on, with room for ``evaluations`` more."""
    room, oldest, last = at_s.shape[1], AGE + _OLDEST * LANES, AGE + _LAST * LANES
    needed, used = 0, 0
    for lane in range(lanes):
        used = max(used, int(block[last + lane]) + 1)
        needed = max(needed, int(block[last + lane] - block[oldest + lane]) + 1 + evaluations)
    if used + evaluations <= room:
        return at_s, stored
    to_at_s, to_stored = at_s, stored
    if 2 * needed > room:
        to_at_s, to_stored = np.empty((lanes, 2 * needed)), np.empty((lanes, 2 * needed))
    for lane in range(lanes):
        before = int(block[oldest + lane])
        count_kept = int(block[last + lane] - block[oldest + lane]) + 1
        for place in range(count_kept):
            to_at_s[lane, place] = at_s[lane, before + place]
            to_stored[lane, place] = stored[lane, before + place]
        block[oldest + lane], block[last + lane] = 0.0, count_kept - 1.0
    return to_at_s, to_stored
