"""The passes of the compiled replay over the lanes of a block.

The loops have no branch, except in the search for ages.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numba
import numpy as np

from headgate.pipeline.backtest.kernel_block import WIDTH, loaded, rows, store, where
from headgate.pipeline.backtest.kernel_flow import aged, looked_at, note_age, released, to_event
from headgate.pipeline.backtest.kernel_law import counted, cycle_of
from headgate.pipeline.backtest.kernel_state import (
    AS_RECORDED,
    EVICTION,
    MS,
    NO_AGE,
    NO_CONTROL,
    NO_DRAIN,
    NO_LIMITS,
    NO_NATURAL,
    START,
    Acting,
    Age,
    Control,
    Course,
    Drain,
    Flow,
    Limits,
    Natural,
    Point,
    inlined,
)

POINT, ACTING, FLOW, AGE, NATURAL, DRAIN, LIMITS, CONTROL, COURSE, BLOCK = rows(
    (Point, Acting, Flow, Age, Natural, Drain, Limits, Control, Course)
)
"""The begin of each tuple in a block, and the length of the block."""

turn: Any = numba.njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""Compiles a pass."""


@inlined
def _acting(
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
    return Acting(
        arrivals, capacity, message, min(of_bytes, of_messages * message), inf, size_policy,
        size_limit, where(stops, size_limit, inf), time_policy, time_limit, max(1.0, unit),
    )  # fmt: skip


@inlined
def _slowed_by(step: Any, point: Any, control: Any) -> Any:
    """The step with the controller's limit."""
    of_messages = where(control.messages > 0.0, control.messages * step.message, inf)
    slows = control.is_present & (point.observes == 0.0)
    limit = where(slows, min(control.bytes, of_messages), inf)
    return Acting(
        step.arrivals, step.capacity, step.message, step.set_limit, limit, step.size_policy,
        step.size_limit, step.stop_limit, step.time_policy, step.time_limit, step.evicted_unit,
    )  # fmt: skip


@turn
def begin(groups: int, block: Any, backlog: float) -> None:
    """Initialize all points."""
    flow = Flow(backlog, 0.0, 0.0, False, False, 0.0, 0.0, 0.0, 0.0, 0.0, backlog, 0.0)
    for lane in range(WIDTH * groups):
        store(block, FLOW, lane, flow)
        store(block, AGE, lane, NO_AGE)
        store(block, NATURAL, lane, NO_NATURAL)
        store(block, DRAIN, lane, NO_DRAIN)
        store(block, LIMITS, lane, NO_LIMITS)
        store(block, CONTROL, lane, NO_CONTROL)
        store(block, COURSE, lane, START)


@turn
def begin_step(
    groups: int, block: Any, arrivals: float, message: float, capacity: float, size_limit: float,
    size_policy: float, time_limit: float, time_policy: float, of_messages: float, of_bytes: float,
) -> None:  # fmt: skip
    """Begin a step: apply the policy of each point to the recorded values."""
    for lane in range(WIDTH * groups):
        step = _acting(
            arrivals, message, capacity, size_limit, size_policy, time_limit, time_policy,
            of_messages, of_bytes, loaded(Point, block, POINT, lane),
        )  # fmt: skip
        store(block, ACTING, lane, step)
        store(block, AGE, lane, released(loaded(Age, block, AGE, lane), step))
        flow, course = loaded(Flow, block, FLOW, lane), loaded(Course, block, COURSE, lane)
        course = Course(
            0.0, 0.0, 0.0, 0.0, flow.published, course.before_published, course.messages,
            course.quota_s, course.moved,
        )  # fmt: skip
        store(block, COURSE, lane, course)


@turn
def begin_part(groups: int, block: Any) -> None:
    """Begin a part: the time between two evaluations of the controller, or a step."""
    for lane in range(WIDTH * groups):
        point, flow = loaded(Point, block, POINT, lane), loaded(Flow, block, FLOW, lane)
        control, course = loaded(Control, block, CONTROL, lane), loaded(Course, block, COURSE, lane)
        step = _slowed_by(loaded(Acting, block, ACTING, lane), point, control)
        store(block, ACTING, lane, step)
        course = Course(
            point.part_s, 0.0, 0.0, flow.published, course.step_published,
            course.before_published, course.messages, course.quota_s, course.moved,
        )  # fmt: skip
        store(block, COURSE, lane, course)


@turn
def begin_span(groups: int, block: Any) -> int:
    """Begin a span: up to the next evaluation of ages, or the end of the part; returns the number
    of lanes with time left."""
    count = 0
    for lane in range(WIDTH * groups):
        point, step = loaded(Point, block, POINT, lane), loaded(Acting, block, ACTING, lane)
        age, course = loaded(Age, block, AGE, lane), loaded(Course, block, COURSE, lane)
        room_s = step.time_limit / MS - max(age.age_s, 0.0)
        span = where(age.is_held, point.check_s, max(point.check_s, room_s))
        span = where(step.time_policy > 0.0, min(course.part_left_s, span), course.part_left_s)
        counts = (step.size_policy > 0.0) | (step.time_policy > 0.0)
        course = Course(
            course.part_left_s - span, span, span, course.part_published, course.step_published,
            course.before_published, course.messages, course.quota_s + where(counts, span, 0.0),
            course.moved,
        )  # fmt: skip
        store(block, COURSE, lane, course)
        count += where(span > 0.0, 1, 0)
    return count


@turn
def go_on(groups: int, block: Any) -> int:
    """Advance each point to its next event in the span; returns the number with time left."""
    count = 0
    for lane in range(WIDTH * groups):
        step, flow = loaded(Acting, block, ACTING, lane), loaded(Flow, block, FLOW, lane)
        age, course = loaded(Age, block, AGE, lane), loaded(Course, block, COURSE, lane)
        left_s, flow = to_event(course.left_s, step, flow, age.is_held)
        course = Course(
            course.part_left_s, course.span_s, left_s, course.part_published,
            course.step_published, course.before_published, course.messages, course.quota_s,
            course.moved,
        )  # fmt: skip
        store(block, FLOW, lane, flow)
        store(block, COURSE, lane, course)
        count += where(left_s > 0.0, 1, 0)
    return count


@turn
def begin_ages(groups: int, block: Any, backlog: float, at_s: Any, stored: Any) -> None:
    """Set the age of the first backlog."""
    for lane in range(WIDTH * groups):
        age, flow = loaded(Age, block, AGE, lane), loaded(Flow, block, FLOW, lane)
        store(block, AGE, lane, aged(age, flow, backlog, at_s[lane], stored[lane]))


@turn
def note_ages(groups: int, block: Any, backlog: float, at_s: Any, stored: Any) -> None:
    """Note the bytes stored by the end of a span, and apply the time quotas."""
    for lane in range(WIDTH * groups):
        course = loaded(Course, block, COURSE, lane)
        if course.span_s <= 0.0:
            continue
        flow, age = note_age(
            course.span_s, loaded(Point, block, POINT, lane), loaded(Flow, block, FLOW, lane),
            loaded(Age, block, AGE, lane), loaded(Acting, block, ACTING, lane), backlog,
            at_s[lane], stored[lane],
        )  # fmt: skip
        store(block, FLOW, lane, flow)
        store(block, AGE, lane, age)


@turn
def end_part(groups: int, block: Any) -> None:
    """End a part: count its messages."""
    for lane in range(WIDTH * groups):
        flow, course = loaded(Flow, block, FLOW, lane), loaded(Course, block, COURSE, lane)
        step = loaded(Acting, block, ACTING, lane)
        messages = course.messages + (flow.published - course.part_published) / step.message
        course = Course(
            0.0, 0.0, 0.0, 0.0, course.step_published, course.before_published, messages,
            course.quota_s, course.moved,
        )  # fmt: skip
        store(block, COURSE, lane, course)


@turn
def look(groups: int, block: Any, backlog: float) -> None:
    """Run a cycle of the controller."""
    for lane in range(WIDTH * groups):
        point, step = loaded(Point, block, POINT, lane), loaded(Acting, block, ACTING, lane)
        flow, age = loaded(Flow, block, FLOW, lane), loaded(Age, block, AGE, lane)
        messages = np.floor(loaded(Course, block, COURSE, lane).messages)
        natural, drain = loaded(Natural, block, NATURAL, lane), loaded(Drain, block, DRAIN, lane)
        limits = loaded(Limits, block, LIMITS, lane)
        control = counted(loaded(Control, block, CONTROL, lane))
        looks = (messages != control.seen) | control.is_present
        looks = looks | (control.pressure > 0.0) | control.approaches
        new_natural, new_drain, new_limits, new_control = cycle_of(
            point, step, flow, age.age_s, backlog, messages, natural, drain, limits, control, looks
        )
        store(block, NATURAL, lane, new_natural)
        store(block, DRAIN, lane, new_drain)
        store(block, LIMITS, lane, new_limits)
        store(block, CONTROL, lane, new_control)
        store(block, FLOW, lane, where(looks, looked_at(flow), flow))


@turn
def end_step(groups: int, block: Any, is_first: bool) -> None:
    """End a step: note the change of the published bytes."""
    for lane in range(WIDTH * groups):
        flow, course = loaded(Flow, block, FLOW, lane), loaded(Course, block, COURSE, lane)
        published = flow.published - course.step_published
        moved = where(is_first, 0.0, abs(published - course.before_published))
        course = Course(
            0.0, 0.0, 0.0, 0.0, 0.0, published, course.messages, course.quota_s,
            course.moved + moved,
        )  # fmt: skip
        store(block, COURSE, lane, course)


@inlined
def write_outcome(block: Any, lane: int, wanted: float, outcome: Any) -> None:
    """Write the columns of :data:`headgate.pipeline.backtest.load.OUTCOME_COLUMNS` of one point."""
    flow, control = loaded(Flow, block, FLOW, lane), loaded(Control, block, CONTROL, lane)
    course = loaded(Course, block, COURSE, lane)
    outcome[0], outcome[1] = flow.over_s, course.quota_s
    outcome[2] = 1.0 - flow.wasted / flow.offered if flow.offered > 0.0 else 1.0
    outcome[3], outcome[4], outcome[5] = wanted, flow.published, flow.parked_s
    outcome[6], outcome[7], outcome[8] = flow.parked_max, flow.backlog_max, control.activations
    outcome[9] = course.moved / flow.published if flow.published > 0.0 else 0.0
    outcome[10] = flow.evicted
