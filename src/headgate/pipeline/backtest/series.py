"""Derives the load of a topic from its telemetry rows.

Rows have running totals. So two consecutive rows of one *stream* (source, boot, start of counting)
give the amounts between them; the first row of a stream counts from its start. Amounts are spread
evenly between rows. A window that was skipped because nothing changed has none. Time outside of
all pairs is unknown and gives no step. Demand is the accepted bytes plus the growth of the parked
bytes. So sends that a restart drops, and that clients send again, are not counted twice.

The capacity of consumers is what they drained, in steps at whose end old messages waited. It
includes the limits on their dispatch, which another publish policy would not have changed. In other
steps the capacity is their demonstrated rate (of steps with old messages at both ends), or what
they drained if that is more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.flow.account.demonstrated import DEMONSTRATED_PERCENTILE, HELD_SHARE_MAX
from headgate.flow.account.verdict import YOUNG_NS
from headgate.flow.limits.precedence import ADAPTIVE_SOURCE
from headgate.flow.quota.backlog_quota import QuotaPolicy
from headgate.pipeline.backtest.load import NO_LIMIT, POLICY_CODES, STEP_COLUMNS, Load
from headgate.pipeline.kernels.array_types import Doubles, Flags, Longs
from headgate.pipeline.kernels.publish_limits import split_source
from headgate.pipeline.tables.arrow_types import changes
from headgate.pipeline.tables.columns import HOUR_NS, MINUTE_NS
from headgate.pipeline.tables.intervals import TOPIC_KEY
from headgate.record.fields import PARK_CAUSES, QUOTA_TYPES

SORT_COLUMNS: Final = (*TOPIC_KEY, "source", "counting_since_ns", "boot_id", "seq", "row")
"""Order of the input: by topic, and within a topic by stream."""

SUMS: Final = {
    "parked_bytes": tuple(f"parked_{cause}_bytes" for cause in PARK_CAUSES if cause != "memory"),
    "parked_ns": tuple(f"parked_{cause}_ns" for cause in PARK_CAUSES),
    "evicted_bytes": tuple(f"eviction_{quota}_bytes" for quota in QUOTA_TYPES),
}
"""Columns of the input that are sums of fields of the record; null counts as 0."""
_LIMITS: Final = ("publish_limit_messages_per_s", "publish_limit_bytes_per_s")
_QUOTAS: Final = tuple(
    (f"quota_{quota}_limit_{unit}", f"quota_{quota}_policy")
    for quota, unit in zip(QUOTA_TYPES, ("bytes", "ns"), strict=True)
)
INPUT_COLUMNS: Final = (
    *SORT_COLUMNS,
    "window_start_ns",
    "window_end_ns",
    "clock_step",
    "covered_from_ns",
    "covered_to_ns",
    "msgs_in",
    "bytes_in",
    "backlog_bytes",
    "oldest_age_ns",
    *SUMS,
    *(name for pair in _QUOTAS for name in pair),
    *_LIMITS,
    "publish_limit_source",
)
"""Fields of the record's topics, and :data:`SUMS`."""

SPAN_NS_MAX: Final = 24 * HOUR_NS
"""Longest time of a row whose amounts are spread over it."""
GAP_NS_MAX: Final = 5 * MINUTE_NS
"""After a longer gap between rows, the times of the amounts are too uncertain."""
COVERED_MIN: Final = 0.5
"""Least known share of a step; others are left out."""
MESSAGE_BYTES: Final = 1_000.0
"""Size of a message if none was published."""
_POLICY_BY_NAME: Final = {policy.value: float(POLICY_CODES[policy]) for policy in QuotaPolicy}


@dataclass(frozen=True, slots=True)
class TopicLoad:
    """One topic of a table and its load."""

    first_row: int
    """Its first row in the table, with the key of the topic."""
    load: Load


def topic_loads(
    table: pa.Table, since_ns: int, until_ns: int, step_ns: int | None = None
) -> Iterator[TopicLoad]:
    """The load of every topic of a table of :data:`INPUT_COLUMNS`, sorted by
    :data:`SORT_COLUMNS`, over the steps within a range. Without ``step_ns`` a step is as long as a
    telemetry window. Topics without a step are left out.
    """
    if table.num_rows == 0:
        return
    fresh = changes(table, SORT_COLUMNS)
    places = np.flatnonzero(fresh)
    table = table.take(pa.array(places))
    firsts = np.append(np.flatnonzero(changes(table, TOPIC_KEY)), table.num_rows)
    streams = changes(table, (*TOPIC_KEY, "source", "counting_since_ns", "boot_id"))
    columns = _Columns(table, streams)
    for first, stop in zip(firsts[:-1].tolist(), firsts[1:].tolist(), strict=True):
        own = slice(first, stop)
        by_time = _by_time(columns, own)
        _restore_configured_limits(columns, first + by_time)
        spans = _topic_spans(columns, own, by_time)
        if spans is None:
            continue
        windows = columns.window_end[own] - columns.window_start[own]
        # A broker whose clock was set may have windows of years.
        length_ns = step_ns or min(max(int(np.median(windows)), NS_PER_MS), MINUTE_NS)
        load = _load(columns, spans, length_ns, since_ns, until_ns)
        if load is not None:
            yield TopicLoad(int(places[first]), load)


