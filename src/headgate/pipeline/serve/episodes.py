"""Episodes: backlogs from begin to end, with their sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Final

import pyarrow as pa

from headgate.base.errors import InputError
from headgate.base.units import NS_PER_S, NS_PER_US
from headgate.pipeline.kernels.episodes import SEGMENT_ORDER, joined_table
from headgate.pipeline.output.attribution import topic_text
from headgate.pipeline.serve.selection import (
    DAY_NS,
    Selection,
    document,
    instant_or_none,
    is_topic,
    topic_names,
)
from headgate.pipeline.store.scan import TableScan
from headgate.pipeline.tables.attribution import BLAMES
from headgate.pipeline.tables.columns import HOUR_NS
from headgate.pipeline.tables.episodes import BLAME_COLUMNS, SEGMENT_COLUMNS
from headgate.pipeline.time_span import Span

RANGE_MAX_NS: Final = 31 * DAY_NS
"""Longest range of one list."""

SEGMENTS_MAX: Final = 100_000
"""Segments in memory for one list, about 60 MB. A list that needs more shows the newest."""

_NEAR_NS: Final = 7 * DAY_NS
"""How far around an instant the segments of one episode are read."""

_PLAIN: Final = (
    "cluster", "subscription", "incarnation", "is_open", "ending", "continues_before", "minutes",
    "peak_backlog_messages", "peak_minute", "growth_messages", "cause", "second_cause", "evicted",
    "expired", "completeness", "evidence", "sentence",
)  # fmt: skip


def episodes(scan: TableScan, selection: Selection, segments_max: int = SEGMENTS_MAX) -> Any:
    """The episodes of a range, the largest first, as JSON has them.

    ``more`` is how many pass beside those that are shown. ``isCut`` says that the range has more
    segments than fit in memory, so that older ones were not read.
    """
    parts: list[pa.Table] = []
    kept, is_cut = 0, False
    # A segment is found by its start, and may reach into the range from an hour before.
    span = Span(selection.since_ns - HOUR_NS, selection.until_ns)
    newest = chain.from_iterable(batches for _, batches in scan.newest_first(SEGMENT_COLUMNS, span))
    for rows in selection.named(newest):
        is_cut = kept >= segments_max
        if is_cut:
            break
        parts.append(rows)
        kept += rows.num_rows
    found = [
        row
        for row in _joined(parts)
        if (row["episode_end_ns"] is None or row["episode_end_ns"] > selection.since_ns)
        and (not selection.verdict or row["cause"] == selection.verdict)
    ]
    found.sort(key=lambda row: (-(row["peak_backlog_messages"] or 0), -row["episode_start_ns"]))
    return {
        **selection.document(),
        "episodes": [episode_document(row) for row in found[: selection.count]],
        "more": max(0, len(found) - selection.count),
        "isCut": is_cut,
    }


def episode(scan: TableScan, topic: str, subscription: str, at_ns: int, cluster: str = "") -> Any:
    """The episode of a subscription at an instant.

    ``topic`` is a full name, of a partition with its suffix. ``cluster`` may be empty: any.

    Raises:
        InputError: there was none.
    """
    filters: list[tuple[str, Sequence[str]]] = [
        ("topic", topic_names(topic)), ("subscription", [subscription]),
    ]  # fmt: skip
    if cluster:
        filters.append(("cluster", [cluster]))
    near = Span(max(0, at_ns - _NEAR_NS), at_ns + _NEAR_NS)
    rows = scan.rows(SEGMENT_COLUMNS, near, *filters)
    for row in _joined([rows]):
        # Links have the start without its nanoseconds.
        start_ns = row["episode_start_ns"] // NS_PER_US * NS_PER_US
        end_ns = row["episode_end_ns"]
        if is_topic(row, topic) and start_ns <= at_ns and (end_ns is None or at_ns < end_ns):
            return episode_document(row)
    raise InputError(
        f"no episode of subscription {subscription!r} of topic {topic!r} is known at this time"
    )


def _joined(parts: Sequence[pa.Table]) -> list[dict[str, Any]]:
    if not parts:
        return []
    segments = pa.concat_tables(parts)
    order = [(name, "ascending") for name in SEGMENT_ORDER]
    rows: list[dict[str, Any]] = joined_table(segments.sort_by(order)).to_pylist()
    return rows


def episode_document(row: Mapping[str, Any]) -> dict[str, Any]:
    """An episode as JSON has it."""
    blame = zip(BLAMES, BLAME_COLUMNS, strict=True)
    age_ns = row["oldest_age_max_ns"]
    return {
        "topic": topic_text(row),
        **document(row, _PLAIN),
        "start": instant_or_none(row["episode_start_ns"]),
        "end": instant_or_none(row["episode_end_ns"]),
        "oldestAgeMaxS": None if age_ns is None else age_ns / NS_PER_S,
        "blameS": {cause: row[name] / NS_PER_S for cause, name in blame if row[name]},
    }
