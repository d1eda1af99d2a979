"""How full backlog quotas were, when they will be reached, and what they took."""

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
from headgate.pipeline.output.attribution import topic_text
from headgate.pipeline.output.breach_times import counted_from_ns
from headgate.pipeline.report.grid import Grid, Values, instants, numbers
from headgate.pipeline.report.quota_states import (
    ACT_COLUMNS,
    ACTED,
    APPROACHED,
    REACHED,
    WAS_REACHED,
    TopicKey,
    acted,
    newest,
    reached_quota,
    with_acts,
)
from headgate.pipeline.report.totals import largest, matching, totals
from headgate.pipeline.store.scan import TableScan
from headgate.pipeline.tables.columns import MINUTE_NS
from headgate.pipeline.tables.intervals import TOPIC_KEY
from headgate.pipeline.time_span import Span, since_epoch_us
from headgate.record.fields import QUOTA_TYPES

_FRESH_NS: Final = 10 * MINUTE_NS
"""A forecast of a minute that ended so long before the range's end says nothing of it."""
_LOSERS_SHOWN: Final = 3
_USES: Final = ("size_use", "time_use", "size_use_max", "time_use_max")
_EVICTED: Final = tuple(f"eviction_{quota}_messages" for quota in QUOTA_TYPES)
_BANDS: Final = ("seconds_to_breach_earliest", "seconds_to_breach", "seconds_to_breach_latest")


@dataclass(frozen=True, slots=True)
class Breach:
    """When a quota will be reached, as of the end of what is known of the topic."""

    quota: str
    """``size`` or ``time``."""
    method: str
    from_ns: int
    """That end, which the seconds run from."""
    use: float
    """How much of it is taken then, 1 being full."""
    earliest_s: float | None
    """Seconds; the quota may not be reached before. None: not known."""
    likely_s: float
    latest_s: float | None
    """None: beyond a day, or not known."""


@dataclass(frozen=True, slots=True, eq=False)
class QuotaTopic:
    """A topic and its quotas."""

    cluster: str
    name: str
    """As telemetry has it, without a partition's suffix."""
    topic: str
    size_use: Values
    """Largest use of the size quota in each step of the grid; 1 is full."""
    time_use: Values
    peak_use: float | None
    """Largest of both in the range, also within minutes; None where there is none, as of a limit
    of 0."""
    state: str
    """``REACHED``, ``APPROACHED``, ``WAS_REACHED`` or empty."""
    reached_quota: str
    """Which was reached last in the range, ``size`` or ``time``; empty: none, or not known."""
    held_s: float
    """Seconds in which a quota held producers."""
    held_share: float
    """Part of the range that these are, 0 to 1."""
    evicted_messages: int
    policy: str
    breach: Breach | None
    """None also where the last minute is not of the range's end."""
    sentence: str
    """Of its last minute."""
    sentence_ns: int
    """Start of that minute."""
    until_ns: int
    """Where what is known of it ends, which may be within a minute."""
    has_acted: bool
    """Whether one was reached in the range."""


@dataclass(frozen=True, slots=True, eq=False)
class Quotas:
    """The topics that are shown, and how it stands with all of them."""

    topics: tuple[QuotaTopic, ...] = ()
    """Those that are reached, those that break soonest, those that were reached earlier, then those
    that were fullest."""
    reached: int = 0
    """Topics with a quota that was reached in the newest minutes, shown or not."""
    approached: int = 0
    """Other topics with a breach ahead at the range's end."""
    were_reached: int = 0
    """Topics with one that was reached, but not in the newest minutes; some are approached anew."""


@dataclass(frozen=True, slots=True, eq=False)
class Eviction:
    """What one topic lost to a quota."""

    cluster: str
    topic: str
    quota: str
    acts: int
    messages: int
    bytes: int
    losers: tuple[tuple[str, int], ...]
    """The subscriptions that lost most, with messages."""
    first_ns: int
    last_ns: int
    messages_lost: Values
    """In each step of the grid."""


@dataclass(frozen=True, slots=True, eq=False)
class Evictions:
    """The topics that lost most, and what all lost."""

    worst: tuple[Eviction, ...] = ()
    messages: int = 0
    """Lost by all topics, shown or not."""


