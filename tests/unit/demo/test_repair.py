"""The choice of the limit to raise, and its new value."""

from __future__ import annotations

from dataclasses import replace

from headgate.demo.repair import is_drained, plan_repair
from tests.unit.demo.made import SUBJECTS, all_findings, finding, scene, subject


def test_the_largest_backlog_under_a_limit_is_repaired() -> None:
    found = all_findings()
    found[subject("orders / billing")] = finding("orders / billing", 90_000)
    found[subject("clicks / reports")] = finding("clicks / reports", 1_800)
    repair = plan_repair(SUBJECTS.items(), found)
    assert repair is not None
    assert repair.scene == scene("topic-limit")
    assert repair.named.subject.text == "clicks / reports"
    assert [each.text for each in repair.held] == ["clicks / search", "clicks / reports"]


def test_the_new_limit_passes_new_messages_and_the_backlog() -> None:
    found = all_findings(0)
    found[subject("clicks / search")] = finding("clicks / search", 1_590)
    found[subject("clicks / reports")] = finding("clicks / reports", 1_602)
    repair = plan_repair(SUBJECTS.items(), found)
    assert repair is not None
    # 2 x 100/s and 3,192 in 8 s are 599/s, rounded up.
    assert repair.new_per_s == 600
    (call,) = repair.calls
    assert call.body["dispatchThrottlingRateInMsg"] == 600
    assert call.path == "/admin/v2/persistent/public/default/clicks/dispatchRate"


def test_no_limit_is_raised_when_none_is_the_cause() -> None:
    found = all_findings()
    none = {each: replace(one, verdict="CONSUMER", limit_level="") for each, one in found.items()}
    assert plan_repair(SUBJECTS.items(), none) is None
    assert plan_repair(SUBJECTS.items(), {}) is None


def test_a_limit_of_another_scene_is_not_raised() -> None:
    what = subject("payments / audit")
    wrong = finding("payments / audit", verdict="THROTTLED_BROKER", limit_level="broker")
    assert plan_repair(SUBJECTS.items(), {what: wrong}) is None


def test_drained_means_the_whole_backlog_of_the_limit() -> None:
    found = all_findings(0)
    found[subject("clicks / search")] = finding("clicks / search", 3_000)
    repair = plan_repair(SUBJECTS.items(), found)
    assert repair is not None
    assert not is_drained(repair, found)
    found[subject("clicks / search")] = finding("clicks / search", 50)
    assert is_drained(repair, found)
    found[subject("clicks / reports")] = finding("clicks / reports", 51)
    assert not is_drained(repair, found)


def test_a_limit_that_follows_the_publish_rate_needs_no_repair() -> None:
    found = all_findings()
    found[subject("parcels / tracking")] = finding("parcels / tracking", 90_000)
    repair = plan_repair(SUBJECTS.items(), found)
    assert repair is not None
    assert repair.scene != scene("relative-limit")