class _Columns:
    """A table's columns as arrays; null is 0, -1 for quotas, infinite for limits."""

    def __init__(self, table: pa.Table, first_of_stream: Flags) -> None:
        self.first_of_stream = first_of_stream
        self.window_start = _longs(table, "window_start_ns")
        self.window_end = _longs(table, "window_end_ns")
        self.clock_step = _longs(table, "clock_step") != 0
        self.covered_from = _longs(table, "covered_from_ns")
        self.to = _longs(table, "covered_to_ns")
        self.since = _longs(table, "counting_since_ns")
        self.age_ns = _longs(table, "oldest_age_ns")
        self.backlog = _longs(table, "backlog_bytes").astype(np.float64)
        self.parked = _doubles(table, "parked_bytes", 0.0)
        counters = ("msgs_in", "bytes_in", "evicted_bytes", "parked_ns")
        self.counters = np.stack([_doubles(table, name, 0.0) for name in counters])
        quotas = [
            level
            for (limit, policy), unit in zip(_QUOTAS, (1, NS_PER_MS), strict=True)
            for level in _quota(table, limit, policy, unit)
        ]
        limits = [_doubles(table, name, inf) for name in _LIMITS]
        self.levels = np.stack([*quotas, *limits])
        """Quotas and limits in the order of a step's last columns."""
        self.is_controller_limit = _is_controller_limit(table)


def _longs(table: pa.Table, name: str) -> Longs:
    column = table.column(name).cast(pa.int64())
    return np.asarray(pc.fill_null(column, 0).to_numpy())


def _doubles(table: pa.Table, name: str, missing: float) -> Doubles:
    column = table.column(name).cast(pa.float64(), safe=False)
    return np.asarray(pc.fill_null(column, missing).to_numpy())


def _quota(table: pa.Table, limit: str, policy: str, unit: int) -> tuple[Doubles, Doubles]:
    """The limit in ``unit`` and the code of the policy; a quota needs both."""
    limits = _doubles(table, limit, -1.0) // unit
    names = table.column(policy).combine_chunks().dictionary_encode()
    known = [_POLICY_BY_NAME.get(name, 0.0) for name in names.dictionary.to_pylist()]
    places = np.asarray(pc.fill_null(names.indices, len(known)).to_numpy(zero_copy_only=False))
    codes = np.where(limits >= 0.0, np.array([*known, 0.0])[places], 0.0)
    return np.where(codes > 0.0, limits, NO_LIMIT), codes


def _is_controller_limit(table: pa.Table) -> Flags:
    """[2 x rows]: whether the limit in messages, and that in bytes, is the controller's."""
    sources = table.column("publish_limit_source").combine_chunks().dictionary_encode()
    known = [split_source(source) for source in sources.dictionary.to_pylist()]
    is_adaptive = np.array([*known, ("", "")]) == ADAPTIVE_SOURCE
    places = pc.fill_null(sources.indices, len(known)).to_numpy(zero_copy_only=False)
    is_set = [np.isfinite(_doubles(table, name, inf)) for name in _LIMITS]
    return np.asarray(is_adaptive[places].T & np.stack(is_set))


def _by_time(columns: _Columns, own: slice) -> Longs:
    """One topic's rows in order of time, over all sources."""
    keys = (columns.counters[1, own], columns.backlog[own], columns.covered_from[own])
    return np.lexsort((*keys, columns.to[own]))


def _restore_configured_limits(columns: _Columns, rows: Longs) -> None:
    """Replace the controller's limits in one topic's rows, which are in order of time, by the last
    configured limits before them; infinite before the first."""
    for number, hidden in enumerate(columns.is_controller_limit[:, rows], -len(_LIMITS)):
        seen = np.maximum.accumulate(np.where(hidden, -1, np.arange(len(rows))))
        own = columns.levels[number, rows]
        columns.levels[number, rows] = np.where(seen < 0, inf, own[np.maximum(seen, 0)])


