"""Park causes of topics minute by minute: what the kernel over arrays must equal."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.base.park_cause import ParkCause
from headgate.base.units import NS_PER_S
from headgate.flow.account.verdict import INFERRED, MEASURED
from headgate.flow.limits.rate_limit import Dimension, is_lower
from headgate.flow.sentences.backlog import limit_text
from headgate.flow.sentences.past_publish import PastParkSummary, past_publish_sentence
from headgate.pipeline.kernels.array_types import Flags
from headgate.pipeline.kernels.publish_limits import (
    PublishLimit,
    limit_of,
    quota_of,
)
from headgate.pipeline.kernels.publishing import RANGE_COLUMNS
from headgate.pipeline.tables.arrow_types import arrow_schema, changes, table_arrow_schema
from headgate.pipeline.tables.columns import HOUR_NS, MINUTE_NS, hour_partition
from headgate.pipeline.tables.intervals import TOPIC_KEY, TOPIC_ORDER
from headgate.pipeline.tables.publishing import PUBLISH_ATTRIBUTION, PUBLISH_LEVELS
from headgate.record.fields import PARKED_FIELD_NAMES
from tests.unit.pipeline.limiters_by_row import counted_ns

_SUMMED: Final = ("covered_ns", "msgs_in", "bytes_in", "duplicates_dropped")
_PARKED_NS: Final = tuple(f"parked_{cause.label}_ns" for cause in ParkCause)
_WAITING: Final = tuple(name for name in PARKED_FIELD_NAMES if name not in _PARKED_NS)

Minute = Mapping[str, Any]
"""One topic's minute, with :data:`INPUT_COLUMNS`."""


def publish_by_row(table: pa.Table, hours: Collection[int]) -> pa.Table:
    """One row for each topic and minute of some hours (numbers since the epoch).

    A minute without a published or parked message has no row. ``table`` has all minutes of each
    topic in those hours, and the one before each hour.
    """
    found: list[dict[str, Any]] = []
    has_row, starts = _has_row(table), changes(table, TOPIC_KEY)
    needed = has_row.copy()
    needed[:-1] |= has_row[1:] & ~starts[1:]
    before: list[Minute] = []
    places = zip(
        table.filter(pa.array(needed)).to_pylist(),
        has_row[needed].tolist(),
        starts[needed].tolist(),
        strict=True,
    )
    for minute, is_reported, is_first in places:
        hour = minute["from_ns"] // HOUR_NS
        if is_reported and hour in hours:
            judged = _park_columns([minute], None if is_first else _adjacent(before, minute))
            key = {name: minute[name] for name in TOPIC_ORDER}
            found.append({**hour_partition(hour), **key, **judged})
        before = [minute]
    return pa.Table.from_pylist(found, schema=table_arrow_schema(PUBLISH_ATTRIBUTION))


def publish_range_by_row(table: pa.Table, since_ns: int, until_ns: int) -> pa.Table:
    """One row for each topic with minutes that touch ``[since_ns, until_ns)``, idle or not."""
    found: list[dict[str, Any]] = []
    for key, group in groupby(table.to_pylist(), lambda row: tuple(row[n] for n in TOPIC_KEY)):
        minutes = [minute for minute in group if minute["from_ns"] < until_ns]
        inside = [minute for minute in minutes if minute["to_ns"] > since_ns]
        if inside:
            before = minutes[: len(minutes) - len(inside)]
            judged = _park_columns(inside, _adjacent(before, inside[0]), is_range=True)
            found.append({**dict(zip(TOPIC_KEY, key, strict=True)), **judged})
    return pa.Table.from_pylist(found, schema=arrow_schema(RANGE_COLUMNS))


def _has_row(table: pa.Table) -> Flags:
    """Which minutes have a row; vectorised, because most topics are idle."""
    mask = np.zeros(table.num_rows, dtype=np.bool_)
    for name in ("msgs_in", "bytes_in", "duplicates_dropped", *PARKED_FIELD_NAMES):
        amounts = pc.fill_null(table.column(name), 0)
        mask |= pc.greater(amounts, 0).to_numpy()
    return mask


def _adjacent(before: Sequence[Minute], minute: Minute) -> Minute | None:
    """The last of ``before``, if it is the minute right before ``minute``.

    After a gap in the telemetry there is none. So a row never depends on more than two minutes.
    """
    last = before[-1] if before else None
    if last is None or last["from_ns"] // MINUTE_NS != minute["from_ns"] // MINUTE_NS - 1:
        return None
    return last


