"""Account windows of ranges, summed from runs of minutes.

The input has all runs (:mod:`.minute_runs`) of each subscription, sorted by :data:`SORT_COLUMNS`,
with the column ``proven_rate_per_s``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.base.units import NS_PER_S
from headgate.flow.limits.rate_limit import Level
from headgate.pipeline.kernels.account_windows import (
    LIMIT_PARTS,
    SUMMED,
    AccountWindows,
    LimitArrays,
    cells_of,
    demonstrated_of,
    limits_of,
    longs,
    not_due,
)
from headgate.pipeline.kernels.array_types import Doubles, Flags, Longs
from headgate.pipeline.kernels.minute_runs import (
    HELD_FIRST_COLUMNS,
    VOTE_COLUMNS,
    moves_with_rate,
    throttled_ns,
)
from headgate.pipeline.kernels.sentences import CircumstanceArrays
from headgate.pipeline.kernels.topic_waiters import WAITERS
from headgate.pipeline.kernels.verdict_arrays import LEVEL_CODES, NO_CODE, JudgementArrays
from headgate.pipeline.tables.arrow_types import changes
from headgate.pipeline.tables.attribution import ATTRIBUTION_KEY
from headgate.pipeline.tables.intervals import EVICTED_BY, EXPIRED_BY

SORT_COLUMNS: Final = (*ATTRIBUTION_KEY, "from_ns")

SOLE_SHARE_MIN: Final = 0.9
"""Least part of a topic's limit that a subscription uses if it is the only waiter; two share it."""

Amounts: TypeAlias = tuple[int, int, int]
"""Messages, bytes and period of a limit; there is none if both amounts are 0."""
Setting: TypeAlias = Amounts | str | None
"""The configured limit; only the source, if the limit is relative."""


@dataclass(frozen=True, slots=True)
class _Limits:
    """The limits of one level, by run."""

    settings: list[Setting]
    firsts: list[Amounts]
    """The limits at the end of the run's first minute."""
    lasts: list[Amounts]
    """The limits at the end of the run's last minute."""
    throttled_ns: list[int]
    throttled_first_ns: list[int]
    minutes: list[int]


@dataclass(frozen=True, slots=True)
class _ThrottlingLimit:
    """The limit of one level that throttled for longest in a window."""

    run: int
    amounts: Amounts


@dataclass(frozen=True, slots=True)
class Ranges:
    """Windows of ranges with the runs and limits behind them."""

    windows: AccountWindows
    runs: pa.Table
    begins: Longs
    """First run of each window."""
    ends: Longs
    """Last run of each window."""
    limits: tuple[_Limits, ...]
    throttling: tuple[tuple[_ThrottlingLimit, ...], ...]
    """By level and window."""


def range_windows(runs: pa.Table) -> Ranges:
    """One window for each subscription: the sums of its runs, and the levels at both ends."""
    begins = np.flatnonzero(changes(runs, ATTRIBUTION_KEY))
    ends = np.append(begins[1:], runs.num_rows) - 1
    limits = tuple(_limits_of_level(runs, level) for level in Level)
    throttling = tuple(
        tuple(
            _throttling_limit(of_level, begin, end)
            for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)
        )
        for of_level in limits
    )
    amounts = np.array([[limit.amounts for limit in of_level] for of_level in throttling], np.int64)
    votes = np.stack([longs(runs, name) for name in VOTE_COLUMNS])
    minutes = np.add.reduceat(longs(runs, "minutes"), begins)
    backlog_start = longs(runs, "backlog_messages_start")
    backlog = longs(runs, "backlog_messages")
    windows = AccountWindows(
        from_ns=longs(runs, "from_ns")[begins],
        to_ns=longs(runs, "to_ns")[ends],
        sums={name: np.add.reduceat(longs(runs, name), begins) for name in SUMMED},
        cells_ns=np.add.reduceat(cells_of(runs), begins, axis=1),
        backlog_start=backlog_start[begins],
        backlog_end=backlog[ends],
        delayed_start=not_due(runs, "delayed_start", backlog_start)[begins],
        delayed_end=not_due(runs, "delayed", backlog)[ends],
        unacked_start=longs(runs, "unacked_start")[begins],
        unacked_end=longs(runs, "unacked")[ends],
        oldest_age_max_ns=np.maximum.reduceat(longs(runs, "oldest_age_max_ns"), begins),
        limits=LimitArrays(*np.moveaxis(amounts, 2, 0)),
        demonstrated_per_s=demonstrated_of(runs)[begins],
        is_inferred=np.logical_or.reduceat(
            runs.column("is_inferred").to_numpy().astype(np.bool_), begins
        ),
        # A range of one minute has no votes of parts.
        votes=np.where(minutes > 1, np.add.reduceat(votes, begins, axis=1), 0),
    )
    return Ranges(windows, runs, begins, ends, limits, throttling)


