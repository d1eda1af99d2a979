"""How a cluster is, as the page and scripts read it."""

from __future__ import annotations

import json

import pytest

from headgate.agent import cluster_states
from headgate.agent.cluster_history import ClusterHistory
from headgate.agent.cluster_states import (
    KEPT_NS,
    SUBSCRIPTIONS_PER_S,
    Requests,
    TotalsReports,
    state_report,
    totals_report,
)
from headgate.agent.shared_history import SharedHistory
from headgate.agent.standing import Standing
from headgate.explain.delivery import Instant
from tests.unit.agent.known import NOW, READY
from tests.unit.agent.looks import S, backlog, look
from tests.unit.agent.watched import Watch


def test_a_cluster_that_answers() -> None:
    watch = Watch("prod", standing=Standing(True, 5 * S, "", 3, 12 * S, 7))
    report = state_report(watch, NOW)
    json.dumps(report)
    assert (report["cluster"], report["reachable"], report["reachableSinceS"]) == ("prod", True, 15)
    assert (report["brokers"], report["lastSurveyAgeS"], report["topicsLeftOut"]) == (3, 8, 7)
    assert (report["lastLookAgeS"], report["notSeen"]) == (1.5, ["the broker's settings"])
    assert report["requests"] == {
        "perS": 25.0, "allowedPerS": 50, "statedPerS": 50, "isSlowed": False, "halved": 0,
    }  # fmt: skip
    assert (report["brokersAway"], report["stalled"]) == ([], False)


def test_what_is_not_known_is_null() -> None:
    report = state_report(Watch("prod"), NOW)
    assert report["reachable"] is report["reachableSinceS"] is report["lastSurveyAgeS"] is None
    assert report["brokers"] is None


def test_a_cluster_that_is_away_and_a_budget_that_is_halved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watch = Watch("prod", standing=Standing(False, 15 * S, "it did not answer within 3 s"))
    watch.history.note_unreachable("b1:8080", 18 * S, "refused")
    monkeypatch.setattr(watch, "requests", lambda: Requests(None, 12, 50, 2))
    report = state_report(watch, NOW)
    assert (report["reachable"], report["reachableSinceS"]) == (False, 5)
    assert report["reason"] == "it did not answer within 3 s"
    assert report["brokersAway"] == [{"broker": "b1:8080", "awayS": 2, "reason": "refused"}]
    assert report["requests"] == {
        "perS": None, "allowedPerS": 12, "statedPerS": 50, "isSlowed": True, "halved": 2,
    }  # fmt: skip


def history() -> SharedHistory:
    """Two topics: one with two backlogs, whose size is told, one without."""
    found = SharedHistory(ClusterHistory("c"))
    for second in range(10, 21):
        found.note_look(
            look(
                second, backlog(backlog=10 * second), backlog("b", backlog=second),
                topic="persistent://a/b/late", published=10 * second, backlog_bytes=1_000,
            )
        )  # fmt: skip
        found.note_look(
            look(
                second, backlog(consumers=(READY,)), topic="persistent://a/b/fine",
                published=second, backlog_bytes=None,
            )
        )  # fmt: skip
    return found


def test_totals_are_over_all_topics() -> None:
    assert totals_report(history(), NOW) == {
        "subscriptions": 3, "withBacklog": 2, "backlogMessages": 220, "backlogBytes": 1_000,
        "judged": 2, "verdicts": {"NO_CONSUMER": 2}, "quotasNear": 0,
    }  # fmt: skip


def test_a_backlog_of_unknown_size_makes_the_sum_unknown() -> None:
    found = history()
    found.note_look(look(20, backlog(backlog=1), topic="persistent://a/b/x", backlog_bytes=None))
    totals = totals_report(found, NOW)
    assert (totals["backlogMessages"], totals["backlogBytes"]) == (221, None)


@pytest.mark.parametrize("subscriptions", [0, 10 * SUBSCRIPTIONS_PER_S])
def test_totals_are_computed_the_less_often_the_more_there_is(
    monkeypatch: pytest.MonkeyPatch, subscriptions: int
) -> None:
    computed: list[int] = []

    def counted(_: SharedHistory, instant: Instant) -> dict[str, int]:
        computed.append(instant.now_ns)
        return {"subscriptions": subscriptions}

    monkeypatch.setattr(cluster_states, "totals_report", counted)
    kept_ns = KEPT_NS + 10 * S * (subscriptions > 0)
    totals, prod = TotalsReports(), Watch("prod")
    for at_ns in (0, 1, kept_ns - 1, kept_ns):
        totals.of(prod, Instant(at_ns, 0))
    assert computed == [0, kept_ns]
    totals.of(Watch("test"), Instant(kept_ns, 0))
    assert computed == [0, kept_ns, kept_ns]
