"""Forecasts of backlog quotas, and what came true of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from headgate.base.units import NS_PER_S, NS_PER_US
from headgate.pipeline.kernels.forecast_score import Score
from headgate.pipeline.output.breach_times import counted_from_ns
from headgate.pipeline.report.grid import Grid
from headgate.pipeline.report.quota_states import REACHED_COLUMNS, reached_minutes
from headgate.pipeline.report.quotas import BANDS, Breach, QuotaTopic, quota_topics
from headgate.pipeline.report.scores import topic_scores
from headgate.pipeline.serve.selection import (
    DAY_NS,
    Selection,
    camel,
    instant_or_none,
    is_topic,
    topic_names,
)
from headgate.pipeline.store.scan import TableScan
from headgate.pipeline.tables.columns import MINUTE_NS
from headgate.pipeline.tables.intervals import TOPIC_KEY
from headgate.pipeline.tables.quotas import THEIL_SEN_METHOD
from headgate.pipeline.time_span import Span, iso_text, since_epoch_us

TOPICS_MAX: Final = 50
"""Most topics of one answer."""

OUTCOME_NS: Final = DAY_NS
"""A forecast says what happens within this time after it."""

FORECASTS_MAX: Final = 300
"""Most forecasts of one topic in an answer: a day has 288, one each five minutes."""

_USES: Final = ("size_use_max", "time_use_max", "size_use", "time_use")
_COLUMNS: Final = tuple(
    dict.fromkeys(
        (
            *TOPIC_KEY, "minute", "to_ns", "forecast_at", "breach_quota", "method", *BANDS,
            *_USES, *REACHED_COLUMNS, "sentence",
        )
    )
)  # fmt: skip


def forecasts(usage: TableScan, minutes: TableScan, selection: Selection) -> dict[str, Any]:
    """The topics with quotas in a range, those reached or approached first, and the accuracy of
    their forecasts.

    ``usage`` is a scan of ``quota_usage`` of the selected topics, ``minutes`` one of ``intervals``.
    """
    grid = Grid.over(selection.since_ns, selection.until_ns)
    found = quota_topics(usage, selection.span, grid, selection.count)
    names = sorted({topic.name for topic in found.topics})
    scores = topic_scores(minutes, names, selection.since_ns, selection.until_ns)
    total = sum((score for _, _, score in scores), Score())
    return {
        **selection.document(),
        "reached": found.reached,
        "approached": found.approached,
        "wereReached": found.were_reached,
        "topics": [_topic_document(topic) for topic in found.topics],
        "accuracy": _score_document(total),
        "scores": [
            {"topic": topic, "quota": quota, **_score_document(score)}
            for topic, quota, score in scores
        ],
    }


def forecast(
    usage: TableScan, selection: Selection, topic: str, cluster: str = ""
) -> dict[str, Any]:
    """The use of a topic's quotas by minute, and each of its forecasts with what came true.

    ``topic`` is a full name, of a partition with its suffix. ``cluster`` may be empty: any.
    """
    filters: list[tuple[str, Sequence[str]]] = [("topic", topic_names(topic))]
    if cluster:
        filters.append(("cluster", [cluster]))
    span = Span(selection.since_ns, selection.until_ns + OUTCOME_NS)
    known = usage.rows(_COLUMNS, span, *filters).sort_by("minute")
    reached = reached_minutes(known).tolist()
    rows = [
        (row, is_reached)
        for row, is_reached in zip(known.to_pylist(), reached, strict=True)
        if is_topic(row, topic)
    ]
    grid = Grid.over(selection.since_ns, selection.until_ns)
    uses: dict[str, list[float | None]] = {"size": [None] * grid.count, "time": [None] * grid.count}
    for row, _ in rows:
        step = (_minute_ns(row) - grid.start_ns) // grid.step_ns
        for quota, values in uses.items():
            known_use = (row[f"{quota}_use_max"], row[f"{quota}_use"])
            use = max((each for each in known_use if each is not None), default=None)
            if 0 <= step < grid.count and use is not None:
                values[step] = max(values[step] or 0.0, use)
    made = forecasts_made(rows, selection.until_ns)
    return {
        **selection.document(),
        "topic": topic,
        "use": {"start": iso_text(grid.start_ns), "stepS": grid.step_ns // NS_PER_S, **uses},
        "forecasts": made[-FORECASTS_MAX:],
        "sentence": rows[-1][0]["sentence"] if rows else None,
    }


def forecasts_made(
    rows: Sequence[tuple[Mapping[str, Any], bool]], until_ns: int
) -> list[dict[str, Any]]:
    """Each forecast that predicted a breach, with the breach that came, from minutes in the order
    of time and whether a quota was reached in each.

    ``outcome``: ``within`` the band, ``earlier``, ``later``, ``not`` (the band has passed) or
    ``open`` (it has not, or telemetry ends before).
    """
    made: dict[int, dict[str, Any]] = {}
    breaches = [_minute_ns(row) for row, is_reached in rows if is_reached]
    end_ns = max((_minute_ns(row) + MINUTE_NS for row, _ in rows), default=0)
    for row, is_reached in rows:
        if is_reached or row["method"] != THEIL_SEN_METHOD or not row["seconds_to_breach"]:
            continue
        at_ns = _forecast_ns(row)
        if at_ns >= until_ns or at_ns in made:
            continue
        from_ns = counted_from_ns(row)
        earliest, likely, latest = (
            None if row[name] is None else from_ns + int(row[name] * NS_PER_S) for name in BANDS
        )
        came = next((b for b in breaches if at_ns <= b < at_ns + OUTCOME_NS), None)
        made[at_ns] = {
            "at": instant_or_none(at_ns),
            "quota": row["breach_quota"],
            "earliest": instant_or_none(earliest),
            "likely": instant_or_none(likely),
            "latest": instant_or_none(latest),
            "came": instant_or_none(came),
            "outcome": outcome(came, earliest, latest, end_ns),
        }
    return [made[at_ns] for at_ns in sorted(made)]


def outcome(
    came_ns: int | None, earliest_ns: int | None, latest_ns: int | None, end_ns: int
) -> str:
    """What came true of a forecast. A breach is known to its minute, so the band is widened by
    one."""
    if came_ns is None:
        return "not" if latest_ns is not None and end_ns > latest_ns + MINUTE_NS else "open"
    if earliest_ns is not None and came_ns + MINUTE_NS <= earliest_ns:
        return "earlier"
    if latest_ns is not None and came_ns > latest_ns:
        return "later"
    return "within"


def _topic_document(topic: QuotaTopic) -> dict[str, Any]:
    return {
        "cluster": topic.cluster,
        "topic": topic.topic,
        "state": topic.state,
        "peakUse": topic.peak_use,
        "heldS": topic.held_s,
        "evictedMessages": topic.evicted_messages,
        "policy": topic.policy,
        "breach": None if topic.breach is None else _breach_document(topic.breach),
        "sentence": topic.sentence,
        "sentenceAt": instant_or_none(topic.sentence_ns),
    }


def _breach_document(breach: Breach) -> dict[str, Any]:
    return {
        "quota": breach.quota,
        "method": breach.method,
        "from": instant_or_none(breach.from_ns),
        "use": breach.use,
        "earliestS": breach.earliest_s,
        "likelyS": breach.likely_s,
        "latestS": breach.latest_s,
    }


def _score_document(score: Score) -> dict[str, Any]:
    return {camel(name): value for name, value in score.document().items()}


def _minute_ns(row: Mapping[str, Any]) -> int:
    return since_epoch_us(row["minute"]) * NS_PER_US


def _forecast_ns(row: Mapping[str, Any]) -> int:
    """When a minute's forecast was made."""
    at = row["forecast_at"]
    return _minute_ns(row) + MINUTE_NS if at is None else since_epoch_us(at) * NS_PER_US