def range_circumstances(ranges: Ranges, judged: JudgementArrays) -> CircumstanceArrays:
    """The facts for the sentences of ranges, besides their verdicts."""
    runs, last = ranges.runs, pa.array(ranges.ends)
    places = [[limit.run for limit in of_level] for of_level in ranges.throttling]
    changed = [
        [
            of_level.settings[end] != of_level.settings[run]
            for run, end in zip(at, ranges.ends.tolist(), strict=True)
        ]
        for of_level, at in zip(ranges.limits, places, strict=True)
    ]
    at_end = limits_of(runs.take(last))
    level_codes = LEVEL_CODES[judged.verdict].tolist()
    windows = range(len(ranges.begins))
    streaks = _Streaks(
        *(longs(runs, name).tolist() for name in ("last_most", "last_most_from_ns", "from_ns"))
    )
    is_sole = np.array(
        [
            level_codes[i] == Level.TOPIC
            and judged.dimension[i] != NO_CODE
            and _is_sole(ranges, i, ("messages", "bytes")[judged.dimension[i]])
            for i in windows
        ],
        np.bool_,
    )
    return CircumstanceArrays(
        sources=tuple(
            _source(runs, level).take(pa.array(at, pa.int64()))
            for level, at in zip(Level, places, strict=True)
        ),
        permits=permits_of(runs).take(last),
        one_at_a_time=one_at_a_time(runs)[ranges.ends],
        evicted_by=_last_with(ranges, "evicted", EVICTED_BY),
        expired_by=_last_with(ranges, "expired", EXPIRED_BY),
        since_s=np.array(
            [_since_s(ranges, streaks, i, judged.verdict[i], level_codes[i]) for i in windows]
        ),
        silent_s=_silent_s(ranges),
        waiting=waiters_of_blamed_limit(runs.take(last), judged, is_sole),
        at_end=at_end,
        changed=np.array(changed, np.bool_),
    )


def _last_with(ranges: Ranges, lost: str, columns: Sequence[str]) -> pa.Table:
    """Some columns of the last run of each range in which messages were ``lost``: what took
    them."""
    did = longs(ranges.runs, lost) > 0
    place = np.maximum.accumulate(np.where(did, np.arange(len(did)), 0))[ranges.ends]
    # If none was lost in the range, the row is arbitrary and not used.
    return ranges.runs.select(columns).take(pa.array(place))


def permits_of(table: pa.Table) -> pa.Array:
    """Permits of the connected consumers; null if there are none."""
    connected = pc.fill_null(pc.not_equal(table.column("consumers"), 0), False)
    permits = pc.if_else(connected, table.column("permits"), pa.scalar(None, pa.int64()))
    return permits.combine_chunks() if isinstance(permits, pa.ChunkedArray) else permits


def one_at_a_time(table: pa.Table) -> Flags:
    """Which subscriptions have one consumer that gets all messages. Of a partitioned topic another
    consumer may get other partitions."""
    alone = pc.is_in(table.column("type"), pa.array(["Exclusive", "Failover"]))
    whole = pc.is_null(table.column("partition"))
    found = pc.and_(pc.fill_null(alone, False), whole)
    return np.asarray(found.to_numpy(), dtype=np.bool_)


def _source(table: pa.Table, level: Level) -> pa.Array:
    return table.column(f"limit_{level.name.lower()}_source").combine_chunks()


def _limits_of_level(runs: pa.Table, level: Level) -> _Limits:
    def amounts(prefix: str) -> list[Amounts]:
        limits = level_limits(runs, prefix, level)
        return list(zip(*(part.tolist() for part in limits), strict=True))

    lasts = amounts("limit")
    sources = _source(runs, level)
    settings: list[Setting] = [
        source if moves else (limit if limit[0] > 0 or limit[1] > 0 else None)
        for source, moves, limit in zip(
            sources.to_pylist(), moves_with_rate(sources).tolist(), lasts, strict=True
        )
    ]
    return _Limits(
        settings=settings,
        firsts=amounts("first_limit"),
        lasts=lasts,
        throttled_ns=throttled_ns(cells_of(runs))[level].tolist(),
        throttled_first_ns=longs(runs, HELD_FIRST_COLUMNS[level]).tolist(),
        minutes=longs(runs, "minutes").tolist(),
    )


def level_limits(runs: pa.Table, prefix: str, level: Level) -> tuple[Longs, Longs, Longs]:
    """Messages, bytes and period of the limits of one level; 0 stands for no amount."""
    messages, size, period_ns = (
        longs(runs, f"{prefix}_{level.name.lower()}_{part}") for part in LIMIT_PARTS
    )
    return (
        np.maximum(messages, 0),
        np.maximum(size, 0),
        np.where(period_ns > 0, period_ns, NS_PER_S),
    )


