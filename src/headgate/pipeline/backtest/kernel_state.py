"""The state of the compiled replay, as tuples of numbers.

In inlined functions tuples stay in registers. Arrays would be reference-counted and read in every
pass, at ten times the cost. Between two passes the tuples are in a block
(:mod:`headgate.pipeline.backtest.kernel_block`).
"""

from __future__ import annotations

from math import inf
from typing import Any, Final, NamedTuple

import numba

from headgate.flow.adaptive.drain import (
    DRAIN_FALL,
    DRAIN_RISE,
    DRAINED_BACKLOG_S,
    LARGEST_SAMPLE_DECAY,
    SAMPLE_TIMES_MAX,
    SETTLED_SAMPLES,
    TYPICAL_WEIGHT,
    UNNEEDED_CYCLES,
)
from headgate.flow.adaptive.natural_rate import FALL, PEAK_SHARE, PROBE, PROBE_PEAKS_MAX, RISE
from headgate.flow.adaptive.pressure import CLEAR_CYCLES
from headgate.flow.adaptive.topic_limits import CHANGE_MIN
from headgate.flow.quota.backlog_quota import BREACH_S_MAX, EVICTION_PERCENT, RELEASE_PERCENT
from headgate.pipeline.backtest.fluid import CHECK_S

inlined: Any = numba.njit(
    error_model="numpy", forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True
)
"""Compiles a function that is inlined into its callers. Arithmetic is Python's, but a division by
zero is infinite."""

EXCEPTION: Final = 2.0
EVICTION: Final = 3.0
NO_QUOTA: Final = -1.0
"""Codes of :mod:`headgate.pipeline.backtest.load`, as constants for the compiler."""
AS_RECORDED: Final = -1.0
NS: Final = 1e9
MS: Final = 1e3


class PointRow(NamedTuple):
    """The policy of a grid point as numbers; by default recorded or off."""

    sets_limit: float = 0.0
    messages_per_s: float = inf
    bytes_per_s: float = inf
    size_policy: float = 0.0
    size_limit: float = 0.0
    time_policy: float = 0.0
    time_limit: float = 0.0
    parts_per_step: float = 1.0
    """Parts of a step, one for each evaluation of the controller; at least one."""
    steps_per_cycle: float = 1.0
    """Steps between two evaluations of the controller."""
    part_s: float = 0.0
    is_adaptive: float = 0.0
    observe_only: float = 0.0
    is_drain_law: float = 0.0
    """1 for the law ``drain``."""
    backlog_low: float = 0.0
    backlog_high: float = 0.0
    min_rate_factor: float = 0.0
    max_change_factor: float = 0.0
    drain_set_point: float = 0.0
    horizon_ns: float = 0.0
    cycle_ns: float = 0.0
    rate_numerator: float = 0.0
    """``rate_numerator / rate_denominator`` is one over the seconds of a cycle, both whole."""
    rate_denominator: float = 0.0
    peak_decay: float = 0.0
    """Factor of the peak after a sample of one cycle."""
    peak_decay_long: float = 0.0
    """The same after a longer sample."""
    # Constants of the laws, as arguments: numba's cache would not notice a change of a constant.
    rise: float = RISE
    fall: float = FALL
    peak_share: float = PEAK_SHARE
    probe: float = PROBE
    probe_peaks_max: float = PROBE_PEAKS_MAX
    clear_cycles: float = CLEAR_CYCLES
    change_min: float = CHANGE_MIN
    believed: float = SAMPLE_TIMES_MAX
    drain_rise: float = DRAIN_RISE
    drain_fall: float = DRAIN_FALL
    typical_weight: float = TYPICAL_WEIGHT
    settled_samples: float = SETTLED_SAMPLES
    seen_kept: float = LARGEST_SAMPLE_DECAY
    starved_s: float = DRAINED_BACKLOG_S
    calm_cycles: float = UNNEEDED_CYCLES
    breach_s_max: float = BREACH_S_MAX
    eviction_percent: float = EVICTION_PERCENT
    release_percent: float = RELEASE_PERCENT
    check_s: float = CHECK_S


POINT_COLUMNS: Final = len(PointRow._fields)


class EffectiveStep(NamedTuple):
    """A step of the load with the policy of a point applied."""

    arrivals: float
    capacity: float
    message_bytes: float
    set_limit: float
    adaptive_limit: float
    size_policy: float
    size_limit: float
    stop_limit: float
    """The size limit if it stops producers, else infinite."""
    time_policy: float
    time_limit: float
    evicted_unit: float
    """Bytes that a size quota evicts at once."""


class FlowState(NamedTuple):
    """The state of :class:`headgate.pipeline.backtest.fluid.FluidModel`."""

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


class AgeState(NamedTuple):
    """The age of the oldest byte, -1 without one. ``oldest_index`` is the interval in which it was
    stored, ``last_index`` the newest interval."""

    age_s: float
    is_held: bool
    now_s: float
    oldest_index: int
    last_index: int


class NaturalRateState(NamedTuple):
    """The state of :class:`headgate.flow.adaptive.natural_rate.NaturalRate`; marks count cycles."""

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


class DrainRateState(NamedTuple):
    """The state of :class:`headgate.flow.adaptive.drain.DrainRate`."""

    mark: float
    mark_bytes: float
    is_known: bool
    rate: float
    typical: float
    samples: float
    seen: float


class LimitState(NamedTuple):
    """The limits of both laws, as in :mod:`headgate.flow.adaptive.topic_limits`."""

    presses: bool
    messages: float
    bytes: float
    clear: float
    pressed: float
    drains: bool
    drain_bytes: float
    calm: float


class ControlState(NamedTuple):
    """The state of :class:`headgate.flow.adaptive.topic.TopicControl`."""

    cycles: float
    messages_seen: float
    is_present: bool
    messages: float
    bytes: float
    pressure: float
    approaches: bool
    activations: float


class ReplayProgress(NamedTuple):
    """How far a replay is, with its sums."""

    part_left_s: float
    span_s: float
    """Length of the current span of a part; ages are evaluated at its end."""
    left_s: float
    """Time left in the span."""
    part_published: float
    """Bytes published before this part."""
    step_published: float
    before_published: float
    """Bytes published in the step before."""
    messages: float
    quota_s: float
    moved: float


UNMARKED: Final = -1.0
NO_NATURAL_RATE: Final = NaturalRateState(
    UNMARKED, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, False, False, True, 0.0
)
NO_DRAIN_RATE: Final = DrainRateState(UNMARKED, 0.0, False, 0.0, 0.0, 0.0, 0.0)
NO_LIMITS: Final = LimitState(False, 0.0, 0.0, 0.0, 0.0, False, 0.0, 0.0)
NO_CONTROL: Final = ControlState(0.0, 0.0, False, 0.0, 0.0, 0.0, False, 0.0)
NO_AGE: Final = AgeState(-1.0, False, 0.0, 0, 1)
NO_PROGRESS: Final = ReplayProgress(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
