"""The accuracy of the quota forecasts on the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Final

from headgate.pipeline.kernels.forecast_score import Score, score_table
from headgate.pipeline.kernels.quota_forecast import FORECAST_COLUMNS
from headgate.pipeline.output.attribution import topic_text
from headgate.pipeline.store.scan import TableScan
from headgate.pipeline.tables.columns import HOUR_NS
from headgate.pipeline.tables.intervals import TOPIC_ORDER
from headgate.pipeline.time_span import Span
from headgate.record.fields import Kind

_OUTCOME_NS: Final = 24 * HOUR_NS
"""A forecast is compared with what happened within this time after it."""
_SHOWN: Final = {
    "forecasts": "forecasts",
    "breached": "breaches",
    "coverage": "breaches within the band",
    "pinball_50_s": "pinball loss (s)",
    "levels": "levels",
    "level_coverage": "levels within the band",
    "level_pinball_50": "pinball loss (of the limit)",
    "missed_share": "breaches missed",
}
"""Figures of a score, with their headings on the page."""
_SHARES: Final = ("coverage", "level_coverage", "level_pinball_50", "missed_share")


def forecast_scores(
    intervals: TableScan, topics: Sequence[str], since_ns: int, until_ns: int
) -> list[dict[str, Any]]:
    """The score of all these topics together and of each, for the forecasts of a range.

    ``topics`` are names without the suffix of a partition. Empty if no forecast is due yet.
    """
    scored = topic_scores(intervals, topics, since_ns, until_ns)
    total = sum((score for _, _, score in scored), Score())
    if not total.levels and not total.resolved:
        return []
    return [_row("all topics below", "", total), *(_row(*found) for found in scored)]


def topic_scores(
    intervals: TableScan, topics: Sequence[str], since_ns: int, until_ns: int
) -> list[tuple[str, str, Score]]:
    """Topic (of a partition with its suffix, without ``persistent://``), quota and score, those
    with most forecasts first.

    ``topics`` are names without the suffix of a partition.
    """
    if not topics:
        return []
    span = Span(since_ns - HOUR_NS, until_ns + _OUTCOME_NS)
    columns = list(dict.fromkeys((*FORECAST_COLUMNS, *TOPIC_ORDER)))
    minutes = intervals.rows(
        columns, span, ("kind", [Kind.TOPIC.value]), ("topic", sorted(set(topics)))
    ).sort_by([(name, "ascending") for name in TOPIC_ORDER])
    if not minutes.num_rows:
        return []
    scored = []
    for row in score_table(minutes, since_ns, until_ns).to_pylist():
        score = Score(**{field.name: row[field.name] for field in fields(Score)})
        scored.append((f"{topic_text(row)}".removeprefix("persistent://"), row["quota"], score))
    scored.sort(key=lambda found: (-found[2].forecasts, found[0], found[1]))
    return scored


def _row(topic: str, quota: str, score: Score) -> dict[str, Any]:
    document = score.document()
    return {
        "topic": topic,
        "quota": quota,
        **{
            title: share_text(document[name]) if name in _SHARES else document[name]
            for name, title in _SHOWN.items()
        },
    }


def share_text(share: float | None) -> str | None:
    """A share in percent, with two digits below 10 %."""
    if share is None:
        return None
    return f"{100 * share:.0f} %" if share >= 0.1 or share == 0 else f"{100 * share:.2g} %"