def _throttling_limit(limits: _Limits, begin: int, end: int) -> _ThrottlingLimit:
    """The limit that throttled for longest in the runs of a window; if none did, the last one.

    Of a relative limit it has the last amounts. A minute has the limit at its end. If that differs
    from the limit at the end of the previous minute, the lower of the two throttled.
    """
    throttled: dict[Setting, int] = {}
    latest: dict[Setting, _ThrottlingLimit] = {}
    for run in range(begin, end + 1):
        setting, first_ns = limits.settings[run], limits.throttled_first_ns[run]
        before = run - 1 if run > begin else run
        tighter = _ThrottlingLimit(run, limits.firsts[run])
        if limits.settings[before] != setting and _is_tighter(
            limits.lasts[before], limits.firsts[run]
        ):
            tighter = _ThrottlingLimit(before, limits.lasts[before])
        first = limits.settings[tighter.run]
        throttled[first] = throttled.get(first, 0) + first_ns
        latest[first] = tighter
        if limits.minutes[run] > 1:
            throttled[setting] = throttled.get(setting, 0) + limits.throttled_ns[run] - first_ns
            latest[setting] = _ThrottlingLimit(run, limits.lasts[run])
    longest = max(throttled, key=lambda setting: throttled[setting])
    return latest[longest] if throttled[longest] else _ThrottlingLimit(end, limits.lasts[end])


def _is_tighter(old: Amounts, new: Amounts) -> bool:
    """Whether the earlier limit was lower; False if the two cannot be compared."""
    if not any(old[:2]) or not any(new[:2]):
        return any(old[:2])
    for before, after in zip(old[:2], new[:2], strict=True):
        rates = (
            before * NS_PER_S / old[2] if before else math.inf,
            after * NS_PER_S / new[2] if after else math.inf,
        )
        if rates[0] != rates[1]:
            return rates[0] < rates[1]
    return False


@dataclass(frozen=True, slots=True)
class _Streaks:
    """By run: the largest share at its end, since when it is the largest, and the run's start."""

    code: list[int]
    since_ns: list[int]
    from_ns: list[int]


def _since_s(ranges: Ranges, streaks: _Streaks, window: int, verdict: int, level: int) -> float:
    """How long the last minutes have all had the range's verdict; NaN if the last one has another.

    For a limiter the limit also has to be the one that throttled for longest.
    """
    settings: Sequence[Setting] = []
    setting: Setting = None
    if level != NO_CODE:
        settings = ranges.limits[level].settings
        setting = settings[ranges.throttling[level][window].run]
    begin_ns = None
    for run in range(ranges.ends[window], ranges.begins[window] - 1, -1):
        if streaks.code[run] != verdict or (setting is not None and settings[run] != setting):
            break
        begin_ns = streaks.since_ns[run]
        if begin_ns != streaks.from_ns[run]:
            break
    if begin_ns is None:
        return math.nan
    return (int(ranges.windows.to_ns[window]) - begin_ns) / NS_PER_S


def _silent_s(ranges: Ranges) -> Doubles:
    """Seconds without an acknowledgement at the end of each range."""
    silent_ns, from_ns, to_ns = (
        longs(ranges.runs, name).tolist() for name in ("silent_from_ns", "from_ns", "to_ns")
    )
    found = ranges.windows.to_ns.copy()
    for window, last in enumerate(ranges.ends.tolist()):
        for run in range(last, ranges.begins[window] - 1, -1):
            if silent_ns[run] == to_ns[run]:
                break
            found[window] = silent_ns[run]
            if silent_ns[run] != from_ns[run]:
                break
    return np.asarray((ranges.windows.to_ns - found) / NS_PER_S, dtype=np.float64)


def waiters_of_blamed_limit(rows: pa.Table, judged: JudgementArrays, is_sole: Flags) -> Longs:
    """How many subscriptions waited for the topic limit that a window blames; 0 without one.

    It is :data:`WAITERS` of the row, or 1 if the subscription used nearly all of the limit.
    """
    blamed = (LEVEL_CODES[judged.verdict] == Level.TOPIC) & (judged.dimension != NO_CODE)
    several = longs(rows, WAITERS.name)
    return np.where(blamed, np.where(several > 1, several, is_sole), 0).astype(np.int64)


def _is_sole(ranges: Ranges, window: int, counted: str) -> bool:
    """Whether the subscription used nearly all of the blamed topic limit while that throttled."""
    settings = ranges.limits[Level.TOPIC].settings
    setting = settings[ranges.throttling[Level.TOPIC][window].run]
    span = slice(ranges.begins[window], ranges.ends[window] + 1)
    got: Any = ranges.runs.column(f"got_{counted}").to_numpy()[span]
    allowed: Any = ranges.runs.column(f"allowed_{counted}").to_numpy()[span]
    same = [other == setting for other in settings[span]]
    return bool(got[same].sum() >= SOLE_SHARE_MIN * allowed[same].sum() > 0)
