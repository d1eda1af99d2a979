"""The worst backlogs of a range, with their causes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.base.units import NS_PER_S
from headgate.flow.account.verdict import Verdict
from headgate.pipeline.kernels.array_types import Doubles, Flags
from headgate.pipeline.kernels.attribution import INPUT_COLUMNS
from headgate.pipeline.kernels.blame import (
    BLAME_INPUT,
    WEIGHT_INPUT,
    blamed_s,
    blamed_shares,
    weight_s,
)
from headgate.pipeline.kernels.subscription_range import judge_subscription_range
from headgate.pipeline.kernels.topic_waiters import INPUT_COLUMNS as SHARING_COLUMNS
from headgate.pipeline.kernels.topic_waiters import TOPIC_KEY, WAITERS, waiters
from headgate.pipeline.kernels.totals import totals
from headgate.pipeline.output.attribution import topic_text
from headgate.pipeline.output.unused_subscriptions import unused
from headgate.pipeline.report.grid import Grid, account_span, instants, numbers
from headgate.pipeline.report.row_selection import largest, matching
from headgate.pipeline.store.scan import TableScan
from headgate.pipeline.tables.attribution import ATTRIBUTION_KEY, BLAMES, DEMONSTRATED_LOOK_BACK_NS
from headgate.pipeline.time_span import Span
from headgate.record.fields import Kind

_BLAME_SECONDS: Final = tuple(f"blame_{blame.lower()}_s" for blame in BLAMES)
_SERIES_COLUMNS: Final = ("minute", "from_ns", "to_ns", "backlog_messages")
_SUMMED: Final = ("growth_messages", "backlog_messages", "acked", "proven_rate_per_s")
_UNUSED_SHARE_MAX: Final = 0.25
"""Largest share of the list of the worst that unused subscriptions take from others."""
_BLAMED_SHARE_MIN: Final = 0.01
"""A subscription counts only if its backlog had a cause for at least this share of the time."""


@dataclass(frozen=True, slots=True, eq=False)
class WorstBacklog:
    """The backlog of one subscription over the range."""

    cluster: str
    topic: str
    """Of a partition, with its suffix."""
    subscription: str
    verdict: str
    confidence: float
    completeness: float
    growth_messages: int
    backlog_messages: int
    """At the end of the range."""
    peak_messages: int
    seconds: float
    """From the begin of its first account to the end of its last."""
    sentence: str
    span: Span
    """From the begin of its first account to the end of its last; both may lie within a minute."""
    levels: Doubles
    """Largest backlog in each step of the grid; NaN in a step without an account."""
    shares: dict[str, Doubles]
    """By cause: its share of the time of each step."""
    is_unused: bool
    """Whether it is unused, as :mod:`headgate.pipeline.output.unused_subscriptions` says."""

    @property
    def growth_per_s(self) -> float:
        """Growth in messages per second."""
        return self.growth_messages / self.seconds if self.seconds > 0 else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class UnusedSubscriptions:
    """Unused subscriptions with a backlog, in total."""

    subscriptions: int = 0
    growth_messages: int = 0
    """Sum over those that grew."""
    name: tuple[str, str] = ("", "")
    """Topic and subscription of the largest backlog among them."""
    backlog_messages: int = 0
    """Largest backlog of that subscription."""


@dataclass(frozen=True, slots=True, eq=False)
class Backlogs:
    """Totals over all backlogs, and the worst ones."""

    subscriptions: int
    growing: int
    """Subscriptions whose backlog grew and had a cause, without the unused ones."""
    growth_messages: int
    """Sum of their growth."""
    blame_seconds: dict[str, float]
    """Seconds by cause, summed over the growing subscriptions."""
    worst: tuple[WorstBacklog, ...]
    """The fastest growing first, the unused ones last."""
    unused: UnusedSubscriptions = field(default_factory=UnusedSubscriptions)


def backlogs(
    attribution: TableScan, intervals: TableScan, span: Span, grid: Grid, top: int
) -> Backlogs:
    """Read ``attribution`` and ``intervals``; at most ``top`` backlogs are listed."""
    found = totals(
        _weighed(attribution, span),
        ATTRIBUTION_KEY,
        [
            ("growth_messages", "sum"),
            ("backlog_messages", "max"),
            ("acked", "sum"),
            ("proven_rate_per_s", "max"),
            *((name, "sum") for name in _BLAME_SECONDS),
        ],
    )
    if found is None:
        return Backlogs(0, 0, 0, dict.fromkeys(BLAMES, 0.0), ())
    seconds = [found[f"{name}_sum"] for name in _BLAME_SECONDS]
    blamed_seconds = np.sum([numbers(column) for column in seconds[1:]], axis=0)
    is_case = blamed_seconds > _BLAMED_SHARE_MIN * (blamed_seconds + numbers(seconds[0]))
    is_unused = is_case & _unused(found)
    grew = numbers(found["growth_messages_sum"]) > 0
    growing = found.filter(pa.array(is_case & grew & ~is_unused))
    unused_rows = found.filter(pa.array(is_unused))
    cases = found.filter(pa.array(is_case & ~is_unused))
    unused_keys = _worst(
        unused_rows, max(top - cases.num_rows, math.floor(_UNUSED_SHARE_MAX * top))
    )
    keys = _worst(cases, top - len(unused_keys))
    return Backlogs(
        found.num_rows,
        growing.num_rows,
        pc.sum(growing["growth_messages_sum"]).as_py() or 0,
        {
            blame: pc.sum(growing[f"{name}_sum"]).as_py() or 0.0
            for blame, name in zip(BLAMES, _BLAME_SECONDS, strict=True)
        },
        _worst_backlogs(attribution, intervals, span, grid, keys, unused_keys),
        _unused_summary(unused_rows),
    )


def _weighed(attribution: TableScan, span: Span) -> Iterator[pa.RecordBatch]:
    """Rows with shares turned into seconds of blame, which can be summed."""
    names = (*ATTRIBUTION_KEY, *_SUMMED)
    for batch in attribution.batches((*names, *BLAME_INPUT, *WEIGHT_INPUT), span):
        seconds = blamed_s(batch)
        yield pa.record_batch(
            [*(batch.column(name) for name in names), *(seconds[blame] for blame in BLAMES)],
            names=[*names, *_BLAME_SECONDS],
        )


def _unused(found: pa.Table) -> Flags:
    """Whether each row of totals is of an unused subscription."""
    seconds = {name: numbers(found[f"{name}_sum"]) for name in _BLAME_SECONDS}
    whole = np.sum(list(seconds.values()), axis=0)
    lacking = seconds["blame_no_consumer_s"]
    share = np.divide(lacking, whole, out=np.zeros_like(whole), where=whole > 0)
    facts = (found[name].to_pylist() for name in ("acked_sum", "proven_rate_per_s_max"))
    return np.array([unused(*row) for row in zip(share.tolist(), *facts, strict=True)], np.bool_)


def _unused_summary(unused_rows: pa.Table) -> UnusedSubscriptions:
    if not unused_rows.num_rows:
        return UnusedSubscriptions()
    largest_backlog = numbers(unused_rows["backlog_messages_max"])
    place = int(np.argmax(np.nan_to_num(largest_backlog)))
    row = unused_rows.slice(place, 1).to_pylist()[0]
    growth = np.nan_to_num(numbers(unused_rows["growth_messages_sum"]))
    return UnusedSubscriptions(
        unused_rows.num_rows,
        int(np.maximum(growth, 0).sum()),
        (topic_text(row), row["subscription"] or ""),
        row["backlog_messages_max"] or 0,
    )


def _worst(cases: pa.Table, top: int) -> list[dict[str, Any]]:
    """The keys of the worst: half by growth, the others by the largest backlog."""
    rows = cases.select([*ATTRIBUTION_KEY, "growth_messages_sum", "backlog_messages_max"])
    growing = largest(rows, numbers(rows["growth_messages_sum"]), math.ceil(top / 2))
    found = {_key(row): row for row in growing}
    for row in largest(rows, numbers(rows["backlog_messages_max"]), top):
        if len(found) < top:
            found.setdefault(_key(row), row)
    return list(found.values())


def _key(row: Any) -> tuple[Any, ...]:
    return tuple(row[name] for name in ATTRIBUTION_KEY)


def _worst_backlogs(
    attribution: TableScan,
    intervals: TableScan,
    span: Span,
    grid: Grid,
    used_keys: Sequence[dict[str, Any]],
    unused_keys: Sequence[dict[str, Any]],
) -> tuple[WorstBacklog, ...]:
    keys = [*used_keys, *unused_keys]
    if not keys:
        return ()
    filters = [(name, sorted({row[name] for row in keys})) for name in ("topic", "subscription")]
    demonstrated = Span(grid.start_ns - DEMONSTRATED_LOOK_BACK_NS, span.until_ns)
    subscriptions = ("kind", [Kind.SUBSCRIPTION.value])
    accounts = intervals.rows(INPUT_COLUMNS, demonstrated, subscriptions, *filters)
    series = attribution.rows(
        tuple(dict.fromkeys((*ATTRIBUTION_KEY, *_SERIES_COLUMNS, *BLAME_INPUT, *WEIGHT_INPUT))),
        span,
        *filters,
    )
    others = waiters(
        intervals.rows(SHARING_COLUMNS, Span(grid.start_ns, grid.end_ns), subscriptions, filters[0])
    )
    found = []
    for place, key in enumerate(keys):
        minutes = matching(accounts, ATTRIBUTION_KEY, key).sort_by("minute")
        here = matching(others, TOPIC_KEY, key)[WAITERS.name].to_pylist()
        judged = judge_subscription_range(
            minutes, grid.start_ns, grid.end_ns, here[0] if here else None
        )
        # The range may have no cause although single minutes have one.
        if judged is not None and judged["verdict"] != Verdict.NONE.value:
            mine = matching(series, ATTRIBUTION_KEY, key)
            is_unused = place >= len(used_keys)
            found.append(_worst_backlog(key, judged, mine, grid, is_unused=is_unused))
    found.sort(key=lambda o: (o.is_unused, -o.growth_messages, -o.peak_messages, o.topic))
    return tuple(found)


def _worst_backlog(
    key: dict[str, Any],
    judged: dict[str, Any],
    series: pa.Table,
    grid: Grid,
    *,
    is_unused: bool,
) -> WorstBacklog:
    steps = grid.step_indexes(instants(series["minute"]))
    weight = numbers(weight_s(series))
    shares = {
        blame: np.nan_to_num(grid.mean(steps, numbers(share), weight))
        for blame, share in blamed_shares(series).items()
    }
    return WorstBacklog(
        key["cluster"] or "",
        topic_text(key),
        key["subscription"] or "",
        judged["verdict"],
        judged["confidence"],
        judged["completeness"],
        judged["growth_messages"],
        judged["backlog_messages"],
        # Levels are those at the end of a minute: a shrinking backlog was largest at the start.
        max(key["backlog_messages_max"], judged["backlog_messages"] - judged["growth_messages"]),
        (judged["to_ns"] - judged["from_ns"]) / NS_PER_S,
        judged["sentence"],
        account_span(series),
        grid.largest(steps, numbers(series["backlog_messages"])),
        shares,
        is_unused,
    )
