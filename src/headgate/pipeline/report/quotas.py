"""The backlog quotas of a range: use, forecast and evictions."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.base.units import NS_PER_S, NS_PER_US
from headgate.pipeline.kernels.array_types import Doubles
from headgate.pipeline.kernels.totals import totals
from headgate.pipeline.output.attribution import topic_text
from headgate.pipeline.output.breach_times import counted_from_ns
from headgate.pipeline.report.grid import Grid, instants, numbers
from headgate.pipeline.report.quota_states import (
    APPROACHED,
    IS_REACHED,
    REACHED,
    REACHED_COLUMNS,
    WAS_REACHED,
    TopicKey,
    reached_minutes,
    reached_quota,
    states_at_end,
    with_reached,
)
from headgate.pipeline.report.row_selection import largest, matching
from headgate.pipeline.store.scan import TableScan
from headgate.pipeline.tables.columns import MINUTE_NS
from headgate.pipeline.tables.intervals import TOPIC_KEY
from headgate.pipeline.time_span import Span, since_epoch_us
from headgate.record.fields import QUOTA_TYPES

_FRESH_NS: Final = 10 * MINUTE_NS
"""A forecast is used if its minute ended at most so long before the end of the range."""
_AFFECTED_SHOWN: Final = 3
_USES: Final = ("size_use", "time_use", "size_use_max", "time_use_max")
_EVICTED: Final = tuple(f"eviction_{quota}_messages" for quota in QUOTA_TYPES)
BANDS: Final = ("seconds_to_breach_earliest", "seconds_to_breach", "seconds_to_breach_latest")


@dataclass(frozen=True, slots=True)
class Breach:
    """The forecast of a quota's breach, as of the newest telemetry of the topic."""

    quota: str
    """``size`` or ``time``."""
    method: str
    from_ns: int
    """The instant from which the seconds count."""
    use: float
    """Use of the quota at that instant; 1 is full."""
    earliest_s: float | None
    """Seconds to the early end of the band; None: unknown."""
    likely_s: float
    latest_s: float | None
    """Seconds to the late end of the band; None: more than a day, or unknown."""


@dataclass(frozen=True, slots=True, eq=False)
class QuotaTopic:
    """The quotas of one topic."""

    cluster: str
    name: str
    """The name in the telemetry, without the suffix of a partition."""
    topic: str
    size_use: Doubles
    """Largest use of the size quota in each step of the grid; 1 is full."""
    time_use: Doubles
    peak_use: float | None
    """Largest use of either quota in the range, also within minutes; None if unknown, as with a
    limit of 0."""
    state: str
    """``REACHED``, ``APPROACHED``, ``WAS_REACHED`` or empty."""
    reached_quota: str
    """The quota that was reached last in the range, ``size`` or ``time``; empty: none, or unknown.
    """
    held_s: float
    """Seconds in which a quota held producers."""
    held_share: float
    """Share of the range, 0 to 1."""
    evicted_messages: int
    policy: str
    breach: Breach | None
    """None also if the last minute is not at the end of the range."""
    sentence: str
    """The sentence of its last minute."""
    sentence_ns: int
    """Start of that minute."""
    until_ns: int
    """End of its telemetry, which may lie within a minute."""
    was_reached: bool
    """Whether a quota was reached in the range."""


@dataclass(frozen=True, slots=True, eq=False)
class Quotas:
    """The topics that the page shows, with counts of all topics by state."""

    topics: tuple[QuotaTopic, ...] = ()
    """Topics with a reached quota first, then by the soonest breach, then those reached earlier,
    then the fullest."""
    reached: int = 0
    """Topics with a quota that was reached in the newest minutes, shown or not."""
    approached: int = 0
    """Other topics with a breach ahead at the end of the range."""
    were_reached: int = 0
    """Topics with a quota that was reached, but not in the newest minutes; some may be approached
    again."""


