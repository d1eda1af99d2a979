"""Timelines: the cause and the backlog of subscriptions by minute."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.base.units import NS_PER_S, NS_PER_US
from headgate.pipeline.kernels.totals import totals
from headgate.pipeline.output.attribution import topic_text
from headgate.pipeline.report.grid import Grid, numbers
from headgate.pipeline.report.row_selection import largest, matching
from headgate.pipeline.serve.selection import (
    Selection,
    document,
    instant_or_none,
    is_topic,
    topic_names,
)
from headgate.pipeline.store.scan import TableScan
from headgate.pipeline.tables.attribution import ATTRIBUTION_KEY
from headgate.pipeline.tables.columns import MINUTE_NS
from headgate.pipeline.time_span import iso_text, since_epoch_us

SUBSCRIPTIONS_MAX: Final = 50
"""Most subscriptions of one answer."""

STRIP_STEPS_MAX: Final = 240
"""Most steps of a strip in the list, which is narrow; one subscription alone has every minute."""

RUNS_MAX: Final = 200
"""Most runs of one subscription's minutes with the same cause: the latest are shown."""

_NONE: Final = "NONE"
_MINUTE: Final = (
    *ATTRIBUTION_KEY, "minute", "verdict", "backlog_messages", "growth_messages", "confidence",
    "completeness", "oldest_age_max_ns", "evidence", "sentence",
)  # fmt: skip


def timelines(scan: TableScan, selection: Selection) -> dict[str, Any]:
    """The subscriptions with the largest backlogs of a range, each with its strip of causes.

    With a verdict: those that have a minute with it. ``more`` is how many pass beside those that
    are shown.
    """
    filters = [("verdict", [selection.verdict])] if selection.verdict else []
    names = (*ATTRIBUTION_KEY, "backlog_messages")
    found = totals(
        selection.named(scan.batches(names, selection.span, *filters)),
        ATTRIBUTION_KEY,
        [("backlog_messages", "max")],
    )
    if found is None:
        return {**selection.document(), "subscriptions": [], "more": 0}
    peaks = np.nan_to_num(numbers(found["backlog_messages_max"]))
    keys = largest(found, peaks, selection.count)
    more = int((peaks > 0).sum()) - len(keys)
    rows = _minutes_of(scan, selection, keys)
    grid = Grid.over(selection.since_ns, selection.until_ns, STRIP_STEPS_MAX)
    return {
        **selection.document(),
        "subscriptions": [
            _subscription(key, matching(rows, ATTRIBUTION_KEY, key).to_pylist(), grid)
            for key in keys
        ],
        "more": more,
    }


def timeline(
    scan: TableScan, selection: Selection, topic: str, subscription: str, cluster: str = ""
) -> dict[str, Any]:
    """One subscription by minute, and the runs of minutes with the same cause.

    ``topic`` is a full name, of a partition with its suffix. ``cluster`` may be empty: any. A
    subscription without rows in the range has an empty timeline.
    """
    filters: list[tuple[str, Sequence[str]]] = [
        ("topic", topic_names(topic)), ("subscription", [subscription]),
    ]  # fmt: skip
    if cluster:
        filters.append(("cluster", [cluster]))
    rows = [
        row
        for batch in scan.batches(_MINUTE, selection.span, *filters)
        for row in batch.to_pylist()
        if is_topic(row, topic)
    ]
    rows.sort(key=lambda row: (row["minute"], row["incarnation"] or 0))
    grid = Grid.over(selection.since_ns, selection.until_ns)
    runs = list(runs_of(rows))
    return {
        **selection.document(),
        "topic": topic,
        "subscription": subscription,
        "timeline": _steps(rows, grid),
        "runs": runs[-RUNS_MAX:],
        "runsMore": max(0, len(runs) - RUNS_MAX),
    }


def _minutes_of(
    scan: TableScan, selection: Selection, keys: Sequence[Mapping[str, Any]]
) -> pa.Table:
    """The minutes of some subscriptions, without most of those that share a part of their names."""
    values = {name: list({key[name] for key in keys}) for name in ATTRIBUTION_KEY}
    filters = [(name, values[name]) for name in ("topic", "subscription")]
    kept = []
    for batch in scan.batches(_MINUTE, selection.span, *filters):
        rows = pa.Table.from_batches([batch])
        for name in ("cluster", "partition", "incarnation"):
            known = pa.array(values[name], rows[name].type)
            rows = rows.filter(pc.is_in(rows[name], value_set=known))
        kept.append(rows)
    return pa.concat_tables(kept).sort_by("minute")


def _subscription(
    key: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], grid: Grid
) -> dict[str, Any]:
    worst = max(rows, key=_backlog)
    return {
        "topic": topic_text(key),
        **document(key, ("cluster", "subscription", "incarnation")),
        "timeline": _steps(rows, grid),
        "isInferred": any(row["evidence"] == "inferred" for row in rows),
        "peak": _minute(worst),
        "last": _minute(rows[-1]),
    }


def _minute(row: Mapping[str, Any]) -> dict[str, Any]:
    age_ns = row["oldest_age_max_ns"]
    names = (
        "minute", "verdict", "backlog_messages", "growth_messages", "confidence", "completeness",
        "evidence", "sentence",
    )  # fmt: skip
    return {
        **document(row, names),
        "oldestAgeMaxS": None if age_ns is None else age_ns / NS_PER_S,
    }


def _steps(rows: Iterable[Mapping[str, Any]], grid: Grid) -> dict[str, Any]:
    """The verdict and the largest backlog of each step, null where no row tells them.

    The verdict of a step of several minutes is that of its largest backlog with a cause.
    """
    best = [(False, -1)] * grid.count
    verdicts: list[str | None] = [None] * grid.count
    backlog: list[int | None] = [None] * grid.count
    for row in rows:
        step = min(grid.count - 1, max(0, (_start_ns(row) - grid.start_ns) // grid.step_ns))
        weight = (row["verdict"] != _NONE, _backlog(row))
        if weight > best[step]:
            best[step], verdicts[step] = weight, row["verdict"]
        backlog[step] = max(backlog[step] or 0, _backlog(row))
    return {
        "start": iso_text(grid.start_ns),
        "stepS": grid.step_ns // NS_PER_S,
        "verdicts": verdicts,
        "backlog": backlog,
    }


def _backlog(row: Mapping[str, Any]) -> int:
    return int(row["backlog_messages"] or 0)


def runs_of(rows: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Consecutive minutes with the same verdict, from rows in the order of time.

    A minute without a row ends a run. Each run has the sentence of its largest backlog.
    """
    run: list[Mapping[str, Any]] = []
    for row in rows:
        if run and (
            row["verdict"] != run[-1]["verdict"] or _start_ns(row) > _start_ns(run[-1]) + MINUTE_NS
        ):
            yield _run(run)
            run = []
        run.append(row)
    if run:
        yield _run(run)


def _run(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    worst = max(rows, key=_backlog)
    begin_ns, end_ns = _start_ns(rows[0]), _start_ns(rows[-1]) + MINUTE_NS
    return {
        "verdict": rows[0]["verdict"],
        "start": instant_or_none(begin_ns),
        "end": instant_or_none(end_ns),
        "minutes": (end_ns - begin_ns) // MINUTE_NS,
        "peakBacklogMessages": _backlog(worst),
        "isInferred": any(row["evidence"] == "inferred" for row in rows),
        "sentence": worst["sentence"],
    }


def _start_ns(row: Mapping[str, Any]) -> int:
    return since_epoch_us(row["minute"]) * NS_PER_US