@dataclass(frozen=True, slots=True)
class _Spans:
    """Spans between rows, in order of time and without overlap, as parallel arrays."""

    from_ns: Longs
    to_ns: Longs
    row: Longs
    """The row at the end."""
    amounts: Doubles
    """[messages, bytes, drained bytes, wanted bytes, ns of waiting] by piece."""
    backlog: Doubles
    """At the beginning."""
    age_ns: Longs
    """Of the oldest message at the beginning."""
    end_age_ns: Longs


def _topic_spans(columns: _Columns, own: slice, by_time: Longs) -> _Spans | None:
    """The spans of one topic, whose order in time is given; None if there are none."""
    begins, to_ns, age_ns = columns.first_of_stream[own], columns.to[own], columns.age_ns[own]
    backlog, parked, counters = columns.backlog[own], columns.parked[own], columns.counters[:, own]
    before = _shifted(counters, 0.0)
    from_zero = begins | (counters < before).any(axis=0)
    gained = counters - np.where(from_zero, 0.0, before)
    start_ns, end_ns, row, is_quiet = _span_edges(columns, own, gained[1])
    if len(row) == 0:
        return None
    # The levels at the start of a span are those of the row before, which may be of another stream.
    latest = np.searchsorted(to_ns[by_time], start_ns, "right") - 1
    place = np.where(latest < 0, -1, by_time[latest])
    is_own = ~begins[row] & (to_ns[row - 1] >= to_ns[place])
    place = np.where(is_own, row - 1, place)
    at_first = np.maximum(backlog[row] - counters[1, row], 0.0)
    backlog_before = np.where(place < 0, at_first, backlog[place])
    age_before = np.where(place < 0, 0, age_ns[place])
    wanted = gained[1] + parked - np.where(begins, 0.0, _shifted(parked, 0.0))
    drained = gained[1, row] - (backlog[row] - backlog_before) - gained[2, row]
    amounts = np.stack([gained[0, row], gained[1, row], drained, wanted[row], gained[3, row]])
    return _Spans(
        start_ns,
        end_ns,
        own.start + row - is_quiet,
        np.where(is_quiet, 0.0, np.maximum(amounts, 0.0)),
        backlog_before,
        age_before,
        np.where(is_quiet, age_before, age_ns[row]),
    )


def _span_edges(
    columns: _Columns, own: slice, gained: Doubles
) -> tuple[Longs, Longs, Longs, Flags]:
    """The spans of one topic: begin, end, the row, and whether nothing changed before that row.

    They are in order of time and do not overlap, over all streams. ``gained`` are the bytes
    accepted by row. Of two spans over the same time, the one with more bytes counts.
    """
    begins, to_ns = columns.first_of_stream[own], columns.to[own]
    from_ns = np.where(begins, columns.since[own], _shifted(to_ns, 0))
    lost_ns = columns.covered_from[own] - from_ns
    # The first row of a stream that does not count from its start has levels only.
    is_known = np.where(begins, lost_ns == 0, lost_ns <= GAP_NS_MAX)
    # If the clock was set far ahead in a window, the times within it are unknown.
    is_known &= ~columns.clock_step[own] | (to_ns - from_ns <= GAP_NS_MAX)
    # Nothing changed in windows without a row.
    window = columns.window_start[own]
    is_still = ~begins & (lost_ns == 0) & (from_ns < window) & (window < to_ns)
    is_still &= ~columns.clock_step[own]
    # Brokers send a row each minute. One of years has wrong times, and as many steps.
    is_short = to_ns - from_ns <= SPAN_NS_MAX
    is_known &= is_short
    is_still &= is_short
    with_amounts, without_change = np.flatnonzero(is_known), np.flatnonzero(is_still)
    row = np.append(with_amounts, without_change)
    start_ns = np.append(np.where(is_still, window, from_ns)[with_amounts], from_ns[without_change])
    end_ns = np.append(to_ns[with_amounts], window[without_change])
    is_quiet = np.arange(len(row)) >= len(with_amounts)
    order = np.lexsort((-np.where(is_quiet, 0.0, gained[row]), end_ns, start_ns))
    start_ns, end_ns, row, is_quiet = start_ns[order], end_ns[order], row[order], is_quiet[order]
    start_ns = np.maximum(start_ns, _shifted(np.maximum.accumulate(end_ns), 0))
    kept = start_ns < end_ns
    return start_ns[kept], end_ns[kept], row[kept], is_quiet[kept]