@dataclass(frozen=True, slots=True, eq=False)
class Eviction:
    """Messages that a quota evicted from one topic."""

    cluster: str
    topic: str
    quota: str
    acts: int
    messages: int
    bytes: int
    affected: tuple[tuple[str, int], ...]
    """The subscriptions that lost most, each with its messages."""
    first_ns: int
    last_ns: int
    messages_lost: Doubles
    """In each step of the grid."""


@dataclass(frozen=True, slots=True, eq=False)
class Evictions:
    """The topics with most evicted messages, with the total of all."""

    worst: tuple[Eviction, ...] = ()
    messages: int = 0
    """Evicted messages of all topics, shown or not."""


def quota_topics(scan: TableScan, span: Span, grid: Grid, top: int) -> Quotas:
    """The ``top`` topics of ``quota_usage``."""
    names = dict.fromkeys((*TOPIC_KEY, *_USES, *REACHED_COLUMNS))
    found = totals(
        with_reached(scan.batches(list(names), span)),
        TOPIC_KEY,
        [*((name, "max") for name in _USES), ("held_seconds", "sum"), (IS_REACHED, "sum")],
    )
    if found is None:
        return Quotas()
    until_ns = grid.end_ns if span.until_ns is None else span.until_ns
    # Not the end of the grid: in a long range its last step ends after the last row.
    fresh = Span(max(span.since_ns or 0, until_ns - _FRESH_NS), until_ns)
    states = states_at_end(scan, fresh)
    had_reached = found.filter(pc.greater(found[f"{IS_REACHED}_sum"], 0)).to_pylist()
    had_reached.sort(key=lambda row: (-(row["held_seconds_sum"] or 0.0), str(_key(row))))
    before = [key for row in had_reached if (key := _key(row)) not in states.reached]
    reached = [key for row in had_reached if (key := _key(row)) in states.reached]
    # At most half of the list shows reached quotas if others are approached.
    room = max(top - len(states.approached), math.ceil(top / 2))
    peak = np.fmax.reduce([numbers(found[f"{name}_max"]) for name in _USES])
    fullest = [_key(row) for row in largest(found, np.nan_to_num(peak), top)]
    chosen = list(
        dict.fromkeys((*reached[:room], *states.approached, *before, *reached, *fullest))
    )[:top]
    keys = [dict(zip(TOPIC_KEY, key, strict=True)) for key in chosen]
    rows = scan.rows(
        [
            *TOPIC_KEY, "minute", "to_ns", "size_use", "time_use", "size_policy", "time_policy",
            "breach_quota", "method", "forecast_at", *BANDS, *_EVICTED, "sentence",
            *(name for name in REACHED_COLUMNS if name not in BANDS),
        ],
        span,
        ("topic", sorted({key["topic"] for key in keys})),
    ).sort_by("minute")  # fmt: skip
    topics = tuple(
        _quota_topic(key, matching(rows, TOPIC_KEY, key), fresh, grid, _key(key) in states.reached)
        for key in keys
    )
    return Quotas(topics, len(reached), len(states.approached), len(before))


def _key(row: Mapping[str, Any]) -> TopicKey:
    return tuple(row[name] for name in TOPIC_KEY)


