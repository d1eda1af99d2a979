"""Facts for the sections of the page, with hostile names."""

from __future__ import annotations

from typing import Any

import numpy as np

from headgate.pipeline.report.backlogs import Backlogs, WorstBacklog
from headgate.pipeline.report.backtests import BacktestRun, GridPoint
from headgate.pipeline.report.grid import Grid
from headgate.pipeline.report.publishing import Limiter, ParkedTopic
from headgate.pipeline.report.quality import Quality
from headgate.pipeline.report.quota_states import APPROACHED, REACHED
from headgate.pipeline.report.quotas import Breach, Eviction, QuotaTopic
from headgate.pipeline.tables.attribution import BLAMES
from headgate.pipeline.tables.columns import MINUTE_NS
from headgate.pipeline.time_span import Span
from headgate.record.fields import PARK_CAUSES
from tests.unit.pipeline.play import T0

EVIL = "persistent://public/default/</script><img src=x onerror=alert(1)>"
GRID = Grid(T0, MINUTE_NS, 3)
SPAN = Span(T0, GRID.end_ns)
ZERO = np.zeros(3)


def backlog(**more: Any) -> WorstBacklog:
    """All of its time is the topic limit's."""
    shares = dict.fromkeys(BLAMES, ZERO) | {"THROTTLED_TOPIC": np.array([1.0, 0.5, 0.0])}
    facts: dict[str, Any] = {
        "cluster": "c1",
        "topic": EVIL,
        "subscription": "s<b>",
        "verdict": "THROTTLED_TOPIC",
        "confidence": 0.9,
        "completeness": 1.0,
        "growth_messages": 1_200,
        "backlog_messages": 2_000,
        "peak_messages": 2_500,
        "seconds": 60.0,
        "sentence": "THROTTLED_TOPIC: the topic limit of <b>200</b> msg/s.",
        "span": SPAN,
        "levels": np.array([1_000.0, np.nan, 2_000.0]),
        "shares": shares,
        "is_unused": False,
    }
    return WorstBacklog(**facts | more)


def backlogs(*worst: WorstBacklog) -> Backlogs:
    """These and no others."""
    blamed = dict.fromkeys(BLAMES, 0.0) | {"THROTTLED_TOPIC": 90.0, "CONSUMER": 30.0, "NONE": 60.0}
    growth = sum(o.growth_messages for o in worst)
    return Backlogs(1_000, len(worst), growth, blamed, worst)


def quota_topic(breach: Breach | None = None, **more: Any) -> QuotaTopic:
    """A size quota that fills."""
    facts: dict[str, Any] = {
        "cluster": "c1",
        "name": EVIL,
        "topic": EVIL,
        "size_use": np.array([0.5, 0.6, 0.7]),
        "time_use": np.full(3, np.nan),
        "peak_use": 0.7,
        "state": "" if breach is None else APPROACHED,
        "reached_quota": "",
        "held_s": 0.0,
        "held_share": 0.0,
        "evicted_messages": 0,
        "policy": "producer_request_hold",
        "breach": breach,
        "sentence": "it fills",
        "sentence_ns": T0 + 2 * MINUTE_NS,
        "until_ns": GRID.end_ns,
        "was_reached": False,
    }
    return QuotaTopic(**facts | more)


def reached_topic(**more: Any) -> QuotaTopic:
    """One that held producers for two of three minutes."""
    facts: dict[str, Any] = {
        "topic": "persistent://public/default/full",
        "state": REACHED,
        "reached_quota": "size",
        "held_s": 112.0,
        "held_share": 0.62,
        "was_reached": True,
    }
    return quota_topic(**{"breach": near_breach()} | facts | more)


def near_breach(**more: Any) -> Breach:
    """In five minutes, between two and ten."""
    facts: dict[str, Any] = {
        "quota": "size",
        "method": "theil_sen",
        "from_ns": GRID.end_ns,
        "use": 0.7,
        "earliest_s": 120.0,
        "likely_s": 300.0,
        "latest_s": 600.0,
    }
    return Breach(**facts | more)


def parked_topic() -> ParkedTopic:
    """Held by two causes."""
    parked = dict.fromkeys(PARK_CAUSES, ZERO) | {
        "topic_rate": np.array([10.0, 20.0, 0.0]),
        "memory": np.array([0.0, 0.0, 5.0]),
    }
    seconds = {c: float(v.sum()) for c, v in parked.items()}
    return ParkedTopic("c1", EVIL, seconds, "the worst <i>", T0 + MINUTE_NS, 1 / 6, SPAN, parked)


def limiter(**more: Any) -> Limiter:
    """A broker's limit in bytes."""
    facts: dict[str, Any] = {
        "cluster": "c1",
        "level": "publish_broker",
        "subject": EVIL + "|s",
        "dimension": "bytes",
        "held": 10,
        "waiting_share": 0.25,
        "sentence": "somebody waits",
        "sentence_ns": T0 + MINUTE_NS,
        "span": SPAN,
        "limit_per_s": np.full(3, 100.0),
        "offered_per_s": np.array([90.0, 160.0, np.nan]),
        "granted_per_s": np.array([90.0, 100.0, np.nan]),
    }
    return Limiter(**facts | more)


def eviction(quota: str = "size") -> Eviction:
    """100 messages in the first step."""
    lost = np.array([100.0, 0.0, 0.0])
    return Eviction("c1", EVIL, quota, 2, 100, 5_000_000, (("a<b>", 100),), T0, T0 + 60, lost)


def run(points: int = 3) -> BacktestRun:
    """The first point is alone on the front."""
    found = tuple(
        GridPoint(
            i,
            f"drain <{i}>",
            "adaptive: law <b>",
            2,
            10.0 * i,
            5.0,
            0.9,
            None,
            1,
            0,
            1.0,
            i,
            i == 0,
        )
        for i in range(points)
    )
    return BacktestRun("r<1>", None, 2, points, 1, found)


def quality(**more: Any) -> Quality:
    """Half is known of one step, and nothing of the last."""
    facts: dict[str, Any] = {
        "clusters": ("c<1>",),
        "brokers": ("b1",),
        "evidence": ("measured",),
        "rows": 10,
        "completeness": 0.75,
        "completeness_steps": np.array([1.0, 0.5, np.nan]),
        "gaps_steps": np.array([0.0, 2.0, 0.0]),
        "counts": {"gaps": 2, "restarts": 1, "resets": 0, "clock_steps": 0},
        "quarantined": 3,
        "reasons": (("not a <record>", 3),),
    }
    return Quality(**facts | more)
