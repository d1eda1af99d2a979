"""Figures of backlog episodes, or of their segments, with the causes and the sentence that follow.

A segment is summed from minutes, and an episode from segments. What follows from the sums is the
same for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from headgate.base.units import NS_PER_S, NS_PER_US
from headgate.flow.account.verdict import INFERRED, MEASURED, Verdict
from headgate.flow.sentences.backlog import STUCK_SHARE_MIN
from headgate.flow.sentences.episode import Ending, EpisodeFacts, episode_sentence
from headgate.pipeline.kernels.array_types import Doubles, Flags, Longs
from headgate.pipeline.kernels.column_values import quotients, texts_by_code
from headgate.pipeline.kernels.sentences import evicted_by_text, expired_by_text, texts_of_lost
from headgate.pipeline.tables.attribution import BLAMES
from headgate.pipeline.tables.episodes import BLAME_COLUMNS, STUCK_COLUMN
from headgate.pipeline.time_span import minute_text

SECOND_SHARE_MIN: Final = 0.05
"""Least share of all blame with which a second cause is named."""

NO_CAUSE: Final = BLAMES.index(Verdict.NONE.value)
"""The place of NONE in ``BLAMES``."""
_BROKER: Final = BLAMES.index(Verdict.BROKER.value)
_VERDICTS: Final = tuple(Verdict(blame) for blame in BLAMES)


def group_begins(parted: Flags) -> Longs:
    """Where groups of rows begin; ``parted``: which rows after the first begin another one."""
    return np.flatnonzero(np.concatenate(([True], parted)))


def first_of_largest(values: Longs, begins: Longs) -> Longs:
    """By group: the place of the largest value, of equal ones the first."""
    sizes = np.diff(np.append(begins, len(values)))
    largest = np.repeat(np.maximum.reduceat(values, begins), sizes)
    places = np.where(values == largest, np.arange(len(values)), len(values))
    return np.asarray(np.minimum.reduceat(places, begins), dtype=np.int64)


def last_positive(values: Longs, begins: Longs) -> pa.Array:
    """By group: the place of its last value above 0; null without one."""
    places = np.where(values > 0, np.arange(len(values)), -1)
    last = np.maximum.reduceat(places, begins)
    return pa.array(last, pa.int64(), mask=last < 0)


@dataclass(frozen=True, slots=True)
class EpisodeFigures:
    """Figures of n episodes or segments."""

    start_ns: Longs
    end_ns: Longs
    before: Flags
    """Whether the episode began earlier."""
    minutes: Longs
    """Minutes with a backlog."""
    peak: Longs
    """Largest backlog, in messages."""
    peak_minute: pa.ChunkedArray
    """Start of the first minute with that backlog."""
    growth: Longs
    oldest_age_ns_max: Longs
    blame_ns: Longs
    """Time by cause, [BLAMES, n]."""
    stuck_ns: Longs
    """Time in which the broker's dispatcher was stuck."""
    covered_ns: Doubles
    """Time that was sampled."""
    evicted: Longs
    """Messages that quotas evicted."""
    evicted_by: pa.Table
    """The quota that evicted last, with ``EVICTED_BY``; null without one."""
    expired: Longs
    """Messages that expired."""
    expired_by: pa.Table
    """The TTL that expired some last, with ``EXPIRED_BY``; null without one."""
    is_inferred: Flags
    """Whether a minute is inferred from counters."""

    def columns(self, endings: Sequence[Ending]) -> dict[str, Any]:
        """The columns of a row that do not depend on its table."""
        causes = self._causes()
        completeness = np.minimum(1.0, self.covered_ns / (self.end_ns - self.start_ns))
        return {
            "continues_before": pa.array(self.before),
            "is_open": pa.array([ending is Ending.OPEN for ending in endings]),
            "ending": pa.array([ending.value for ending in endings], pa.string()),
            "minutes": pa.array(self.minutes),
            "peak_backlog_messages": pa.array(self.peak),
            "peak_minute": self.peak_minute,
            "growth_messages": pa.array(self.growth),
            "oldest_age_max_ns": pa.array(self.oldest_age_ns_max),
            **dict(zip(BLAME_COLUMNS, map(pa.array, self.blame_ns), strict=True)),
            STUCK_COLUMN: pa.array(self.stuck_ns),
            "evicted": pa.array(self.evicted),
            **{name: self.evicted_by.column(name) for name in self.evicted_by.column_names},
            "expired": pa.array(self.expired),
            **{name: self.expired_by.column(name) for name in self.expired_by.column_names},
            "cause": texts_by_code(BLAMES, causes[0]),
            "second_cause": texts_by_code(BLAMES, causes[1]),
            "completeness": pa.array(completeness),
            "evidence": texts_by_code((MEASURED, INFERRED), self.is_inferred.astype(np.int64)),
            "sentence": pa.array(self._sentences(endings, *causes), pa.string()),
        }

    def _causes(self) -> tuple[Longs, Longs]:
        """Cause and second cause, as places in ``BLAMES``; -1 for none."""
        rows = np.arange(self.blame_ns.shape[1])
        blamed = self.blame_ns.copy()
        blamed[NO_CAUSE] = 0
        total = blamed.sum(axis=0)
        first = blamed.argmax(axis=0)
        largest = blamed[first, rows]
        blamed[first, rows] = 0
        second = blamed.argmax(axis=0)
        next_ns = blamed[second, rows]
        is_named = (next_ns > 0) & (next_ns >= SECOND_SHARE_MIN * total)
        return np.where(largest > 0, first, -1), np.where(is_named, second, -1)

    def _sentences(self, endings: Sequence[Ending], cause: Longs, second: Longs) -> list[str]:
        rows, total_ns = np.arange(len(cause)), np.maximum(self.blame_ns.sum(axis=0), 1)
        share = quotients(self.blame_ns[cause, rows], total_ns)
        second_share = quotients(self.blame_ns[second, rows], total_ns)
        peak_ns = self.peak_minute.cast(pa.int64()).to_numpy() * NS_PER_US
        seconds = quotients(self.end_ns - self.start_ns, np.full_like(rows, NS_PER_S))
        evicted_by = texts_of_lost(self.evicted_by, self.evicted, rows, evicted_by_text)
        expired_by = texts_of_lost(self.expired_by, self.expired, rows, expired_by_text)
        is_stuck = self.stuck_ns > STUCK_SHARE_MIN * self.blame_ns[_BROKER]
        facts = (
            self.start_ns, self.end_ns, seconds, self.peak, peak_ns, self.before, cause, share,
            second, second_share, is_stuck, self.evicted, self.expired,
        )  # fmt: skip
        return [
            episode_sentence(
                EpisodeFacts(
                    since=minute_text(since_ns),
                    until=minute_text(until_ns),
                    seconds=length_s,
                    ending=ending,
                    peak_messages=most,
                    peak_at=minute_text(peak_at_ns),
                    begins_before=begins_before,
                    cause=None if first < 0 else _VERDICTS[first],
                    share=0.0 if first < 0 else of_first,
                    second=None if other < 0 else _VERDICTS[other],
                    second_share=0.0 if other < 0 else of_other,
                    is_stuck=stuck,
                    evicted=evicted,
                    evicted_by=quota,
                    expired=expired,
                    expired_by=ttl,
                )
            )
            for ending, quota, ttl, (
                since_ns,
                until_ns,
                length_s,
                most,
                peak_at_ns,
                begins_before,
                first,
                of_first,
                other,
                of_other,
                stuck,
                evicted,
                expired,
            ) in zip(
                endings,
                evicted_by,
                expired_by,
                zip(*(each.tolist() for each in facts), strict=True),
                strict=True,
            )
        ]