def quota_topics(scan: TableScan, span: Span, grid: Grid, top: int) -> Quotas:
    """Topics of ``quota_usage``; ``top`` of them are shown."""
    names = dict.fromkeys((*TOPIC_KEY, *_USES, *ACT_COLUMNS))
    found = totals(
        with_acts(scan.batches(list(names), span)),
        TOPIC_KEY,
        [*((name, "max") for name in _USES), ("held_seconds", "sum"), (ACTED, "sum")],
    )
    if found is None:
        return Quotas()
    until_ns = grid.end_ns if span.until_ns is None else span.until_ns
    # Not the grid's end: on long ranges its last step goes beyond all rows.
    fresh = Span(max(span.since_ns or 0, until_ns - _FRESH_NS), until_ns)
    now = newest(scan, fresh)
    did_act = found.filter(pc.greater(found[f"{ACTED}_sum"], 0)).to_pylist()
    did_act.sort(key=lambda row: (-(row["held_seconds_sum"] or 0.0), str(_key(row))))
    before = [key for row in did_act if (key := _key(row)) not in now.reached]
    reached = [key for row in did_act if (key := _key(row)) in now.reached]
    # What is still to come has room beside what is reached, however much that is.
    room = max(top - len(now.near), math.ceil(top / 2))
    peak = np.fmax.reduce([numbers(found[f"{name}_max"]) for name in _USES])
    fullest = [_key(row) for row in largest(found, np.nan_to_num(peak), top)]
    chosen = list(dict.fromkeys((*reached[:room], *now.near, *before, *reached, *fullest)))[:top]
    keys = [dict(zip(TOPIC_KEY, key, strict=True)) for key in chosen]
    rows = scan.rows(
        [
            *TOPIC_KEY, "minute", "to_ns", "size_use", "time_use", "size_policy", "time_policy",
            "breach_quota", "method", "forecast_at", *_BANDS, *_EVICTED, "sentence",
            *(name for name in ACT_COLUMNS if name not in _BANDS),
        ],
        span,
        ("topic", sorted({key["topic"] for key in keys})),
    ).sort_by("minute")  # fmt: skip
    topics = tuple(
        _quota_topic(key, matching(rows, TOPIC_KEY, key), fresh, grid, _key(key) in now.reached)
        for key in keys
    )
    return Quotas(topics, len(reached), len(now.near), len(before))


def _key(row: Mapping[str, Any]) -> TopicKey:
    return tuple(row[name] for name in TOPIC_KEY)


def _quota_topic(
    key: dict[str, Any], rows: pa.Table, fresh: Span, grid: Grid, is_reached: bool
) -> QuotaTopic:
    places = grid.places(instants(rows["minute"]))
    # Rows of older folders do not tell the most of a minute, but how much it was at its end.
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
    acts = np.flatnonzero(acted(rows))
    state = APPROACHED if breach is not None else WAS_REACHED if acts.size else ""
    held_s = float(np.nansum(numbers(rows["held_seconds"])))
    return QuotaTopic(
        cluster=key["cluster"] or "",
        name=key["topic"],
        topic=topic_text(key),
        size_use=grid.largest(places, size),
        time_use=grid.largest(places, time),
        peak_use=None if np.isnan(uses).all() else float(np.nanmax(uses)),
        state=REACHED if is_reached else state,
        reached_quota=reached_quota(rows.slice(acts[-1], 1).to_pylist()[0]) if acts.size else "",
        held_s=held_s,
        held_share=min(1.0, held_s / grid.known_s),
        evicted_messages=sum(int(np.nansum(numbers(rows[name]))) for name in _EVICTED),
        policy=", ".join(dict.fromkeys(policies)),
        breach=breach,
        sentence=last["sentence"] or "",
        sentence_ns=minute_ns,
        until_ns=end_ns if last["to_ns"] is None else last["to_ns"],
        has_acted=bool(acts.size),
    )


def _breach(last: dict[str, Any]) -> Breach | None:
    """What a topic's last minute expects."""
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
    """Topics of the table ``evictions`` by the messages that they lost; ``top`` are shown."""
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
            lost[loss["subscription"]] = lost.get(loss["subscription"], 0) + loss["messages"]
    times = instants(rows["time_ns"])
    losers = sorted(lost.items(), key=lambda item: (-item[1], item[0]))
    return Eviction(
        key["cluster"] or "",
        topic_text(key),
        key["quota"],
        key["acts_sum"] or 0,
        key["messages_sum"],
        key["bytes_sum"] or 0,
        tuple(losers[:_LOSERS_SHOWN]),
        int(times.min()),
        int(times.max()),
        grid.total(grid.places(times), numbers(rows["messages"])),
    )


def breach_time_ns(breach: Breach) -> int:
    """The instant at which the quota is likely reached."""
    return breach.from_ns + int(breach.likely_s * NS_PER_S)
