"""Rows of ``throttle_timeline`` from the minutes of limiters.

Each row depends on one minute only, so the input needs no order. ``intervals`` does not have the
waiters. A telemetry row names the five largest, with what each was granted since the previous row,
so the input also has the telemetry rows of the minute, in :data:`SAMPLES`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.base.units import NS_PER_S
from headgate.flow.limits.rate_limit import Dimension, RateLimit
from headgate.flow.sentences.backlog import limit_text
from headgate.flow.sentences.limiter import LimiterFacts, limiter_sentence
from headgate.pipeline.kernels.account_windows import longs
from headgate.pipeline.kernels.array_types import Longs
from headgate.pipeline.kernels.column_values import (
    distinct_rows,
    doubles,
    hour_rows,
    known,
    nullable,
    quotients,
)
from headgate.pipeline.kernels.counted_time import counted_ns
from headgate.pipeline.tables.arrow_types import conform, partition_columns, table_arrow_schema
from headgate.pipeline.tables.bronze import EVENT_IDENTITY
from headgate.pipeline.tables.publishing import LIMITER_KEY, THROTTLE_TIMELINE
from headgate.record.fields import WAITERS_LARGEST

_SAME: Final = (
    *LIMITER_KEY,
    "minute",
    "broker",
    "completeness",
    "from_ns",
    "to_ns",
    "covered_ns",
    "limit",
    "limit_period_ns",
    "limit_source",
    "offered",
    "granted",
    "waiting_ns",
)
"""Columns that are copied from the minute."""

INTERVAL_COLUMNS: Final = (*_SAME, "gaps", "waiters_max")
"""Columns of ``intervals`` that the kernel needs, in rows of limiters."""

SAMPLES: Final = "samples"
"""Column of structs with :data:`SAMPLE_COLUMNS`: the minute's rows in ``bronze_samples``,
duplicates included; null if there are none."""

_WAITERS: Final = tuple(
    (f"waiter_{place}", f"waiter_{place}_amount") for place in range(1, WAITERS_LARGEST + 1)
)
SAMPLE_COLUMNS: Final = (
    *EVENT_IDENTITY,
    "waiters_max",
    *(name for pair in _WAITERS for name in pair),
)
"""Columns of ``bronze_samples`` that the kernel needs."""

_LIMIT: Final = ("level", "dimension", "limit", "limit_period_ns", "limit_source")

_SAMPLE_TYPES: Final = {
    "seq": pa.int64(),
    "row": pa.int32(),
    "waiters_max": pa.int64(),
    **{amount: pa.int64() for _, amount in _WAITERS},
}

SAMPLES_TYPE: Final = pa.list_(
    pa.struct([pa.field(n, _SAMPLE_TYPES.get(n, pa.string())) for n in SAMPLE_COLUMNS])
)
"""Type of the column :data:`SAMPLES`."""

Waiter = tuple[str, int | None]
"""Its name and what it was granted; None if no row has that."""


def timeline_table(table: pa.Table, hours: Collection[int]) -> pa.Table:
    """One row for each limiter and minute of some hours (numbers since the epoch)."""
    schema = table_arrow_schema(THROTTLE_TIMELINE)
    minutes = table.filter(pa.array(hour_rows(table, hours)))
    if minutes.num_rows == 0:
        return schema.empty_table()
    places, limits = _limits(minutes)
    waiters = _minute_waiters(minutes)
    base_ns = counted_ns(minutes)
    granted, waiting_ns = doubles(minutes, "granted"), doubles(minutes, "waiting_ns")
    limit_per_s = np.array([limit.per_s for limit in limits])[places]
    allowed = limit_per_s * base_ns / NS_PER_S
    use = np.where(allowed != 0, granted / np.where(allowed != 0, allowed, 1.0), np.nan)
    waiting = np.minimum(1.0, quotients(longs(minutes, "waiting_ns"), np.maximum(base_ns, 1)))
    waiting = np.where((base_ns != 0) & ~np.isnan(waiting_ns), waiting, np.nan)
    is_counted = known(minutes, "offered") & known(minutes, "granted")
    held = np.maximum(0, longs(minutes, "offered") - longs(minutes, "granted"))
    held_column = pa.array(held, mask=~is_counted)
    figures = (
        minutes.column("granted"), held_column, nullable(use), nullable(waiting), waiters.peak,
    )  # fmt: skip
    columns: dict[str, Any] = {
        **partition_columns(longs(minutes, "from_ns")),
        **{name: minutes.column(name) for name in _SAME},
        "counted_ns": pa.array(base_ns),
        "limit_per_s": nullable(limit_per_s),
        "held": held_column,
        "waiting_share": nullable(waiting),
        "waiters_max": waiters.peak,
        "use": nullable(use),
        "waiters": waiters.as_json(),
        "sentence": _sentences(places, limits, [each.to_pylist() for each in figures], waiters),
    }
    return conform(columns, schema, minutes.num_rows)


@dataclass(frozen=True, slots=True)
class _Limit:
    """A limit that minutes share, in figures and words."""

    level: str
    dimension: str
    per_s: float
    """NaN without a limit."""
    text: str
    source: str


def _limits(minutes: pa.Table) -> tuple[Longs, list[_Limit]]:
    """The distinct limits, and by minute the place of its own."""
    places, rows = distinct_rows(minutes, _LIMIT)
    limits = []
    for row in rows:
        limit, period_ns = row["limit"], row["limit_period_ns"] or NS_PER_S
        period_ns = period_ns if period_ns > 0 else NS_PER_S  # as ``account_windows`` has it
        limits.append(
            _Limit(
                row["level"] or "",
                row["dimension"] or "",
                limit * NS_PER_S / period_ns if limit else np.nan,
                _limit_text(row["dimension"], limit, period_ns),
                row["limit_source"] or "",
            )
        )
    return places, limits


@dataclass(frozen=True, slots=True)
class _Waiters:
    """The waiters of n minutes: those of minute i are from ``begins[i]`` to ``begins[i + 1]``, the
    largest first."""

    begins: Longs
    names: pa.Array
    granted: pa.Array
    """Null if no row that names the waiter has an amount."""
    peak: pa.Array
    """By minute: most waiters at once."""

    def as_json(self) -> pa.Array:
        """By minute: the waiters as a JSON array; null without any."""
        names = self.names.dictionary_encode()
        quoted = pa.array([json.dumps(name) for name in names.dictionary.to_pylist()], pa.string())
        amounts = pc.fill_null(self.granted.cast(pa.string()), "null")
        each = pc.binary_join_element_wise(
            '{"waiter": ', quoted.take(names.indices), ', "granted": ', amounts, "}", ""
        )
        lists = pa.ListArray.from_arrays(pa.array(self.begins, pa.int32()), each)
        joined = pc.binary_join_element_wise("[", pc.binary_join(lists, ", "), "]", "")
        is_empty = self.begins[1:] == self.begins[:-1]
        return pc.if_else(pa.array(is_empty), pa.scalar(None, pa.string()), joined)

    def lists(self) -> list[tuple[Waiter, ...]]:
        """The waiters of each minute."""
        pairs = list(zip(self.names.to_pylist(), self.granted.to_pylist(), strict=True))
        begins = self.begins.tolist()
        return [tuple(pairs[begin:end]) for begin, end in pairwise(begins)]


_MINUTE: Final = "minute_place"


def _minute_waiters(minutes: pa.Table) -> _Waiters:
    """The waiters of each minute, from its samples without duplicates.

    Duplicates come from messages that were read twice.
    """
    samples = _distinct_samples(minutes.column(SAMPLES).combine_chunks())
    peaks = samples.group_by(_MINUTE, use_threads=False).aggregate([("waiters_max", "max")])
    peak = minutes.column("waiters_max").combine_chunks()
    if peaks.num_rows:
        by_minute = np.full(minutes.num_rows, -1, dtype=np.int64)
        by_minute[peaks.column(_MINUTE).to_numpy()] = np.arange(peaks.num_rows)
        sampled = peaks.column("waiters_max_max").combine_chunks()
        peak = pc.coalesce(sampled.take(pa.array(by_minute, mask=by_minute < 0)), peak)
    named = pa.concat_tables(
        samples.select([_MINUTE, name, amount]).rename_columns([_MINUTE, "name", "granted"])
        for name, amount in _WAITERS
    )
    named = named.filter(pc.is_valid(named.column("name")))
    summed = named.group_by([_MINUTE, "name"], use_threads=False).aggregate([("granted", "sum")])
    size = pc.fill_null(summed.column("granted_sum"), 0)
    ordered = summed.append_column("size", size).sort_by(
        [(_MINUTE, "ascending"), ("size", "descending"), ("name", "ascending")]
    )
    place = ordered.column(_MINUTE).to_numpy()
    return _Waiters(
        np.searchsorted(place, np.arange(minutes.num_rows + 1)).astype(np.int64),
        ordered.column("name").combine_chunks(),
        ordered.column("granted_sum").combine_chunks(),
        peak,
    )


def _distinct_samples(samples: pa.ListArray) -> pa.Table:
    """The rows of all lists, each once in a list, with the place of its list."""
    typed = samples.cast(SAMPLES_TYPE)
    rows = pa.Table.from_struct_array(pc.list_flatten(typed))
    rows = rows.append_column(_MINUTE, pc.list_parent_indices(typed))
    numbered = rows.append_column("place", pa.array(np.arange(rows.num_rows)))
    key = [_MINUTE, *EVENT_IDENTITY]
    last = numbered.group_by(key, use_threads=False).aggregate([("place", "max")])
    return rows.take(last.column("place_max"))


def _sentences(
    places: Longs, limits: Sequence[_Limit], figures: Sequence[list[Any]], waiters: _Waiters
) -> list[str]:
    """One sentence for each minute. Equal minutes, as those of an idle limiter, share one."""
    texts: dict[tuple[Any, ...], str] = {}
    found = []
    for facts in zip(places.tolist(), *figures, waiters.lists(), strict=True):
        text = texts.get(facts)
        if text is None:
            text = texts[facts] = _sentence(limits[facts[0]], *facts[1:])
        found.append(text)
    return found


def _sentence(
    limit: _Limit,
    granted: int | None,
    held: int | None,
    use: float | None,
    waiting_share: float | None,
    waiters_max: int | None,
    waiters: Sequence[Waiter],
) -> str:
    return limiter_sentence(
        LimiterFacts(
            level=limit.level,
            dimension=limit.dimension,
            limit_text=limit.text,
            source=limit.source,
            granted=granted,
            held=held,
            use=use,
            waiting_share=waiting_share,
            waiters_max=waiters_max,
            waiters=waiters,
        )
    )


def _limit_text(dimension: str | None, limit: int | None, period_ns: int) -> str:
    if not limit or limit < 0:
        return ""
    if dimension == Dimension.BYTES.name.lower():
        return limit_text(RateLimit(None, limit, period_ns), Dimension.BYTES)
    return limit_text(RateLimit(limit, None, period_ns), Dimension.MESSAGES)