def _shifted(values: Any, first: float) -> Any:
    """The values shifted by one along the last axis, with ``first`` in front."""
    with_amounts = np.empty_like(values)
    with_amounts[..., 1:], with_amounts[..., :1] = values[..., :-1], first
    return with_amounts


def _load(
    columns: _Columns, spans: _Spans, step_ns: int, since_ns: int, until_ns: int
) -> Load | None:
    edges = _touched_steps(spans, step_ns, since_ns, until_ns) * step_ns
    if len(edges) == 0:
        return None
    base = int(spans.from_ns[0])
    at = (np.stack([edges, edges + step_ns]) - base).astype(np.float64)
    ends = np.stack([spans.from_ns - base, spans.to_ns - base], axis=1).astype(np.float64).ravel()
    lengths_ns = (spans.to_ns - spans.from_ns).astype(np.float64)
    covered = _in_steps(at, ends, lengths_ns)
    kept = np.flatnonzero(covered >= COVERED_MIN * step_ns)
    if len(kept) == 0:
        return None
    seconds = covered[kept] / NS_PER_S
    messages, accepted, drained, wanted, waited = (
        _in_steps(at, ends, amounts)[kept] for amounts in spans.amounts
    )
    most = (1 - HELD_SHARE_MAX) * covered[kept]
    is_old = spans.end_age_ns >= YOUNG_NS
    is_measured = _in_steps(at, ends, lengths_ns * is_old)[kept] >= most
    is_old &= spans.age_ns >= YOUNG_NS
    is_demonstrated = _in_steps(at, ends, lengths_ns * is_old)[kept] >= most
    steps = np.empty((len(kept), len(STEP_COLUMNS)))
    steps[:, 0] = wanted / seconds
    steps[:, 1] = _message_bytes(messages, accepted)
    steps[:, 2] = _capacity(drained / seconds, is_measured, is_demonstrated)
    place = np.clip(np.searchsorted(spans.from_ns, edges[kept] + step_ns, "left") - 1, 0, None)
    steps[:, 3:] = columns.levels[:, spans.row[place]].T
    start = max(0, int(np.searchsorted(spans.from_ns, edges[kept[0]], "right")) - 1)
    return Load(
        step_ns=step_ns,
        steps=steps,
        backlog_bytes=float(spans.backlog[start]),
        oldest_age_s=float(spans.age_ns[start]) / NS_PER_S if spans.backlog[start] else 0.0,
        from_ns=int(edges[kept[0]]),
        to_ns=int(edges[kept[-1]]) + step_ns,
        censored_share=float(np.mean(waited >= most)),
        drain_known_share=float(np.mean(is_measured)),
    )


def _touched_steps(spans: _Spans, step_ns: int, since_ns: int, until_ns: int) -> Longs:
    """Numbers of the steps in a range that touch spans, ascending. Steps without a span are not
    created: one row of a clock that is years off would create millions."""
    first = np.maximum(spans.from_ns, since_ns) // step_ns
    stop = -(-np.minimum(spans.to_ns, until_ns) // step_ns)
    first = np.maximum(first, _shifted(np.maximum.accumulate(stop), 0))
    counts = np.maximum(stop - first, 0)
    before = np.cumsum(counts) - counts
    return np.asarray(np.arange(counts.sum()) + np.repeat(first - before, counts))


def _in_steps(at: Doubles, ends: Doubles, amounts: Any) -> Doubles:
    """The amounts of the spans within each step; ``at``: [begins, ends] of the steps."""
    totals = np.cumsum(amounts)
    running = np.stack([totals - amounts, totals], axis=1).ravel()
    begins, stops = np.interp(at, ends, running, left=0.0, right=totals[-1])
    return np.asarray(stops - begins)


def _message_bytes(messages: Doubles, size_bytes: Doubles) -> Doubles:
    """The mean size of each step's messages; without any, that of the step before."""
    there = messages > 0
    if not there.any():
        return np.full(len(messages), MESSAGE_BYTES)
    sizes = size_bytes[there] / messages[there]
    place = np.maximum(np.cumsum(there) - 1, 0)
    return np.asarray(np.maximum(sizes[place], 1.0))


def _capacity(drained: Doubles, is_measured: Flags, is_demonstrated: Flags) -> Doubles:
    """Bytes per second that consumers could take in each step."""
    rates = np.sort(drained[is_demonstrated]) if is_demonstrated.any() else np.sort(drained)[-1:]
    demonstrated = rates[min(len(rates) - 1, int(DEMONSTRATED_PERCENTILE * len(rates)))]
    return np.where(is_measured, drained, np.maximum(drained, demonstrated))
