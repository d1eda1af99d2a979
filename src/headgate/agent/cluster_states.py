"""How each watched cluster is, in the JSON of the agent's ``clusters``.

``state_report`` costs little; ``totals_report`` goes over all topics of a cluster, so its answers
are kept for a few seconds.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final, Protocol

from headgate.agent.metrics import ClusterCounts
from headgate.agent.shared_history import SharedHistory
from headgate.agent.standing import Standing
from headgate.base.units import NS_PER_S
from headgate.explain.delivery import Instant

JUDGED_MAX: Final = 100
"""The largest backlogs of a cluster, of which verdicts are counted."""
KEPT_NS: Final = 5 * NS_PER_S
"""Totals may be so old, and older by a second for each :data:`SUBSCRIPTIONS_PER_S` that are
watched: going over 10,000 takes 0.1 s."""
SUBSCRIPTIONS_PER_S: Final = 5_000


@dataclass(frozen=True, slots=True)
class Requests:
    """What a cluster is asked."""

    per_s: float | None
    """Mean over the last minute; None in the first seconds."""
    allowed_per_s: int
    """At most so many now."""
    stated_per_s: int
    """At most so many ever."""
    halved: int
    """How often a slow or overloaded answer has halved what is allowed."""


class WatchedCluster(Protocol):
    """One cluster that is watched, as :class:`headgate.agent.cluster_watch.ClusterWatch`."""

    name: str
    history: SharedHistory

    @property
    def is_stalled(self) -> bool:
        """Whether the watch hangs."""
        ...

    @property
    def standing(self) -> Standing:
        """What is known of it as a whole."""
        ...

    def requests(self) -> Requests:
        """What it is asked."""
        ...

    def last_look_age_s(self) -> float:
        """Seconds since the last look at a topic."""
        ...

    def not_seen(self) -> list[str]:
        """What could not be looked at, in sentences."""
        ...

    def counts(self) -> ClusterCounts:
        """The agent's own figures about the cluster."""
        ...


def state_report(watch: WatchedCluster, instant: Instant) -> dict[str, Any]:
    """Whether a cluster answers, what is seen of it, and what it is asked. ``null``: not known."""
    standing, requests, counts = watch.standing, watch.requests(), watch.counts()
    return {
        "cluster": watch.name,
        "lastLookAgeS": round(watch.last_look_age_s(), 3),
        "notSeen": watch.not_seen(),
        "reachable": standing.is_reachable,
        "reachableSinceS": _ago_s(standing.since_ns, instant),
        "reason": standing.reason,
        "lastSurveyAgeS": _ago_s(standing.survey_ns, instant),
        "looks": counts.looks,
        "looksFailed": sum(counts.errors.values()),
        "brokers": standing.brokers,
        "brokersAway": [
            {"broker": broker, "awayS": _ago_s(since_ns, instant), "reason": reason}
            for broker, since_ns, reason in watch.history.unreachable_brokers()
        ],
        "topics": counts.topics,
        "topicsLeftOut": standing.topics_left_out,
        "requests": {
            "perS": None if requests.per_s is None else round(requests.per_s, 2),
            "allowedPerS": requests.allowed_per_s,
            "statedPerS": requests.stated_per_s,
            "isSlowed": requests.allowed_per_s < requests.stated_per_s,
            "halved": requests.halved,
        },
        "stalled": watch.is_stalled,
    }


class TotalsReports:
    """Totals over the topics of clusters. Several threads may ask: one of them computes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[int, dict[str, Any]]] = {}

    def of(self, watch: WatchedCluster, instant: Instant) -> dict[str, Any]:
        """Totals of a cluster, some seconds old at most."""
        with self._lock:
            kept = self._kept.get(watch.name)
            if kept is None or instant.now_ns - kept[0] >= self._kept_ns():
                report = totals_report(watch.history, instant)
                kept = self._kept[watch.name] = instant.now_ns, report
            return kept[1]

    def _kept_ns(self) -> int:
        total: int = sum(report["subscriptions"] for _, report in self._kept.values())
        return KEPT_NS + total * NS_PER_S // SUBSCRIPTIONS_PER_S


def totals_report(history: SharedHistory, instant: Instant) -> dict[str, Any]:
    """Subscriptions, backlogs and verdicts."""
    top = history.top(JUDGED_MAX, instant)
    verdicts = Counter(report["verdict"] for report in top["subscriptions"])
    messages, size = history.backlogs(instant.now_ns)
    return {
        "subscriptions": top["subscriptionsTotal"],
        "withBacklog": top["withBacklog"],
        "backlogMessages": messages,
        "backlogBytes": size,
        "judged": len(top["subscriptions"]),
        "verdicts": dict(verdicts),
        "quotasNear": len(top["quotas"]),
    }


def _ago_s(at_ns: int | None, instant: Instant) -> float | None:
    return None if at_ns is None else round(max(0, instant.now_ns - at_ns) / NS_PER_S, 3)
