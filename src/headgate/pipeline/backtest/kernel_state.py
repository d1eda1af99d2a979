"""What the compiled replay hands from function to function: tuples of numbers.

Inlined, they stay in registers, where arrays would be counted and read at every turn, at ten times
the cost. Between two turns they lie in a block (:mod:`headgate.pipeline.backtest.kernel_block`).
"""

from __future__ import annotations

from math import inf
from typing import Any, Final, NamedTuple

import numba

from headgate.flow.adaptive.drain import (
    BELIEVED,
    CALM_CYCLES,
    DRAIN_FALL,
    DRAIN_RISE,
    SEEN_KEPT,
    SETTLED_SAMPLES,
    STARVED_S,
    TYPICAL_WEIGHT,
)
from headgate.flow.adaptive.natural_rate import FALL, PEAK_SHARE, PROBE, PROBE_PEAKS_MAX, RISE
from headgate.flow.adaptive.pressure import CLEAR_CYCLES
from headgate.flow.adaptive.topic_limits import CHANGE_MIN
from headgate.flow.quota.backlog_quota import BREACH_S_MAX, EVICTION_PERCENT, RELEASE_PERCENT
from headgate.pipeline.backtest.fluid import CHECK_S

inlined: Any = numba.njit(
    error_model="numpy", forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True
)
"""Compiles a function that becomes part of its callers; Python's own rules of arithmetic, but that
a division by zero is infinite."""

EXCEPTION: Final = 2.0
EVICTION: Final = 3.0
NO_QUOTA: Final = -1.0
"""Codes of :mod:`headgate.pipeline.backtest.load`, as numbers that a compiler sees."""
AS_RECORDED: Final = -1.0
NS: Final = 1e9
MS: Final = 1e3


class Point(NamedTuple):
    """A policy as numbers; what is not said is recorded or off."""

    sets_limit: float = 0.0
    messages_per_s: float = inf
    bytes_per_s: float = inf
    size_policy: float = 0.0
    size_limit: float = 0.0
    time_policy: float = 0.0
    time_limit: float = 0.0
    parts: float = 1.0
    """Looks of the controller in a step; without one the step is one part."""
    every: float = 1.0
    """Steps to a look."""
    part_s: float = 0.0
    adaptive: float = 0.0
    observes: float = 0.0
    drains: float = 0.0
    """1: law drain."""
    low: float = 0.0
    high: float = 0.0
    floor: float = 0.0
    step: float = 0.0
    set_point: float = 0.0
    horizon_ns: float = 0.0
    cycle_ns: float = 0.0
    up: float = 0.0
    """``up / down`` is one over the seconds of a cycle, both whole."""
    down: float = 0.0
    kept: float = 0.0
    """Of the maximum in a sample of one cycle."""
    kept_long: float = 0.0
    """In a longer one."""
    # Constants of the laws. As arguments, for the cache would not notice that one of them changed.
    rise: float = RISE
    fall: float = FALL
    peak_share: float = PEAK_SHARE
    probe: float = PROBE
    probe_peaks_max: float = PROBE_PEAKS_MAX
    clear_cycles: float = CLEAR_CYCLES
    change_min: float = CHANGE_MIN
    believed: float = BELIEVED
    drain_rise: float = DRAIN_RISE
    drain_fall: float = DRAIN_FALL
    typical_weight: float = TYPICAL_WEIGHT
    settled_samples: float = SETTLED_SAMPLES
    seen_kept: float = SEEN_KEPT
    starved_s: float = STARVED_S
    calm_cycles: float = CALM_CYCLES
    breach_s_max: float = BREACH_S_MAX
    eviction_percent: float = EVICTION_PERCENT
    release_percent: float = RELEASE_PERCENT
    check_s: float = CHECK_S


POINT_COLUMNS: Final = len(Point._fields)


class Acting(NamedTuple):
    """A step of the load, and what the point makes of it."""

    arrivals: float
    capacity: float
    message: float
    set_limit: float
    adaptive_limit: float
    size_policy: float
    size_limit: float
    stop_limit: float
    """The size limit where it stops producers, else infinite."""
    time_policy: float
    time_limit: float
    evicted_unit: float
    """What a size quota evicts at once."""


class Flow(NamedTuple):
    """As :class:`headgate.pipeline.backtest.fluid.Fluid`."""

    backlog: float
    parked: float
    published: float
    was_parked: bool
    was_slowed: bool
    over_s: float
    offered: float
    wasted: float
    parked_s: float
    parked_max: float
    backlog_max: float
    evicted: float


class Age(NamedTuple):
    """Of the oldest byte; -1 without one, and where it was stored."""

    age_s: float
    is_held: bool
    now_s: float
    oldest: int
    last: int


class Natural(NamedTuple):
    """As :class:`headgate.flow.adaptive.natural_rate.NaturalRate`; marks count cycles."""

    mark: float
    mark_messages: float
    mark_bytes: float
    messages: float
    bytes: float
    peak_messages: float
    peak_bytes: float
    waited: bool
    settling: bool
    stands_in: bool
    published: float


class Drain(NamedTuple):
    """As :class:`headgate.flow.adaptive.drain.DrainRate`."""

    mark: float
    mark_bytes: float
    is_known: bool
    rate: float
    typical: float
    samples: float
    seen: float


class Limits(NamedTuple):
    """Of both laws, as :mod:`headgate.flow.adaptive.topic_limits` has them."""

    presses: bool
    messages: float
    bytes: float
    clear: float
    pressed: float
    drains: bool
    drain_bytes: float
    calm: float


class Control(NamedTuple):
    """As :class:`headgate.flow.adaptive.topic.TopicControl`."""

    cycles: float
    seen: float
    is_present: bool
    messages: float
    bytes: float
    pressure: float
    approaches: bool
    activations: float


class Course(NamedTuple):
    """Where a replay is, and its sums."""

    part_left_s: float
    span_s: float
    """Of a part: at its end ages are looked at."""
    left_s: float
    """Of the span."""
    part_published: float
    """What was published before this part."""
    step_published: float
    before_published: float
    """In the step before."""
    messages: float
    quota_s: float
    moved: float


UNMARKED: Final = -1.0
NO_NATURAL: Final = Natural(UNMARKED, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, False, False, True, 0.0)
NO_DRAIN: Final = Drain(UNMARKED, 0.0, False, 0.0, 0.0, 0.0, 0.0)
NO_LIMITS: Final = Limits(False, 0.0, 0.0, 0.0, 0.0, False, 0.0, 0.0)
NO_CONTROL: Final = Control(0.0, 0.0, False, 0.0, 0.0, 0.0, False, 0.0)
NO_AGE: Final = Age(-1.0, False, 0.0, 0, 1)
START: Final = Course(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