def _park_columns(
    minutes: Sequence[Minute], before: Minute | None, *, is_range: bool = False
) -> dict[str, Any]:
    """The values of ``PARK_COLUMNS`` for one topic over at least one minute, in time order.

    ``before`` is the minute before the first, None if it is not known.
    """
    first, last = minutes[0], minutes[-1]
    sums = {name: _sum(minutes, name) for name in (*_SUMMED, *_PARKED_NS)}
    held_ns = {cause: sums[name] or 0 for cause, name in zip(ParkCause, _PARKED_NS, strict=True)}
    order = sorted((cause for cause in ParkCause if held_ns[cause] > 0), key=lambda c: -held_ns[c])
    cause, second = (*order, None, None)[:2]
    span_ns, covered_ns = last["to_ns"] - first["from_ns"], sums.pop("covered_ns") or 0
    base_ns = sum(counted_ns(minute) for minute in minutes)
    share = held_ns[cause] / base_ns if cause is not None and base_ns else None
    holds = [_past_hold(each, held_ns[each], minutes, before) for each in ParkCause]
    return {
        "broker": last["broker"],
        "completeness": min(1.0, covered_ns / span_ns),
        "from_ns": first["from_ns"],
        "to_ns": last["to_ns"],
        **sums,
        **{name: last[name] for name in ("producers", *_WAITING, *PUBLISH_LEVELS)},
        "cause": None if cause is None else cause.label,
        "second_cause": None if second is None else second.label,
        "held_share": min(1.0, share) if share is not None else (0.0 if base_ns else None),
        "evidence": (
            INFERRED if any(minute["evidence"] == INFERRED for minute in minutes) else MEASURED
        ),
        "sentence": past_publish_sentence(
            holds,
            range_s=span_ns / NS_PER_S if is_range else None,
            duplicates=sums["duplicates_dropped"] or 0,
        ),
    }


def _sum(minutes: Sequence[Minute], name: str) -> int | None:
    """The sum of a column; None if no minute has it, as from a broker without that feature."""
    known = [minute[name] for minute in minutes if minute[name] is not None]
    return sum(known) if known else None


def _past_hold(
    cause: ParkCause, held_ns: int, minutes: Sequence[Minute], before: Minute | None
) -> PastParkSummary:
    """The facts of one cause for the sentence; of its limits the one that parked for longest."""
    messages = 0 if cause is ParkCause.MEMORY else minutes[-1][f"parked_{cause.label}_messages"]
    seconds = held_ns / NS_PER_S
    if not held_ns:
        return PastParkSummary(cause, messages=messages or 0)
    if cause is ParkCause.BACKLOG_QUOTA:
        text, source = _longest_quota(minutes, before)
        return PastParkSummary(cause, seconds, messages or 0, text, source)
    if cause in (ParkCause.PENDING_LIMIT, ParkCause.MEMORY, ParkCause.DISK_FULL):
        return PastParkSummary(cause, seconds, messages or 0)
    longest = _longest_limit(cause, minutes, before)
    if longest is None:
        return PastParkSummary(cause, seconds, messages or 0)
    at_end = limit_of(cause, minutes[-1])
    return PastParkSummary(
        cause,
        seconds,
        messages or 0,
        _limit_text(longest),
        longest.source,
        _at_end(cause, longest, at_end),
    )


def _longest_limit(
    cause: ParkCause, minutes: Sequence[Minute], before: Minute | None
) -> PublishLimit | None:
    held_ns: dict[PublishLimit | str | None, int] = {}
    latest: dict[PublishLimit | str | None, PublishLimit | None] = {}
    for minute in minutes:
        limit = _tighter(
            None if before is None else limit_of(cause, before), limit_of(cause, minute)
        )
        # The controller changes its limit in every cycle; over a range it counts as one limit.
        name = cause.label if cause is ParkCause.ADAPTIVE and limit is not None else limit
        held_ns[name] = held_ns.get(name, 0) + (minute[f"parked_{cause.label}_ns"] or 0)
        latest[name] = limit
        before = minute
    return latest[max(held_ns, key=lambda name: held_ns[name])]


def _tighter(old: PublishLimit | None, new: PublishLimit | None) -> PublishLimit | None:
    """The lower of the limits at a minute's two ends, which is the one that throttled."""
    if old is None or new is None:
        return old or new
    return old if is_lower(old.limit, new.limit) else new


def _longest_quota(minutes: Sequence[Minute], before: Minute | None) -> tuple[str, str]:
    """Text and source of the quota that parked for longest."""
    held_ns: dict[tuple[str, str], int] = {}
    for minute in minutes:
        # A quota that was removed within the minute is known from the previous minute.
        quota = quota_of(minute) or (None if before is None else quota_of(before)) or ("", "")
        held_ns[quota] = held_ns.get(quota, 0) + (minute["parked_backlog_quota_ns"] or 0)
        before = minute
    return max(held_ns, key=lambda quota: held_ns[quota])


def _limit_text(named: PublishLimit) -> str:
    return " and ".join(
        limit_text(named.limit, dimension)
        for dimension in Dimension
        if named.limit.amount(dimension) is not None
    )


def _at_end(cause: ParkCause, held: PublishLimit, at_end: PublishLimit | None) -> str:
    if at_end is None:
        return "gone"
    if at_end.limit == held.limit or cause is ParkCause.ADAPTIVE:
        return ""
    return _limit_text(at_end)