def _quota_topic(
    key: dict[str, Any], rows: pa.Table, fresh: Span, grid: Grid, is_reached: bool
) -> QuotaTopic:
    steps = grid.step_indexes(instants(rows["minute"]))
    # Rows of older folders have the use at the end of a minute only, not the largest in it.
    size, time = (
        np.fmax(numbers(rows[f"{quota}_use_max"]), numbers(rows[f"{quota}_use"]))
        for quota in QUOTA_TYPES
    )
    last = rows.slice(rows.num_rows - 1).to_pylist()[0]
    uses = np.concatenate([size, time])
    minute_ns = since_epoch_us(last["minute"]) * NS_PER_US
    end_ns = minute_ns + MINUTE_NS
    breach = _breach(last) if end_ns > (fresh.since_ns or 0) else None
    policies = [last[f"{q}_policy"] for q in ("size", "time") if last[f"{q}_policy"]]
    reached_rows = np.flatnonzero(reached_minutes(rows))
    state = APPROACHED if breach is not None else WAS_REACHED if reached_rows.size else ""
    held_s = float(np.nansum(numbers(rows["held_seconds"])))
    return QuotaTopic(
        cluster=key["cluster"] or "",
        name=key["topic"],
        topic=topic_text(key),
        size_use=grid.largest(steps, size),
        time_use=grid.largest(steps, time),
        peak_use=None if np.isnan(uses).all() else float(np.nanmax(uses)),
        state=REACHED if is_reached else state,
        reached_quota=reached_quota(rows.slice(reached_rows[-1], 1).to_pylist()[0])
        if reached_rows.size
        else "",
        held_s=held_s,
        held_share=min(1.0, held_s / grid.known_s),
        evicted_messages=sum(int(np.nansum(numbers(rows[name]))) for name in _EVICTED),
        policy=", ".join(dict.fromkeys(policies)),
        breach=breach,
        sentence=last["sentence"] or "",
        sentence_ns=minute_ns,
        until_ns=end_ns if last["to_ns"] is None else last["to_ns"],
        was_reached=bool(reached_rows.size),
    )


def _breach(last: dict[str, Any]) -> Breach | None:
    """The forecast of a topic's last minute; None if it expects no breach."""
    if last["seconds_to_breach"] is None:
        return None
    quota = last["breach_quota"] or "size"
    return Breach(
        quota,
        last["method"] or "",
        counted_from_ns(last),
        1.0 if last[f"{quota}_use"] is None else last[f"{quota}_use"],
        last["seconds_to_breach_earliest"],
        last["seconds_to_breach"],
        last["seconds_to_breach_latest"],
    )


def evictions(scan: TableScan, span: Span, grid: Grid, top: int) -> Evictions:
    """The ``top`` topics of the table ``evictions`` by evicted messages."""
    keys = (*TOPIC_KEY, "quota")
    found = totals(
        scan.batches([*keys, "acts", "messages", "bytes"], span),
        keys,
        [("acts", "sum"), ("messages", "sum"), ("bytes", "sum")],
    )
    if found is None:
        return Evictions()
    worst = largest(found, np.nan_to_num(numbers(found["messages_sum"])), top)
    if not worst:
        return Evictions()
    rows = scan.rows(
        [*keys, "time_ns", "messages", "subscriptions"],
        span,
        ("topic", sorted({key["topic"] for key in worst})),
    )
    shown = tuple(_eviction(key, matching(rows, keys, key), grid) for key in worst)
    return Evictions(shown, pc.sum(found["messages_sum"]).as_py())


def _eviction(key: dict[str, Any], rows: pa.Table, grid: Grid) -> Eviction:
    lost: dict[str, int] = {}
    for text in rows["subscriptions"].to_pylist():
        for loss in json.loads(text or "[]"):
            name = loss["subscription"] or ""
            lost[name] = lost.get(name, 0) + (loss["messages"] or 0)
    times = instants(rows["time_ns"])
    affected = sorted(lost.items(), key=lambda item: (-item[1], item[0]))
    return Eviction(
        key["cluster"] or "",
        topic_text(key),
        key["quota"],
        key["acts_sum"] or 0,
        key["messages_sum"],
        key["bytes_sum"] or 0,
        tuple(affected[:_AFFECTED_SHOWN]),
        int(times.min()),
        int(times.max()),
        grid.total(grid.step_indexes(times), numbers(rows["messages"])),
    )


def breach_time_ns(breach: Breach) -> int:
    """The likely time of the breach."""
    return breach.from_ns + int(breach.likely_s * NS_PER_S)
