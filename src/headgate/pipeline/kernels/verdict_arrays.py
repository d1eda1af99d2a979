"""The verdict law of ``headgate.flow.account.verdict``, vectorised over many windows.

That module defines and explains the law. This one has the same names in the same order, so the two
can be read side by side, and a test compares their results. A verdict is represented by its *code*,
the index in :data:`VERDICTS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from headgate.base.units import NS_PER_S
from headgate.flow.account.account import CELL_COUNT, LABELS
from headgate.flow.account.verdict import (
    BLAME,
    CLOSE_SHARE,
    GROWTH_NS_MAX,
    GROWTH_SHARE_MIN,
    IN_FLIGHT_NS,
    INFERRED_CONFIDENCE,
    THROTTLED,
    YOUNG_NS,
    Verdict,
)
from headgate.flow.limits.rate_limit import Dimension, Level
from headgate.pipeline.kernels.array_types import Codes, Doubles, Flags, Longs

VERDICTS: Final = tuple(Verdict)
"""By code."""
NO_CODE: Final = -1
"""Code that stands for None: no verdict, no dimension, or an unknown answer."""
LEVEL_CODES: Final = np.array(
    [THROTTLED.index(verdict) if verdict in THROTTLED else NO_CODE for verdict in VERDICTS], np.int8
)
"""The level whose limiter a verdict blames, by code; :data:`NO_CODE` for the others."""

_CODE: Final = {verdict: code for code, verdict in enumerate(VERDICTS)}
_NONE: Final = _CODE[Verdict.NONE]
_CONSUMER: Final = _CODE[Verdict.CONSUMER]
_CELLS_OF: Final = tuple(
    tuple(cell for cell in range(CELL_COUNT) if BLAME[cell] is verdict) for verdict in VERDICTS
)
_HELD_CELLS: Final = tuple(
    tuple(
        tuple(
            cell
            for cell, labels in enumerate(LABELS)
            if labels.level is level and labels.dimension == dimension.name.lower()
        )
        for dimension in Dimension
    )
    for level in Level
)
"""Cells in which the limiter of a level throttles, by dimension."""


@dataclass(frozen=True, slots=True)
class EvidenceArrays:
    """The fields of ``headgate.flow.account.verdict.Evidence`` for n windows.

    ``cells_ns`` is [CELL_COUNT, n], ``limits_per_s`` [Level, Dimension, n]. NaN stands for no
    limit, and for a rate that was not demonstrated. ``votes``, [VERDICTS, n], is the time of the
    sub-windows that blame each cause most (:func:`winners`); None if windows have none.
    """

    window_ns: Longs
    cells_ns: Longs
    backlog_start: Longs
    backlog_end: Longs
    oldest_age_ns_max: Longs
    appended: Longs
    delivered: Longs
    acked: Longs
    unacked_start: Longs
    unacked_end: Longs
    evicted: Longs
    delivered_bytes: Longs
    limits_per_s: Doubles
    demonstrated_ack_per_s: Doubles
    completeness: Doubles
    is_inferred: Flags
    votes: Longs | None = None


@dataclass(frozen=True, slots=True)
class JudgementArrays:
    """The fields of ``headgate.flow.account.verdict.Judgement`` for n windows.

    ``verdict`` and ``second`` are codes, ``shares`` is [VERDICTS, n], ``dimension`` a
    :class:`Dimension` and ``would_have_grown`` 0 or 1; :data:`NO_CODE` stands for None.
    """

    verdict: Codes
    second: Codes
    bystander: Flags
    shares: Doubles
    dimension: Codes
    confidence: Doubles
    would_have_grown: Codes
    growth: Longs


def blame_shares(cells_ns: Longs) -> Doubles:
    """The share of each cause in the time, [VERDICTS, n], from cells [CELL_COUNT, n]."""
    blamed = np.stack([cells_ns[list(cells)].sum(axis=0) for cells in _CELLS_OF])
    total = blamed.sum(axis=0)
    shares = blamed / np.maximum(total, 1)
    shares[_NONE, total == 0] = 1.0
    return shares


def winners(shares: Doubles) -> Codes:
    """The cause with the largest share; NONE only if no other has any."""
    return _two_largest(shares)[0]


def judge_arrays(evidence: EvidenceArrays) -> JudgementArrays:
    """Apply the law to every window, as ``headgate.flow.account.verdict.judge`` does to one."""
    shares = blame_shares(evidence.cells_ns)
    growth = evidence.backlog_end - evidence.backlog_start
    certainty = np.where(evidence.is_inferred, INFERRED_CONFIDENCE, 1.0)
    healthy = _is_healthy(evidence, growth)
    first, next_best = _two_largest(shares)
    next_share = _pick(shares, next_best)
    margin = np.where(first == _NONE, 0.0, _pick(shares, first) - next_share)
    second = np.where((next_share > 0) & (margin <= CLOSE_SHARE), next_best, NO_CODE)
    throttled = LEVEL_CODES[first] != NO_CODE
    limiter = np.where(throttled, first, NO_CODE)
    held_ns = _held_ns(evidence.cells_ns)
    bystander = throttled & _stands_by(evidence, first, held_ns)
    also = (second != NO_CODE) & (LEVEL_CODES[second] != NO_CODE) & (first != _NONE)
    limiter = np.where(also & ~throttled, second, limiter)
    second = np.where(bystander, first, second)
    first = np.where(bystander, _CONSUMER, first)
    margin = np.where(bystander, _growth_margin(evidence), margin)
    confidence = margin * evidence.completeness * _agreement(evidence, first, second)
    young = np.clip(1.0 - evidence.oldest_age_ns_max / YOUNG_NS, 0.0, 1.0)
    grown = np.where(LEVEL_CODES[first] != NO_CODE, _would_have_grown(evidence), NO_CODE)
    dimension = np.where(limiter != NO_CODE, _dimension(held_ns, limiter), NO_CODE)
    return JudgementArrays(
        verdict=np.where(healthy, _NONE, first).astype(np.int8),
        second=np.where(healthy, NO_CODE, second).astype(np.int8),
        bystander=bystander & ~healthy,
        shares=shares,
        dimension=np.where(healthy, NO_CODE, dimension).astype(np.int8),
        confidence=np.where(healthy, young * evidence.completeness, confidence) * certainty,
        would_have_grown=np.where(healthy, NO_CODE, grown).astype(np.int8),
        growth=growth,
    )


def _pick(values: Any, codes: Any) -> Any:
    """By window, the value at its code; arbitrary if that is :data:`NO_CODE`."""
    return values[codes, np.arange(values.shape[-1])]


def _is_healthy(evidence: EvidenceArrays, growth: Longs) -> Flags:
    oldest = evidence.oldest_age_ns_max
    in_flight = evidence.appended.astype(np.float64) * IN_FLIGHT_NS / evidence.window_ns
    steady = (evidence.window_ns > GROWTH_NS_MAX) | (growth <= np.maximum(1.0, in_flight))
    young = (oldest < YOUNG_NS) & steady
    young |= oldest <= min(YOUNG_NS, IN_FLIGHT_NS)
    return np.asarray(young & (evidence.evicted == 0))


def _two_largest(shares: Doubles) -> tuple[Codes, Codes]:
    blamed = shares[_NONE + 1 :].copy()
    first = np.argmax(blamed, axis=0)
    windows = np.arange(blamed.shape[1])
    none = blamed[first, windows] == 0
    blamed[first, windows] = -1.0
    next_best = np.argmax(blamed, axis=0)
    # The first of equal shares wins; without any blame that is the first cause.
    return (
        np.where(none, _NONE, first + 1).astype(np.int8),
        np.where(none, _NONE + 1, next_best + 1).astype(np.int8),
    )


def _held_ns(cells_ns: Longs) -> Longs:
    """Time that each limiter throttled, by dimension, [Level, Dimension, n]."""
    return np.stack(
        [[cells_ns[list(cells)].sum(axis=0) for cells in level] for level in _HELD_CELLS]
    )


def _stands_by(evidence: EvidenceArrays, limiter: Codes, held_ns: Longs) -> Flags:
    grown = _kept(evidence)
    in_flight = evidence.delivered.astype(np.float64) * IN_FLIGHT_NS / evidence.window_ns
    floor = np.maximum(np.maximum(1.0, in_flight), GROWTH_SHARE_MIN * evidence.delivered)
    limit_per_s = _limit_messages_per_s(evidence, limiter, held_ns)
    slow = np.isnan(limit_per_s) | (_acked_per_s(evidence) <= limit_per_s)
    return np.asarray((grown > floor) & slow)


def _kept(evidence: EvidenceArrays) -> Longs:
    grown = evidence.unacked_end - evidence.unacked_start
    gone = evidence.delivered - evidence.acked - grown
    return np.asarray(grown + np.maximum(0, np.minimum(evidence.evicted, gone)), dtype=np.int64)


def _acked_per_s(evidence: EvidenceArrays) -> Doubles:
    return evidence.acked.astype(np.float64) * NS_PER_S / evidence.window_ns


def _limit_messages_per_s(evidence: EvidenceArrays, limiter: Codes, held_ns: Longs) -> Doubles:
    level = np.maximum(LEVEL_CODES[limiter], 0)
    windows = np.arange(len(level))
    messages_per_s = evidence.limits_per_s[level, Dimension.MESSAGES, windows]
    bytes_per_s = evidence.limits_per_s[level, Dimension.BYTES, windows]
    has_size = evidence.delivered_bytes > 0
    size = np.where(has_size, evidence.delivered_bytes, 1)
    by_size = np.where(has_size, bytes_per_s * evidence.delivered / size, np.nan)
    counts_messages = _dimension(held_ns, limiter) == Dimension.MESSAGES
    return np.where(counts_messages, messages_per_s, by_size)


def _growth_margin(evidence: EvidenceArrays) -> Doubles:
    there = evidence.delivered != 0
    share = _kept(evidence) / np.where(there, evidence.delivered, 1)
    return np.where(there, np.minimum(1.0, share), 0.0)


def _dimension(held_ns: Longs, limiter: Any) -> Codes:
    level = np.maximum(LEVEL_CODES[limiter], 0)
    windows = np.arange(len(level))
    by_bytes = held_ns[level, Dimension.BYTES, windows]
    more = by_bytes > held_ns[level, Dimension.MESSAGES, windows]
    return np.where(more, Dimension.BYTES, Dimension.MESSAGES).astype(np.int8)


def _would_have_grown(evidence: EvidenceArrays) -> Codes:
    demonstrated = evidence.demonstrated_ack_per_s
    appended_per_s = evidence.appended.astype(np.float64) * NS_PER_S / evidence.window_ns
    grown = appended_per_s > np.fmax(demonstrated, _acked_per_s(evidence))
    return np.where(np.isnan(demonstrated), NO_CODE, grown).astype(np.int8)


def _agreement(evidence: EvidenceArrays, first: Any, second: Any) -> Any:
    if evidence.votes is None:
        return 1.0
    votes = evidence.votes
    cast = votes[_NONE + 1 :].sum(axis=0)
    agreeing = np.where(first == _NONE, 0, _pick(votes, first))
    agreeing += np.where((second == NO_CODE) | (second == first), 0, _pick(votes, second))
    return np.where(cast > 0, agreeing / np.maximum(cast, 1), 1.0)
